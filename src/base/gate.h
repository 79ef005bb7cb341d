// A gate that lets so many in at once and keeps nobody waiting: who finds it full is told so, and tries again when
// somebody has left (the runtime rings its bell then).
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
class Gate {
 public:
  bool Enter(int limit) {
    int inside = inside_.load(std::memory_order_acquire);
    while (inside < limit) {
      if (inside_.compare_exchange_strong(inside, inside + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  void Leave() { inside_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  Atomic<int> inside_{0};
};

}  // namespace penstock::base
