// One pass over sorted intervals each.
#include "intervals.h"

#include <algorithm>
#include <utility>

namespace photos {
namespace {

// Appends in order of `begin`, merging what touches.
void Append(IntervalSet* set, Interval next) {
  if (next.end <= next.begin) return;
  if (!set->empty() && next.begin <= set->back().end) {
    set->back().end = std::max(set->back().end, next.end);
  } else {
    set->push_back(next);
  }
}

bool BeginsBefore(const Interval& a, const Interval& b) { return a.begin < b.begin; }

}  // namespace

IntervalSet Normalize(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), BeginsBefore);
  IntervalSet set;
  for (const Interval& interval : intervals) Append(&set, interval);
  return set;
}

IntervalSet Union(const IntervalSet& a, const IntervalSet& b) {
  std::vector<Interval> all(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), all.begin(), BeginsBefore);
  IntervalSet set;
  for (const Interval& interval : all) Append(&set, interval);
  return set;
}

IntervalSet Subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet set;
  auto hole = b.begin();
  for (Interval rest : a) {
    while (hole != b.end() && hole->end <= rest.begin) ++hole;
    // A hole may reach into the next interval, so `hole` itself stays.
    for (auto h = hole; h != b.end() && h->begin < rest.end; ++h) {
      Append(&set, {rest.begin, h->begin});
      rest.begin = h->end;
    }
    Append(&set, rest);
  }
  return set;
}

int64_t Length(const IntervalSet& set) {
  int64_t length = 0;
  for (const Interval& interval : set) length += interval.end - interval.begin;
  return length;
}

CopyTime MeasureCopies(const EngineTimes& engines) {
  CopyTime time;
  time.total = Length(engines.upload) + Length(engines.download);
  time.exposed = Length(Subtract(engines.upload, Union(engines.compute, engines.download))) +
                 Length(Subtract(engines.download, Union(engines.compute, engines.upload)));
  return time;
}

}  // namespace photos
