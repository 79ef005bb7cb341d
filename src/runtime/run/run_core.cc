#include "src/runtime/run/run_core.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/common/message.h"
#include "src/base/catch_all.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/runtime/run/run_events.h"
#include "src/runtime/run/run_report.h"

namespace penstock::runtime {
namespace {

struct PostedCallback {
  std::function<void(const absl::Status&)> callback;
  absl::Status status;
  RuntimeCore* runtime;
  std::shared_ptr<const std::string> graph;  // whose run it is
};

void CallBack(const std::function<void(const absl::Status&)>& callback, const absl::Status& status,
              const RuntimeCore& runtime, const std::string& graph) {
  const std::string who = graph + ": a run's OnDone callback";
  if (callback == nullptr) return runtime.Log(LogLevel::kError, who + " is null; give one that can be called");
  base::UserCodeScope scope;
  const absl::Status called = base::CatchAll(who, [&] { callback(status); });
  if (!called.ok()) runtime.Log(LogLevel::kError, base::Str(called.message()));
}

void RunPostedCallback(void* context, int64_t) {
  const base::UserCodeScope scope;  // also for destroying what the callback owns
  const std::unique_ptr<PostedCallback> posted(static_cast<PostedCallback*>(context));
  CallBack(posted->callback, posted->status, *posted->runtime, *posted->graph);
}

}  // namespace

RunCore::RunCore(std::shared_ptr<RunOwner> owner, const RunContext& context, RunSlot* slot, Deadline deadline)
    : deadline_(deadline),
      context_(context),
      serial_(slot->progress.serial),
      runtime_(context.runtime),
      graph_(context.graph.shared_label()),
      driver_(&context.graph.driver()),
      workers_(runtime_->GroupOf(context.graph.home())),
      open_slot_(slot),
      owner_(std::move(owner)),
      slot_(slot),
      host_steps_(context, *slot, *this, workers_) {}

void RunCore::Unref() {
  if (life_.Unref()) delete this;
}

bool RunCore::forked() const { return runtime_->forked(); }

void RunCore::DropHandle() {
  if (forked()) return;
  if (life_.DropHandle()) WatchInBackground();
  Unref();
}

void RunCore::Advance() {
  if (!ended() && deadline_.passed()) {
    Abandon(absl::DeadlineExceededError("the run's deadline passed before its work had drained"));
  }
  notes_.Run([this] { Step(); });
}

void RunCore::Poll() {
  if (!ended() && deadline_.passed()) return Advance();
  notes_.TryRun([this] { Step(); });
}

void RunCore::WatchInBackground() {
  if (life_.BeginWatch()) runtime_->Watch(this);
}

bool RunCore::AllSubmitted() const { return slot_->progress.next_segment == slot_->schedule->segments.count(); }

// Submitting until all segments are submitted or the run has failed, then draining. Host steps start in both.
void RunCore::Step() {
  if (slot_ == nullptr) return;  // drained
  const Admission& admission = runtime_->admission();
  if (admission.failed() && !slot_->fault.failed()) slot_->fault.Fail(-1, admission.Fault());
  if (!slot_->fault.failed() && !slot_->progress.has_turn.load(std::memory_order_relaxed) && !BeginTurn()) {
    return WatchInBackground();
  }
  SubmitSegments();
  if (MustBeWatched()) WatchInBackground();
  if (!AllSubmitted() && !slot_->fault.failed()) return;
  const bool over = Drain();
  const driver::RunFault& fault = slot_->fault;
  if (fault.failed() && base::IsFatal(fault.status())) {
    runtime_->NoteFault(context_.graph.Describe(fault.node(), fault.status()));
  }
  if (over) Complete();
}

// Returns false if the run's turn has yet to come.
bool RunCore::BeginTurn() {
  const std::optional<SubmittedRun> previous = context_.turns->Take(slot_->index);
  if (!previous.has_value()) return false;
  slot_->progress.has_turn.store(true, std::memory_order_relaxed);
  if (!context_.in_order) return true;
  const absl::Status waits = context_.submitter.BeginInOrder(*slot_, *previous);
  if (waits.ok()) context_.turns->Begin(slot_->index, {slot_, slot_->schedule, &slot_->queues.events().done});
  else slot_->fault.Fail(-1, waits);
  return true;
}

// A thread must advance the run even if no caller waits for it: when a lane was full, and when others may wait for work
// that it has yet to submit or for it to leave the order of its States.
bool RunCore::MustBeWatched() const {
  if (slot_->progress.lane_full) return true;
  const bool ordered = context_.in_order || !context_.graph.plan().states.empty() ||
                       !slot_->predecessors.runs.empty() || followed_.load();
  return ordered && (!AllSubmitted() || slot_->fault.failed());
}

// Returns true if all work has ended and everything that the run depends on is known to have ended.
bool RunCore::Drain() {
  const bool submitted_before = slot_->progress.epilogue_submitted;
  if (!submitted_before && !SubmitEpilogue()) return false;
  // What was submitted just now has hardly ended; a thread that waits for a driver without notifications looks again.
  const bool submitted_now = !submitted_before && !slot_->fault.failed() && !context_.graph.plan().done_events.empty();
  if (submitted_now && !runtime_->notifies_completion()) return false;
  return host_steps_.Settled() && DoneEventsComplete() && context_.submitter.PredecessorsSettled(*slot_) &&
         slot_->hostcalls.settled();
}

void RunCore::SubmitSegments() {
  const auto& segments = slot_->schedule->segments;
  RunProgress& progress = slot_->progress;
  do {
    slot_->hosts.TakeEnded();
    while (!slot_->fault.failed() && !AllSubmitted() && slot_->hosts.MayBegin(progress.next_segment)) {
      const graph::Segment& segment = segments[progress.next_segment];
      progress.next_command = std::max<int32_t>(progress.next_command, segment.begin);
      if (!context_.submitter.Submit(*slot_, segment.end)) break;  // it has failed, or must wait
      ++progress.next_segment;
    }
    host_steps_.LookAtEvents();
  } while (host_steps_.Start());
}

// Waiters on the run are notified when it ends, waiters on a gate when it is released. Waking anyone here would be a
// spurious wakeup, and a switch to another thread takes as long as a short node.
void RunCore::OnHostStepsEnded() {
  Advance();
  if (followed_.load()) runtime_->event_count().Notify();
}

// Returns false if the device refuses, so that no thread can tell when the work ends. Then the run is abandoned, and
// the next Advance tries again.
bool RunCore::SubmitEpilogue() {
  const Schedule& schedule = *slot_->schedule;
  if (slot_->progress.first_unsubmitted < 0) {
    const bool whole = slot_->progress.next_segment == schedule.segments.count();
    slot_->progress.first_unsubmitted = whole ? schedule.epilogue_begin : slot_->progress.next_command;
    slot_->progress.next_command = whole ? schedule.short_epilogue_begin : schedule.epilogue_begin;
  }
  const absl::Status refused = context_.submitter.SubmitEpilogue(*slot_, schedule.epilogue_end);
  if (!refused.ok()) runtime_->NoteFault(context_.graph.Describe(-1, refused));
  slot_->progress.epilogue_submitted = refused.ok() || base::IsFatal(refused);
  if (!slot_->progress.epilogue_submitted) Abandon(refused);
  const bool awaited =
      slot_->progress.epilogue_submitted && context_.in_order && context_.turns->Submitted(slot_->index);
  if (awaited || followed_.load()) runtime_->event_count().Notify();
  return slot_->progress.epilogue_submitted;
}

absl::StatusOr<Predecessor::Tail> RunCore::LookAtTail() const {
  const auto failure = [](const absl::Status& cause) {
    if (base::IsFatal(cause)) return cause;
    return absl::FailedPreconditionError("it depends on a run that failed: " + base::Str(cause.message()) +
                                         "; what that has left in the memory is unspecified; launch both again");
  };
  base::MutexLock lock(mu_);
  if (open_slot_ == nullptr) {  // drained, or about to be
    const bool over = ended_.load(std::memory_order_relaxed);
    if (over && !status_.ok()) return failure(status_);
    return Tail{.submitted = over, .ended = over};
  }
  const driver::RunFault& fault = open_slot_->fault;
  if (fault.failed()) return failure(open_slot_->DescribeFault());
  return Tail{.submitted = open_slot_->progress.epilogue_submitted.load(),
              .done = &open_slot_->queues.events().done,
              .owner = owner_};
}

bool RunCore::HasHostWorkLeft() const {
  base::MutexLock lock(mu_);
  return open_slot_ != nullptr && open_slot_->hosts.work_left() > 0;
}

bool RunCore::IsOf(const RuntimeCore& runtime, const driver::Driver* driver) const {
  return runtime_.get() == &runtime && driver_ == driver;
}

void RunCore::Follow() {
  followed_.store(true);
  WatchInBackground();
}

bool RunCore::DoneEventsComplete() {
  for (const int32_t e : context_.graph.plan().done_events) {
    const absl::StatusOr<bool> complete = IsComplete(context_, *slot_, e);
    if (!complete.ok()) {
      slot_->fault.Fail(-1, complete.status());
      if (base::IsFatal(complete.status())) continue;  // the device runs nothing any more
      runtime_->event_count().Notify();  // it still runs, and nothing else may notify: look again
      return false;
    }
    if (!*complete) return false;
  }
  // A host device may have failed the run in its last operations; what waits on workers is then skipped.
  return host_steps_.Settled();
}

void RunCore::Complete() {
  {
    base::MutexLock lock(mu_);
    open_slot_ = nullptr;  // what happens to the slot from now on is not this run's doing
  }
  slot_->hostcalls.End();
  LeaveStates();
  const absl::Status status = DescribeEnd(*slot_);
  ReturnedCounts counts;
  if (status.ok() && !slot_->graph().program().counts.empty()) counts = ReadCounts(*slot_);
  context_.trace.Record(*slot_);
  base::EndAnnotation(slot_->progress.annotation);
  context_.counts->Drained();
  observe::Observed& observed = runtime_->observed();
  const bool metered = observed.meter.on() && context_.counts != &observed.graphs.parts();
  if (metered) observed.meter.RunEnded(std::chrono::steady_clock::now());
  slot_->predecessors.Release();
  std::shared_ptr<const void> keep_alive = std::exchange(slot_->bound.keep_alives, nullptr);
  const std::shared_ptr<RunOwner> owner = std::move(owner_);
  owner->OnRunEnded(*std::exchange(slot_, nullptr));
  life_.SetDrained();
  std::vector<Callback> callbacks;
  {
    base::MutexLock lock(mu_);
    counts_ = std::move(counts);
    callbacks = EndLocked(status);
  }
  Announce(std::move(callbacks), status);
  runtime_->RunDrained(std::move(keep_alive));
  Unref();
}

// If an earlier run in the order of a State failed, this run's results are garbage. That failure is visible by now even
// if the earlier run has not drained.
void RunCore::LeaveStates() {
  StateTicket& ticket = slot_->ticket;
  if (ticket.places.empty()) return;
  StateOrder& order = runtime_->states();
  if (!slot_->fault.failed()) {
    if (const absl::Status verdict = order.Verdict(ticket); !verdict.ok()) slot_->fault.Fail(-1, verdict);
  }
  order.Leave(ticket);
}

void RunCore::Cancel() {
  if (forked()) return;
  {
    base::MutexLock lock(mu_);
    if (open_slot_ == nullptr || ended()) return;
    open_slot_->fault.Fail(-1, absl::CancelledError("cancelled"));
  }
  WatchInBackground();
  runtime_->event_count().Notify();  // for a completion thread that already watches it
}

void RunCore::Abandon(const absl::Status& why) {
  std::vector<Callback> callbacks;
  absl::Status status;
  {
    base::MutexLock lock(mu_);
    if (open_slot_ == nullptr || ended()) return;
    status = DescribeAbandoned(*open_slot_, why);
    open_slot_->fault.Fail(-1, why);
    callbacks = EndLocked(status);
  }
  Announce(std::move(callbacks), status);
  WatchInBackground();
}

// The first end counts; a later one finds no callbacks to call.
std::vector<RunCore::Callback> RunCore::EndLocked(const absl::Status& status) {
  if (ended_.load(std::memory_order_relaxed)) return {};
  status_ = status;
  context_.counts->Ended(status);
  ended_.store(true, std::memory_order_release);
  return std::exchange(callbacks_, {});
}

void RunCore::Announce(std::vector<Callback> callbacks, const absl::Status& status) {
  for (Callback& callback : callbacks) Post(std::move(callback), status);
  runtime_->event_count().Notify();
}

void RunCore::Post(Callback callback, absl::Status status) {
  auto posted =
      std::make_unique<PostedCallback>(PostedCallback{std::move(callback), std::move(status), runtime_.get(), graph_});
  runtime_->workers().Post({&RunPostedCallback, posted.release(), 0}, workers_);
}

void RunCore::OnDone(Callback callback) {
  if (forked()) return CallBack(callback, RuntimeCore::Forked(), *runtime_, *graph_);
  if (Keep(callback)) return WatchInBackground();
  Post(std::move(callback), status());
}

// Takes over the callback unless the run has ended.
bool RunCore::Keep(Callback& callback) {
  base::MutexLock lock(mu_);
  if (ended_.load(std::memory_order_relaxed)) return false;
  callbacks_.push_back(std::move(callback));
  return true;
}

absl::Status RunCore::status() const {
  if (forked()) return RuntimeCore::Forked();
  base::MutexLock lock(mu_);
  if (!ended_.load(std::memory_order_relaxed)) return absl::UnavailableError("the run has not ended yet");
  return status_;
}

absl::StatusOr<int64_t> RunCore::Count(uint32_t graph, int32_t output) const {
  if (absl::Status ended = status(); !ended.ok()) return ended;
  return FindCount(counts(), graph, output);
}

ReturnedCounts RunCore::counts() const {
  base::MutexLock lock(mu_);
  return counts_;
}

absl::Status RunCore::Wait(Deadline deadline) {
  if (forked()) return RuntimeCore::Forked();
  if (!ended() && base::InUserCode()) {
    return absl::FailedPreconditionError(
        "Run::Wait inside a host node or callback; it could wait for the worker it runs on; use OnDone, or wait "
        "outside");
  }
  const host::TimePoint until = deadline.at();
  for (;;) {
    const auto end = [&] {
      if (!ended()) Advance();
      return ended();
    };
    const bool ended_now = host::WaitForProgress(runtime_->event_count(), runtime_->notifies_completion(),
                                                 std::min(until, deadline_.at()), end, host::kCallerPollBeforeSleep);
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
