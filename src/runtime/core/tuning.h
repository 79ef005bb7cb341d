// The measured thresholds of src/runtime/core. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

namespace penstock::runtime::tuning {

// Submission threads for each device; more have never been faster. Benchmark: feeders.
inline constexpr int kMostThreads = 64;
// The same if neither option nor environment says how many. Benchmark: feeders.
inline constexpr int kMostThreadsByDefault = 8;
// Cores left to the launching and completion threads and to the driver's. Benchmark: feeders.
inline constexpr int kOtherCores = 4;

}  // namespace penstock::runtime::tuning
