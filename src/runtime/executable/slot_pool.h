// SlotPool: the slots of an executable, and which of them are taken by a run or a lease.
//
// Ownership: owns the slots.
// Threads:   thread-safe once Set has been called.
// Locks:     mu_ guards the free list, and RunSlot::run and RunSlot::leased of every slot; nothing is called with it
//            held except RunCore::Ref.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "src/base/mutex.h"
#include "src/host/event_count.h"
#include "src/runtime/run/run_core.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class SlotPool {
 public:
  explicit SlotPool(host::EventCount& event_count) : event_count_(event_count) {}

  // Called once, before the first launch.
  void Set(std::vector<std::unique_ptr<RunSlot>> slots);
  // No run may be in flight.
  void Clear();

  const std::vector<std::unique_ptr<RunSlot>>& slots() const { return slots_; }
  int size() const { return static_cast<int>(slots_.size()); }
  int taken();
  // Runs in flight.
  int runs();

  // Takes a free slot; null if there is none.
  RunSlot* TakeFree();
  // A run begins in a taken slot. After EndRun, also of a run that never began, the slot is free unless it is leased;
  // the event count is notified.
  void BeginRun(RunSlot& slot, RunCore* run);
  void EndRun(RunSlot& slot);
  bool HasRun(const RunSlot& slot);
  // A taken slot stays taken, also between runs, until GiveBack and the end of its run.
  void MarkLeased(RunSlot& slot);
  void GiveBack(RunSlot& slot);

  // Calls `f` with every run in flight, without the lock.
  template <class F>
  void ForEachRun(F f);

 private:
  host::EventCount& event_count_;
  std::vector<std::unique_ptr<RunSlot>> slots_;

  base::Mutex mu_;
  std::vector<RunSlot*> free_ ABSL_GUARDED_BY(mu_);
};

template <class F>
void SlotPool::ForEachRun(F f) {
  for (const auto& slot : slots_) {
    RunCore* run = nullptr;
    {
      base::MutexLock lock(mu_);
      run = slot->run;
      if (run != nullptr) run->Ref();
    }
    if (run == nullptr) continue;
    f(*run);
    run->Unref();
  }
}

}  // namespace penstock::runtime
