#include "src/runtime/executable/executable_core.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/annotate.h"
#include "src/base/process_life.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/runtime/executable/internals.h"
#include "src/runtime/executable/loops_report.h"
#include "src/runtime/executable/slot_wait.h"
#include "src/runtime/program/tuning.h"
#include "src/runtime/run/application_stream.h"
#include "src/runtime/run/internals.h"

namespace penstock::runtime {
namespace {

// The model with the device's replica in place of each ReplicatedState.
std::shared_ptr<const Model> WithReplicasOn(const Model& model, int device) {
  auto on = std::make_shared<Model>(model);
  for (BufferDecl& buffer : on->buffers) {
    if (buffer.state == nullptr || buffer.state->replicas.empty()) continue;
    const std::vector<std::shared_ptr<const StateRecord>> replicas = buffer.state->replicas;
    const auto there =
        std::find_if(replicas.begin(), replicas.end(), [&](const auto& r) { return r->device == device; });
    buffer.state = there != replicas.end() ? *there : replicas[0];
    if (there != replicas.end()) continue;
    on->mistakes.push_back({absl::StatusCode::kInvalidArgument,
                            graph::Prefix(model, "state", buffer.name) + ": has no replica on device " +
                                std::to_string(device) +
                                ", which the graph is compiled for; name it in ReplicatedStateOptions::devices"});
  }
  return on;
}

// Runs that are in order share the queues of the device, which hold so many commands, and its memory, to and from which
// host threads copy at any time until the run has ended.
void SetTurns(const RunContext& context, const CompileOptions& options, int slots) {
  using InOrder = SubmissionTurns::InOrder;
  const Program& program = context.graph.program();
  int limit = options.max_submitted > 0 ? options.max_submitted : slots;
  if (options.in_order) {
    const int most = std::max({program.stream.most_on_a_lane, program.graphs.most_on_a_lane, 1});
    limit = program.staged_copies > 0 ? 1 : std::min(limit, std::max(tuning::kMostOutstanding / most, 1));
  }
  context.turns->Set(limit, slots, options.in_order ? InOrder::kYes : InOrder::kNo);
}

absl::Status CheckOnTime(ExecutableCore& core, Deadline deadline) {
  if (deadline.is_never()) return absl::OkStatus();
  const RunsInFront front = core.in_front();
  if (front.runs == 0) return absl::OkStatus();
  return RefuseIfLate(core.Label(), front, deadline, Deadline::Clock::now());
}

absl::Status CheckMayWait(const ExecutableCore& core, const char* what, const char* instead) {
  if (!base::InUserCode()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      core.Label() + ": " + what + " inside a host node or callback; it could wait for the worker it runs on; use " +
      instead);
}

}  // namespace

ExecutableCore::ExecutableCore(std::shared_ptr<RuntimeCore> runtime, const Model& model, const CompileOptions& options)
    : context_(std::move(runtime), WithReplicasOn(model, options.device), options.device, options.trace),
      refuses_late_(options.refuse_late),
      pool_(context_.runtime->event_count()) {
  if (refuses_late_) durations_.Measure();
  if (options.profile) context_.trace.UseForProfile();
}

ExecutableCore::~ExecutableCore() {
  if (context_.trace.for_profile()) runtime().observed().profile.End(graph().number());
  pool_.Clear();
  if (handles_gone_.load()) context_.runtime->memory().ReleaseEnds();
}

absl::StatusOr<std::shared_ptr<ExecutableCore>> ExecutableCore::Create(std::shared_ptr<RuntimeCore> runtime,
                                                                       const Model& model,
                                                                       const CompileOptions& options,
                                                                       const DeclaredGraph& declared) {
  PENSTOCK_RETURN_IF_ERROR(runtime->CheckOpen());
  const base::AnnotatedRange range(base::Annotating() ? base::AnnotationOf("compile " + std::string(model.name.view()))
                                                      : nullptr);
  std::shared_ptr<ExecutableCore> core(new ExecutableCore(std::move(runtime), model, options),
                                       base::DeleteUnlessForked());
  Compiler compiler(core->context_, core.get(), options, core->modes_, core->hostcalls_);
  absl::StatusOr<std::vector<std::unique_ptr<RunSlot>>> slots = compiler.Compile(declared);
  core->runtime().NoteFault(slots.status());
  PENSTOCK_RETURN_IF_ERROR(slots.status());
  core->pool_.Set(*std::move(slots));
  observe::GraphCounts& graphs = core->runtime().observed().graphs;
  core->context_.counts = declared.is_part ? &graphs.parts() : &graphs.Of(model.name.view());
  core->counted_ = observe::CountedExecutable(*core->context_.counts);
  SetTurns(core->context_, options, core->slots());
  core->runtime().AddExecutable(core);
  return core;
}

std::shared_ptr<ExecutableCore> ExecutableCore::HandleOn(std::shared_ptr<ExecutableCore> core) {
  ExecutableCore* const raw = core.get();
  return {raw, [core = std::move(core)](ExecutableCore* last) {
            last->runtime().memory().ReleaseBegins();
            last->handles_gone_.store(true);
          }};
}

bool ExecutableCore::IsStuck() { return handles_gone_.load() && CountAbandoned() > 0; }

int64_t ExecutableCore::CountAbandoned() {
  int64_t abandoned = 0;
  pool_.ForEachRun([&](RunCore& run) { abandoned += run.ended() && !run.drained() ? 1 : 0; });
  return abandoned;
}

void ExecutableCore::AdvanceAll() {
  pool_.ForEachRun([](RunCore& run) { run.Advance(); });
}

void ExecutableCore::AbandonAll(const absl::Status& why) {
  pool_.ForEachRun([&](RunCore& run) { run.Abandon(why); });
}

bool ExecutableCore::IsIdle() {
  AdvanceAll();
  return pool_.taken() == 0;
}

bool ExecutableCore::HasFreeSlot() {
  if (pool_.taken() < pool_.size()) return true;
  AdvanceAll();
  return pool_.taken() < pool_.size();
}

SubmissionReport ExecutableCore::submission_report() const {
  SubmissionReport report = modes_.Report(pool_.slots());
  report.loops = LoopsOf(*this);
  for (const ControlPart& part : parts()) {
    for (SubmissionReport::Fused& fused : part.core->submission_report().fused) {
      const auto same = [&](const SubmissionReport::Fused& other) { return other.name == fused.name; };
      const bool known = std::any_of(report.fused.begin(), report.fused.end(), same);  // a loop has its body twice
      if (!known) report.fused.push_back(std::move(fused));
    }
  }
  return report;
}

DeviceLoad ExecutableCore::load() {
  return {.taken = pool_.taken(), .slots = pool_.size(), .mean_ns = durations_.mean_ns(), .last = launches()};
}

// Runs that have ended must be seen to have ended, or they would count.
RunsInFront ExecutableCore::in_front() {
  if (!refuses_late_) return {};
  AdvanceAll();
  return {pool_.runs() + waiting_.load(std::memory_order_relaxed), pace_.mean_ns()};
}

Bindings ExecutableCore::MakeBindings() const { return detail::Internals<Bindings>::Make(graph().shared_model()); }

absl::StatusOr<RunSlot*> ExecutableCore::AcquireSlot(Deadline deadline, Wait wait) {
  RunSlot* slot = TakeFree();
  if (slot != nullptr) return slot;
  const auto take = [&] {
    AdvanceAll();
    slot = TakeFree();
    return slot != nullptr || !runtime().CheckOpen().ok();
  };
  const auto taken = [this] { return Label() + ": all " + std::to_string(slots()) + " slots are taken"; };
  if (wait == Wait::kNo) {
    if (take() && slot != nullptr) return slot;
    return absl::ResourceExhaustedError(
        taken() + "; wait for a run to end, use Launch or Acquire, which wait, or compile with more slots");
  }
  const WaitingLaunch waiting(waiting_);
  if (!take()) {
    const SlotWait waits(context_);
    host::WaitForProgress(runtime().event_count(), runtime().notifies_completion(), deadline.at(), take);
    if (slot != nullptr) context_.trace.RecordWait(*slot, waits.since());
  }
  if (slot != nullptr) return slot;
  PENSTOCK_RETURN_IF_ERROR(runtime().CheckOpen());
  return absl::DeadlineExceededError(taken() + " and none came free before the deadline; nothing was started");
}

absl::Status ExecutableCore::CheckMayLaunch(const char* called) const {
  const auto refuse = [&](const char* why) { return absl::FailedPreconditionError(Label() + ": " + called + why); };
  if (base::InDeviceCode()) {
    return refuse(
        " inside a callable that is called as a part of a device's work, where "
        "nothing of CUDA's may be called; call it outside");
  }
  if (!host::HostcallPoller::IsCurrent()) return absl::OkStatus();
  return refuse(
      " inside an Inline Host node; the thread that answers devices may call none; make it Infallible, or neither");
}

absl::Status ExecutableCore::CheckLease(Wait wait) const {
  if (wait == Wait::kYes) PENSTOCK_RETURN_IF_ERROR(CheckMayWait(*this, "Acquire", "TryAcquire"));
  return runtime().CheckOpen();
}

absl::StatusOr<RunSlot*> ExecutableCore::Lease(Deadline deadline, Wait wait) {
  PENSTOCK_RETURN_IF_ERROR(CheckLease(wait));
  PENSTOCK_ASSIGN_OR_RETURN(RunSlot * slot, AcquireSlot(deadline, wait));
  MarkLeased(slot);
  return slot;
}

absl::Status ExecutableCore::CheckLaunch(Wait wait) const {
  if (wait == Wait::kYes) PENSTOCK_RETURN_IF_ERROR(CheckMayWait(*this, "Launch", "TryLaunch"));
  PENSTOCK_RETURN_IF_ERROR(CheckMayLaunch());
  if (const int32_t leased = graph().program().buffers.leased; leased >= 0) {
    return absl::FailedPreconditionError(
        graph::Prefix(model(), "buffer", model().buffers[leased].name) +
        ": declared kSlot, but the slot's memory was not filled; launch by the Lease that Acquire returns");
  }
  return runtime().CheckOpen();
}

absl::StatusOr<Run> ExecutableCore::Launch(const Bindings& bindings, Deadline deadline, Wait wait) {
  PENSTOCK_RETURN_IF_ERROR(CheckLaunch(wait));
  PENSTOCK_RETURN_IF_ERROR(CheckOnTime(*this, deadline));
  PENSTOCK_ASSIGN_OR_RETURN(RunSlot * slot, AcquireSlot(deadline, wait));
  return Start(slot, detail::Internals<Bindings>::ValuesOf(bindings), deadline);
}

absl::StatusOr<Run> ExecutableCore::LaunchIn(RunSlot* slot, const Bindings& bindings, Deadline deadline) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayLaunch());
  PENSTOCK_RETURN_IF_ERROR(runtime().CheckOpen());
  if (pool_.HasRun(*slot)) {
    return absl::FailedPreconditionError(
        Label() +
        ": the lease's run is still in flight, and the slot's memory is its; wait for it, or acquire another");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckOnTime(*this, deadline));
  return Start(slot, detail::Internals<Bindings>::ValuesOf(bindings), deadline);
}

