// Explores schedules: runs a few threads one at a time and lets another go on at every atomic operation, in every order
// there is, up to a number of schedules.
//
// Code under test is a template over its atomics; tests give it ModelAtomic, ModelMutex and ModelCondVar. Sequentially
// consistent: memory orders are ThreadSanitizer's to check. A schedule in which every thread waits for another is
// reported as a deadlock, which is how a lost wake-up shows.
//
// Threads: real ones, of which the scheduler lets one run at a time. One exploration at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace penstock::interleave {

// What the threads do, on state of their own, and what must hold when all have ended (empty, or what is wrong).
struct Scenario {
  std::vector<std::function<void()>> threads;
  std::function<std::string()> check;
};

struct Explored {
  int64_t schedules = 0;
  bool all = false;  // there is no other schedule
  std::string problem;  // of the first schedule that went wrong, which is then the last
};

// `make` is called for each schedule and gives fresh state. Sanitizers, which slow a schedule down tenfold and see the
// same code in each, get 1000 schedules at most.
Explored Explore(const std::function<Scenario()>& make, int64_t most_schedules = 20000);

// Called by the models: lets another thread go on first, or waits until `ready` holds.
void Point();
void BlockUntil(const std::function<bool()>& ready);

template <class T>
class ModelAtomic {
 public:
  ModelAtomic(T value = T{}) : value_(value) {}  // NOLINT: implicit, as std::atomic's
  T load(std::memory_order = std::memory_order_seq_cst) const { return Point(), value_; }
  void store(T value, std::memory_order = std::memory_order_seq_cst) { Point(), value_ = value; }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) { return Point(), std::exchange(value_, value); }
  T fetch_add(T n, std::memory_order = std::memory_order_seq_cst) {
    return Point(), std::exchange(value_, static_cast<T>(value_ + n));
  }
  T fetch_sub(T n, std::memory_order = std::memory_order_seq_cst) {
    return Point(), std::exchange(value_, static_cast<T>(value_ - n));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order = std::memory_order_seq_cst) {
    Point();
    if (value_ == expected) return value_ = value, true;
    return expected = value_, false;
  }

 private:
  T value_;
};

class ABSL_LOCKABLE ModelMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    Point();
    if (held_) BlockUntil([this] { return !held_; });
    held_ = true;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { held_ = false; }

 private:
  bool held_ = false;
};

class ModelCondVar {
 public:
  void Wait(ModelMutex& mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const int64_t seen = notified_;
    mutex.Unlock();
    BlockUntil([this, seen] { return notified_ != seen; });
    mutex.Lock();
  }
  // Time does not pass.
  bool WaitUntil(ModelMutex& mutex, std::chrono::steady_clock::time_point) { return Wait(mutex), true; }
  void NotifyAll() { ++notified_; }

 private:
  int64_t notified_ = 0;
};

}  // namespace penstock::interleave
