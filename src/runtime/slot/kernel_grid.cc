#include "src/runtime/slot/kernel_grid.h"

#include <algorithm>

#include "src/runtime/slot/tuning.h"

namespace penstock::runtime {
namespace {

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }
uint32_t Limited(int64_t blocks, int64_t limit) { return static_cast<uint32_t>(std::min(blocks, limit)); }

// How many elements a thread computes, if a thread an element would take so many blocks.
int64_t EachOf(int64_t blocks) {
  return std::clamp(blocks / tuning::kLeastBlocks, int64_t{1}, int64_t{tuning::kMostEach});
}

}  // namespace

KernelGrid GridOf(const detail::Range& range, int rank) {
  if (rank == 1) {
    const int64_t blocks = Ceil(range.width, tuning::kLineBlock);
    return {{Limited(Ceil(blocks, EachOf(blocks)), kMaxGridX), 1, 1}, {tuning::kLineBlock, 1, 1}};
  }
  const int64_t across = Ceil(range.width, tuning::kTileX), down = Ceil(range.height, tuning::kTileY);
  const int64_t each = EachOf(across * down * range.depth), each_down = std::min(each, down);
  return {{Limited(Ceil(across, each / each_down), kMaxGridX), Limited(Ceil(down, each_down), kMaxGridYZ),
           Limited(range.depth, kMaxGridYZ)},
          {tuning::kTileX, tuning::kTileY, 1}};
}

}  // namespace penstock::runtime
