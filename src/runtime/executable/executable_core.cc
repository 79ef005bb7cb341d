#include "src/runtime/executable/executable_core.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/common/message.h"
#include "graph/declare/host_check.h"
#include "graph/plan/graph_schedule.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/process_life.h"
#include "src/base/status.h"
#include "src/base/user_code.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/run/application_stream.h"
#include "src/runtime/run/parallel_submission.h"
#include "src/runtime/run/run_core.h"

namespace penstock::runtime {

using graph::PlanKind;
using graph::PlanNode;

namespace {

// Whether the host calls code of the user's for it.
bool HasCallable(PlanKind kind) {
  return kind == PlanKind::kHost || kind == PlanKind::kHostcall || kind == PlanKind::kLaunch;
}

bool AnyHostcall(const Model& model) {
  return std::any_of(model.nodes.begin(), model.nodes.end(),
                     [](const NodeDecl& node) { return node.host_way != HostWay::kWorker; });
}

// Of each device: how many kernels that ask can wait there at once, in as many slots. Of a lane one can.
std::vector<int> MaxPendingHostcalls(const graph::Plan& plan, size_t devices, int slots) {
  std::vector<bool> hostcalls(plan.lanes.size());
  for (const PlanNode& node : plan.nodes) {
    if (node.kind == PlanKind::kHostcall) hostcalls[static_cast<size_t>(node.lane)] = true;
  }
  std::vector<int> most(devices);
  for (size_t l = 0; l < hostcalls.size(); ++l) {
    if (hostcalls[l]) most[static_cast<size_t>(plan.lanes[l].device)] += slots;
  }
  return most;
}

// Loads each kernel once a device, however many nodes have it: that takes four calls of CUDA's.
class KernelLoads {
 public:
  absl::StatusOr<driver::KernelCode> Get(const driver::DeviceRef& d, const driver::KernelSource& source) {
    const auto [known, is_new] = loaded_.try_emplace({d.driver, d.local, source.self, source.awaits});
    if (is_new) {
      PENSTOCK_ASSIGN_OR_RETURN(known->second, d.driver->LoadKernel(d.local, source));
    }
    return known->second;
  }

