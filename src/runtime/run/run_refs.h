// RunRefs: who still needs a run, and whether the completion thread advances it.
//
// There are two counts. One counts everything that may still touch the run (its own flight, handles, tasks, watchers);
// dropping the last one deletes the run. The other counts handles; dropping the last one hands an unfinished run to the
// completion thread.
//
// Threads:  thread-safe; the caller of any method except the constructor holds a count.
// Ordering: what a thread did before Unref is visible to the thread that deletes the run.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::runtime {

// `Atomic` is std::atomic except in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class RunRefs {
 public:
  // Starts with two counts: one for the run in flight, one for its handle.
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Returns true if that was the last count.
  bool Unref() { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  void AddHandle() { handles_.fetch_add(1, std::memory_order_relaxed), Ref(); }
  // Returns true if no handle is left and the run must be watched. The caller keeps its count.
  bool DropHandle() { return handles_.fetch_sub(1, std::memory_order_acq_rel) == 1 && !drained(); }
  // Returns true, once, if the run has not drained: the caller must hand it to the completion thread.
  bool BeginWatch() { return !drained() && !has_watcher_.exchange(true, std::memory_order_acq_rel); }

  void SetDrained() { drained_.store(true, std::memory_order_release); }
  bool drained() const { return drained_.load(std::memory_order_acquire); }

 private:
  Atomic<int32_t> refs_{2};  // everything that may still touch the run
  Atomic<int32_t> handles_{1};  // the application's handles
  Atomic<bool> has_watcher_{false};  // it has been handed to the completion thread
  Atomic<bool> drained_{false};  // its work has ended; set once
};

}  // namespace penstock::runtime
