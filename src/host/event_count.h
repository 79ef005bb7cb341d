// EventCount: waiters sleep until notified, and miss no notification between their check and their sleep.
//
//   uint64_t ticket = event_count.ticket();      // before the check
//   if (!ready()) event_count.Wait(ticket, until);
//
// Threads:   thread-safe. Notify costs one atomic add if no thread waits.
// Ordering:  whatever happened before Notify is visible to a waiter that returns from Wait because of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "src/base/mutex.h"

namespace penstock::host {

// The types are those of `EventCount` below, except in tests that explore schedules.
template <template <class> class Atomic, class Mutex, class CondVar>
class BasicEventCount {
 public:
  uint64_t ticket() const { return epoch_.load(std::memory_order_seq_cst); }

  void Notify() {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    mu_.Lock();  // pairs with the check under the lock in Wait
    cv_.NotifyAll();
    mu_.Unlock();
  }

  // Returns when the event count has been notified since `ticket` was taken, or at `until`.
  void Wait(uint64_t ticket, std::chrono::steady_clock::time_point until) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    mu_.Lock();
    while (epoch_.load(std::memory_order_seq_cst) == ticket) {
      asleep_ = slept_at_ == ticket ? asleep_ + 1 : 1;
      slept_at_ = ticket;
      const bool woken = WaitOnce(until);
      if (slept_at_ == ticket) --asleep_;
      if (!woken) break;
    }
    mu_.Unlock();
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
  }

  // How many threads sleep, without those that have been notified but may not have woken yet.
  int asleep() const {
    mu_.Lock();
    const int asleep = slept_at_ == epoch_.load(std::memory_order_seq_cst) ? asleep_ : 0;
    mu_.Unlock();
    return asleep;
  }

 private:
  bool WaitOnce(std::chrono::steady_clock::time_point until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (until == std::chrono::steady_clock::time_point::max()) {
      cv_.Wait(mu_);
      return true;
    }
    return cv_.WaitUntil(mu_, until);
  }

  Atomic<uint64_t> epoch_{0};  // notifications so far
  Atomic<int> waiters_{0};  // threads that sleep, or are about to
  mutable Mutex mu_;  // for the sleep itself and its count
  // The last ticket with which a thread went to sleep, and how many sleep with it.
  uint64_t slept_at_ ABSL_GUARDED_BY(mu_) = 0;
  int asleep_ ABSL_GUARDED_BY(mu_) = 0;
  CondVar cv_;
};

using EventCount = BasicEventCount<std::atomic, base::Mutex, base::CondVar>;

}  // namespace penstock::host