 private:
  absl::flat_hash_map<std::tuple<driver::Driver*, int, const void*, bool>, driver::KernelCode> loaded_;
};

// What only the loaded kernel tells; the planner has checked the rest.
absl::Status CheckShape(const KernelShape& shape, const driver::KernelCode& code, const base::KernelLimits& limits) {
  const int64_t threads = int64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  if (threads > code.block_threads) {
    return absl::InvalidArgumentError("its blocks have " + std::to_string(threads) + " threads; this kernel can have " +
                                      std::to_string(code.block_threads) +
                                      ", for its registers or launch bounds; use fewer, or more blocks");
  }
  if (shape.shared_bytes + code.shared_bytes <= limits.shared_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError("its blocks take " + std::to_string(shape.shared_bytes) + " and, declared in it, " +
                                    std::to_string(code.shared_bytes) +
                                    " bytes of shared memory; a block of this device can have " +
                                    std::to_string(limits.shared_bytes) + "; use less");
}

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

}  // namespace

ExecutableCore::ExecutableCore(std::shared_ptr<RuntimeCore> runtime, const Model& model, const CompileOptions& options)
    : runtime_(std::move(runtime)),
      model_(WithReplicasOn(model, options.device)),
      trace_(options.trace),
      default_device_(options.device),
      executor_(*this) {}

ExecutableCore::~ExecutableCore() {
  slots_.clear();
  for (const driver::Event event : trace_base_) {
    if (event) driver_->DestroyEvent(event);
  }
  runtime_->ReleaseHostcalls(hostcalls_reserved_);
  if (handles_gone_.load()) runtime_->ReleaseEnds();
}

absl::StatusOr<std::shared_ptr<ExecutableCore>> ExecutableCore::Create(std::shared_ptr<RuntimeCore> runtime,
                                                                       const Model& model,
                                                                       const CompileOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(runtime->CheckOpen());
  std::shared_ptr<ExecutableCore> core(new ExecutableCore(std::move(runtime), model, options),
                                       base::DeleteUnlessForked());
  const absl::Status compiled = core->Compile(options);
  core->runtime_->NoteFault(compiled);
  PENSTOCK_RETURN_IF_ERROR(compiled);
  core->runtime_->AddExecutable(core);
  return core;
}

std::shared_ptr<ExecutableCore> ExecutableCore::HandleOn(std::shared_ptr<ExecutableCore> core) {
  ExecutableCore* const raw = core.get();
  return {raw, [core = std::move(core)](ExecutableCore* last) {
            last->runtime_->ReleaseBegins();
            last->handles_gone_.store(true);
          }};
}

bool ExecutableCore::IsStuck() { return handles_gone_.load() && CountAbandoned() > 0; }

int64_t ExecutableCore::CountAbandoned() {
  int64_t abandoned = 0;
  ForEachRun([&](RunCore& run) { abandoned += run.ended() && !run.drained() ? 1 : 0; });
  return abandoned;
}

const driver::DeviceRef& ExecutableCore::device(int32_t device) const {
  return runtime_->devices()[static_cast<size_t>(device)];
}

absl::Status ExecutableCore::Compile(const CompileOptions& options) {
  const std::string prefix = graph::Prefix(*model_);
  const auto& devices = runtime_->devices();
  if (options.slots < 1 || options.slots > 1024) {
    return absl::InvalidArgumentError(prefix + ": CompileOptions::slots is " + std::to_string(options.slots) +
                                      "; an executable has 1 to 1024 slots");
  }
  if (options.device < 0 || options.device >= static_cast<int>(devices.size())) {
    return absl::InvalidArgumentError(prefix + ": CompileOptions::device is " + std::to_string(options.device) +
                                      "; the runtime has devices 0 to " + std::to_string(devices.size() - 1));
  }
  if (!(options.host_tolerance >= 0)) {  // or no number
    return absl::InvalidArgumentError(prefix + ": CompileOptions::host_tolerance is " +
                                      std::to_string(options.host_tolerance) + "; a tolerance is 0 or more");
  }
  if (options.device_bytes < 0) {
    return absl::InvalidArgumentError(prefix + ": CompileOptions::device_bytes is " +
                                      std::to_string(options.device_bytes) + "; give 0 for no limit, or more");
  }
  graph::PlanOptions plan_options;
  for (const driver::DeviceRef& d : devices) {
    plan_options.devices.push_back(
        {d.info.name, d.info.kind == driver::DeviceKind::kCuda, d.driver_index, d.info.memory_bytes});
    const std::string why = runtime_->HostcallsUnavailableReason(d.info);
    plan_options.devices.back().hostcalls = why.empty();
    plan_options.devices.back().limits = d.info.limits;
    if (!why.empty() && AnyHostcall(*model_))
      submission_report_.notes.push_back("Host nodes part the run on " + d.info.name + ": " + why);
  }
  plan_options.default_device = options.device;
  plan_options.max_lanes = options.max_lanes;
  plan_options.slots = options.slots;
  plan_options.device_bytes = options.device_bytes;
  plan_options.ring_from_bytes = runtime_->staging_from_bytes();
  if (runtime_->synchronous()) plan_options.batch_from = INT32_MAX;  // each node is waited for
  plan_options.pinned_bytes = runtime_->pinned_budget();
  plan_options.runtime = runtime_.get();
  PENSTOCK_ASSIGN_OR_RETURN(const Mode wanted, WantedMode(options));
  plan_options.events_once = MayBePartitioned(wanted);
  PENSTOCK_RETURN_IF_ERROR(AddHostChecks(options, plan_options));
  PENSTOCK_RETURN_IF_ERROR(MakePlan(plan_options));

  for (const graph::Lane& lane : plan_.lanes) lane_devices_.push_back(device(lane.device).local);
  ChooseMode(wanted);
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<LoadedKernel> kernels, LoadKernels());
  gates_ = std::vector<base::TrySemaphore<>>(plan_.nodes.size());
  uncaptured_.resize(plan_.nodes.size());
  const std::vector<std::string> notes = submission_report_.notes;
  for (bool made = false; !made;) {
    submission_report_.notes = notes;
    PENSTOCK_ASSIGN_OR_RETURN(made, MakeProgram(options, kernels));
  }
  return trace_ == nullptr ? absl::OkStatus() : Describe(-1, SetTraceBase());
}

// Whether submission threads may help with runs that are submitted on streams.
bool ExecutableCore::MayBePartitioned(Mode mode) const {
  const std::vector<int>& counts = runtime_->submission_thread_counts();
  return mode != Mode::kGraph && !runtime_->synchronous() &&
         std::any_of(counts.begin(), counts.end(), [](int count) { return count > 0; });
}

// With as many kernels that ask as the devices have room for.
absl::Status ExecutableCore::MakePlan(graph::PlanOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(plan_, graph::MakePlan(*model_, options));
  std::vector<int> hostcalls = MaxPendingHostcalls(plan_, options.devices.size(), options.slots);
  for (size_t d = 0; d < hostcalls.size(); ++d) {
    if (hostcalls[d] <= driver::kMaxPendingHostcalls) continue;
    return absl::ResourceExhaustedError(
        graph::Prefix(*model_) + ": " + std::to_string(hostcalls[d]) + " Host nodes may wait on " +
        options.devices[d].name + " at once, in " + std::to_string(options.slots) +
        " slots, and a device has room for " + std::to_string(driver::kMaxPendingHostcalls) +
        "; ask for fewer slots or lanes, order the nodes by After, or leave out Inline and Infallible");
  }
  if (runtime_->ReserveHostcalls(hostcalls)) {
    hostcalls_reserved_ = std::move(hostcalls);
    return absl::OkStatus();
  }
  submission_report_.notes.push_back("Host nodes part the run: other executables have taken so much of the room for " +
                                     std::to_string(driver::kMaxPendingHostcalls) +
                                     " that wait on a device at once that too little is left");
  for (graph::PlanDevice& device : options.devices) device.hostcalls = false;
  PENSTOCK_ASSIGN_OR_RETURN(plan_, graph::MakePlan(*model_, options));
  return absl::OkStatus();
}

// False: a node has turned out to be fit for no graph.
absl::StatusOr<bool> ExecutableCore::MakeProgram(const CompileOptions& options,
                                                 const std::vector<LoadedKernel>& kernels) {
  slots_.clear();
  driver_gates_.clear();
  std::vector<bool> cuda;
  for (const driver::DeviceRef& d : runtime_->devices()) cuda.push_back(d.info.kind == driver::DeviceKind::kCuda);
  std::optional<graph::GraphSchedule> graphs;
  if (submission_report_.mode != Mode::kStream) graphs = ScheduleGraphs();
  program_ = BuildProgram(
      *model_, plan_, kernels, cuda, graphs ? &*graphs : nullptr, submission_report_.mode != Mode::kGraph,
      trace_ != nullptr,
      MayBePartitioned(submission_report_.mode) ? runtime_->submission_thread_counts() : std::vector<int>());
  for (const CallEntry& call : program_.calls) {
    driver_gates_.emplace_back(model_->nodes[static_cast<size_t>(call.decl)].concurrency);
  }
  return MakeSlots(options.slots);
}

absl::Status ExecutableCore::AddHostChecks(const CompileOptions& options, const graph::PlanOptions& plan_options) {
  const absl::StatusOr<bool> by_variable = base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST");
  if (!by_variable.ok()) return base::Prefixed(graph::Prefix(*model_), by_variable.status());
  if (!options.check_against_host && !*by_variable) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(graph::MakePlan(*model_, plan_options).status());  // mistakes are told of the graph as it is
  std::vector<std::string> unchecked;
  model_ = std::make_shared<const Model>(graph::WithHostChecks(*model_, options.host_tolerance, unchecked));
  for (const std::string& text : unchecked) runtime_->Log(LogLevel::kWarning, text);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LoadedKernel>> ExecutableCore::LoadKernels() {
  std::vector<LoadedKernel> kernels(plan_.nodes.size());
  KernelLoads loads;
  for (size_t n = 0; n < plan_.nodes.size(); ++n) {
    const PlanNode& node = plan_.nodes[n];
    if (node.kind == PlanKind::kHostcall) {
      const driver::DeviceRef& asker = device(node.device);
      PENSTOCK_RETURN_IF_ERROR(runtime_->StartPoller());
      PENSTOCK_ASSIGN_OR_RETURN(kernels[n].ask, asker.driver->LoadHostcall(asker.local));
    }
    if (node.kind != PlanKind::kParallelFor && node.kind != PlanKind::kKernel) continue;
    const NodeDecl& decl = model_->nodes[static_cast<size_t>(node.decl)];
    const bool awaits = node.kind == PlanKind::kParallelFor || decl.shape.programmatic;
    const absl::Status loaded = [&]() -> absl::Status {
      const driver::DeviceRef& d = device(node.device);
      PENSTOCK_ASSIGN_OR_RETURN(kernels[n].by_value,
                                loads.Get(d, {decl.code.cuda_kernel, decl.code.cuda_self, awaits}));
      if (node.kind == PlanKind::kKernel) {
        PENSTOCK_RETURN_IF_ERROR(CheckShape(decl.shape, kernels[n].by_value, d.info.limits));
      }
      if (submission_report_.mode == Mode::kStream || decl.code.cuda_self_by_ref == nullptr) return absl::OkStatus();
      PENSTOCK_ASSIGN_OR_RETURN(kernels[n].by_ref,
                                loads.Get(d, {decl.code.cuda_kernel, decl.code.cuda_self_by_ref, awaits}));
      return absl::OkStatus();
    }();
    if (!loaded.ok()) return Describe(static_cast<int32_t>(n), loaded);
  }
  return kernels;
}

absl::Status ExecutableCore::FindStaging(const driver::DeviceRef& device) {
  if (program_.staged_copies == 0) return absl::OkStatus();
  const absl::Status found = runtime_->WithMemory([&]() -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(staging_, runtime_->Staging(device));
    return absl::OkStatus();
  });
  return found.ok() ? found : base::Prefixed(graph::Prefix(*model_) + ": the threads and memory to stage with", found);
}

absl::StatusOr<bool> ExecutableCore::MakeSlots(int count) {
  const driver::DeviceRef& first = device(home());
  driver_ = first.driver;
  PENSTOCK_RETURN_IF_ERROR(FindStaging(first));
  const Slot::Options options{.model = model_.get(),
                              .plan = &plan_,
                              .program = &program_,
                              .devices = &runtime_->devices(),
                              .pinned = &runtime_->pinned(first.driver_index),
                              .pinned_node = runtime_->NodeOf(first.info),
                              .gates = &driver_gates_,
                              .core = this,
                              .timing = trace_ != nullptr,
                              .synchronous = runtime_->synchronous(),
                              .event_count = &runtime_->event_count()};
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<Slot>> slot = absl::UnknownError("");
    (void)runtime_->WithMemory([&] { return (slot = Slot::Create(options, i)).status(); });
    if (!slot.ok()) return DescribeSlotError(i, count, slot.status());
    slots_.push_back(*std::move(slot));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const bool made, MakeReplays(count));
  if (!made) return false;
  base::MutexLock lock(mu_);
  for (const auto& slot : slots_) free_.push_back(slot.get());
  return true;
}

