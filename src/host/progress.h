// How a thread waits for progress of devices and workers: asleep on the event count if the driver notifies it,
// otherwise polling for a short while and then in short sleeps (CUDA has no event count; an event query costs as much
// as polling a flag).
//
// Threads: stateless.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "src/host/event_count.h"
#include "src/host/tuning.h"

namespace penstock::host {

using TimePoint = std::chrono::steady_clock::time_point;

inline void CpuPause() { __builtin_ia32_pause(); }

// Calls `step` until it returns true (returns true) or `until` has passed (returns false).
template <class Step>
bool WaitForProgress(EventCount& event_count, bool notifies, TimePoint until, Step step,
                     std::chrono::microseconds poll_before_sleep = kPollBeforeSleep) {
  TimePoint sleep_from{};
  for (;;) {
    const uint64_t ticket = event_count.ticket();
    if (step()) return true;
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= until) return false;
    if (notifies) {
      event_count.Wait(ticket, until);
    } else if (sleep_from == TimePoint{}) {
      sleep_from = now + poll_before_sleep;
    } else if (now < sleep_from) {
      now < sleep_from - poll_before_sleep + kPollBeforeSleep ? CpuPause() : std::this_thread::yield();
    } else {
      event_count.Wait(ticket, std::min(until, now + kSleepSlice));
    }
  }
}

}  // namespace penstock::host
