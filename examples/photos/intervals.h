// Sets of time as sorted, disjoint, half-open intervals: how long at least one of many spans was open, and how long
// some were open while others were not.
//
// Threads: pure functions on plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace photos {

// [begin, end) in nanoseconds of any one clock. Empty where end <= begin.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A normal set: sorted, non-empty, with gaps between neighbours.
using IntervalSet = std::vector<Interval>;

// Any intervals, overlapping and in any order, as a normal set. O(n log n).
IntervalSet Normalize(std::vector<Interval> intervals);

// Both arguments and the result are normal. O(n + m).
IntervalSet Union(const IntervalSet& a, const IntervalSet& b);
IntervalSet Subtract(const IntervalSet& a, const IntervalSet& b);

int64_t Length(const IntervalSet& set);

// What three engines of one device did: both copy directions and the kernels.
struct EngineTimes {
  IntervalSet upload;
  IntervalSet download;
  IntervalSet compute;
};

// Time of copies, and the part of it in which neither a kernel nor a copy of the other direction ran. Nanoseconds; both
// directions at once count twice in `total`.
struct CopyTime {
  int64_t total = 0;
  int64_t exposed = 0;

  // 1 - exposed / total; 0 where nothing was copied.
  double hidden_share() const {
    return total == 0 ? 0.0 : 1.0 - static_cast<double>(exposed) / static_cast<double>(total);
  }
};
CopyTime MeasureCopies(const EngineTimes& engines);

}  // namespace photos
