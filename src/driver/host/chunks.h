// Splits one piece of work for several threads: `units` (rows, elements or bytes) into chunks of nearly equal size.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace penstock::driver::host {

struct UnitRange {
  int64_t first = 0, end = 0;
};

// Average chunks per thread: enough to balance a slow one, few enough that claiming them costs nothing.
inline constexpr int64_t kChunksPerThread = 4;

// The number of chunks for `units` units of `unit_cost` each: no chunk costs less than `grain`, unless there is only
// one. 0 if there is nothing to do.
inline int ChunkCount(int64_t units, int64_t unit_cost, int64_t grain, int threads) {
  if (units <= 0) return 0;
  if (threads <= 1) return 1;
  int64_t cost = 0;
  if (__builtin_mul_overflow(units, std::max<int64_t>(unit_cost, 1), &cost)) cost = std::numeric_limits<int64_t>::max();
  const int64_t most = std::min(units, threads * kChunksPerThread);
  return static_cast<int>(std::clamp<int64_t>(cost / grain, 1, most));
}

// The units of chunk `index` of `chunks`. Does not overflow for any number of units.
inline UnitRange ChunkRange(int64_t units, int chunks, int index) {
  const int64_t each = units / chunks, longer = units % chunks;
  const int64_t first = each * index + std::min<int64_t>(index, longer);
  return {first, first + each + (index < longer ? 1 : 0)};
}

}  // namespace penstock::driver::host
