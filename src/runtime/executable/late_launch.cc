#include "src/runtime/executable/late_launch.h"

#include "absl/strings/str_format.h"

namespace penstock::runtime {
namespace {

std::string MsText(double ns) { return absl::StrFormat("%.3g ms", ns / 1e6); }

}  // namespace

absl::Status RefuseIfLate(const std::string& label, const RunsInFront& front, Deadline deadline,
                          std::chrono::steady_clock::time_point now) {
  if (front.mean_ns <= 0 || front.runs <= 0 || deadline.is_never()) return absl::OkStatus();
  // As doubles, in which a deadline far in the past does not overflow.
  const double left = static_cast<double>(std::chrono::nanoseconds(deadline.at().time_since_epoch()).count()) -
                      static_cast<double>(std::chrono::nanoseconds(now.time_since_epoch()).count());
  const double takes = front.mean_ns * static_cast<double>(front.runs);
  if (takes < left) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrFormat(
      "%s: refused, since it would end after its deadline: %d %s in front of it, each of which adds %s by the mean of "
      "recent ones, %s in all, and %s; nothing was started; launch less often, give it a later deadline, or compile "
      "without CompileOptions::refuse_late",
      label, front.runs, front.runs == 1 ? "run is" : "runs are", MsText(front.mean_ns), MsText(takes),
      left > 0 ? MsText(left) + " are left" : "the deadline has passed"));
}

}  // namespace penstock::runtime
