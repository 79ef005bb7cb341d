// SubmitterWakeup: how the submission threads of a queue's device help a pipeline while it has runs in flight.
//
// They look whether a run has ended, and go on with what can begin then; all else (items that come in, host stages that
// have ended one) has a thread that pumps. A submission thread takes a queue over when nothing has moved in it for 30
// us though runs are in flight, and keeps to it until others move something. For a stream of tiny items, which its
// callers push on themselves, each look of another thread at what they write costs them: so submission threads look
// when a queue may have come to a stop, then once in 5 us, and not at all where as many threads wait in calls of the
// pipeline as it has queues. (With submission threads that looked all the time an item of an empty graph took 7.2 us in
// place of 5.0.)
//
// A thread that polls looks oftener and has no other rules.
//
// Ownership: of the pipeline; borrows its queues, and the submission threads, which call its clients.
// Threads:   Call by the completion thread; Dismiss by whoever takes its last count, which is never a submission
// thread;
//            Poll by the thread that polls.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "src/host/submission_threads.h"
#include "src/runtime/pipeline/run_queue.h"

namespace penstock::runtime {

class SubmitterWakeup {
 public:
  using Clock = PipelineState::Clock;

  // `waiting`: how many threads wait in calls of the pipeline.
  SubmitterWakeup(PipelineState& state, RunQueues& queues, const std::atomic<int>& waiting);

  // Calls the submission threads while the pipeline is busy, and lets them go when it no longer is.
  void Call();
  void Dismiss();
  // A look by the thread that polls. True: it is time for what has a deadline, and the like, too.
  bool Poll();

 private:
  // A queue, as its submission threads see it.
  struct Client final : host::SubmissionClient {
    Client(SubmitterWakeup& wakeup, RunQueue& of, host::SubmissionThreads* by)
        : SubmissionClient(1), owner(wakeup), queue(of), threads(by) {}
    bool Feed() override { return owner.Look(*this); }

    SubmitterWakeup& owner;
    RunQueue& queue;
    host::SubmissionThreads* const threads;  // null: there are none
    bool added = false;  // the completion thread's
    // Submission threads look no earlier. A cache line of its own, since they read it all the time.
    alignas(kCacheLine) std::atomic<int64_t> next_look_ns{0};
  };
  bool Look(Client& client);

  PipelineState& state_;
  RunQueues& queues_;
  const std::atomic<int>& waiting_;
  std::vector<std::unique_ptr<Client>> clients_;  // a queue each
  Clock::time_point busy_;  // when the completion thread has last seen the pipeline busy; its own
  alignas(kCacheLine) Clock::time_point next_poll_;  // the polling thread's own, as the next
  Clock::time_point next_advance_;
};

}  // namespace penstock::runtime
