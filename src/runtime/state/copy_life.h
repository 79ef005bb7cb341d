// CopyLife: whether a copy is under way, and who of two comes last: the caller, who may leave before it ends, or its
// end.
//
// Threads:  Begin and Leave by the caller, End by whoever ends the copy.
// Ordering: what was done before End is visible to who sees that the copy is over.
#pragma once

#include <atomic>

namespace penstock::runtime {

// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class CopyLife {
 public:
  // Before the copy is posted.
  void Begin() { state_.store(kUnderWay, std::memory_order_relaxed); }
  // The caller waits no longer. False: the copy has ended.
  bool Leave() {
    int expected = kUnderWay;
    return state_.compare_exchange_strong(expected, kLeft, std::memory_order_acq_rel);
  }
  // True: the caller has left. Whoever waits for the end may destroy this from now on.
  bool End() { return state_.exchange(kOver, std::memory_order_acq_rel) == kLeft; }
  // Also where none began.
  bool over() const { return state_.load(std::memory_order_acquire) == kOver; }

 private:
  static constexpr int kOver = 0, kUnderWay = 1, kLeft = 2;
  Atomic<int> state_{kOver};  // kLeft: the caller has left before the end
};

}  // namespace penstock::runtime
