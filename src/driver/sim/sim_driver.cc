#include "src/driver/sim/sim_driver.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/host/host_graph.h"

namespace penstock::driver::sim {
namespace {

using graph::InTicks;

constexpr int64_t kDeviceBytes = int64_t{1} << 30, kPinnedBytes = int64_t{1} << 32;

absl::Status NotSimulated(const char* what) {
  return absl::UnimplementedError(absl::StrCat("devices in virtual time have no ", what, "; use host devices"));
}

// Edges that lead to another device.
double CrossingsIn(const host::GraphNodes& nodes) {
  double crossings = 0;
  for (const host::GraphNode& node : nodes.all()) {
    for (const int32_t p : node.after) crossings += nodes.all()[static_cast<size_t>(p)].device != node.device ? 1 : 0;
  }
  return crossings;
}

}  // namespace

SimDriver::SimDriver(SimDriverOptions options)
    : options_(std::move(options)),
      pinned_(static_cast<size_t>(kPinnedBytes)),
      links_(options_.devices.size()),
      maker_(heaps_, pinned_, links_, /*threads=*/1),
      engines_({.devices = options_.devices,
                .completion_us = options_.times.completion_us,
                .settle = options_.settle,
                .event_count = options_.event_count}) {
  for (size_t d = 0; d < options_.devices.size(); ++d) {
    const std::string name = absl::StrCat("sim:", d);
    heaps_.push_back(std::make_unique<host::DeviceHeap>(name, kDeviceBytes));
    infos_.push_back({DeviceKind::kHost, name, "a device in virtual time", kDeviceBytes, options_.devices[d].kernels});
  }
}

// --- streams and events ---

absl::StatusOr<Stream> SimDriver::CreateStream(int device, int /*priority*/) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  base::MutexLock lock(mu_);
  return Stream{streams_.Add({.device = device})};
}

void SimDriver::DestroyStream(Stream stream) {
  base::MutexLock lock(mu_);
  streams_.Remove(stream.bits);
}

absl::StatusOr<Event> SimDriver::CreateEvent(int device, bool /*timing*/) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  base::MutexLock lock(mu_);
  return Event{events_.Add({.device = device})};
}

void SimDriver::DestroyEvent(Event event) {
  base::MutexLock lock(mu_);
  events_.Remove(event.bits);
}

absl::Status SimDriver::Record(Event event, Stream stream) {
  base::MutexLock lock(mu_);
  const Place* const from = streams_.Find(stream.bits);
  if (from == nullptr) return host::NotAlive("stream");
  Place* const to = events_.Find(event.bits);
  if (to == nullptr) return host::NotAlive("event");
  to->after = from->after;
  engines_.Report(to->after);
  return absl::OkStatus();
}

absl::Status SimDriver::Wait(Stream stream, Event event) {
  bool crosses = false;
  {
    base::MutexLock lock(mu_);
    Place* const to = streams_.Find(stream.bits);
    if (to == nullptr) return host::NotAlive("stream");
    const Place* const from = events_.Find(event.bits);
    if (from == nullptr) return host::NotAlive("event");
    crosses = from->device != to->device;
    const SimTicks crossing = crosses ? InTicks(options_.times.crossing_us) : 0;
    for (const SimPredecessor& p : from->after) to->after.push_back({p.work, p.latency + crossing});
  }
  if (crosses) engines_.Spend(InTicks(options_.times.crossing_submit_us));
  return absl::OkStatus();
}

absl::StatusOr<bool> SimDriver::Query(Event event) {
  base::MutexLock lock(mu_);
  const Place* const of = events_.Find(event.bits);
  if (of == nullptr) return host::NotAlive("event");
  return engines_.AreKnown(of->after);
}

absl::StatusOr<double> SimDriver::Elapsed(Event /*begin*/, Event /*end*/) { return NotSimulated("timing events"); }

absl::StatusOr<int> SimDriver::DeviceOf(Stream stream) {
  base::MutexLock lock(mu_);
  const Place* const of = streams_.Find(stream.bits);
  if (of == nullptr) return host::NotAlive("stream");
  return of->device;
}

// --- memory ---

absl::StatusOr<void*> SimDriver::AllocateDevice(int device, size_t bytes) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  return heaps_[static_cast<size_t>(device)]->Allocate(bytes);
}

void SimDriver::FreeDevice(int device, void* memory) {
  [[maybe_unused]] const bool freed = memory == nullptr || heaps_[static_cast<size_t>(device)]->Free(memory);
  assert(freed && "FreeDevice of something that AllocateDevice did not return");
}

void SimDriver::FreePinned(void* memory) {
  [[maybe_unused]] const bool freed = memory == nullptr || pinned_.Free(memory);
  assert(freed && "FreePinned of something that AllocatePinned did not return");
}

