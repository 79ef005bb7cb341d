// RunCore: one execution in flight, as a state machine that any thread may advance and in which no thread blocks.
//
// States of a run: submitting (segments left to submit, or host nodes left to run) -> draining (everything submitted or
// given up; the done events are pending) -> drained. The user sees the run end once: when it is drained or, if its
// deadline comes first, at the deadline (abandoned: the slot stays taken until the run has drained).
//
// Ownership: counted. A run in flight holds one count and the executable; each handle and pending task holds one more.
// Threads:   any thread may call Advance; one at a time owns the machine and works, another leaves a rerun request and
//            returns. Only the owner touches the members below "The machine". Cancel and Abandon need not own it, so
//            neither waits for an owner that is held up in a driver or in a user's Launch node.
// Ordering:  the machine's owner submits segments in plan order. Submission threads help with wide ranges and keep the
//            order of each lane (partition.h), so every lane has the planned order.
// Errors:    the first failure of the run wins (RunFault); nothing is submitted after it, what has been submitted
//            drains.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/deadline.h"
#include "src/base/coalescing_runner.h"
#include "src/base/mutex.h"
#include "src/host/progress.h"
#include "src/runtime/core/progressable.h"
#include "src/runtime/run/host_steps.h"
#include "src/runtime/run/predecessor.h"
#include "src/runtime/run/returned_counts.h"
#include "src/runtime/run/run_owner.h"
#include "src/runtime/run/run_refs.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

class RunCore final : public Progressable, public Predecessor, public HostSteps::Owner {
 public:
  // Takes the slot. Starts with two counts: one for the run in flight, one for the handle.
  RunCore(std::shared_ptr<RunOwner> owner, const RunContext& context, RunSlot* slot, Deadline deadline);

  void Ref() override { life_.Ref(); }
  void Unref() override;
  // Handles are counted separately: the last one to go hands an unfinished run to the completion thread.
  void AddHandle() { life_.AddHandle(); }
  void DropHandle();

  // Does everything that can be done now, without blocking. The caller holds a count.
  void Advance() override;
  void Poll() override;
  // Has the completion thread advance the run from now on.
  void WatchInBackground();

  // Whether this process is a fork's copy of the one that the run belongs to; every call is then refused, without a
  // lock.
  bool forked() const;
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  bool drained() const override { return life_.drained(); }
  bool idle() const override { return false; }
  host::TimePoint due() const override { return ended() ? host::TimePoint::max() : deadline_.at(); }
  absl::Status status() const;
  // Of a run that has ended well: how many elements of the Output count. Otherwise its status.
  absl::StatusOr<int64_t> Count(uint32_t graph, int32_t output) const;
  // Empty until it has ended well.
  ReturnedCounts counts() const;
  absl::Status Wait(Deadline deadline);
  void OnDone(std::function<void(const absl::Status&)> callback);
  // Fails the run, unless it has already failed or ended, and has the completion thread advance it. Never blocks, and
  // calls neither the driver nor user code.
  void Cancel();
  // Ends the run for its user now, whatever its work does. `why` (DeadlineExceeded) is the part of the status that the
  // caller knows. The slot stays taken until the work has drained.
  void Abandon(const absl::Status& why);

  absl::StatusOr<Tail> LookAtTail() const override;
  // Whether host nodes or copies by host threads are running or have yet to run.
  bool HasHostWorkLeft() const;
  // Whether its work runs on that driver's devices, for that runtime.
  bool IsOf(const RuntimeCore& runtime, const driver::Driver* driver) const;
  void Follow() override;
  void OnHostStepsEnded() override;

  Deadline deadline() const { return deadline_; }
  int64_t serial() const { return serial_; }

 private:
  using Callback = std::function<void(const absl::Status&)>;

  void Step();
  bool AllSubmitted() const;
  bool BeginTurn();
  bool MustBeWatched() const;
  bool Drain();
  void SubmitSegments();
  bool SubmitEpilogue();
  bool DoneEventsComplete();
  void Complete();
  void LeaveStates();
  std::vector<Callback> EndLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Announce(std::vector<Callback> callbacks, const absl::Status& status);
  void Post(Callback callback, absl::Status status);
  bool Keep(Callback& callback);

  RunRefs<> life_;
  base::CoalescingRunner<> notes_;  // calls of Advance; the first caller owns the machine
  std::atomic<bool> ended_{false};  // set with mu_ held
  std::atomic<bool> followed_{false};  // a later run waits for what this one submits
  const Deadline deadline_;
  const RunContext& context_;
  const int64_t serial_;
  const std::shared_ptr<RuntimeCore> runtime_;
  const std::shared_ptr<const std::string> graph_;  // what messages call it
  const driver::Driver* const driver_;
  const int workers_;  // the group of workers near its device

  mutable base::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  ReturnedCounts counts_ ABSL_GUARDED_BY(mu_);
  std::vector<Callback> callbacks_ ABSL_GUARDED_BY(mu_);
  RunSlot* open_slot_ ABSL_GUARDED_BY(mu_);  // the slot, while threads other than the machine's owner may fail its run

  // The machine.
  std::shared_ptr<RunOwner> owner_;  // set until drained; keeps alive what `context_` names
  RunSlot* slot_;  // set until drained
  HostSteps host_steps_;
};

}  // namespace penstock::runtime
