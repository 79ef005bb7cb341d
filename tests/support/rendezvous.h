// A count that threads wait for. Waits give up after a long while, so that a broken order fails instead of hanging.
//
// Threads: thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/status/status.h"

namespace penstock {

class Meeting {
 public:
  int Arrive() {
    std::lock_guard<std::mutex> lock(mu_);
    cv_.notify_all();
    return ++count_;
  }
  bool Await(int count) {
    std::unique_lock<std::mutex> lock(mu_);
    return cv_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= count; });
  }
  bool Join(int count) {
    Arrive();
    return Await(count);
  }
  int count() {
    std::lock_guard<std::mutex> lock(mu_);
    return count_;
  }

 private:
  std::mutex mu_;
  std::condition_variable cv_;
  int count_ = 0;
};

inline absl::Status Met(bool met) { return met ? absl::OkStatus() : absl::InternalError("nobody came"); }

}  // namespace penstock
