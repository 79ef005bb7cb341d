#include "src/analysis/time_set.h"

#include <algorithm>
#include <utility>

namespace penstock::analysis {

TimeSet::TimeSet(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (const Interval& next : intervals) {
    if (!(next.begin < next.end)) continue;
    if (!intervals_.empty() && next.begin <= intervals_.back().end) {
      intervals_.back().end = std::max(intervals_.back().end, next.end);
    } else {
      intervals_.push_back(next);
    }
  }
}

double TimeSet::length() const {
  double sum = 0;
  for (const Interval& interval : intervals_) sum += interval.length();
  return sum;
}

TimeSet TimeSet::And(const TimeSet& other) const {
  TimeSet both;
  size_t a = 0, b = 0;
  while (a < intervals_.size() && b < other.intervals_.size()) {
    const Interval &mine = intervals_[a], &theirs = other.intervals_[b];
    const Interval common{std::max(mine.begin, theirs.begin), std::min(mine.end, theirs.end)};
    if (common.begin < common.end) both.intervals_.push_back(common);
    ++(mine.end < theirs.end ? a : b);
  }
  return both;
}

TimeSet TimeSet::Minus(const TimeSet& other) const {
  TimeSet left;
  size_t b = 0;
  for (Interval mine : intervals_) {
    while (b < other.intervals_.size() && other.intervals_[b].end <= mine.begin) ++b;
    for (size_t next = b; next < other.intervals_.size() && other.intervals_[next].begin < mine.end; ++next) {
      const Interval& hole = other.intervals_[next];
      if (mine.begin < hole.begin) left.intervals_.push_back({mine.begin, hole.begin});
      mine.begin = std::max(mine.begin, hole.end);
    }
    if (mine.begin < mine.end) left.intervals_.push_back(mine);
  }
  return left;
}

}  // namespace penstock::analysis
