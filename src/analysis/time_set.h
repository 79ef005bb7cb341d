// TimeSet: moments in time, as intervals that neither overlap nor touch, in order. Microseconds.
//
// Threads: plain values.
#pragma once

#include <vector>

namespace penstock::analysis {

struct Interval {
  double begin = 0, end = 0;
  double length() const { return end - begin; }
};

class TimeSet {
 public:
  TimeSet() = default;
  // All that at least one of the intervals covers, whatever their order. Empty ones are left out.
  explicit TimeSet(std::vector<Interval> intervals);

  const std::vector<Interval>& intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  double length() const;

  // What both have, and what this has and the other has not.
  TimeSet And(const TimeSet& other) const;
  TimeSet Minus(const TimeSet& other) const;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace penstock::analysis
