// The measured thresholds of src/runtime/run. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <cstdint>

namespace penstock::runtime::tuning {

// Commands that a thread submits of a partitioned range before it chooses again. Benchmark: random_dag.
inline constexpr int32_t kStint = 16;

}  // namespace penstock::runtime::tuning