absl::Status ExecutableCore::DescribeSlotError(int slot, int count, const absl::Status& cause) const {
  const std::string graph = graph::Prefix(*model_);
  if (base::Str(cause.message()).starts_with(graph)) return cause;
  return base::Prefixed(graph + ": slot " + std::to_string(slot) + " of " + std::to_string(count), cause);
}

Bindings ExecutableCore::MakeBindings() const { return Bindings(model_); }

bool ExecutableCore::EnterGate(int32_t node) {
  if (!HasCallable(plan_.nodes[static_cast<size_t>(node)].kind)) return true;
  const int32_t decl = plan_.nodes[static_cast<size_t>(node)].decl;
  return gates_[static_cast<size_t>(node)].Enter(model_->nodes[static_cast<size_t>(decl)].concurrency);
}

void ExecutableCore::LeaveGate(int32_t node) {
  if (!HasCallable(plan_.nodes[static_cast<size_t>(node)].kind)) return;
  if (gates_[static_cast<size_t>(node)].Leave()) runtime_->event_count().Notify();  // for runs that wait for it
}

Slot* ExecutableCore::TakeFree() {
  base::MutexLock lock(mu_);
  if (free_.empty()) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  return slot;
}

void ExecutableCore::Release(Slot* slot) {
  {
    base::MutexLock lock(mu_);
    slot->run = nullptr;
    if (!slot->leased) free_.push_back(slot);
  }
  runtime_->event_count().Notify();
}

