#include "src/runtime/executable/compiler.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "graph/common/message.h"
#include "graph/declare/fuse_maps.h"
#include "graph/declare/host_check.h"
#include "graph/place/figures.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/base/pace.h"
#include "src/base/status.h"
#include "src/runtime/executable/block_sizes.h"
#include "src/runtime/executable/mode_cost.h"
#include "src/runtime/executable/source_kernels.h"
#include "src/runtime/executable/tuning.h"

namespace penstock::runtime {

using graph::PlanKind;
using graph::PlanNode;

namespace {

bool AnyHostcall(const Model& model) {
  return std::any_of(model.nodes.begin(), model.nodes.end(),
                     [](const NodeDecl& node) { return node.host_way != HostWay::kWorker; });
}

bool AnyUncopied(const Model& model) {
  return std::any_of(model.nodes.begin(), model.nodes.end(), [](const NodeDecl& node) {
    return std::any_of(node.accesses.begin(), node.accesses.end(),
                       [](const AccessDecl& access) { return access.uncopied; });
  });
}

// For each device, the most hostcall kernels that can be waiting at once over `slots` slots: one for each lane.
std::vector<int> MaxPendingHostcalls(const graph::Plan& plan, size_t devices, int slots) {
  std::vector<bool> hostcalls(plan.lanes.size());
  for (const PlanNode& node : plan.nodes) {
    if (node.kind == PlanKind::kHostcall) hostcalls[node.lane] = true;
  }
  std::vector<int> most(devices);
  for (size_t l = 0; l < hostcalls.size(); ++l) {
    if (hostcalls[l]) most[plan.lanes[l].device] += slots;
  }
  return most;
}

// Loads each kernel once for each device, however many nodes use it: loading takes four CUDA calls.
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

}  // namespace

HostcallReservation::~HostcallReservation() {
  if (runtime_ != nullptr) runtime_->hostcalls().Release(counts_);
}

bool HostcallReservation::Reserve(const std::shared_ptr<RuntimeCore>& runtime, std::vector<int> counts) {
  if (!runtime->hostcalls().Reserve(counts)) return false;
  runtime_ = runtime;
  counts_ = std::move(counts);
  return true;
}

absl::StatusOr<std::vector<std::unique_ptr<RunSlot>>> Compiler::Compile(const DeclaredGraph& declared) {
  context_.in_order = options_.in_order;
  PENSTOCK_RETURN_IF_ERROR(CheckOptions());
  is_part_of_graph_ = declared.is_part_of_graph;
  if (!is_part_of_graph_) {
    PENSTOCK_ASSIGN_OR_RETURN(wanted_, ModeSelection::Wanted(model(), options_));
  }
  const graph::PlanOptions plan_options = PlanOptionsOf(wanted_);
  if (declared.model != nullptr) PENSTOCK_RETURN_IF_ERROR(graph::CheckGraph(*declared.model, plan_options));
  PENSTOCK_RETURN_IF_ERROR(FuseMaps(plan_options));
  PENSTOCK_RETURN_IF_ERROR(AddHostChecks(plan_options));
  PENSTOCK_RETURN_IF_ERROR(MakePlan(plan_options));
  if (is_part_of_graph_) modes_.ChooseGraph();
  else modes_.Choose(wanted_);
  for (const std::string& shared : plan().shared_lanes) {
    if (modes_.mode() != Mode::kGraph) modes_.notes().push_back("on streams, " + shared);
  }
  modes_.notes().insert(modes_.notes().end(), declared.notes.begin(), declared.notes.end());
  PENSTOCK_RETURN_IF_ERROR(ChooseRegions(declared.is_part_of_region));
  PENSTOCK_ASSIGN_OR_RETURN(const LoadedKernels kernels, LoadKernels());
  uncaptured_.resize(plan().nodes.size());
  const std::vector<std::string> notes = modes_.notes();
  for (bool made = false; !made;) {
    modes_.notes() = notes;
    PENSTOCK_ASSIGN_OR_RETURN(made, MakeProgram(kernels, declared));
  }
  if (!slots_[0]->constructs.empty()) PENSTOCK_RETURN_IF_ERROR(MakeGraphsOfConstructs());
  modes_.Start(slots_);
  PENSTOCK_RETURN_IF_ERROR(context_.graph.Describe(-1, context_.trace.Start(slots_)));
  return std::move(slots_);
}

absl::Status Compiler::CheckOptions() const {
  const std::string prefix = graph::Prefix(model());
  const auto& devices = runtime().devices();
  if (options_.slots < 0 || options_.slots > 1024) {
    return absl::InvalidArgumentError(
        prefix + ": CompileOptions::slots is " + std::to_string(options_.slots) +
        "; it is the number of runs that may be in flight on a device, 1 to 1024; take 2, "
        "or 3 if uploads, kernels and downloads of runs are to overlap, or 0 to let Compile choose");
  }
  if (options_.device < 0 || options_.device >= static_cast<int>(devices.size())) {
    return absl::InvalidArgumentError(prefix + ": CompileOptions::device is " + std::to_string(options_.device) +
                                      "; the runtime has devices 0 to " + std::to_string(devices.size() - 1));
  }
  if (!(options_.host_tolerance >= 0)) {  // also refuses NaN
    return absl::InvalidArgumentError(prefix + ": CompileOptions::host_tolerance is " +
                                      std::to_string(options_.host_tolerance) + "; a tolerance is 0 or more");
  }
  if (options_.figures != nullptr) {
    const absl::Status figures = graph::CheckFigures(*options_.figures, PlanDevices());
    if (!figures.ok()) return base::Prefixed(prefix + ": CompileOptions::figures", figures);
  }
  if (options_.device_bytes < 0) {
    return absl::InvalidArgumentError(prefix + ": CompileOptions::device_bytes is " +
                                      std::to_string(options_.device_bytes) + "; give 0 for no limit, or more");
  }
  if (options_.max_submitted < 0) {
    return absl::InvalidArgumentError(prefix + ": CompileOptions::max_submitted is " +
                                      std::to_string(options_.max_submitted) +
                                      "; give 0, for all slots, or the most runs that have work on devices");
  }
  return absl::OkStatus();
}

Table<DeviceId, graph::PlanDevice> Compiler::PlanDevices() const {
  Table<DeviceId, graph::PlanDevice> devices;
  for (const driver::DeviceRef& d : runtime().devices()) {
    devices.push_back({.name = d.info.name,
                       .is_cuda = d.info.kind == driver::DeviceKind::kCuda,
                       .driver = d.driver_index,
                       .memory_bytes = d.info.memory_bytes,
                       .no_hostcalls = HostcallService::UnavailableReason(d.info),
                       .limits = d.info.limits,
                       .model = d.info.description});
  }
  return devices;
}

// A link is made for all of a device's memory, so only between devices that nodes may be on, and only for graphs that
// ask to read what other devices have.
void Compiler::OpenLinks(Table<DeviceId, graph::PlanDevice>& devices) const {
  std::vector<bool> used(devices.size(), options_.placement == Placement::kAutomatic);
  if (options_.device < devices.count()) used[static_cast<size_t>(options_.device)] = true;
  for (const NodeDecl& node : model().nodes) {
    if (node.device >= 0 && node.device < devices.count()) used[static_cast<size_t>(node.device)] = true;
  }
  for (const BufferDecl& buffer : model().buffers) {
    const int32_t device = buffer.state != nullptr ? buffer.state->device : buffer.device;
    if (device >= 0 && device < devices.count()) used[static_cast<size_t>(device)] = true;
  }
  for (const DeviceId from : devices.ids()) {
    const driver::DeviceRef& device = runtime().devices()[from];
    devices[from].reaches.resize(devices.size());
    for (const DeviceId to : devices.ids()) {
      const driver::DeviceRef& peer = runtime().devices()[to];
      const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
      if (a == b || !used[a] || !used[b] || device.driver != peer.driver) continue;
      devices[from].reaches[b] = device.driver->OpenLink(device.local, peer.local);
    }
  }
}

graph::PlanOptions Compiler::PlanOptionsOf(Mode wanted) {
  graph::PlanOptions plan_options;
  plan_options.devices = PlanDevices();
  for (const graph::PlanDevice& device : plan_options.devices) {
    if (device.no_hostcalls.empty() || !AnyHostcall(model())) continue;
    modes_.notes().push_back("Host nodes part the run on " + device.name + ": " + device.no_hostcalls);
  }
  if (AnyUncopied(model())) OpenLinks(plan_options.devices);
  plan_options.default_device = options_.device;
  plan_options.in_construct = is_part_of_graph_;
  plan_options.max_lanes = options_.max_lanes;
  plan_options.slots = options_.slots > 0 ? options_.slots : tuning::kSlots;
  plan_options.in_order = options_.in_order;
  plan_options.device_bytes = options_.device_bytes;
  plan_options.ring_from_bytes = runtime().staging().from_bytes();
  if (runtime().synchronous()) plan_options.batch_from = INT32_MAX;  // each node is waited for
  plan_options.pinned_bytes = runtime().device_set().pinned_budget();
  plan_options.runtime = &runtime();
  plan_options.events_once = MayBePartitioned(wanted);
  return plan_options;
}

// Whether submission threads may help with runs that are submitted on streams.
bool Compiler::MayBePartitioned(Mode mode) const {
  const std::vector<int>& counts = runtime().submission().counts();
  return mode != Mode::kGraph && !runtime().synchronous() &&
         std::any_of(counts.begin(), counts.end(), [](int count) { return count > 0; });
}

absl::Status Compiler::Tell(const char* what, size_t done, size_t total) const {
  if (!options_.progress) return absl::OkStatus();
  const std::string graph = graph::Prefix(model()), text = graph + ": " + what;
  const absl::Status told =
      base::Tell(options_.progress, "CompileOptions::progress",
                 {.what = text, .done = static_cast<int64_t>(done), .total = static_cast<int64_t>(total)});
  return told.ok() ? told : base::Prefixed(graph, told);
}

graph::BeforePass Compiler::TellOfPasses() const {
  if (!options_.progress) return {};
  return
      [this](int done, int total) { return Tell("planning", static_cast<size_t>(done), static_cast<size_t>(total)); };
}

// On CUDA devices plans become graphs, unless streams are asked for.
absl::StatusOr<graph::PlacedPlan> Compiler::MakePlacedPlan(const graph::PlanOptions& options) const {
  if (options_.placement == Placement::kAutomatic) {
    const bool is_cuda = options.devices[options.default_device].is_cuda;
    return graph::ChoosePlacement(model(), options,
                                  {.figures = options_.figures.get(),
                                   .workers = std::max(runtime().workers().threads(), 1),
                                   .as_graph = is_cuda && wanted_ != Mode::kStream && !runtime().synchronous()},
                                  TellOfPasses());
  }
  graph::PlacedPlan placed;
  PENSTOCK_ASSIGN_OR_RETURN(placed.plan, graph::MakePlan(model(), options, TellOfPasses()));
  return placed;
}

// If the devices lack capacity for the kernels that wait for the host, no kernel waits: Host nodes cut the plan.
absl::Status Compiler::MakePlan(graph::PlanOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(graph::PlacedPlan placed, MakePlacedPlan(options));
  graph::Plan& plan = placed.plan;
  const int concurrent = options.in_order ? 1 : options.slots;
  const std::vector<int> hostcalls = MaxPendingHostcalls(plan, options.devices.size(), concurrent);
  for (size_t d = 0; d < hostcalls.size(); ++d) {
    if (hostcalls[d] <= driver::kMaxPendingHostcalls) continue;
    return absl::ResourceExhaustedError(
        graph::Prefix(model()) + ": " + std::to_string(hostcalls[d]) + " Host nodes may wait on " +
        options.devices[d].name + " at once, in " + std::to_string(concurrent) + " slots, and a device has room for " +
        std::to_string(driver::kMaxPendingHostcalls) +
        "; ask for fewer slots or lanes, order the nodes by After, or leave out Inline and Infallible");
  }
  if (!reservation_.Reserve(context_.runtime, hostcalls)) {
    const std::string why = "other executables have taken so much of the room for " +
                            std::to_string(driver::kMaxPendingHostcalls) +
                            " that wait on a device at once that too little is left";
    modes_.notes().push_back("Host nodes part the run: " + why);
    for (graph::PlanDevice& device : options.devices) device.no_hostcalls = why;
    options.placement = placed.placement;
    PENSTOCK_ASSIGN_OR_RETURN(plan, graph::MakePlan(model(), options, TellOfPasses()));
  }
  for (const SubmissionReport::Fused& fused : modes_.fused()) plan.remarks.push_back(fused.text);
  context_.graph.SetPlan(std::move(plan), std::move(placed.candidates));
  return absl::OkStatus();
}

absl::Status Compiler::FuseMaps(const graph::PlanOptions& plan_options) {
  if (!options_.fuse_maps || !graph::HasMaps(model())) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(graph::CheckGraph(model(), plan_options));  // reports mistakes of the declared graph
  std::optional<graph::FusedModel> fused = graph::FuseMaps(model());
  if (!fused) return absl::OkStatus();
  for (const graph::FusedMap& map : fused->fused) {
    modes_.fused().push_back({.name = std::string(fused->model.nodes[map.node].name.view()),
                              .text = graph::TextOf(map, model()),
                              .maps = static_cast<int64_t>(map.maps.size()),
                              .traffic_bytes = map.traffic_bytes,
                              .memory_bytes = map.memory_bytes});
  }
  context_.graph.SetModel(std::make_shared<const Model>(std::move(fused->model)), std::move(fused->declared));
  return absl::OkStatus();
}

absl::Status Compiler::AddHostChecks(const graph::PlanOptions& plan_options) {
  const absl::StatusOr<bool> by_variable = base::FlagOf("PENSTOCK_CHECK_AGAINST_HOST");
  if (!by_variable.ok()) return base::Prefixed(graph::Prefix(model()), by_variable.status());
  if (!options_.check_against_host && !*by_variable) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(MakePlacedPlan(plan_options).status());  // reports mistakes of the declared graph
  std::vector<std::string> unchecked;
  context_.graph.SetModel(
      std::make_shared<const Model>(graph::WithHostChecks(model(), options_.host_tolerance, unchecked)));
  for (const std::string& text : unchecked) runtime().Log(LogLevel::kWarning, text);
  return absl::OkStatus();
}

absl::Status Compiler::ChooseRegions(bool part_of_region) {
  PENSTOCK_ASSIGN_OR_RETURN(const Resident wanted, RegionChoice::Wanted(model(), options_));
  if (wanted == Resident::kOff || modes_.mode() == Mode::kStream) return absl::OkStatus();
  if (graph::IsOnSeveralDevices(plan())) {
    modes_.notes().push_back("no regions: the plan is on several devices, and a region is of a plan on one");
    return absl::OkStatus();
  }
  if (part_of_region) {
    regions_.ChooseWhole(wanted);
    return absl::OkStatus();
  }
  regions_.Choose(wanted, modes_.notes());
  if (is_part_of_graph_) regions_.ChooseOneAtATime();
  return absl::OkStatus();
}

absl::StatusOr<LoadedKernels> Compiler::LoadKernels() {
  LoadedKernels kernels(plan().nodes.size());
  KernelLoads loads;
  BlockSizes sizes(model());
  SourceKernels sources(context_.graph, runtime());
  PENSTOCK_RETURN_IF_ERROR(
      sources.Compile([this](size_t done, size_t total) { return Tell("compiling sources", done, total); }));
  for (size_t n = 0; n < plan().nodes.size(); ++n) {
    PENSTOCK_RETURN_IF_ERROR(Tell("loading kernels", n, plan().nodes.size()));
    const PlanNode& node = plan().nodes[n];
    if (node.kind == PlanKind::kHostcall) {
      const driver::DeviceRef& caller = context_.graph.device(node.device);
      PENSTOCK_RETURN_IF_ERROR(runtime().hostcalls().StartPoller());
      PENSTOCK_ASSIGN_OR_RETURN(kernels[n].hostcall, caller.driver->LoadHostcall(caller.local));
    }
    if (node.kind != PlanKind::kParallelFor && node.kind != PlanKind::kKernel) continue;
    const NodeDecl& decl = model().nodes[node.decl];
    const bool awaits = node.kind == PlanKind::kParallelFor || decl.shape.programmatic;
    const absl::Status loaded = [&]() -> absl::Status {
      const driver::DeviceRef& d = context_.graph.device(node.device);
      PENSTOCK_ASSIGN_OR_RETURN(
          kernels[n].by_value,
          sources.Has(n) ? sources.Load(n) : loads.Get(d, {decl.code.cuda_kernel, decl.code.cuda_self, awaits}));
      const bool has_shape = node.kind == PlanKind::kKernel || decl.is_task;
      if (has_shape) {
        PENSTOCK_ASSIGN_OR_RETURN(kernels[n].by_occupancy, sizes.Get(decl, d, kernels[n].by_value));
      }
      if (modes_.mode() == Mode::kStream || decl.code.cuda_self_indirect == nullptr) return absl::OkStatus();
      PENSTOCK_ASSIGN_OR_RETURN(kernels[n].indirect,
                                loads.Get(d, {decl.code.cuda_kernel, decl.code.cuda_self_indirect, awaits}));
      return has_shape ? sizes.Get(decl, d, kernels[n].indirect).status() : absl::OkStatus();
    }();
    if (!loaded.ok()) return context_.graph.Describe(static_cast<int32_t>(n), loaded);
  }
  PENSTOCK_RETURN_IF_ERROR(context_.graph.Describe(-1, regions_.Load(kernels, modes_.notes())));
  sizes.TellOf(plan(), modes_.notes());
  context_.images.Hold(sources.TakeImages());
  return kernels;
}

// Returns false if a node has turned out to be unfit for graphs.
absl::StatusOr<bool> Compiler::MakeProgram(const LoadedKernels& kernels, const DeclaredGraph& declared) {
  slots_.clear();
  Table<DeviceId, bool> cuda;
  for (const driver::DeviceRef& d : runtime().devices()) cuda.push_back(d.info.kind == driver::DeviceKind::kCuda);
  std::optional<graph::GraphSchedule> graphs;
  if (const absl::Status may = CheckGraphsOfSeveralDevices(); !may.ok()) modes_.FallBackToStreams(may);
  if (modes_.mode() != Mode::kStream) {
    graphs = ScheduleGraphs();
    modes_.SetLikely(LikelyMode(plan(), *graphs));
    if (modes_.mode() == Mode::kStream) graphs.reset();
  }
  Table<DeviceId, int> submission_threads;
  if (MayBePartitioned(modes_.mode())) submission_threads = runtime().submission().counts();
  context_.graph.SetProgram(BuildProgram({.model = model(),
                                          .plan = plan(),
                                          .kernels = kernels,
                                          .cuda = cuda,
                                          .submission_threads = submission_threads,
                                          .graphs = graphs ? &*graphs : nullptr,
                                          .most_workers = regions_.most_workers(),
                                          .streams = modes_.mode() != Mode::kGraph,
                                          .timed = context_.graph.trace() != nullptr}));
  PENSTOCK_RETURN_IF_ERROR(MakeSlots());
  if (declared.add_constructs != nullptr) PENSTOCK_RETURN_IF_ERROR(declared.add_constructs(slots_, modes_.notes()));
  if (is_part_of_graph_) return true;  // whoever has the construct makes it
  return MakeGraphs();
}

absl::Status Compiler::FindStaging(const driver::DeviceRef& device) {
  if (program().staged_copies == 0) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(Tell("pinning memory to stage copies in", 0, 1));
  const absl::Status found = runtime().WithMemory([&]() -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(context_.staging, runtime().staging().For(device));
    return absl::OkStatus();
  });
  return found.ok() ? found : base::Prefixed(graph::Prefix(model()) + ": the threads and memory to stage with", found);
}

