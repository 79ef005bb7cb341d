// The measured thresholds of src/runtime/slot. docs/howto/tune.md lists them.
//
// Threads: constants.
#pragma once

#include <cstdint>

namespace penstock::runtime::tuning {

// Threads in a block of a ParallelFor over one dimension. Benchmarks: eager, replay.
inline constexpr uint32_t kLineBlock = 256;
// Threads in a block, in x and y, of a ParallelFor over two or three dimensions. Benchmarks: eager, replay.
inline constexpr uint32_t kTileX = 32, kTileY = 8;
// The most elements that a thread computes, if so many blocks are left: two waves of an H100. Benchmark: elements.
inline constexpr int kMostEach = 8, kLeastBlocks = 2048;

}  // namespace penstock::runtime::tuning
