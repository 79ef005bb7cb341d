// CompletionThread: advances the runs nobody waits for: those with host nodes, callbacks, deadlines or dropped handles.
// It also does what others must not, since it may wait for a device: freeing memory.
//
// Ownership: holds one count on each run it watches, until the run has drained.
// Threads:   Watch and Run are thread-safe. The thread sleeps while it watches nothing.
// Locks:     mu_ guards what comes in; runs are advanced, and tasks run, without it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "src/base/mutex.h"
#include "src/host/bell.h"
#include "src/host/worker_pool.h"

namespace penstock::runtime {

class RunState;

class CompletionThread {
 public:
  // `progress` is the bell that devices and workers ring; `rings`: whether all of them do.
  CompletionThread(host::Bell& progress, bool rings);
  ~CompletionThread() { Stop(); }

  // Does nothing once the thread has been stopped: every run has drained then, or is left to itself.
  void Watch(RunState* run);
  // Runs what may wait for a device, soon; at once when the thread has been stopped.
  void Run(host::Task task);
  // Ends the thread; runs still watched are dropped.
  void Stop();

 private:
  void Loop();
  void TakeIncoming();
  void RunTasks();
  void AdvanceWatched();

  host::Bell& progress_;
  const bool rings_;
  host::Bell incoming_bell_;
  std::atomic<bool> stop_{false};
  std::vector<RunState*> watched_;  // the thread's own

  base::Mutex mu_;
  std::vector<RunState*> incoming_ ABSL_GUARDED_BY(mu_);
  std::vector<host::Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::runtime
