// IntervalUnion: the total time that at least one of many intervals covers, in bounded memory. Intervals may come in
// any order. Of an interval that arrives after more than a hundred later gaps have been seen, the part before those
// gaps is not counted.
//
// Threads: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace penstock::observe {

class IntervalUnion {
 public:
  void Add(double begin, double end) {
    begin = std::max(begin, from_);
    if (!(begin < end)) return;
    // The intervals that touch it, usually at most the last one.
    auto last = open_.end();
    while (last != open_.begin() && (last - 1)->begin > end) --last;
    auto first = last;
    while (first != open_.begin() && (first - 1)->end >= begin) --first;
    if (first == last) {
      open_.insert(first, {begin, end});
    } else {
      first->begin = std::min(first->begin, begin);
      first->end = std::max((last - 1)->end, end);
      open_.erase(first + 1, last);
    }
    if (open_.size() > kMost) Close();
  }

  double length() const {
    double length = closed_;
    for (const Interval& interval : open_) length += interval.end - interval.begin;
    return length;
  }

 private:
  static constexpr size_t kMost = 256;
  struct Interval {
    double begin, end;
  };

  void Close() {
    const auto half = open_.begin() + static_cast<std::ptrdiff_t>(kMost / 2);
    for (auto it = open_.begin(); it != half; ++it) closed_ += it->end - it->begin;
    from_ = (half - 1)->end;
    open_.erase(open_.begin(), half);
  }

  std::vector<Interval> open_;  // disjoint, in order
  double closed_ = 0;  // length of the intervals before `from_`
  double from_ = -std::numeric_limits<double>::infinity();
};

}  // namespace penstock::observe
