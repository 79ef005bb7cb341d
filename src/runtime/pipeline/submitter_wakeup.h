// SubmitterWakeup: how the submission threads of a queue's device help a pipeline while it has runs in flight.
//
// They check whether a run has ended and continue with what can begin then; for everything else (items that come in,
// host stages that have ended one) there is a thread that pumps. A submission thread takes over a queue when nothing
// has moved in it for 30 us although runs are in flight, and keeps it until another thread moves something. In a stream
// of tiny items, which its callers advance themselves, every check by another thread of what they write costs them
// time. So submission threads check when a queue may have stalled, then once every 5 us, and not at all if as many
// threads wait in calls of the pipeline as it has queues. (With submission threads that checked all the time, an item
// of an empty graph took 7.2 us instead of 5.0.)
//
// A polling thread checks more often and follows no other rules.
//
// Ownership: belongs to the pipeline; borrows its queues, and the submission threads, which call its clients.
// Threads:   the completion thread calls Call, and a polling thread Poll. The thread that drops the pipeline's last
//            count calls Dismiss; that is never a submission thread.
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

  SubmitterWakeup(PipelineState& state, RunQueues& queues);

  // Calls the submission threads while the pipeline is busy, and dismisses them when it no longer is.
  void Call();
  void Dismiss();
  // A check by a polling thread. Returns true if it is time to advance the rest too, such as deadlines.
  bool Poll();

 private:
  // A queue, as its submission threads see it.
  struct Client final : host::SubmissionClient {
    Client(SubmitterWakeup& wakeup, RunQueue& of, host::SubmissionThreads* by)
        : SubmissionClient(1), owner(wakeup), queue(of), left_ns(wakeup.state_.launching.left(of.index)), threads(by) {}
    bool Feed() override { return owner.Look(*this); }

    SubmitterWakeup& owner;
    RunQueue& queue;
    const std::atomic<int64_t>& left_ns;  // SharedLaunching::left_ns
    host::SubmissionThreads* const threads;  // null: there are none
    bool added = false;  // only the completion thread uses it
    // Submission threads check no earlier. On a cache line of its own, since they read it all the time.
    alignas(kCacheLine) std::atomic<int64_t> next_look_ns{0};
  };
  bool Look(Client& client);

  PipelineState& state_;
  RunQueues& queues_;
  std::vector<std::unique_ptr<Client>> clients_;  // one for each queue
  Clock::time_point busy_;  // when the completion thread last saw the pipeline busy; only that thread uses it
  Clock::time_point next_poll_;  // only the polling thread uses it, like the next
  Clock::time_point next_advance_;
};

}  // namespace penstock::runtime
