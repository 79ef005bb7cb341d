// The measured thresholds of src/runtime/graph_exec. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <cstddef>

namespace penstock::runtime::tuning {

// Nodes with new parameters, in kLaunchesToEnable launches in a row, that make a graph read parameters by reference.
// Benchmark: replay.
inline constexpr size_t kManyNodes = 16;
inline constexpr int kLaunchesToEnable = 8;
// Launches in a row without new parameters after which nodes have their own again. Benchmark: replay.
inline constexpr int kLaunchesToDisable = 24;
// Bytes up to which a copy to or from the host is done by a kernel. Between kernels a copy engine is expensive, 8 us
// each way on an H200: copying up, two kernels and copying down take, for 64 KiB, 28 us with copy nodes and 13 us with
// kernels that copy; for 1 MiB 66 and 58 us; for 4 MiB the same. Sizes that a launch decides are unknown here.
// Benchmark: replay.
inline constexpr size_t kSmallBytes = 65536;

}  // namespace penstock::runtime::tuning
