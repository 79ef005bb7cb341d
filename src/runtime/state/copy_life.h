// CopyLife: whether a copy is in flight, and which comes last: its end, or the departure of the caller, who may leave
// before it ends.
//
// Threads:  the caller calls Begin and Leave; the thread that ends the copy calls End.
// Ordering: what was done before End is visible to a thread that sees over().
#pragma once

#include <atomic>

namespace penstock::runtime {

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class CopyLife {
 public:
  // Called before the copy is posted.
  void Begin() { state_.store(kUnderWay, std::memory_order_relaxed); }
  // The caller stops waiting. Returns false if the copy has ended.
  bool Leave() {
    int expected = kUnderWay;
    return state_.compare_exchange_strong(expected, kLeft, std::memory_order_acq_rel);
  }
  // Returns true if the caller has left. If it has not, the waiting caller may destroy this from now on.
  bool End() { return state_.exchange(kOver, std::memory_order_acq_rel) == kLeft; }
  // Also true if no copy has begun.
  bool over() const { return state_.load(std::memory_order_acquire) == kOver; }

 private:
  static constexpr int kOver = 0, kUnderWay = 1, kLeft = 2;
  Atomic<int> state_{kOver};  // kLeft: the caller has left before the end
};

}  // namespace penstock::runtime
