// CompletionThreads: the threads that push on runs and pipelines which nobody waits for: one that sleeps, and one on
// each polling core, which then watch in its place.
//
// Threads: Start by whoever makes the runtime, Stop by whoever ends it; the rest thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "src/host/event_count.h"
#include "src/runtime/core/completion_thread.h"

namespace penstock::runtime {

class CompletionThreads {
 public:
  // `cores`: those that polling threads have for themselves. InvalidArgument where the system does not give one.
  absl::Status Start(host::EventCount& event_count, bool notifies, const std::vector<int>& cores);
  bool started() const { return completion_ != nullptr; }
  // Advances `run` until it has drained.
  void Watch(Progressable* run);
  // Something that is watched has more to do than it had.
  void Wake() { completion_->Wake(); }
  // Calls the task soon, on a thread that answers no device.
  void Run(host::Task task) { completion_->Run(task); }
  void Stop();
  void Drop();

 private:
  std::unique_ptr<CompletionThread> completion_;
  std::vector<std::unique_ptr<CompletionThread>> polling_;  // a core each
  std::atomic<uint32_t> watched_{0};  // deals what is watched out to `polling_`
};

}  // namespace penstock::runtime
