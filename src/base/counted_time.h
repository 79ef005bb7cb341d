// CountedTime: time that passes while somebody looks. Where a watchdog measures patience in it, a process that was
// stopped (by a debugger, a container that pauses, a computer that sleeps) is not taken for one that is stuck.
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

  // What counts of the time since the last look: all, or nothing of a gap that is too long.
  std::chrono::nanoseconds Look(TimePoint now) {
    const std::chrono::nanoseconds gap = now - last_;
    last_ = now;
    return gap > kStoodStill ? std::chrono::nanoseconds(0) : gap;
  }

 private:
  TimePoint last_;
};

}  // namespace penstock::base
