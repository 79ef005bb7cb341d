// A meeting point for tests: threads arrive and stay until the test opens it.
//
// Threads: thread-safe. Waits that a broken library would make endless give up after a minute and say so.
#pragma once

#include <atomic>
#include <chrono>

#include "src/base/mutex.h"

namespace penstock::driver {

class Latch {
 public:
  // Notes the arrival, then waits until the latch is open.
  void Arrive() {
    base::MutexLock lock(mu_);
    ++arrived_;
    cv_.NotifyAll();
    while (!open_) cv_.Wait(mu_);
  }
  // False where fewer than `count` have arrived after a minute.
  bool AwaitArrived(int count = 1) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    base::MutexLock lock(mu_);
    while (arrived_ < count) {
      if (!cv_.WaitUntil(mu_, until)) return arrived_ >= count;
    }
    return true;
  }
  void Open() {
    base::MutexLock lock(mu_);
    open_ = true;
    cv_.NotifyAll();
  }
  void Shut() {
    base::MutexLock lock(mu_);
    open_ = false;
  }
  int arrived() {
    base::MutexLock lock(mu_);
    return arrived_;
  }

 private:
  base::Mutex mu_;
  base::CondVar cv_;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

// Counts how many are inside at once.
class Crowd {
 public:
  void Enter() {
    const int now = inside_.fetch_add(1) + 1;
    int most = most_.load();
    while (most < now && !most_.compare_exchange_weak(most, now)) {
    }
  }
  void Leave() { inside_.fetch_sub(1); }
  int most() const { return most_.load(); }

 private:
  std::atomic<int> inside_{0}, most_{0};
};

}  // namespace penstock::driver
