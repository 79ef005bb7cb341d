// Whether memory bound for one run overlaps where it must not: two ranges that share bytes, one of them written.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::runtime {

struct BoundRange {
  uintptr_t begin = 0, end = 0;  // addresses; end is past the last byte
  bool written = false;
};

// Two ranges of the table, by index, first < second.
struct Overlap {
  int32_t first, second;
};

// `order` names the ranges to compare and is left sorted by address where one is written: given again for the next
// launch, it often is so. n where it is or none is written, else n log n, without allocating. Empty ranges overlap
// nothing.
std::optional<Overlap> FindOverlap(const std::vector<BoundRange>& ranges, std::vector<int32_t>& order);

}  // namespace penstock::runtime
