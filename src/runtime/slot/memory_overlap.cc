#include "src/runtime/slot/memory_overlap.h"

#include <algorithm>

namespace penstock::runtime {

// In ascending order of address, a range overlaps an earlier one if and only if the earlier one that extends furthest
// ends after its beginning. A written range must be clear of all others, any other range only of the written ones.
std::optional<Overlap> FindOverlap(const std::vector<BoundRange>& ranges, std::vector<int32_t>& order) {
  const auto range = [&](int32_t i) -> const BoundRange& { return ranges[i]; };
  if (std::none_of(order.begin(), order.end(), [&](int32_t i) { return range(i).written; })) return std::nullopt;
  const auto before = [&](int32_t a, int32_t b) {
    return range(a).begin != range(b).begin ? range(a).begin < range(b).begin : a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  int32_t furthest = -1, furthest_written = -1;
  for (const int32_t i : order) {
    if (range(i).begin == range(i).end) continue;
    const int32_t other = range(i).written ? furthest : furthest_written;
    if (other >= 0 && range(other).end > range(i).begin) return Overlap{std::min(i, other), std::max(i, other)};
    if (furthest < 0 || range(i).end > range(furthest).end) furthest = i;
    if (range(i).written && (furthest_written < 0 || range(i).end > range(furthest_written).end)) furthest_written = i;
  }
  return std::nullopt;
}

}  // namespace penstock::runtime
