// An event count: waiters sleep until somebody rings, without missing a ring between their look and their sleep.
//
//   uint64_t ticket = bell.ticket();      // before looking
//   if (!ready()) bell.Wait(ticket, until);
//
// Threads:  thread-safe. Ring costs one atomic add when nobody waits.
// Ordering: what happened before Ring is visible to a waiter that returns from Wait because of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "src/base/mutex.h"

namespace penstock::host {

class Bell {
 public:
  uint64_t ticket() const { return rings_.load(std::memory_order_seq_cst); }

  void Ring() {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    base::MutexLock lock(mu_);  // pairs with the check under the lock in Wait
    cv_.NotifyAll();
  }

  // Returns when the bell has rung since `ticket` was taken, or at `until`.
  void Wait(uint64_t ticket, std::chrono::steady_clock::time_point until) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    {
      base::MutexLock lock(mu_);
      while (rings_.load(std::memory_order_seq_cst) == ticket) {
        if (!WaitOnce(until)) break;
      }
    }
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  bool WaitOnce(std::chrono::steady_clock::time_point until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (until == std::chrono::steady_clock::time_point::max()) {
      cv_.Wait(mu_);
      return true;
    }
    return cv_.WaitUntil(mu_, until);
  }

  std::atomic<uint64_t> rings_{0};
  std::atomic<int> waiters_{0};
  base::Mutex mu_;
  base::CondVar cv_;
};

}  // namespace penstock::host
