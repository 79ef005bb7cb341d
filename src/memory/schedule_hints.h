// ScheduleHints: what a ChunkSchedule has to do, for threads that look without its lock.
//
// Threads:  any thread may read; whoever writes holds the lock of the schedule.
// Ordering: none. A thread that finds something to do looks again under the lock, and so does a thread that is about
//           to sleep.
#pragma once

#include <atomic>

#include "penstock/detail/table.h"
#include "src/memory/chunk_schedule.h"

namespace penstock::memory {

class ScheduleHints {
 public:
  explicit ScheduleHints(const ChunkSchedule& schedule) : free_to_fill_(schedule.workers()) {
    for (const WorkerId w : free_to_fill_.ids()) UpdateWorker(w, schedule);
  }

  bool MayFeed() const { return can_feed_.load(std::memory_order_relaxed); }
  bool MayCopy(WorkerId w) const {
    return can_empty_.load(std::memory_order_relaxed) ||
           (can_fill_.load(std::memory_order_relaxed) && free_to_fill_[w].blocks.load(std::memory_order_relaxed) > 0);
  }

  // Call it after each change of the schedule, and UpdateWorker if the number of the worker's blocks has changed.
  void Update(const ChunkSchedule& schedule) {
    can_feed_.store(schedule.CanSubmit(), std::memory_order_relaxed);
    can_fill_.store(schedule.HasUploads(), std::memory_order_relaxed);
    can_empty_.store(schedule.CanEmpty(), std::memory_order_relaxed);
  }
  void UpdateWorker(WorkerId w, const ChunkSchedule& schedule) {
    free_to_fill_[w].blocks.store(schedule.FreeToFill(w), std::memory_order_relaxed);
  }

 private:
  struct alignas(64) FreeBlocks {  // a cache line for each worker
    std::atomic<int> blocks{0};  // a hint
  };
  detail::Table<WorkerId, FreeBlocks> free_to_fill_;
  std::atomic<bool> can_feed_{false}, can_fill_{false}, can_empty_{false};  // hints; checked again under the lock
};

}  // namespace penstock::memory
