// CountedTime: time that passes while a thread observes it. A watchdog that measures its patience in it does not take a
// process that was stopped (by a debugger, a paused container, a sleeping computer) for one that is stuck.
//
// Threads: one at a time.
#pragma once

#include <chrono>

namespace penstock::base {

class CountedTime {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // A thread that looks as often as it should leaves no gap of this length, unless it was stopped as well.
  static constexpr std::chrono::seconds kStoodStill{1};

  explicit CountedTime(TimePoint now) : last_(now) {}

  // The time since the last look; 0 if the gap is too long to count.
  std::chrono::nanoseconds Look(TimePoint now) {
    const std::chrono::nanoseconds gap = now - last_;
    last_ = now;
    return gap > kStoodStill ? std::chrono::nanoseconds(0) : gap;
  }

 private:
  TimePoint last_;
};

}  // namespace penstock::base