absl::StatusOr<int> ExecutableCore::Prepare(RunSlot& slot, const detail::BoundValues& bindings) {
  PENSTOCK_RETURN_IF_ERROR(binder_.Bind(slot, bindings));
  PENSTOCK_RETURN_IF_ERROR(modes_.Prepare(slot));
  return binder_.WaitForNative(slot, bindings);
}

absl::StatusOr<Run> ExecutableCore::Start(RunSlot* slot, const detail::BoundValues& values, Deadline deadline,
                                          Kind kind) {
  const base::AnnotatedRange range(graph().annotations().launch);
  slot->fault.Reset();
  const bool profiled = context_.trace.for_profile();
  durations_.Begin(slot->launched);
  modes_.Begin(*slot);
  if (profiled) slot->launched = std::chrono::steady_clock::now();
  const std::chrono::steady_clock::time_point launched = slot->launched;
  const absl::StatusOr<int> stream_device = Prepare(*slot, values);
  absl::Status ready = stream_device.status();
  if (!ready.ok()) runtime().NoteFault(ready);
  const absl::Status open = runtime().RunStarted();  // again: Shutdown waits for what has started before it closed
  if (ready.ok() && kind == Kind::kRun) ready = open;
  const auto enter = [&] { return binder_.EnterStates(*slot); };
  if (ready.ok()) ready = context_.turns->used() ? context_.turns->Join(slot->index, enter) : enter();
  if (!ready.ok()) {
    slot->bound.keep_alives.reset();
    slot->predecessors.Release();
    pool_.EndRun(*slot);
    runtime().RunDrained();
    return ready;
  }
  if (!slot->bound.consumed.empty()) values.Consume(slot->bound.consumed);
  const int64_t serial = launches_.fetch_add(1, std::memory_order_relaxed);
  context_.counts->Began();
  const bool needs_workers = slot->Begin(serial, deadline.at()) > 0;
  slot->progress.has_turn.store(!context_.turns->used(), std::memory_order_relaxed);
  auto* run = new RunCore(std::static_pointer_cast<ExecutableCore>(shared_from_this()), context_, slot, deadline);
  Run handle = detail::Internals<Run>::Make(run);
  slot->hostcalls.Begin(serial);
  pool_.BeginRun(*slot, run);  // from now on other threads may end it
  const int index = slot->index;
  run->Advance();
  if (profiled) context_.trace.RecordLaunch(index, serial, launched);
  // Small copies may have been all that there was to do. Runs that wait for their turn must see that this one has
  // ended.
  const bool has_work = needs_workers && run->HasHostWorkLeft();
  if (has_work || !deadline.is_never() || runtime().synchronous() || context_.turns->limited())
    run->WatchInBackground();
  if (*stream_device >= 0) {
    PENSTOCK_RETURN_IF_ERROR(HoldStream(runtime(), graph().driver(), *run, values.stream(), *stream_device));
  }
  return handle;
}

void ExecutableCore::OnRunEnded(RunSlot& slot) {
  if (context_.turns->used()) context_.turns->Leave(slot.index, slot.progress.has_turn.load(std::memory_order_relaxed));
  modes_.End(slot);
  durations_.End(slot.launched, slot.fault.failed());
  if (refuses_late_) pace_.End(slot.launched, Deadline::Clock::now(), slot.fault.failed());
  pool_.EndRun(slot);
  if (slot.follower != nullptr) slot.follower->OnRunEnded(slot);
}

}  // namespace penstock::runtime
