// RefuseIfLate: refuses a launch that should not end by its deadline (CompileOptions::refuse_late).
//
// Threads: free functions without state; WaitingLaunch is used by one thread, on a count that is thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "penstock/deadline.h"

namespace penstock::runtime {

// What is in front of a launch.
struct RunsInFront {
  int64_t runs = 0;  // in flight, or waiting for a slot
  double mean_ns = 0;  // the time that each of them adds; 0: unknown
};

// DeadlineExceeded if what is in front should take until the deadline. `label`: the graph, for the text.
absl::Status RefuseIfLate(const std::string& label, const RunsInFront& front, Deadline deadline,
                          std::chrono::steady_clock::time_point now);

// Counts a launch while it waits for a slot.
class WaitingLaunch {
 public:
  explicit WaitingLaunch(std::atomic<int64_t>& count) : count_(count) {
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  ~WaitingLaunch() { count_.fetch_sub(1, std::memory_order_relaxed); }
  WaitingLaunch(const WaitingLaunch&) = delete;
  WaitingLaunch& operator=(const WaitingLaunch&) = delete;

 private:
  std::atomic<int64_t>& count_;  // launches that wait; any thread
};

}  // namespace penstock::runtime
