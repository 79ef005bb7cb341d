// CompletionThread: advances runs and pipelines that no caller waits for: runs with host nodes, callbacks, deadlines or
// dropped handles. It also frees memory, since freeing may wait for a device and other threads must not. A polling
// thread keeps its core busy and never sleeps (RuntimeOptions::polling_cores).
//
// Ownership: holds one count on each run that it watches, until the run has drained.
// Threads:   Watch, Wake and Run are thread-safe. Unless it polls, the thread sleeps while all it watches is idle.
// Locks:     mu_ guards what comes in; runs are advanced and tasks run without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/mutex.h"
#include "src/host/event_count.h"
#include "src/host/worker_pool.h"

namespace penstock::runtime {

class Progressable;

class CompletionThread {
 public:
  // `progress` is the event count that devices and workers notify; `notifies_completion` tells whether all of them do.
  // With `polls` the thread never sleeps.
  CompletionThread(host::EventCount& progress, bool notifies_completion, bool polls = false);
  ~CompletionThread() { Stop(); }

  // Pins the thread to that core. Returns false if the system has no such core or this process may not use it.
  bool Pin(int core);
  // Does nothing once the thread has been stopped: by then every run has drained or is left to itself.
  void Watch(Progressable* run);
  // Something that the thread watches is no longer idle, or is due sooner.
  void Wake() { incoming_event_count_.Notify(); }
  // How often it has been notified, if it sleeps and nothing that it has yet to see has happened: as long as that is
  // the same, it has slept. Nobody else may wait for `progress`.
  std::optional<uint64_t> asleep() const {
    const uint64_t notified = incoming_event_count_.ticket() + progress_.ticket();
    return incoming_event_count_.asleep() + progress_.asleep() > 0 ? std::optional(notified) : std::nullopt;
  }
  // Schedules a task that may wait for a device; runs it immediately if the thread has been stopped.
  void Run(host::Task task);
  // Ends the thread and drops the runs still watched. A second caller waits until the first is done.
  void Stop();

 private:
  void Loop();
  void Poll();
  void TakeIncoming();
  void RunTasks();
  void AdvanceWatched();
  bool AllIdle() const;

  host::EventCount& progress_;
  const bool notifies_completion_, polls_;
  host::EventCount incoming_event_count_;
  std::atomic<bool> stop_{false};  // set once; both event counts are notified after it
  std::vector<Progressable*> watched_;  // only the thread uses it

  base::Mutex join_mu_;  // held while the thread is joined; a second Stop waits for the first
  base::Mutex mu_;
  std::vector<Progressable*> incoming_ ABSL_GUARDED_BY(mu_);
  std::vector<host::Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::runtime
