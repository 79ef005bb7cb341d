// TrySemaphore: admits a limited number of threads and never blocks: a thread that finds it full is refused, and tries
// again after another has left. Leave reports whether any was refused (the runtime then notifies its event count).
//
// A refusal means that the semaphore was full of admitted threads at some moment of the call. So a thread that only
// tries is not counted: two of those could refuse each other while none is inside, and no notification would follow.
//
// Threads:   thread-safe.
// Ordering:  what a thread did before Leave is visible to every thread that enters later.
#pragma once

#include <atomic>

namespace penstock::base {

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class TrySemaphore {
 public:
  bool Enter(int limit) {
    int seen = inside_.load(std::memory_order_acquire);
    for (;;) {
      const bool full = (seen & ~kRefused) >= limit;
      if (full && (seen & kRefused) != 0) return false;
      const int next = full ? seen | kRefused : seen + 1;
      if (inside_.compare_exchange_strong(seen, next, std::memory_order_acq_rel)) return !full;
    }
  }
  // Returns whether a thread has been refused since the last Leave.
  bool Leave() {
    int seen = inside_.load(std::memory_order_relaxed);
    while (!inside_.compare_exchange_strong(seen, (seen & ~kRefused) - 1, std::memory_order_acq_rel)) {
    }
    return (seen & kRefused) != 0;
  }

 private:
  static constexpr int kRefused = 1 << 30;

  Atomic<int> inside_{0};  // the number admitted, and whether one was refused
};

}  // namespace penstock::base
