#include "src/runtime/slot/kernel_grid.h"

#include <algorithm>
#include <bit>

#include "src/runtime/slot/tuning.h"

namespace penstock::runtime {
namespace {

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }
uint32_t Limited(int64_t blocks, int64_t limit) { return static_cast<uint32_t>(std::min(blocks, limit)); }

// How many elements a thread computes, if a thread an element would take so many blocks.
int64_t EachOf(int64_t blocks, int least_blocks) {
  return std::clamp(blocks / least_blocks, int64_t{1}, int64_t{tuning::kMostEach});
}

// A power of two, as the rows of a block are (detail/parallel_for.h).
int64_t RowsOf(int64_t each, int64_t down) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(each, down))));
}

// How wide a tile is: as wide as it may be while at most a quarter more threads than elements are in a row.
uint32_t TileWidth(int64_t width) {
  if (width < tuning::kLeastWidth) return static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(width)));
  uint32_t x = tuning::kTile;
  while (x > tuning::kLeastWidth && Ceil(width, x) * x - width > width / 4) x /= 2;
  return x;
}

}  // namespace

KernelGrid GridOf(const detail::Range& range, int rank) {
  if (rank == 1) {
    const int64_t blocks = Ceil(range.width, tuning::kLineBlock);
    return {{Limited(Ceil(blocks, EachOf(blocks, tuning::kLeastLines)), kMaxGridX), 1, 1}, {tuning::kLineBlock, 1, 1}};
  }
  const uint32_t x = TileWidth(range.width), y = tuning::kTile / x;
  const int64_t across = Ceil(range.width, x), down = Ceil(range.height, y);
  const int64_t each = EachOf(across * down * range.depth, tuning::kLeastTiles), each_down = RowsOf(each, down);
  return {{Limited(Ceil(across, each / each_down), kMaxGridX), Limited(Ceil(down, each_down), kMaxGridYZ),
           Limited(range.depth, kMaxGridYZ)},
          {x, y, 1}};
}

}  // namespace penstock::runtime
