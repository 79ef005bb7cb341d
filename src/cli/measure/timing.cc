#include "src/cli/measure/timing.h"

#include <chrono>
#include <utility>

#include "penstock/status_macros.h"
#include "src/analysis/median.h"

namespace penstock::cli::measure {

double GigabytesPerSecond(int64_t bytes, double us) { return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0; }

double Now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<double> MedianOf(const Effort& effort, const std::function<absl::StatusOr<double>()>& time,
                                const std::function<double()>& now) {
  const double end = now() + effort.budget_us;
  std::vector<double> times;
  const auto enough = [&] {
    const int done = static_cast<int>(times.size());
    return done >= effort.repeats || (done >= effort.least_repeats && now() >= end);
  };
  while (!enough()) {
    PENSTOCK_ASSIGN_OR_RETURN(const double us, time());
    times.push_back(us);
  }
  return analysis::Median(std::move(times));
}

}  // namespace penstock::cli::measure
