// Region: a box of a buffer's bytes, as the planner compares and copies it.
//
// A half-open interval in each dimension, slowest first, with the last in bytes, so that aliases of other element types
// compare with their base. Dimensions that a lower rank lacks come first and are [0, 1).
//
// Threads: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "penstock/detail/model.h"

namespace penstock::graph {

struct Region {
  std::array<int64_t, kMaxRank> lo{}, hi{};
  auto operator<=>(const Region&) const = default;
};
inline bool IsEmpty(const Region& r) { return r.lo[0] >= r.hi[0] || r.lo[1] >= r.hi[1] || r.lo[2] >= r.hi[2]; }
inline bool Overlap(const Region& a, const Region& b) {
  bool all = true;
  for (size_t d = 0; d < kMaxRank; ++d) all = all && a.lo[d] < b.hi[d] && b.lo[d] < a.hi[d];
  return all;
}
inline bool Covers(const Region& a, const Region& b) {
  bool all = true;
  for (size_t d = 0; d < kMaxRank; ++d) all = all && a.lo[d] <= b.lo[d] && b.hi[d] <= a.hi[d];
  return all;
}
// What both hold; empty if they do not overlap.
inline Region Common(const Region& a, const Region& b) {
  Region common;
  for (size_t d = 0; d < kMaxRank; ++d) {
    common.lo[d] = a.lo[d] > b.lo[d] ? a.lo[d] : b.lo[d];
    common.hi[d] = a.hi[d] < b.hi[d] ? a.hi[d] : b.hi[d];
  }
  return common;
}
inline int64_t BytesOf(const Region& r) {
  return IsEmpty(r) ? 0 : (r.hi[0] - r.lo[0]) * (r.hi[1] - r.lo[1]) * (r.hi[2] - r.lo[2]);
}
// Appends the parts of `a` outside `b`, which overlaps it: at most two per dimension.
void Subtract(const Region& a, const Region& b, std::vector<Region>& out);

}  // namespace penstock::graph
