// ChunkExchange: where the threads of a staging ring hand copies and chunks to each other, and wait for them. It is a
// ChunkSchedule under one lock, with the wake-ups that belong to it. One lock is enough, since a thread holds it for
// well under a microsecond per chunk.
//
// Ownership: borrows each posted copy until it calls the copy's `done`.
// Threads:   thread-safe. Any thread may Post and Withdraw; a WorkerId belongs to one copying thread; one feeding
//            thread calls what is for it. `done` is called with no lock held.
// Ordering:  whatever a thread did to a block before it handed the chunk over is visible to the thread that takes it.
// Locks:     mu_, a leaf.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"
#include "src/memory/chunk_schedule.h"
#include "src/memory/schedule_hints.h"
#include "src/memory/sleeping_workers.h"

namespace penstock::memory {

class ChunkExchange {
 public:
  // The driver notifies `event_count` if it notifies completions; the feeding thread then waits for that.
  ChunkExchange(const driver::Driver& driver, host::EventCount& event_count, const ChunkSchedule::Sizes& sizes);

  // See Staging.
  void Post(StagedCopy& copy);
  void Withdraw(StagedCopy& copy);
  // Ends the waits of all threads once nothing is left to do.
  void Stop();

  // For copying threads. A chunk that BeginCopy returns must be copied, if it is wanted, and then given to EndCopy.
  std::optional<StagedChunk> BeginCopy(WorkerId w);
  void EndCopy(const StagedChunk& chunk);
  // Waits until there may be something to copy, then returns true; false if the thread must end.
  bool AwaitCopy(WorkerId w);

  // For the feeding thread.
  bool MayFeed() const { return hints_.MayFeed(); }
  // See ChunkSchedule. TakeChunks returns whether there was anything to do.
  bool TakeChunks(std::vector<StagedChunk>& chunks);
  void Arrived(const StagedChunk& chunk);
  void Refused(const StagedChunk& chunk);
  // Whether copies are posted that have not ended.
  bool busy() const { return busy_.load(std::memory_order_acquire) > 0; }
  // Sleeps until a copy is posted, then returns true; false if the thread must end.
  bool AwaitPost();

 private:
  bool Spin(WorkerId w);
  void UpdateHints(const StagedChunk& returned) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NotifyFeedingThread();
  void GiveUp(const SkippedChunks& skipped);
  void End(StagedCopy& copy);

  host::EventCount& event_count_;
  const bool notifies_;  // the driver does; otherwise threads poll for a while before they sleep

  base::Mutex mu_;
  base::CondVar posted_, untouched_;
  ChunkSchedule schedule_ ABSL_GUARDED_BY(mu_);
  SleepingWorkers sleeping_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  ScheduleHints hints_;
  std::atomic<int> spinning_{0};  // threads that look without sleeping; a hint
  std::atomic<int> busy_{0};  // copies posted that have not ended
};

}  // namespace penstock::memory
