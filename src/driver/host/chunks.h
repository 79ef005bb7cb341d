// How one piece of work is cut for several threads: `units` (rows, elements or bytes) into chunks of nearly equal size.
//
// Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace penstock::driver::host {

struct UnitRange {
  int64_t first = 0, end = 0;
};

// Chunks a thread gets on average: enough that a slow one is made up for, few enough that claiming costs nothing.
inline constexpr int64_t kChunksPerThread = 4;

// How many chunks `units` units of `unit_cost` are worth: none costs less than `grain`, unless there is only one.
// 0 where there is nothing to do.
inline int ChunkCount(int64_t units, int64_t unit_cost, int64_t grain, int threads) {
  if (units <= 0) return 0;
  if (threads <= 1) return 1;
  int64_t cost = 0;
  if (__builtin_mul_overflow(units, std::max<int64_t>(unit_cost, 1), &cost)) cost = std::numeric_limits<int64_t>::max();
  const int64_t most = std::min(units, threads * kChunksPerThread);
  return static_cast<int>(std::clamp<int64_t>(cost / grain, 1, most));
}

// The units of chunk `index` of `chunks`. Without overflow for any count of units.
inline UnitRange ChunkRange(int64_t units, int chunks, int index) {
  const int64_t each = units / chunks, longer = units % chunks;
  const int64_t first = each * index + std::min<int64_t>(index, longer);
  return {first, first + each + (index < longer ? 1 : 0)};
}

}  // namespace penstock::driver::host
