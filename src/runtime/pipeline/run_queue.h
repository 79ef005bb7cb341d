// RunQueues: the queues of a pipeline that launch items and see their runs end.
//
// A queue has one device of a stage, or all devices of a stage whose items must begin in order. It is pushed on by any
// thread that calls Pump: producers, consumers, host stages that have ended an item. One thread at a time owns a queue;
// others request another look from it. Nobody blocks in it. Where launches take long, the submission threads of each
// queue's device launch, all at the same time (shared_launching.h).
//
// Ownership: of the pipeline; borrows its state.
// Threads:   thread-safe; what is said to be the owner's is touched by the queue's owner only.
// Errors:    what a launch or a run fails with ends the item's stage.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "src/base/coalescing_runner.h"
#include "src/host/submission_threads.h"
#include "src/runtime/pipeline/pipeline_state.h"

namespace penstock::runtime {

inline int64_t NsOf(std::chrono::steady_clock::time_point at) {
  return std::chrono::nanoseconds(at.time_since_epoch()).count();
}

struct RunQueue {
  RunQueue(int of_stage, size_t at) : stage(of_stage), index(at) {}
  const int stage;
  const size_t index;  // StageTable::queues
  // The submission thread that has taken it over, until another thread moves something. Submission threads read it all
  // the time, so it is apart from what the owner writes.
  std::atomic<const void*> submitter{nullptr};
  alignas(kCacheLine) base::CoalescingRunner<> owner;
  // The owner's.
  int32_t look = 0;  // the run that was looked at beside the oldest
  std::vector<int> running;  // items, in the order of their launches
  bool starved = false;  // others have slots that its items could have
  bool cancelled = false;
  std::atomic<int64_t> moved_ns{0};  // when it moved something last; other threads read it
};

class RunQueues {
 public:
  using Clock = PipelineState::Clock;

  // For so long after runs have come to be in flight the completion thread goes on looking when there are none any
  // more, so that it need not be woken for each item of a stream that pauses.
  static constexpr std::chrono::milliseconds kLinger{100};

  explicit RunQueues(PipelineState& state);

  // Does whatever can be done now, without blocking, except launches that are left to submission threads. Without news:
  // except for what another thread is at.
  void Pump(bool news = true);
  // The same for one queue, by a thread that looks whether it has come to a stop; `submits`: it is one of the queue's
  // submission threads. True: something moved.
  bool Look(RunQueue& queue, bool submits);
  // Begins what has been left to submission threads for too long. True: some was.
  bool BeginLeft();
  // When that is due.
  Clock::time_point LeftDue() const;

  // Whether there is anything to be seen of devices.
  bool Busy() const { return in_flight_.load() > 0 || starved_.load() > 0 || state_.HasAbandoned(); }
  // Runs have come to be in flight, or the like: a thread that sleeps looks again.
  void BeginActivity();
  // When that was last.
  Clock::time_point active() const { return Clock::time_point(std::chrono::nanoseconds(active_ns_.load())); }

  const std::vector<std::unique_ptr<RunQueue>>& queues() const { return queues_; }
  // Those of the queue's device; null: there are none.
  host::SubmissionThreads* submission_threads(size_t queue) const { return submission_threads_[queue]; }
  // When nothing has moved in it for so long, unless something does until then.
  static Clock::time_point StaleAt(const RunQueue& queue, std::chrono::nanoseconds after);
  // Whether submission threads have been called to each queue, so that what is left to them they will see.
  void SetServed(const std::vector<bool>& served);
  // The same for none, unless something has been left to them until now: then false.
  bool MayDismiss();

  // Of the calling thread.
  static const void* CurrentThreadId();

 private:
  void FindSubmissionThreads();
  bool EndRuns(RunQueue& queue);
  bool EndRunAt(RunQueue& queue, size_t at);
  void EndRun(RunQueue& queue, PipelineItem& item, const absl::Status& status);
  // By an owner that is none of its submission threads.
  bool BeginHere(RunQueue& queue) {
    return !(state_.launching.enabled() && LeaveToSubmissionThreads(queue)) && BeginRun(queue);
  }
  bool BeginRun(RunQueue& queue);
  bool LaunchItem(RunQueue& queue, PipelineItem& item, int device);
  void PutBack(const Stage& stage, PipelineItem& item, int device);  // it has found no slot
  int DeviceFor(const RunQueue& queue, PipelineItem& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool IsOf(int device, const RunQueue& queue) const {
    return static_cast<size_t>(state_.table->device(device).queue) == queue.index;
  }
  bool IsStarved(const RunQueue& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool NoteStarved(RunQueue& queue, bool starved);
  static void NoteMove(RunQueue& queue, Clock::time_point now);
  void NoteInFlight() {
    if (in_flight_.fetch_add(1) == 0) BeginActivity();
  }

  bool LeaveToSubmissionThreads(RunQueue& queue);
  bool MayBegin(const RunQueue& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void Leave(RunQueue& queue, int64_t from_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  // Its owner has looked for an item that it may begin, and found this one; null: none.
  void NoteLooked(RunQueue& queue, const PipelineItem* begun) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool BeginOneLeft(RunQueue& queue, int64_t left_ns);  // since when

  PipelineState& state_;
  std::vector<std::unique_ptr<RunQueue>> queues_;
  std::vector<bool> served_ ABSL_GUARDED_BY(state_.mu);  // a queue each: see SetServed
  std::vector<host::SubmissionThreads*> submission_threads_;  // the same; null: there are none. Constant once made
  // Whoever moves items writes these.
  alignas(kCacheLine) std::atomic<int> in_flight_{0};  // runs
  std::atomic<int> starved_{0};  // queues that found no slot free, since others use their executables
  std::atomic<int64_t> active_ns_{0};  // when runs came to be in flight last
};

}  // namespace penstock::runtime
