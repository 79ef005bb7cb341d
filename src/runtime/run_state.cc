#include "src/runtime/run_state.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "graph/message.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/executable_core.h"
#include "src/runtime/runtime_core.h"
#include "src/runtime/stream_executor.h"

namespace penstock::runtime {
namespace {

struct PostedCallback {
  std::function<void(const absl::Status&)> callback;
  absl::Status status;
  RuntimeCore* runtime;
};

void RunPostedCallback(void* context, int64_t) {
  std::unique_ptr<PostedCallback> posted(static_cast<PostedCallback*>(context));
  base::UserCodeScope scope;
  try {
    posted->callback(posted->status);
  } catch (const std::exception& e) {
    posted->runtime->Log(LogLevel::kError, std::string("a run's OnDone callback threw: ") + e.what());
  } catch (...) {
    posted->runtime->Log(LogLevel::kError, "a run's OnDone callback threw something that is no std::exception");
  }
}

}  // namespace

RunState::RunState(std::shared_ptr<ExecutableCore> core, Slot* slot, Deadline deadline, int64_t serial)
    : deadline_(deadline), serial_(serial), runtime_(core->runtime_ptr()), core_(std::move(core)), slot_(slot) {}

void RunState::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void RunState::DropHandle() {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) == 1 && !drained()) WatchInBackground();
  Unref();
}

void RunState::Advance() {
  if (notes_.fetch_add(1, std::memory_order_acq_rel) != 0) return;  // the owner will see the note and step again
  uint32_t seen = 1;
  do {
    Step();
    const uint32_t before = notes_.fetch_sub(seen, std::memory_order_acq_rel);
    seen = before - seen;
  } while (seen != 0);
}

void RunState::WatchInBackground() {
  if (drained() || watched_.exchange(true, std::memory_order_acq_rel)) return;
  runtime_->Watch(this);
}

void RunState::Step() {
  if (slot_ == nullptr) return;
  if (!ended() && deadline_.passed()) Abandon();
  SubmitSegments();
  const bool all_submitted = slot_->next_segment == static_cast<int32_t>(core_->plan().segments.size());
  if (!all_submitted && !slot_->fault.failed()) return;
  if (!slot_->finish_submitted) SubmitFinish();
  if (!HostStepsSettled() || !DoneEventsComplete()) return;
  Complete();
}

void RunState::SubmitSegments() {
  const auto& segments = core_->plan().segments;
  bool moved = true;
  while (moved) {
    moved = false;
    while (!slot_->fault.failed() && slot_->next_segment < static_cast<int32_t>(segments.size()) &&
           HostsDone(segments[static_cast<size_t>(slot_->next_segment)].after_hosts)) {
      const graph::Segment& segment = segments[static_cast<size_t>(slot_->next_segment)];
      if (slot_->next_command < segment.begin) slot_->next_command = segment.begin;
      if (!core_->executor().Submit(*slot_, segment.end)) break;  // a foreign launch waits for its turn, or it failed
      ++slot_->next_segment;
      moved = true;
    }
    if (StartHostSteps()) moved = true;
  }
}

bool RunState::StartHostSteps() {
  const auto& steps = core_->plan().host_steps;
  bool moved = false;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (slot_->host_states[s].load(std::memory_order_acquire) != HostState::kWaiting) continue;
    if (slot_->fault.failed()) {
      slot_->host_states[s].store(HostState::kSkipped, std::memory_order_release);
    } else if (HostStepReady(steps[s])) {
      if (slot_->host_idle[s]) {
        slot_->host_states[s].store(HostState::kDone, std::memory_order_release);
      } else if (core_->EnterGate(steps[s].node)) {
        StartHostStep(static_cast<int32_t>(s));
      } else {
        continue;
      }
      moved = true;
    }
  }
  return moved;
}

bool RunState::HostsDone(const std::vector<int32_t>& steps) const {
  for (const int32_t s : steps) {
    if (slot_->host_states[static_cast<size_t>(s)].load(std::memory_order_acquire) != HostState::kDone) return false;
  }
  return true;
}

bool RunState::HostStepReady(const graph::HostStep& step) {
  if (step.after_segment >= slot_->next_segment || !HostsDone(step.after_hosts)) return false;
  for (const int32_t e : step.after_events) {
    absl::StatusOr<bool> complete = core_->driver().Query(slot_->events[static_cast<size_t>(e)]);
    if (!complete.ok()) {
      slot_->fault.Fail(-1, complete.status());
      return false;
    }
    if (!*complete) return false;
  }
  return true;
}

void RunState::StartHostStep(int32_t step) {
  slot_->host_states[static_cast<size_t>(step)].store(HostState::kRunning, std::memory_order_release);
  Ref();
  runtime_->workers().Post({&RunState::RunHostTask, this, step});
}

void RunState::RunHostTask(void* self, int64_t step) {
  auto* run = static_cast<RunState*>(self);
  run->RunHostStep(static_cast<int32_t>(step));
  run->Unref();
}

