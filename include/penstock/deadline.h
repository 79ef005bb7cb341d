// When to stop waiting: a steady_clock time point, or a duration from now.
//
// Times saturate: a duration that is longer than the clock goes, infinity too, is no limit, and one that is negative
// has already passed. So has one that is not a number, so that the mistake shows at once and does not hang.
#pragma once

#include <chrono>

namespace penstock {
namespace detail {

// The duration in nanoseconds, or the nearest that can be said; the least of all for what is not a number.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds Saturated(std::chrono::duration<Rep, Period> duration) {
  using Nanoseconds = std::chrono::nanoseconds;
  // A long double has room for all 64 bits of a whole number.
  constexpr long double kUnit = 1e9L * static_cast<long double>(Period::num) / static_cast<long double>(Period::den);
  const long double count = static_cast<long double>(duration.count()) * kUnit;
  if (count >= static_cast<long double>(Nanoseconds::max().count())) return Nanoseconds::max();
  if (!(count > static_cast<long double>(Nanoseconds::min().count()))) return Nanoseconds::min();
  return Nanoseconds(static_cast<Nanoseconds::rep>(count));
}

// `from` and so long after it, or the end, or the beginning, of what the clock can say.
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
