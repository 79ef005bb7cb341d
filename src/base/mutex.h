// Mutex: a std::mutex with clang's thread-safety annotations, with a lock guard and a condition variable.
//
// absl::Mutex is not used because ThreadSanitizer reports false races in the packaged one; this is clean under it, and
// clang -Wthread-safety checks it. docs/explanation/threads.md has the lock order.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace penstock::base {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mu_.try_lock(); }
  // Tells the analysis, which does not look into the caller of a lambda, that the mutex is held. It checks nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mu_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Callers loop on the condition themselves, so that the analysis sees the guarded reads.
class CondVar {
 public:
  void Wait(Mutex& mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Returns false if `until` has passed.
  bool WaitUntil(Mutex& mu, std::chrono::steady_clock::time_point until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (until > kFarthest) {
      Wait(mu);
      return true;
    }
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const auto begin_of_time = std::chrono::steady_clock::time_point{};  // anything earlier has passed just the same
    const bool woken = cv_.wait_until(lock, std::max(until, begin_of_time)) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  // About 146 years after the machine has started. Later times never come, and the standard library's sums with other
  // clocks would overflow.
  static constexpr std::chrono::steady_clock::time_point kFarthest{std::chrono::nanoseconds(int64_t{1} << 62)};

  std::condition_variable cv_;
};

}  // namespace penstock::base
