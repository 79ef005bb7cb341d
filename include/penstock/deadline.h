// When to stop waiting: a steady_clock time point, or a duration from now.
#pragma once

#include <chrono>

namespace penstock {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline() = default;                                    // never
  Deadline(Clock::time_point at) : at_(at) {}              // NOLINT: implicit
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> from_now)    // NOLINT: implicit
      : at_(Clock::now() + std::chrono::duration_cast<Clock::duration>(from_now)) {}

  Clock::time_point at() const { return at_; }
  bool is_never() const { return at_ == Clock::time_point::max(); }
  bool passed() const { return !is_never() && Clock::now() >= at_; }

 private:
  Clock::time_point at_ = Clock::time_point::max();
};

}  // namespace penstock