absl::StatusOr<PointerInfo> SimDriver::Inspect(const void* memory) {
  using Kind = PointerInfo::Kind;
  for (int d = 0; d < device_count(); ++d) {
    const host::DeviceHeap& heap = *heaps_[static_cast<size_t>(d)];
    if (!heap.Holds(memory)) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const host::AddressRange block, heap.BlockOf(memory, 1));
    return PointerInfo{Kind::kDevice, d, block.begin, block.end};
  }
  const host::AddressRange block = pinned_.BlockOf(memory);
  return block.begin == block.end ? PointerInfo{} : PointerInfo{Kind::kPinned, -1, block.begin, block.end};
}

// --- work on streams ---

absl::Status SimDriver::Copy(Stream stream, const CopyOp& op) {
  if (op.kind != CopyKind::kPeer) return Submit(stream, op);
  PENSTOCK_ASSIGN_OR_RETURN(host::Work work, maker_.Make(op.dst_device, op));
  return SubmitTo(stream, engines_.LinkOf(op.src_device, op.dst_device), std::move(work.task));
}

absl::Status SimDriver::CopyBatch(Stream /*stream*/, const BatchOp& /*op*/) { return NotSimulated("batches"); }

absl::StatusOr<KernelCode> SimDriver::LoadKernel(int device, const KernelSource& /*source*/) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  return KernelCode{};
}

int32_t SimDriver::PoolOf(int device, host::EngineKind engine) const {
  switch (engine) {
    case host::EngineKind::kUpload: return SimEngines::UploadsOf(device);
    case host::EngineKind::kDownload: return SimEngines::DownloadsOf(device);
    case host::EngineKind::kCompute: break;
  }
  return SimEngines::KernelsOf(device);
}

SimLoad SimDriver::LoadOf(int32_t pool, std::unique_ptr<host::Task> task, Way way) const {
  SimLoad load{.task = std::move(task)};
  if (load.task == nullptr) return load;
  const OpTag tag = load.task->tag;
  const std::optional<SimDriverOptions::Cost> cost = options_.cost_of(tag);
  if (!cost.has_value()) return load;
  const graph::SimOptions& times = options_.times;
  load.pool = pool;
  load.cost = InTicks(cost->us + (way == Way::kGraph ? times.graph_latency_us : times.stream_latency_us));
  load.run = cost->run;
  load.node = tag.node;
  return load;
}

template <class Op>
absl::Status SimDriver::Submit(Stream stream, const Op& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const int device, DeviceOf(stream));
  PENSTOCK_ASSIGN_OR_RETURN(host::Work work, maker_.Make(device, op));
  return SubmitTo(stream, PoolOf(device, work.engine), std::move(work.task));
}

absl::Status SimDriver::SubmitTo(Stream stream, int32_t pool, std::unique_ptr<host::Task> task) {
  SimLoad load = LoadOf(pool, std::move(task), Way::kStream);
  if (load.run >= 0) engines_.Spend(InTicks(options_.times.node_us));
  base::MutexLock lock(mu_);
  Place* const to = streams_.Find(stream.bits);
  if (to == nullptr) return host::NotAlive("stream");
  to->after = {{engines_.Add(std::move(load), to->after, InTicks(options_.times.start_us))}};
  return absl::OkStatus();
}

// --- graphs ---

absl::StatusOr<Graph> SimDriver::CreateGraph(int device) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  base::MutexLock lock(mu_);
  return Graph{graphs_.Add(std::make_shared<host::GraphNodes>(device, host::GraphNodes::Kind::kBuilt))};
}

void SimDriver::DestroyGraph(Graph graph) {
  base::MutexLock lock(mu_);
  graphs_.Remove(graph.bits);
}

absl::StatusOr<SimDriver::Nodes> SimDriver::Find(Graph graph) {
  base::MutexLock lock(mu_);
  const Nodes* const found = graphs_.Find(graph.bits);
  if (found == nullptr) return host::NotAlive("graph");
  return *found;
}

absl::StatusOr<SimDriver::Nodes> SimDriver::Find(GraphExec exec) {
  base::MutexLock lock(mu_);
  const Nodes* const found = execs_.Find(exec.bits);
  if (found == nullptr) return host::NotAlive("instance of a graph");
  return *found;
}

absl::StatusOr<int32_t> SimDriver::AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                           NodePlace place) {
  if (std::holds_alternative<const RegionOp*>(op)) return NotSimulated("regions");
  PENSTOCK_ASSIGN_OR_RETURN(const Nodes nodes, Find(graph));
  PENSTOCK_ASSIGN_OR_RETURN(const int device, nodes->DeviceOf(place, op));
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  PENSTOCK_ASSIGN_OR_RETURN(auto kept, host::Keep(maker_, device, op));
  return nodes->Add(after, std::move(kept), place);
}

