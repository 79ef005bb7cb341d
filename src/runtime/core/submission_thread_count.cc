#include "src/runtime/core/submission_thread_count.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "src/base/environment.h"

namespace penstock::runtime {
namespace {

constexpr int kMost = 64;  // for each device; more have never been faster
constexpr int kMostByDefault = 8;
constexpr int kOtherCores = 4;

}  // namespace

absl::StatusOr<int> SubmissionThreadsOf(int option) {
  const std::optional<std::string> variable = base::Variable("PENSTOCK_SUBMISSION_THREADS");
  if (!variable) return std::min(option, kMost);
  const std::string_view text(*variable);
  int number = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < -1) {
    return absl::InvalidArgumentError("PENSTOCK_SUBMISSION_THREADS is '" + std::string(text) +
                                      "'; it must be a number of threads a device, 0 for none, or -1 to leave it open");
  }
  return std::min(number, kMost);
}

int DefaultSubmissionThreads(int cores, int devices) {
  if (devices == 0) return 0;
  return std::clamp((cores - kOtherCores) / devices, 0, kMostByDefault);
}

}  // namespace penstock::runtime
