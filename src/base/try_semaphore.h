// A gate that lets so many in at once and keeps nobody waiting: who finds it full is told so, and tries again when
// somebody has left, who learns that there may be such (the runtime rings its event count then).
//
// A refusal means that the gate was full, of those inside, at some moment of the call. That is why nobody is counted
// who only tries: two such could refuse each other while nobody is inside, and then nobody would ring.
//
// Threads:  thread-safe.
// Ordering: what a thread did before Leave is visible to whoever enters later.
#pragma once

#include <atomic>

namespace penstock::base {

// `Atomic` is std::atomic but in tests that explore schedules.
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
  // Whether somebody has been refused since the last time that somebody left.
  bool Leave() {
    int seen = inside_.load(std::memory_order_relaxed);
    while (!inside_.compare_exchange_strong(seen, (seen & ~kRefused) - 1, std::memory_order_acq_rel)) {
    }
    return (seen & kRefused) != 0;
  }

 private:
  static constexpr int kRefused = 1 << 30;

  Atomic<int> inside_{0};  // how many are, and whether one was refused
};

}  // namespace penstock::base