// The slot and the executable stay while a host step is running: the machine does not complete before it has settled.
void RunState::RunHostStep(int32_t step) {
  Slot& slot = *slot_;
  ExecutableCore& core = *core_;
  const int32_t node = core.plan().host_steps[static_cast<size_t>(step)].node;
  if (!slot.fault.failed()) core.RunHostNode(slot, step, serial_);
  core.LeaveGate(node);
  slot.host_states[static_cast<size_t>(step)].store(HostState::kDone, std::memory_order_release);
  Advance();
  runtime_->bell().Ring();  // runs that wait for the gate, and whoever waits for this one
}

bool RunState::HostStepsSettled() const {
  for (const auto& state : slot_->host_states) {
    const HostState s = state.load(std::memory_order_acquire);
    if (s == HostState::kRunning || s == HostState::kWaiting) return false;
  }
  return true;
}

void RunState::SubmitFinish() {
  const graph::Plan& plan = core_->plan();
  const bool whole = slot_->next_segment == static_cast<int32_t>(plan.segments.size());
  slot_->next_command = whole ? plan.finish_short_begin : plan.finish_begin;
  slot_->finish_submitted = true;
  core_->executor().SubmitFinish(*slot_, plan.finish_end);
}

bool RunState::DoneEventsComplete() {
  for (const int32_t e : core_->plan().done_events) {
    absl::StatusOr<bool> complete = core_->driver().Query(slot_->events[static_cast<size_t>(e)]);
    if (!complete.ok()) {
      slot_->fault.Fail(-1, complete.status());
      continue;  // a device that answers with a fault runs nothing any more
    }
    if (!*complete) return false;
  }
  // A host device may have failed the run in its last operations; what waits on workers is then skipped.
  return HostStepsSettled();
}

absl::Status RunState::FailureStatus() const {
  if (!slot_->fault.failed()) return absl::OkStatus();
  return core_->Describe(slot_->fault.node(), slot_->fault.status());
}

void RunState::Complete() {
  absl::Status status = FailureStatus();
  if (const auto fault = base::FaultOf(status); fault && fault->fatal) runtime_->Latch(status);
  core_->RecordTrace(*slot_, serial_);
  std::vector<std::shared_ptr<const void>> keep_alive = std::exchange(slot_->keep_alive, {});
  const std::shared_ptr<ExecutableCore> core = std::move(core_);
  core->Release(std::exchange(slot_, nullptr));
  drained_.store(true, std::memory_order_release);
  if (!ended()) End(status);
  runtime_->RunDrained();
  keep_alive.clear();  // user destructors: nothing of ours is held
  Unref();
}

void RunState::Abandon() {
  slot_->fault.Fail(-1, absl::DeadlineExceededError("the run's deadline passed"));
  WatchInBackground();
  End(core_->DescribeAbandoned(*slot_));
}

void RunState::End(const absl::Status& status) {
  std::vector<Callback> callbacks;
  {
    base::MutexLock lock(mu_);
    status_ = status;
    callbacks.swap(callbacks_);
    ended_.store(true, std::memory_order_release);
  }
  for (Callback& callback : callbacks) Post(std::move(callback), status);
}

void RunState::Post(Callback callback, absl::Status status) {
  auto posted =
      std::make_unique<PostedCallback>(PostedCallback{std::move(callback), std::move(status), runtime_.get()});
  runtime_->workers().Post({&RunPostedCallback, posted.release(), 0});
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): RunPostedCallback takes it over

void RunState::OnDone(Callback callback) {
  {
    base::MutexLock lock(mu_);
    if (!ended_.load(std::memory_order_relaxed)) {
      callbacks_.push_back(std::move(callback));
      callback = nullptr;
    }
  }
  if (callback == nullptr) return WatchInBackground();
  Post(std::move(callback), status());
}

absl::Status RunState::status() const {
  base::MutexLock lock(mu_);
  if (!ended_.load(std::memory_order_relaxed)) return absl::UnavailableError("the run has not ended yet");
  return status_;
}

absl::Status RunState::Wait(Deadline deadline) {
  if (!ended() && base::InUserCode()) {
    return absl::FailedPreconditionError(
        "Run::Wait inside a host node or callback; it could wait for the worker it runs on; use OnDone, or wait "
        "outside");
  }
  const TimePoint until = deadline.at();
  for (;;) {
    const bool ended_now = WaitForProgress(runtime_->bell(), runtime_->rings(), std::min(until, deadline_.at()), [&] {
      if (!ended()) Advance();
      return ended();
    });
    if (ended_now) return status();
    if (std::chrono::steady_clock::now() >= until && !deadline_.passed()) {
      return absl::DeadlineExceededError("Run::Wait: the deadline passed before the run ended; the run goes on");
    }
    Advance();  // at the run's own deadline: abandons it
    if (!ended() && std::chrono::steady_clock::now() >= until) {
      return absl::DeadlineExceededError("Run::Wait: the deadline passed before the run ended; the run goes on");
    }
  }
}

}  // namespace penstock::runtime
