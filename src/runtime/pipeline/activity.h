// PipelineActivity: what threads that push a pipeline on count, and those that might help look at: one cache line, so
// that a look costs whoever moves items one miss.
//
// Threads: thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::runtime {

inline constexpr size_t kCacheLine = 64;

struct alignas(kCacheLine) PipelineActivity {
  std::atomic<int> in_flight{0};  // runs
  std::atomic<int> starved{0};  // queues that found no slot free, since others use their executables
  std::atomic<int> blocked{0};  // devices that are (Placement); set with the pipeline's lock held
  std::atomic<int> waiting{0};  // threads that wait in calls of the pipeline
  std::atomic<int> abandoned{0};  // AbandonedItems; set with the pipeline's lock held
  std::atomic<int64_t> active_ns{0};  // when runs came to be in flight last

  // Whether there is anything to be seen of devices.
  bool Busy() const { return in_flight.load() > 0 || starved.load() > 0 || abandoned.load() > 0; }
};

}  // namespace penstock::runtime