void ExecutableCore::GiveBack(Slot* slot) {
  {
    base::MutexLock lock(mu_);
    slot->leased = false;
    if (slot->run == nullptr) free_.push_back(slot);
  }
  runtime_->event_count().Notify();
}

template <class F>
void ExecutableCore::ForEachRun(F f) {
  for (const auto& slot : slots_) {
    RunCore* run = nullptr;
    {
      base::MutexLock lock(mu_);
      run = slot->run;
      if (run != nullptr) run->Ref();
    }
    if (run == nullptr) continue;
    f(*run);
    run->Unref();
  }
}

void ExecutableCore::AdvanceAll() {
  ForEachRun([](RunCore& run) { run.Advance(); });
}

bool ExecutableCore::IsIdle() {
  AdvanceAll();
  base::MutexLock lock(mu_);
  return free_.size() == slots_.size();
}

bool ExecutableCore::HasFreeSlot() {
  {
    base::MutexLock lock(mu_);
    if (!free_.empty()) return true;
  }
  AdvanceAll();
  base::MutexLock lock(mu_);
  return !free_.empty();
}

void ExecutableCore::AbandonAll(const absl::Status& why) {
  ForEachRun([&](RunCore& run) { run.Abandon(why); });
}

absl::StatusOr<Slot*> ExecutableCore::AcquireSlot(Deadline deadline, bool wait) {
  Slot* slot = TakeFree();
  if (slot != nullptr) return slot;
  const auto take = [&] {
    AdvanceAll();
    slot = TakeFree();
    return slot != nullptr || !runtime_->CheckOpen().ok();
  };
  const std::string taken = graph::Prefix(*model_) + ": all " + std::to_string(slots_.size()) + " slots are taken";
  if (!wait) {
    if (take() && slot != nullptr) return slot;
    return absl::ResourceExhaustedError(
        taken + "; wait for a run to end, use Launch or Acquire, which wait, or compile with more slots");
  }
  host::WaitForProgress(runtime_->event_count(), runtime_->notifies_completion(), deadline.at(), take);
  if (slot != nullptr) return slot;
  PENSTOCK_RETURN_IF_ERROR(runtime_->CheckOpen());
  return absl::DeadlineExceededError(taken + " and none came free before the deadline; nothing was started");
}

