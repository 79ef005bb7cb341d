// Finds memory bound for one run that must not overlap but does: two ranges that share bytes, one of them written.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::runtime {

struct BoundRange {
  uintptr_t begin = 0, end = 0;  // addresses; `end` is one past the last byte
  bool written = false;
};

// Two ranges of the table, by index, with first < second.
struct Overlap {
  int32_t first, second;
};

// `order` names the ranges to compare; if one is written, it is left sorted by address, so it is often already sorted
// for the next launch. Takes n if it is sorted or none is written, n log n otherwise, and never allocates. Empty ranges
// overlap nothing.
std::optional<Overlap> FindOverlap(const std::vector<BoundRange>& ranges, std::vector<int32_t>& order);

}  // namespace penstock::runtime
