#include "src/runtime/state/state_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/process_life.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/state/state_call.h"

namespace penstock::runtime {

// Kept for good, and visible to leak checkers as intentional.
void StateCore::Leak(std::unique_ptr<Call> call) {
  static base::Mutex mu;  // guards `kept`
  static auto& kept = *new std::vector<std::unique_ptr<Call>>;
  base::MutexLock lock(mu);
  kept.push_back(std::move(call));
}

StateCore::StateCore(std::shared_ptr<RuntimeCore> runtime, StateRecord record, size_t bytes,
                     const AdoptedMemory* adopted)
    : StateRecord(std::move(record)),
      runtime_(std::move(runtime)),
      device_(runtime_->devices()[device]),
      bytes_(bytes),
      owns_memory_(adopted == nullptr) {
  StateRecord::runtime = runtime_.get();
  if (adopted == nullptr) return;
  memory_ = adopted->data;
  keep_alive_ = adopted->keep_alive;
}

absl::StatusOr<std::shared_ptr<StateCore>> StateCore::Create(std::shared_ptr<RuntimeCore> runtime, StateRecord record,
                                                             size_t bytes, const AdoptedMemory* adopted) {
  std::shared_ptr<StateCore> core(new StateCore(std::move(runtime), std::move(record), bytes, adopted),
                                  base::DeleteUnlessForked());
  if (const absl::Status status = core->MakeResources(); !status.ok()) return core->Describe(status);
  return core;
}

absl::Status StateCore::MakeResources() {
  driver::Driver& driver = *device_.driver;
  if (bytes_ > 0 && owns_memory_) {
    PENSTOCK_RETURN_IF_ERROR(runtime_->WithMemory([&]() -> absl::Status {
      PENSTOCK_ASSIGN_OR_RETURN(memory_, driver.AllocateDevice(device_.local, bytes_));
      return absl::OkStatus();
    }));
  }
  PENSTOCK_ASSIGN_OR_RETURN(stream_, driver.CreateStream(device_.local, 0));
  for (size_t i = 0; i < 2; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(driver::Event event, driver.CreateEvent(device_.local, false));
    events_.push_back(event);
  }
  return absl::OkStatus();
}

StateCore::~StateCore() {
  TakeBack();
  std::unique_ptr<Call> left;
  {
    base::MutexLock lock(mu_);
    left = std::move(left_behind_);
  }
  if (left != nullptr) {
    runtime_->Log(LogLevel::kWarning, "state " + graph::Quoted(name) +
                                          ": dropped while a copy of its contents has not ended; its memory is leaked");
    left->owner = std::move(keep_alive_);
    Leak(std::move(left));
    return;
  }
  driver::Driver& driver = *device_.driver;
  for (const driver::Event event : events_) driver.DestroyEvent(event);
  if (stream_) driver.DestroyStream(stream_);
  if (owns_memory_) runtime_->FreeDevice(device_, memory_);
}

absl::Status StateCore::Describe(const absl::Status& cause) const {
  return base::Prefixed("state " + graph::Quoted(name) + " on " + device_.info.name, cause);
}

absl::Status StateCore::FindBox(StateRequest& request, const Box& box) const {
  const absl::StatusOr<StateBox> found = FindStateBox(*this, box);
  if (!found.ok()) {
    const std::string text = std::string(request.what) + " " + std::string(found.status().message());
    return Describe(absl::InvalidArgumentError(text));
  }
  request.box = *found;
  request.clears = request.writes && request.box.bytes() == bytes_;
  const size_t elements = request.elements, own = type.size == 0 ? 0 : request.box.bytes() / type.size;
  if (elements == own && (elements == 0 || request.contents() != nullptr)) return absl::OkStatus();
  const std::string given = std::string(request.what) + " was given " + std::to_string(elements) + " elements";
  if (elements == own) {
    return Describe(absl::InvalidArgumentError(given + " at a null address; give memory that exists"));
  }
  return Describe(absl::InvalidArgumentError(given + (box.whole ? "; the State has " : "; the box has ") +
                                             std::to_string(own) + "; give exactly that many"));
}

absl::Status StateCore::Transfer(StateRequest request, const Box& box, Deadline deadline) const {
  PENSTOCK_RETURN_IF_ERROR(FindBox(request, box));
  return Do(request, deadline, [&](Call& call) { return Copy(call, request, deadline); });
}

absl::Status StateCore::Reset(Deadline deadline, const char* what) const {
  return Do({.what = what, .writes = true, .clears = true}, deadline, [&](Call& call) { return Zero(call, deadline); });
}

absl::Status StateCore::status() const { return runtime_->states().StatusOf(queue_); }

template <class Work>
absl::Status StateCore::Do(const StateRequest& request, Deadline deadline, Work work) const {
  if (base::InUserCode()) {
    return Describe(absl::FailedPreconditionError(
        std::string(request.what) + " inside a host node or callback, which it could wait for; call it outside"));
  }
  PENSTOCK_RETURN_IF_ERROR(runtime_->CheckOpen());  // in a fork's copy, before anything that may take a lock
  StateOrder& order = runtime_->states();
  const absl::Status open = runtime_->RunStarted();
  const auto end = [&](const absl::Status& status) {
    runtime_->RunDrained();
    return status;
  };
  if (!open.ok()) return end(open);
  auto call = std::make_unique<Call>(*this, request);
  if (const absl::Status entered = Enter(*call); !entered.ok()) return end(entered);
  absl::Status status = AwaitTurn(*call, deadline);
  if (status.ok() && !request.clears) status = order.Verdict(call->ticket);
  if (!status.ok()) {
    order.Leave(call->ticket);
    return end(status);
  }
  status = Conclude(*call, request, work(*call));
  const bool in_ring = !call->ring.over();
  if (!in_ring && Settled()) {
    order.Leave(call->ticket);
  } else {  // the deadline passed during the copy: others wait for the events, or until it is taken back from the ring
    if (!in_ring) order.Submitted(call->place());
    base::MutexLock lock(mu_);
    left_behind_ = std::move(call);
  }
  return end(status);
}

absl::Status StateCore::Enter(Call& call) const {
  if (!call.place().clears) return runtime_->states().Enter(call.ticket);
  runtime_->states().EnterPoisoned(call.ticket);
  return absl::OkStatus();
}

absl::Status StateCore::Conclude(Call& call, const StateRequest& request, absl::Status status) const {
  StateOrder& order = runtime_->states();
  if (status.ok()) {
    if (request.clears) order.ClearPoison(call.place());
    return status;
  }
  runtime_->NoteFault(status);
  status = Describe(base::Prefixed(request.what, status));
  if (call.place().written.load(std::memory_order_relaxed)) order.Poison(call.place(), status);
  return status;
}

absl::Status StateCore::AwaitTurn(const Call& call, Deadline deadline) const {
  StateOrder& order = runtime_->states();
  const bool turn = host::WaitForProgress(runtime_->event_count(), runtime_->notifies_completion(), deadline.at(), [&] {
    const auto ahead = order.LookAhead(call.ticket.places[0]);
    if (!ahead) return true;
    if (ahead->core != nullptr) {
      ahead->core->AdvanceAll();
    } else {
      TakeBack();
    }
    return !order.LookAhead(call.ticket.places[0]);
  });
  return turn ? absl::OkStatus() : NeverItsTurn(call, kDeadlinePassed);
}

absl::Status StateCore::NeverItsTurn(const Call& call, const char* why) const {
  return Describe(absl::DeadlineExceededError(std::string(why) + " before its turn; nothing was done" +
                                              runtime_->states().DescribePredecessor(call.ticket)));
}

// Whether nothing is in flight on the State's stream any more. A device that answers with a fault runs nothing.
bool StateCore::Settled() const {
  return std::all_of(events_.begin(), events_.end(), [&](driver::Event event) {
    const absl::StatusOr<bool> complete = device_.driver->Query(event);
    return !complete.ok() || *complete;
  });
}

bool StateCore::TakeBack() const {
  std::unique_ptr<Call> call;
  {
    base::MutexLock lock(mu_);
    if (left_behind_ == nullptr || !left_behind_->ring.over()) return false;
    call = std::move(left_behind_);
  }
  if (Settled()) {
    runtime_->states().Leave(call->ticket);
    runtime_->event_count().Notify();
    return true;
  }
  base::MutexLock lock(mu_);
  left_behind_ = std::move(call);
  return false;
}

}  // namespace penstock::runtime
