// How often something is timed, and what becomes of the times: medians and rates.
//
// A figure is the median of `repeats` runs. A large copy takes long, so no further run begins once the figure's budget
// is spent; but a median of fewer than `least_repeats` says nothing.
//
// Units:   microseconds, bytes, GB/s (10^9 bytes a second).
// Threads: plain values and free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::cli::measure {

struct Effort {
  int repeats = 31, least_repeats = 5;
  double budget_us = 300'000;  // of one figure
  // How long a timed run lasts at least, where more of the same makes it longer. It includes a launch and a wait of
  // some 10 us, which are then a quarter of a percent of the figure.
  double run_us = 4'000;
};
// For a smoke run.
constexpr Effort kQuickEffort{.repeats = 3, .least_repeats = 3, .budget_us = 0, .run_us = 200};

double GigabytesPerSecond(int64_t bytes, double us);

// Microseconds since some moment in the past.
double Now();

// The median of what `time` returns, called as often as `effort` says by the clock `now`; or its first error.
absl::StatusOr<double> MedianOf(const Effort& effort, const std::function<absl::StatusOr<double>()>& time,
                                const std::function<double()>& now = Now);

}  // namespace penstock::cli::measure