int Compiler::SlotCount() const {
  if (options_.slots > 0) return options_.slots;
  const bool hostcalls = std::any_of(plan().nodes.begin(), plan().nodes.end(),
                                     [](const PlanNode& node) { return node.kind == PlanKind::kHostcall; });
  const bool many = program().staged_copies > 0 || options_.in_order;
  if (!many || hostcalls || options_.device_bytes > 0) return tuning::kSlots;
  if (plan().nodes.size() > tuning::kFewNodes) return tuning::kSlots;
  for (const graph::Arena& arena : plan().arenas) {
    if (options_.in_order && arena.device >= 0) continue;  // shared by all slots
    const int64_t memory =
        arena.device < 0 ? runtime().device_set().pinned_budget() : runtime().devices()[arena.device].info.memory_bytes;
    if (arena.bytes > memory / tuning::kLittleMemory / tuning::kManySlots) return tuning::kSlots;
  }
  return tuning::kManySlots;
}

absl::Status Compiler::MakeSlots() {
  const driver::DeviceRef& first = context_.graph.device(context_.graph.home());
  PENSTOCK_RETURN_IF_ERROR(FindStaging(first));
  Slot::Options options{.graph = context_.graph,
                        .runtime = runtime(),
                        .owner = owner_,
                        .devices = nullptr,
                        .pinned = runtime().device_set().pinned(first.driver_index),
                        .pinned_node = runtime().device_set().NodeOf(first.info)};
  slot_count_ = SlotCount();
  for (int i = 0; i < slot_count_; ++i) {
    PENSTOCK_RETURN_IF_ERROR(Tell("making slots", slots_.size(), static_cast<size_t>(slot_count_)));
    absl::StatusOr<std::unique_ptr<RunSlot>> slot = absl::UnknownError("");
    (void)runtime().WithMemory([&] { return (slot = RunSlot::Create(options, context_.submitter, i)).status(); });
    if (!slot.ok()) return DescribeSlotError(slots_.size(), slot.status());
    slots_.push_back(*std::move(slot));
    if (options_.in_order) options.devices = slots_[0]->devices();
  }
  return absl::OkStatus();
}

