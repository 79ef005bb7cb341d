#include "src/runtime/state/state_transfer.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "penstock/status_macros.h"
#include "src/base/process_life.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"

namespace penstock::runtime {

absl::StatusOr<std::shared_ptr<StateTransfer>> StateTransfer::Start(std::shared_ptr<const StateCore> state,
                                                                    StateRequest request,
                                                                    const TransferOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(state->runtime_->CheckOpen());  // in a fork's copy, before anything that may take a lock
  PENSTOCK_RETURN_IF_ERROR(state->FindBox(request, options.box));
  std::shared_ptr<StateTransfer> transfer(new StateTransfer(std::move(state), request, options),
                                          base::DeleteUnlessForked());
  PENSTOCK_RETURN_IF_ERROR(transfer->Enter());
  transfer->Advance();
  if (!transfer->drained()) transfer->runtime_->Watch(transfer.get());
  return transfer;
}

StateTransfer::StateTransfer(std::shared_ptr<const StateCore> state, const StateRequest& request,
                             const TransferOptions& options)
    : runtime_(state->runtime_),
      request_(request),
      deadline_(options.deadline),
      state_(std::move(state)),
      keep_alive_(options.keep_alive),
      call_(*state_, request),
      chunks_(state_->OpOf(request), StateCore::kChunk) {}

absl::Status StateTransfer::Enter() {
  absl::Status entered = runtime_->RunStarted();
  if (entered.ok()) entered = state_->Enter(call_);
  if (!entered.ok()) runtime_->RunDrained();
  return entered;
}

void StateTransfer::Advance() {
  notes_.Run([this] { Step(); });
}

void StateTransfer::Step() {
  if (phase_ == Phase::kQueued) Queued();
  if (phase_ == Phase::kCopying) Copying(Copy());
  if (phase_ == Phase::kLeft && call_.ring.over() && state_->Settled()) {
    const std::shared_ptr<const StateCore> last = Leave();
    runtime_->LeftCopyEnded();
  }
}

const char* StateTransfer::GivenUp() const {
  if (deadline_.passed()) return kDeadlinePassed;
  return runtime_->admission().gave_up() ? "the runtime was shut down" : nullptr;
}

void StateTransfer::Queued() {
  absl::Status refused;
  if (const char* const why = GivenUp(); why != nullptr) {
    refused = state_->NeverItsTurn(call_, why);
  } else if (!IsItsTurn()) {
    return;
  } else if (!request_.clears) {
    refused = runtime_->states().Verdict(call_.ticket);
  }
  if (refused.ok()) return Begin();
  End(refused, Leave());
}

// Returns whether every earlier user has drained. Nothing else advances those that have submitted all their work.
bool StateTransfer::IsItsTurn() const {
  StateOrder& order = runtime_->states();
  const auto ahead = order.LookAhead(call_.ticket.places[0]);
  if (!ahead) return true;
  if (ahead->core != nullptr) {
    ahead->core->AdvanceAll();
  } else {
    state_->TakeBack();
  }
  return !order.LookAhead(call_.ticket.places[0]);
}

void StateTransfer::Begin() {
  phase_ = Phase::kCopying;
  if (request_.box.bytes() == 0) return;
  const absl::StatusOr<memory::Staging*> ring = state_->RingFor(request_);
  if (!ring.ok()) return Copying(ring.status());
  ring_ = *ring;
  if (ring_ != nullptr) state_->PostToRing(*ring_, call_, request_);
}

// Returns whether everything has been copied, after doing what can be done now.
absl::StatusOr<bool> StateTransfer::Copy() {
  if (ring_ != nullptr) {
    if (!call_.ring.over()) return false;
    return call_.fault.failed() ? absl::StatusOr<bool>(call_.fault.status()) : true;
  }
  for (;;) {
    if (arrived_ == chunks_.count()) return true;
    if (submitted_ < chunks_.count() && submitted_ < arrived_ + 2) {
      PENSTOCK_RETURN_IF_ERROR(Submit());
      continue;
    }
    PENSTOCK_ASSIGN_OR_RETURN(const bool complete, state_->device_.driver->Query(state_->events_[arrived_ % 2]));
    if (!complete) return false;
    state_->EmptyBlock(call_, request_, chunks_, arrived_++);
  }
}

// Runs that come later may wait on the device for the last chunk.
absl::Status StateTransfer::Submit() {
  PENSTOCK_RETURN_IF_ERROR(state_->SubmitChunk(call_, request_, chunks_, submitted_));
  if (++submitted_ == chunks_.count() && runtime_->states().Submitted(call_.place())) runtime_->event_count().Notify();
  return absl::OkStatus();
}

void StateTransfer::Copying(absl::StatusOr<bool> over) {
  if (over.ok() && !*over) {
    const char* const why = GivenUp();
    if (why == nullptr) return;
    if (ring_ != nullptr) ring_->Withdraw(call_.staged);
    over = StateCore::CutShort(why);
  }
  const absl::Status status = state_->Conclude(call_, request_, over.status());
  const bool in_ring = !call_.ring.over();
  if (!in_ring && state_->Settled()) return End(status, Leave());
  // What is in flight counts as an abandoned run.
  if (!in_ring) runtime_->states().Submitted(call_.place());
  runtime_->CopyLeft();
  phase_ = Phase::kLeft;
  End(status, nullptr);
}

// Returns the State, which is to be dropped last.
std::shared_ptr<const StateCore> StateTransfer::Leave() {
  runtime_->states().Leave(call_.ticket);
  call_.blocks = {};
  phase_ = Phase::kDrained;
  drained_.store(true, std::memory_order_release);
  return std::move(state_);
}

void StateTransfer::End(const absl::Status& status, std::shared_ptr<const StateCore> state) {
  auto keep_alive = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const StateCore>>>(
      std::move(keep_alive_), std::move(state));
  {
    base::MutexLock lock(mu_);
    status_ = status;
    ended_.store(true, std::memory_order_release);
  }
  runtime_->event_count().Notify();
  runtime_->RunDrained(std::move(keep_alive));
}

absl::Status StateTransfer::status() const {
  if (forked()) return RuntimeCore::Forked();
  base::MutexLock lock(mu_);
  if (!ended_.load(std::memory_order_relaxed)) return absl::UnavailableError("the transfer has not ended yet");
  return status_;
}

absl::Status StateTransfer::Wait(Deadline deadline) {
  if (forked()) return RuntimeCore::Forked();
  if (!ended() && base::InUserCode()) {
    return absl::FailedPreconditionError(
        "Transfer::Wait inside a host node or callback, which it could wait for; wait outside");
  }
  const auto end = [this] {
    if (!ended()) Advance();
    return ended();
  };
  for (;;) {
    // At the transfer's own deadline it is given up, here or by a thread that is advancing it.
    const host::TimePoint until = deadline_.passed() ? deadline.at() : std::min(deadline.at(), deadline_.at());
    if (host::WaitForProgress(runtime_->event_count(), runtime_->notifies_completion(), until, end,
                              host::kCallerPollBeforeSleep)) {
      return status();
    }
    if (deadline.passed() && !end()) {
      return absl::DeadlineExceededError("Transfer::Wait: the deadline passed before the transfer ended; it goes on");
    }
  }
}

}  // namespace penstock::runtime
