// RunQueues: the queues of a pipeline that launch items and see their runs end.
//
// A queue covers one device of a stage, or all devices of a stage whose items must begin in order. Any thread that
// calls Pump advances it: producers, consumers, and threads of host stages that have ended an item. One thread at a
// time owns a queue; others leave a rerun request. No thread blocks in it. If launches are slow, the submission threads
// of each queue's device launch instead, all in parallel (shared_launching.h).
//
// Ownership: belongs to the pipeline; borrows its state.
// Threads:   thread-safe; only a queue's owner touches the members marked as the owner's.
// Errors:    the failure of a launch or a run ends the item's stage.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
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
  std::array<std::byte, kCacheLine> apart{};  // avoids false sharing
  base::CoalescingRunner<> owner;
  // The owner's members.
  int32_t look = 0;  // the run that was checked besides the oldest
  std::vector<int> running;  // items in the order of their launches
  bool starved = false;  // other users hold slots that its items could have
  bool cancelled = false;
  std::atomic<int64_t> moved_ns{0};  // when something in it last moved; other threads read it
};

class RunQueues {
 public:
  using Clock = PipelineState::Clock;

  explicit RunQueues(PipelineState& state);

  // Does everything that can be done now, without blocking, except launches that are left to submission threads.
  void Pump();
  // The same, but skips queues that another thread owns instead of leaving them a rerun request.
  void PumpUnowned();
  // Like Pump for one queue, called by a thread that checks whether it has stalled. Returns true if something moved.
  bool Check(RunQueue& queue);
  // The same, called by one of the queue's submission threads.
  bool CheckAndSubmit(RunQueue& queue);
  // Begins what has been left to submission threads for too long. Returns true if there was any.
  bool BeginLeft();
  // When that is next due.
  Clock::time_point LeftDue() const;

  // Whether there is anything to check on devices.
  bool Busy() const { return state_.activity.Busy(); }
  // Runs have come to be in flight, or the like: wakes a sleeping thread to check again.
  void BeginActivity();
  // When that last happened.
  Clock::time_point active() const {
    return Clock::time_point(std::chrono::nanoseconds(state_.activity.active_ns.load()));
  }

  const std::vector<std::unique_ptr<RunQueue>>& queues() const { return queues_; }
  // The submission threads of the queue's device; null if it has none.
  host::SubmissionThreads* submission_threads(size_t queue) const { return submission_threads_[queue]; }
  // The time when nothing has moved in it for `after`, unless something does until then.
  static Clock::time_point StaleAt(const RunQueue& queue, std::chrono::nanoseconds after);
  // Sets for each queue whether submission threads have been called to it, so that they will see what is left to them.
  void SetServed(const std::vector<bool>& served);
  // Clears that for all queues. Returns false, clearing nothing, if something is still left to submission threads.
  bool MayDismiss();

  // Identifies the calling thread.
  static const void* CurrentThreadId();

 private:
  void FindSubmissionThreads();
  template <class RunStep>
  void PumpEach(RunStep run);
  template <class Begin>
  bool CheckAndBegin(RunQueue& queue, Begin begin);
  bool EndRuns(RunQueue& queue);
  bool EndRunAt(RunQueue& queue, size_t at);
  void EndRun(RunQueue& queue, PipelineItem& item, const absl::Status& status);
  // Called by an owner that is none of the queue's submission threads.
  bool BeginHere(RunQueue& queue) {
    return !(state_.launching.enabled() && LeaveToSubmissionThreads(queue)) && BeginRun(queue);
  }
  bool BeginRun(RunQueue& queue);
  bool LaunchItem(RunQueue& queue, PipelineItem& item, int device);
  void PutBack(const Stage& stage, PipelineItem& item, int device);  // it found no slot
  int DeviceFor(const RunQueue& queue, PipelineItem& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool IsOf(int device, const RunQueue& queue) const {
    return static_cast<size_t>(table_.device(device).queue) == queue.index;
  }
  bool IsStarved(const RunQueue& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool NoteStarved(RunQueue& queue, bool starved);
  static void NoteMove(RunQueue& queue, Clock::time_point now);
  void NoteInFlight() {
    if (state_.activity.in_flight.fetch_add(1) == 0) BeginActivity();
  }

  bool LeaveToSubmissionThreads(RunQueue& queue);
  bool MayBegin(const RunQueue& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  void Leave(RunQueue& queue, int64_t from_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  // The owner has looked for an item to begin and found this one; null: none.
  void NoteLooked(RunQueue& queue, const PipelineItem* begun) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mu);
  bool BeginOneLeft(RunQueue& queue, int64_t left_ns);  // since when it has been left

  PipelineState& state_;
  const StageTable& table_;
  std::vector<std::unique_ptr<RunQueue>> queues_;
  std::vector<bool> served_ ABSL_GUARDED_BY(state_.mu);  // one for each queue; see SetServed
  std::vector<host::SubmissionThreads*> submission_threads_;  // one for each queue or null; constant once made
};

}  // namespace penstock::runtime