absl::Status Compiler::DescribeSlotError(size_t slot, const absl::Status& cause) const {
  const std::string graph = context_.graph.Label();
  if (base::Str(cause.message()).starts_with(graph)) return cause;
  return base::Prefixed(graph + ": slot " + std::to_string(slot) + " of " + std::to_string(slot_count_), cause);
}

// Under kAuto graphs are optional. A Launch node that cannot be captured is left out of them, and everything is made
// once more without it (returns false); if they cannot be made at all, there are none. The submission report says so.
absl::StatusOr<bool> Compiler::MakeGraphs() {
  if (modes_.mode() == Mode::kStream) return true;
  for (size_t i = 0; i < slots_.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(Tell("making CUDA graphs", i, slots_.size()));
    using Upload = SlotGraphs::Upload;
    const Upload upload = modes_.mode() == Mode::kGraph ? Upload::kNow : Upload::kLater;  // now: waits for the device
    absl::Status made = runtime().WithMemory([&] { return slots_[i]->MakeGraphs(upload); });
    const int32_t node = base::TakeNode(made);
    if (made.ok()) continue;
    if (modes_.mode() == Mode::kGraph || base::IsFatal(made)) return DescribeSlotError(i, made);
    if (node >= 0) {
      uncaptured_[node] = base::Str(made.message());
      return false;
    }
    modes_.FallBackToStreams(made);
    for (const auto& slot : slots_) slot->DropGraphs();
    break;
  }
  return true;
}

