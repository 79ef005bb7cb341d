// CompletionThreads: the threads that advance runs and pipelines that no caller waits for: one that sleeps, and one for
// each polling core. If there are polling threads, they do the watching.
//
// Threads: the runtime's creator calls Start, the thread that ends the runtime Stop and Drop; the rest is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "src/host/event_count.h"
#include "src/runtime/core/completion_thread.h"

namespace penstock::runtime {

class CompletionThreads {
 public:
  // `cores`: one polling thread runs on each. InvalidArgument if the process cannot run on one of them.
  absl::Status Start(host::EventCount& event_count, bool notifies_completion, const std::vector<int>& cores);
  bool started() const { return completion_ != nullptr; }
  // Advances `run` until it has drained.
  void Watch(Progressable* run);
  // Something that is watched has new work.
  void Wake() { completion_->Wake(); }
  // CompletionThread::asleep of the one that sleeps.
  std::optional<uint64_t> asleep() const { return completion_->asleep(); }
  // Schedules the task on a thread that answers no hostcalls.
  void Run(host::Task task) { completion_->Run(task); }
  void Stop();
  void Drop();

 private:
  std::unique_ptr<CompletionThread> completion_;
  std::vector<std::unique_ptr<CompletionThread>> polling_;  // one for each core
  std::atomic<uint32_t> watched_{0};  // spreads what is watched over `polling_`
};

}  // namespace penstock::runtime
