// RunRefs: who still needs a run, and whether somebody pushes it on.
//
// Two counts: one of everybody who may still touch the run (its own flight, handles, tasks, watchers), whose last one
// deletes it, and one of handles, whose last one sees that an unfinished run is handed to the completion thread.
//
// Threads:  thread-safe; the caller of any method but the constructor holds a count.
// Ordering: what a thread did before Unref is visible to the one that deletes the run.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::runtime {

// `Atomic` is std::atomic but in tests that explore schedules.
template <template <class> class Atomic = std::atomic>
class RunRefs {
 public:
  // Starts with two counts: one for the run in flight, one for its handle.
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // True: that was the last count.
  bool Unref() { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  void AddHandle() { handles_.fetch_add(1, std::memory_order_relaxed), Ref(); }
  // True: nobody has a handle any more, and the run must be watched. The count is still the caller's.
  bool DropHandle() { return handles_.fetch_sub(1, std::memory_order_acq_rel) == 1 && !drained(); }
  // True, once, where the run has not drained: the caller is to hand it to the completion thread.
  bool BeginWatch() { return !drained() && !has_watcher_.exchange(true, std::memory_order_acq_rel); }

  void SetDrained() { drained_.store(true, std::memory_order_release); }
  bool drained() const { return drained_.load(std::memory_order_acquire); }

 private:
  Atomic<int32_t> refs_{2};  // of everybody who may still touch the run
  Atomic<int32_t> handles_{1};  // of the application's
  Atomic<bool> has_watcher_{false};  // it has been handed to the completion thread
  Atomic<bool> drained_{false};  // its work has ended; set once
};

}  // namespace penstock::runtime
