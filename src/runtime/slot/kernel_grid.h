// KernelGrid: how many blocks of how many threads compute a ParallelFor on a device.
//
// The grid covers a small extent, a thread an element. Over a large one each thread computes several, since what
// precedes the functor's own work takes longer than a short functor; but the device keeps enough blocks, so that
// functors of unequal length still balance. The kernel loops over what the grid does not cover (detail/parallel_for.h).
// Why: docs/adr/087.
//
// Threads: a pure function.
#pragma once

#include <array>
#include <cstdint>

#include "penstock/detail/arguments.h"

namespace penstock::runtime {

struct KernelGrid {
  std::array<uint32_t, 3> grid, block;
};

// CUDA's limits on a grid.
inline constexpr int64_t kMaxGridX = (int64_t{1} << 31) - 1, kMaxGridYZ = 65535;

// `rank` is that of the extent. No dimension of the range is 0.
KernelGrid GridOf(const detail::Range& range, int rank);

}  // namespace penstock::runtime
