// Deadline: when to stop waiting, as a steady_clock time point or a duration from now.
//
// Times saturate: a duration longer than the clock's range, infinity included, is no limit, and a negative one has
// already passed. So has one that is not a number, so that the mistake shows immediately instead of hanging.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <chrono>

namespace penstock {
namespace detail {

// The duration in nanoseconds, saturated at both ends; the minimum for a duration that is not a number.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds Saturated(std::chrono::duration<Rep, Period> duration) {
  using Nanoseconds = std::chrono::nanoseconds;
  // A long double represents all 64-bit integers exactly.
  constexpr long double kUnit = 1e9L * static_cast<long double>(Period::num) / static_cast<long double>(Period::den);
  const long double count = static_cast<long double>(duration.count()) * kUnit;
  if (count >= static_cast<long double>(Nanoseconds::max().count())) return Nanoseconds::max();
  if (!(count > static_cast<long double>(Nanoseconds::min().count()))) return Nanoseconds::min();
  return Nanoseconds(static_cast<Nanoseconds::rep>(count));
}

// `from` plus `by`, saturated at both ends of the clock's range.
constexpr std::chrono::steady_clock::time_point After(std::chrono::steady_clock::time_point from,
                                                      std::chrono::nanoseconds by) {
  using TimePoint = std::chrono::steady_clock::time_point;
  TimePoint::rep sum = 0;
  if (__builtin_add_overflow(from.time_since_epoch().count(), by.count(), &sum)) {
    return by.count() > 0 ? TimePoint::max() : TimePoint::min();
  }
  return TimePoint(TimePoint::duration(sum));
}

}  // namespace detail

class Deadline {
 public:
  // The clock that deadlines are measured by.
  using Clock = std::chrono::steady_clock;

  Deadline() = default;                                    // never
  // A point in time, or a duration from now.
  Deadline(Clock::time_point at) : at_(at) {}              // NOLINT: implicit
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> from_now)    // NOLINT: implicit
      : at_(detail::After(Clock::now(), detail::Saturated(from_now))) {}

  // The point in time; time_point::max() if there is no limit.
  Clock::time_point at() const { return at_; }
  // Whether there is no limit.
  bool is_never() const { return at_ == Clock::time_point::max(); }
  // Whether the time has passed.
  bool passed() const { return !is_never() && Clock::now() >= at_; }

 private:
  Clock::time_point at_ = Clock::time_point::max();
};

}  // namespace penstock
