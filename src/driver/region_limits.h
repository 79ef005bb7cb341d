// How much of a CUDA device resident regions may have (ops.h: RegionOp). Their blocks wait for each other, so all that
// are at work at once must fit; and other kernels must find room beside them.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::driver {

struct RegionLimits {
  int32_t blocks = 1;  // of a region, each of at most 512 threads and 134 KiB of shared memory
  int32_t at_once = 1;  // regions at work on a device
};

// All regions at work have at most one block for two multiprocessors, each of which has room for one such block
// whatever registers its threads need. Benchmark: resident.
inline RegionLimits RegionLimitsOf(int compute_units) {
  constexpr int32_t kBlocks = 8, kShare = 2;
  const int32_t all = std::max(compute_units / kShare, 1), blocks = std::min(all, kBlocks);
  return {.blocks = blocks, .at_once = all / blocks};
}

}  // namespace penstock::driver
