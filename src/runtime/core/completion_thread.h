// CompletionThread: advances what nobody waits for: runs with host nodes, callbacks, deadlines or dropped handles, and
// pipelines.
// It also does what others must not, since it may wait for a device: freeing memory. One that polls keeps its core busy
// and looks all the time (RuntimeOptions::polling_cores).
//
// Ownership: holds one count on each run it watches, until the run has drained.
// Threads:   Watch, Wake and Run are thread-safe. The thread sleeps while it watches nothing but what is idle, unless
// it
//            polls.
// Locks:     mu_ guards what comes in; runs are advanced, and tasks run, without it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "src/base/mutex.h"
#include "src/host/event_count.h"
#include "src/host/worker_pool.h"

namespace penstock::runtime {

class Progressable;

class CompletionThread {
 public:
  // `progress` is the event count that devices and workers notify; `notifies`: whether all of them do.
  // `polls`: it never sleeps.
  CompletionThread(host::EventCount& progress, bool notifies, bool polls = false);
  ~CompletionThread() { Stop(); }

  // Has the thread run on that core only. False: the system has none, or does not let this process use it.
  bool Pin(int core);
  // Does nothing once the thread has been stopped: every run has drained then, or is left to itself.
  void Watch(Progressable* run);
  // Something it watches is idle no more, or is due sooner.
  void Wake() { incoming_event_count_.Notify(); }
  // Runs what may wait for a device, soon; at once when the thread has been stopped.
  void Run(host::Task task);
  // Ends the thread; runs still watched are dropped. A second caller waits for that end.
  void Stop();

 private:
  void Loop();
  void Poll();
  void TakeIncoming();
  void RunTasks();
  void AdvanceWatched();
  bool AllIdle() const;

  host::EventCount& progress_;
  const bool notifies_, polls_;
  host::EventCount incoming_event_count_;
  std::atomic<bool> stop_{false};  // set once; both event counts are notified after it
  std::vector<Progressable*> watched_;  // the thread's own

  base::Mutex join_mu_;  // held while the thread is joined; a second Stop waits for the first
  base::Mutex mu_;
  std::vector<Progressable*> incoming_ ABSL_GUARDED_BY(mu_);
  std::vector<host::Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::runtime