absl::Status ExecutableCore::CheckMayWait(const char* what, const char* instead) const {
  if (!base::InUserCode()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      graph::Prefix(*model_) + ": " + what +
      " inside a host node or callback; it could wait for the worker it runs on; use " + instead);
}

absl::Status ExecutableCore::CheckMayLaunch(const char* called) const {
  const std::string prefix = graph::Prefix(*model_) + ": " + called;
  if (base::InDeviceCode()) {
    return absl::FailedPreconditionError(prefix +
                                         " inside a callable that is called as a part of a device's work, where "
                                         "nothing of CUDA's may be called; call it outside");
  }
  if (!host::HostcallPoller::IsCurrent()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      prefix + " inside an Inline Host node; who answers devices calls none; make it Infallible, or neither");
}

absl::Status ExecutableCore::CheckLease(bool wait) const {
  if (wait) PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Acquire", "TryAcquire"));
  return runtime_->CheckOpen();
}

void ExecutableCore::MarkLeased(Slot* slot) {
  base::MutexLock lock(mu_);
  slot->leased = true;
}

absl::StatusOr<Slot*> ExecutableCore::Lease(Deadline deadline, bool wait) {
  PENSTOCK_RETURN_IF_ERROR(CheckLease(wait));
  PENSTOCK_ASSIGN_OR_RETURN(Slot * slot, AcquireSlot(deadline, wait));
  MarkLeased(slot);
  return slot;
}

DeviceLoad ExecutableCore::load() {
  base::MutexLock lock(mu_);
  const auto all = static_cast<int>(slots_.size());
  return {.taken = all - static_cast<int>(free_.size()), .slots = all, .mean_ns = mean_ns(), .last = launches()};
}

absl::Status ExecutableCore::CheckLaunch(bool wait) const {
  if (wait) PENSTOCK_RETURN_IF_ERROR(CheckMayWait("Launch", "TryLaunch"));
  PENSTOCK_RETURN_IF_ERROR(CheckMayLaunch());
  if (program_.leased >= 0) {
    return absl::FailedPreconditionError(
        graph::Prefix(*model_, "buffer", model_->buffers[static_cast<size_t>(program_.leased)].name) +
        ": declared kSlot, and nobody has filled the slot's memory; launch by the Lease that Acquire gives");
  }
  return runtime_->CheckOpen();
}

