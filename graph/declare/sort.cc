// The parts of a sort's declaration that need no template.
#include "penstock/detail/declare_sort.h"

#include <algorithm>

namespace penstock::detail {

int64_t SortScratchBytes(int64_t n, int64_t bytes_of_pair) {
  constexpr int64_t kForAll = 20 << 10, kOfPortion = int64_t{1} << 28;
  constexpr int64_t kMost = int64_t{1} << 52;  // Compile refuses the extent itself
  return std::min(n, kMost) * bytes_of_pair + std::min(n, kMost) / 2 + kForAll * (1 + std::min(n, kMost) / kOfPortion);
}

int64_t MostInRow(const Model& model, const Extent& extent) {
  if (extent.rank < 1 || extent.rank > kMaxRank) return 1;
  return MostElements(model, Extent(extent.dims[static_cast<size_t>(extent.rank) - 1]));
}

}  // namespace penstock::detail
