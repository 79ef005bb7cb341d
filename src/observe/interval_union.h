// IntervalUnion: how long at least one of many intervals lasts, in bounded memory. They may come in any order; of one
// that comes after a hundred and more gaps behind it have been seen the part before those gaps does not count.
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
    // Those that touch it, which most of the time is at most the last one.
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

  std::vector<Interval> open_;  // apart from each other, in their order
  double closed_ = 0;  // length of those before `from_`
  double from_ = -std::numeric_limits<double>::infinity();
};

}  // namespace penstock::observe
