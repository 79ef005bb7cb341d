// RuntimeCounts: what a runtime counts of itself besides its runs, for Metrics.
//
// Threads: thread-safe. Each is a number on which nothing else depends, and none is counted for each node.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::observe {

class Count {
 public:
  void operator+=(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};  // anything that is counted
};

struct RuntimeCounts {
  Count hostcalls;  // of runs that have drained
  Count instantiations;  // of graphs
  Count captures;  // of Launch nodes
};

}  // namespace penstock::observe
