// OwnerCount: a count that the slot's owner keeps and any thread may read.
//
// Threads: only the owner adds; any thread may call get.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock::runtime {

class OwnerCount {
 public:
  void operator+=(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  void operator++() { *this += 1; }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};  // only the owner adds
};

// Adds its lifetime to a count of nanoseconds.
class TimedScope {
 public:
  explicit TimedScope(OwnerCount& nanoseconds) : nanoseconds_(nanoseconds) {}
  ~TimedScope() { nanoseconds_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count(); }
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

 private:
  OwnerCount& nanoseconds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace penstock::runtime