// A construct that the device decides is in the graph with what is around it, or has one of its own. So there is
// nothing to try: under kAuto it is in the graph.
absl::Status Compiler::MakeGraphsOfConstructs() {
  if (modes_.mode() == Mode::kAuto) modes_.ChooseGraph();
  if (modes_.mode() != Mode::kStream) return absl::OkStatus();
  for (size_t i = 0; i < slots_.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(Tell("making CUDA graphs of constructs", i, slots_.size()));
    for (const auto& construct : slots_[i]->constructs) {
      const absl::Status made = runtime().WithMemory([&] { return construct->MakeGraph(); });
      if (!made.ok()) return DescribeSlotError(i, context_.graph.Describe(construct->node(), made));
    }
  }
  return absl::OkStatus();
}

std::string Compiler::TextOfUncaptured(NodeId n) const {
  return "node '" + graph::OneLine(plan().nodes[n].name) + "' is in no graph: " + uncaptured_[n];
}

// Graphs of several devices are launched on one, and what is between them would have to be there.
absl::Status Compiler::CheckGraphsOfSeveralDevices() const {
  if (!graph::IsOnSeveralDevices(plan())) return absl::OkStatus();
  for (const NodeId n : plan().nodes.ids()) {
    if (uncaptured_[n].empty()) continue;
    return absl::FailedPreconditionError("the plan is on several devices, and " + TextOfUncaptured(n));
  }
  return absl::OkStatus();
}

Table<NodeId, bool> Compiler::RefusedNodes() {
  Table<NodeId, bool> refused(plan().nodes.size());
  for (const NodeId n : refused.ids()) {
    refused[n] = plan().nodes[n].kind == PlanKind::kGate || !uncaptured_[n].empty();
    if (uncaptured_[n].empty()) continue;
    modes_.notes().push_back(TextOfUncaptured(n));
  }
  return refused;
}

graph::GraphSchedule Compiler::ScheduleGraphs() {
  graph::GraphSchedule schedule = graph::MakeGraphSchedule(plan(), RefusedNodes(), regions_.rules());
  const bool writes =
      std::any_of(plan().states.begin(), plan().states.end(), [](const auto& use) { return use.written; });
  if (writes && schedule.graphs.size() > 1) {
    modes_.notes().push_back(absl::StrFormat(
        "a graph of %.0f us or more, by estimate, ends where a State that is written is first or last used: %d graphs "
        "a slot",
        graph::kLeastGraphUs, schedule.graphs.size()));
  }
  return schedule;
}

}  // namespace penstock::runtime