absl::StatusOr<Run> ExecutableCore::Launch(const Bindings& bindings, Deadline deadline, bool wait) {
  PENSTOCK_RETURN_IF_ERROR(CheckLaunch(wait));
  PENSTOCK_ASSIGN_OR_RETURN(Slot * slot, AcquireSlot(deadline, wait));
  return Start(slot, bindings, deadline);
}

absl::StatusOr<Run> ExecutableCore::LaunchIn(Slot* slot, const Bindings& bindings, Deadline deadline) {
  PENSTOCK_RETURN_IF_ERROR(CheckMayLaunch());
  PENSTOCK_RETURN_IF_ERROR(runtime_->CheckOpen());
  {
    base::MutexLock lock(mu_);
    if (slot->run != nullptr) {
      return absl::FailedPreconditionError(
          graph::Prefix(*model_) +
          ": the lease's run is still in flight, and the slot's memory is its; wait for it, or acquire another");
    }
  }
  return Start(slot, bindings, deadline);
}

absl::StatusOr<Run> ExecutableCore::Start(Slot* slot, const Bindings& bindings, Deadline deadline) {
  slot->fault.Reset();
  if (measures_) slot->launched = std::chrono::steady_clock::now();
  BeginTrial(*slot);
  absl::Status bound = Bind(*slot, bindings);
  if (bound.ok()) bound = PrepareGraphs(*slot);
  int stream_device = -1;
  if (bound.ok()) bound = WaitForNative(*slot, bindings, stream_device);
  if (!bound.ok()) runtime_->NoteFault(bound);
  const absl::Status open = runtime_->RunStarted();  // again: Shutdown waits for what has started before it closed
  if (bound.ok()) bound = open;
  // Last of all: whoever has a ticket waits for nothing but those with earlier ones.
  if (bound.ok()) bound = EnterStates(*slot);
  if (!bound.ok()) {
    slot->keep_alive.clear();
    slot->ReleasePredecessors();
    Release(slot);
    runtime_->RunDrained();
    return bound;
  }
  TakeOver(*slot, bindings);
  slot->deadline = deadline.at();
  slot->next_command = 0;
  slot->next_segment = 0;
  slot->first_unsubmitted = -1;
  slot->epilogue_submitted = false;
  slot->lane_full = false;
  for (const auto& split : slot->partitions) split->Reset();
  const bool needs_workers = PrepareHostSteps(*slot);
  slot->serial = launches_.fetch_add(1, std::memory_order_relaxed);
  auto* run = new RunCore(std::static_pointer_cast<ExecutableCore>(shared_from_this()), slot, deadline, slot->serial);
  Run handle(run);
  if (slot->hostcalls != nullptr) slot->hostcalls->BeginRun(slot->serial);  // from the lock on others may end it
  {
    base::MutexLock lock(mu_);
    slot->run = run;
  }
  run->Advance();
  if (needs_workers || !deadline.is_never() || runtime_->synchronous()) run->WatchInBackground();
  if (stream_device >= 0) {
    PENSTOCK_RETURN_IF_ERROR(HoldStream(*runtime_, *driver_, *run, bindings.stream_, stream_device));
  }
  return handle;
}

absl::Status ExecutableCore::EnterStates(Slot& slot) {
  if (slot.ticket.places.empty()) return absl::OkStatus();
  const absl::Status entered = runtime_->states().Enter(slot.ticket);
  if (!entered.ok()) return base::Prefixed(graph::Prefix(*model_), entered);
  if (keyed_ == nullptr || keyed_->IsStill(slot.home)) return absl::OkStatus();
  runtime_->states().Leave(slot.ticket);
  return absl::FailedPreconditionError(graph::Prefix(*model_) + ": the key was forgotten while it was launched");
}

bool ExecutableCore::PrepareHostSteps(Slot& slot) {
  int32_t work = 0;
  for (size_t s = 0; s < program_.hosts.size(); ++s) {
    slot.host_states[s].store(HostStepState::kWaiting, std::memory_order_relaxed);
    work += slot.is_noop[s] ? 0 : 1;
  }
  slot.hosts.Begin(*slot.schedule, work);
  return work > 0;
}

}  // namespace penstock::runtime
