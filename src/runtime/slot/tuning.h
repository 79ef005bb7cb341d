// The measured thresholds of src/runtime/slot. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <cstdint>

namespace penstock::runtime::tuning {

// Threads in a block of a ParallelFor over one dimension. Benchmarks: eager, replay.
inline constexpr uint32_t kLineBlock = 256;
// Threads in a block of a ParallelFor over two or three dimensions, and the least of them side by side: powers of two.
// Benchmarks: elements, replay.
inline constexpr uint32_t kTile = 128, kLeastWidth = 32;
// The most elements that a thread computes, if so many blocks of lines or tiles are left: an H100 runs 1056 of lines
// and 2112 of tiles at a time. Benchmark: elements.
inline constexpr int kMostEach = 8, kLeastLines = 2048, kLeastTiles = 1024;

}  // namespace penstock::runtime::tuning