absl::StatusOr<GraphExec> SimDriver::Instantiate(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nodes nodes, Find(graph));
  Nodes made = nodes->Clone([](const host::GraphNodes&, const Nodes&) {});
  base::MutexLock lock(mu_);
  return GraphExec{execs_.Add(std::move(made))};
}

void SimDriver::DestroyExec(GraphExec exec) {
  base::MutexLock lock(mu_);
  execs_.Remove(exec.bits);
}

absl::Status SimDriver::Upload(GraphExec exec, Stream stream) {
  PENSTOCK_RETURN_IF_ERROR(Find(exec).status());
  return DeviceOf(stream).status();
}

absl::StatusOr<std::vector<SimLoad>> SimDriver::LoadsOf(const host::GraphNodes& nodes) {
  std::vector<SimLoad> loads;
  const auto pool_of = [this](const host::GraphNode& node, host::EngineKind engine) {
    if (node.kept == nullptr || !IsPeerCopy(node.kept->op())) return PoolOf(node.device, engine);
    const CopyOp& copy = *std::get<const CopyOp*>(node.kept->op());
    return engines_.LinkOf(copy.src_device, copy.dst_device);
  };
  for (const host::GraphNode& node : nodes.all()) {
    host::Work work;
    if (node.enabled && node.kept != nullptr) {
      absl::StatusOr<host::Work> made = maker_.Make(node.device, node.kept->op());
      if (!made.ok()) return base::Prefixed(nodes.TextOf(loads.size()), made.status());
      work = *std::move(made);
    }
    loads.push_back(LoadOf(pool_of(node, work.engine), std::move(work.task), Way::kGraph));
  }
  return loads;
}

// The nodes that follow none follow what is on the stream, and what comes next there follows those that none follows. A
// slot's run ends before the next one begins, so a graph never runs while it does.
absl::Status SimDriver::LaunchGraph(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nodes nodes, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<SimLoad> loads, LoadsOf(*nodes));
  const bool of_run = std::any_of(loads.begin(), loads.end(), [](const SimLoad& load) { return load.run >= 0; });
  if (of_run) {
    const graph::SimOptions& times = options_.times;
    engines_.Spend(InTicks(times.graph_us + CrossingsIn(*nodes) * times.crossing_submit_us));
  }
  base::MutexLock lock(mu_);
  Place* const to = streams_.Find(stream.bits);
  if (to == nullptr) return host::NotAlive("stream");
  std::vector<int32_t> works;
  std::vector<bool> is_last(loads.size(), true);
  for (size_t n = 0; n < loads.size(); ++n) {
    std::vector<SimPredecessor> after;
    for (const int32_t p : nodes->all()[n].after) {
      const bool crosses = nodes->all()[static_cast<size_t>(p)].device != nodes->all()[n].device;
      after.push_back({works[static_cast<size_t>(p)], crosses ? InTicks(options_.times.crossing_us) : 0});
      is_last[static_cast<size_t>(p)] = false;
    }
    works.push_back(
        engines_.Add(std::move(loads[n]), after.empty() ? to->after : after, InTicks(options_.times.start_us)));
  }
  if (works.empty()) return absl::OkStatus();
  to->after.clear();
  for (size_t n = 0; n < works.size(); ++n) {
    if (is_last[n]) to->after.push_back({works[n]});
  }
  return absl::OkStatus();
}

absl::Status SimDriver::SetNode(GraphExec exec, int32_t node, const NodeOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nodes nodes, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(const int device, nodes->DeviceOf(node));
  PENSTOCK_ASSIGN_OR_RETURN(auto kept, host::Keep(maker_, device, op));
  return nodes->Set(node, std::move(kept));
}

absl::Status SimDriver::EnableNode(GraphExec exec, int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nodes nodes, Find(exec));
  return nodes->Enable(node, enabled);
}

absl::Status SimDriver::BeginCapture(Stream /*stream*/) { return NotSimulated("captures"); }
absl::StatusOr<Graph> SimDriver::EndCapture(Stream /*stream*/) { return NotSimulated("captures"); }
absl::StatusOr<int32_t> SimDriver::CountNodes(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nodes nodes, Find(graph));
  return nodes->count();
}
absl::StatusOr<int32_t> SimDriver::AddChild(Graph /*graph*/, std::span<const int32_t> /*after*/, Graph /*child*/) {
  return NotSimulated("children");
}
absl::Status SimDriver::SetChild(GraphExec /*exec*/, int32_t /*node*/, Graph /*child*/) {
  return NotSimulated("children");
}

}  // namespace penstock::driver::sim
