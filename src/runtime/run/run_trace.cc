#include "src/runtime/run/run_trace.h"

#include <utility>

#include "graph/plan/plan_names.h"
#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/synchronize_stream.h"
#include "src/runtime/graph_exec/timestamp_op.h"

namespace penstock::runtime {
namespace {

using graph::PlanKind;
using graph::PlanNode;

SpanKind SpanKindOf(PlanKind kind) {
  switch (kind) {
    case PlanKind::kUpload: return SpanKind::kUpload;
    case PlanKind::kDownload: return SpanKind::kDownload;
    case PlanKind::kHostcall: return SpanKind::kHost;
    default: return graph::IsHostKind(kind) ? SpanKind::kHost : SpanKind::kKernel;
  }
}

constexpr double kLongToRecord = 20;  // us

// What a span's name says if it stands for several nodes.
std::string AndMore(size_t nodes, const char* what) {
  return nodes > 1 ? " and " + std::to_string(nodes - 1) + " more, " + what : "";
}

}  // namespace

std::string IterationName(std::string_view loop, int64_t first, int64_t count) {
  std::string name(loop);
  name += (count == 1 ? " iteration " : " iterations ") + std::to_string(first);
  if (count > 1) name += " to " + std::to_string(first + count - 1);
  return name;
}

RunTrace::~RunTrace() {
  for (const Base& base : base_) {
    if (base.event) graph_.driver().DestroyEvent(base.event);
  }
}

void RunTrace::BeginStagedCopy(RunSlot& slot, int32_t ring) const {
  if (graph_.trace() != nullptr) slot.staged_begin[ring] = graph_.trace()->Now();
}

void RunTrace::RecordStagedCopy(const RunSlot& slot, int32_t step, int64_t serial) const {
  if (graph_.trace() == nullptr) return;
  const PlanNode& node = graph_.plan().nodes[graph_.plan().host_steps[step].node];
  const int32_t ring = graph_.program().hosts[step].ring;
  graph_.trace()->Add({.name = node.name,
                       .track = "staging slot " + std::to_string(slot.index),
                       .kind = SpanKindOf(node.kind),
                       .begin_us = slot.staged_begin[ring],
                       .end_us = graph_.trace()->Now(),
                       .run = serial,
                       .executable = graph_.number(),
                       .node = graph_.plan().host_steps[step].node,
                       .slot = slot.index});
}

absl::Status RunTrace::Start(const std::vector<std::unique_ptr<RunSlot>>& slots) {
  if (graph_.trace() == nullptr) return absl::OkStatus();
  if (for_profile_) {
    for (const auto& slot : slots) PENSTOCK_RETURN_IF_ERROR(slot->queues.state_waits.Make());
  }
  return SetBase(*slots.front());
}

absl::Status RunTrace::SetBase(RunSlot& slot) {
  base_.resize(graph_.devices().size());
  const bool any_graph = slot.replay != nullptr || !slot.constructs.empty();
  if (any_graph) {
    PENSTOCK_ASSIGN_OR_RETURN(stamp_, slot.options().pinned.Allocate(sizeof(uint64_t), slot.options().pinned_node));
  }
  for (const LaneId l : graph_.plan().lanes.ids()) {
    const DeviceId d = graph_.plan().lanes[l].device;
    if (base_[d].event || !slot.queues.streams[l]) continue;
    PENSTOCK_RETURN_IF_ERROR(ReadClocks(base_[d], d, slot.queues.streams[l], slot));
  }
  return SetBaseWithoutStreams(slot);
}

// A graph has nodes on devices on which the slot has no stream.
absl::Status RunTrace::SetBaseWithoutStreams(RunSlot& slot) {
  driver::Driver& driver = graph_.driver();
  for (const graph::Lane& lane : graph_.plan().lanes) {
    if (base_[lane.device].event) continue;
    const int local = graph_.devices()[lane.device].local;
    const driver::CurrentDevice current(driver, local);
    PENSTOCK_ASSIGN_OR_RETURN(const driver::Stream stream, driver.CreateStream(local, 0));
    const absl::Status read = ReadClocks(base_[lane.device], lane.device, stream, slot);
    driver.DestroyStream(stream);
    PENSTOCK_RETURN_IF_ERROR(read);
  }
  return absl::OkStatus();
}

// Device clocks are related to the trace's once: an event is recorded on each device, after a timestamp if there
// are graphs or constructs, and the host's clock is read as soon as the event is seen complete. The error is the time
// of one poll.
absl::Status RunTrace::ReadClocks(Base& base, DeviceId device, driver::Stream stream, RunSlot& slot) {
  driver::Driver& driver = graph_.driver();
  const int local = graph_.devices()[device].local;
  const driver::CurrentDevice current(driver, local);
  PENSTOCK_ASSIGN_OR_RETURN(base.event, driver.CreateEvent(local, true));
  auto* const at = static_cast<uint64_t*>(stamp_.data());
  TimestampOp timestamp;
  if (at != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const driver::LibraryCode code, driver.LoadTimestamp(local));
    timestamp.Make(code, at, {&slot.fault, -1});
    PENSTOCK_RETURN_IF_ERROR(driver.Launch(stream, timestamp.op));
  }
  PENSTOCK_RETURN_IF_ERROR(
      AwaitStream(driver, base.event, stream, slot.options().runtime.event_count(), AwaitBy::kPolling));
  base.micros = graph_.trace()->Now();
  if (at != nullptr) base.nanos = timestamp.time();
  return absl::OkStatus();
}

void RunTrace::Record(RunSlot& slot) const {
  if (graph_.trace() == nullptr) return;
  if (!for_profile_) return RecordNodes(slot);
  Trace& trace = *graph_.trace();
  const double begin = trace.Now();
  RecordRun(slot);
  RecordStateWaits(slot);
  RecordNodes(slot);
  const double end = trace.Now();
  if (end - begin < kLongToRecord) return;
  trace.Add(SpanOf(slot, "record a run of " + graph_.plan().graph, "recording", SpanKind::kHost, begin, end));
}

void RunTrace::RecordNodes(RunSlot& slot) const {
  // Only what this run submitted: the events of later commands hold the times of an earlier run, or none.
  const std::vector<bool> submitted = slot.WasSubmitted();
  const SlotQueues::Events& events = slot.queues.events();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (!submitted[c]) continue;
    const ExecCommand& command = slot.schedule->commands[c];
    const NodeId n = command.node;
    if (n < 0) continue;
    const Base& base = base_[graph_.plan().lanes[command.lane].device];  // graphs have all on one device
    const absl::StatusOr<double> begin = graph_.driver().Elapsed(base.event, events.begin_timing[n]);
    const absl::StatusOr<double> end = graph_.driver().Elapsed(base.event, events.end_timing[n]);
    if (!begin.ok() || !end.ok()) continue;  // a trace without the span is better than a run that fails for it
    RecordNode(slot, n, AndMore(slot.schedule->nodes[c].size(), "a batch"), base.micros + *begin, base.micros + *end);
  }
  RecordGraphs(slot);
  RecordIterations(slot);
}

// A node that was switched off in this run took no time except for its timestamps.
void RunTrace::RecordGraphs(RunSlot& slot) const {
  NodeTimestamps* const timestamps = slot.replay == nullptr ? nullptr : slot.replay->timestamps();
  if (timestamps == nullptr) return;
  for (const EntryId e : graph_.program().replay.entries.ids()) {
    const GraphNodeEntry& entry = graph_.program().replay.entries[e];
    if (entry.op == ExecCommand::Op::kRegion) RecordRegion(slot, entry.index);
    const NodeTimestamps::Times times = timestamps->Of(e);
    if (times.begin == 0 || times.end == 0 || !slot.replay->IsOn(e)) continue;
    const DeviceId device = graph_.plan().nodes[entry.node].device;
    RecordNode(slot, entry.node, OthersIn(entry), MicrosOf(times.begin, device), MicrosOf(times.end, device));
  }
  timestamps->Forget();
}

// Each worker of a region has a track, beside that of the region, which a host device's nodes are on. A region that
// failed has spans of the nodes that ended.
void RunTrace::RecordRegion(RunSlot& slot, RegionId region) const {
  const RegionOperations& regions = slot.replay->timestamps()->regions();
  RegionTimestamps& timestamps = *regions.timestamps(region);
  const std::vector<GraphNodeEntry>& nodes = graph_.program().replay.regions[region].nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeTimestamps::Times times = timestamps.Of(i);
    if (times.begin == 0 || times.end == 0 || regions.IsEmpty(nodes[i])) continue;
    const PlanNode& of = graph_.plan().nodes[nodes[i].node];
    const int32_t worker = timestamps.WorkerOf(i);
    const std::string track = worker < 0 ? "" : " resident worker " + std::to_string(worker);
    Span span = SpanOf(slot, of.name, TrackOf(slot, graph_.plan().nodes[nodes[0].node].lane) + track,
                       SpanKindOf(of.kind), MicrosOf(times.begin, of.device), MicrosOf(times.end, of.device));
    span.device = of.device;
    span.node = nodes[i].node;
    graph_.trace()->Add(std::move(span));
  }
  timestamps.Forget();
}

std::string RunTrace::OthersIn(const GraphNodeEntry& entry) const {
  const Program& program = graph_.program();
  switch (entry.op) {
    case ExecCommand::Op::kRegion: return AndMore(program.replay.regions[entry.index].nodes.size(), "a region");
    case ExecCommand::Op::kBatch: return AndMore(static_cast<size_t>(program.batches[entry.index].count), "a batch");
    default: return "";
  }
}

void RunTrace::RecordIterations(const RunSlot& slot) const {
  for (const auto& construct : slot.constructs) {
    const NodeId node = construct->node();
    const DeviceId device = graph_.plan().nodes[node].device;
    const std::string track = TrackOf(slot, graph_.plan().nodes[node].lane);
    construct->TakeIterations([&](std::string_view loop, const GraphConstruct::Iterations& times) {
      Span span = SpanOf(slot, IterationName(loop, times.first, times.count), track, SpanKind::kKernel,
                         MicrosOf(times.begin, device), MicrosOf(times.end, device));
      span.device = device;
      span.node = node;
      graph_.trace()->Add(std::move(span));
    });
  }
}

double RunTrace::MicrosOf(uint64_t nanos, DeviceId device) const {
  const Base& base = base_[device];
  return base.micros + static_cast<double>(static_cast<int64_t>(nanos - base.nanos)) / 1000;
}

std::string RunTrace::TrackOf(const RunSlot& slot, LaneId lane) const {
  const graph::Lane& of = graph_.plan().lanes[lane];
  return graph_.device(of.device).info.name + " slot " + std::to_string(slot.index) + " " + graph::LaneName(of.kind) +
         " lane " + std::to_string(lane);
}

void RunTrace::RecordNode(const RunSlot& slot, int32_t node, const std::string& others, double begin,
                          double end) const {
  const PlanNode& of = graph_.plan().nodes[node];
  Span span = SpanOf(slot, of.name + others, TrackOf(slot, of.lane), SpanKindOf(of.kind), begin, end);
  span.device = of.device;
  span.node = node;
  graph_.trace()->Add(std::move(span));
}

Span RunTrace::SpanOf(const RunSlot& slot, std::string name, std::string track, SpanKind kind, double begin,
                      double end) const {
  return {.name = std::move(name),
          .track = std::move(track),
          .kind = kind,
          .begin_us = begin,
          .end_us = end,
          .run = slot.progress.serial,
          .executable = graph_.number(),
          .slot = slot.index};
}

// The run has no number yet.
void RunTrace::RecordWait(const RunSlot& slot, std::chrono::steady_clock::time_point since) const {
  if (!for_profile_) return;
  Trace& trace = *graph_.trace();
  Span span = SpanOf(slot, "wait for a slot of " + graph_.plan().graph, "launches", SpanKind::kWait,
                     trace.ToMicros(since), trace.Now());
  span.run = -1;
  trace.Add(std::move(span));
}

// Another run may have the slot already.
void RunTrace::RecordLaunch(int slot, int64_t serial, std::chrono::steady_clock::time_point launched) const {
  graph_.trace()->Add({.name = "launch " + graph_.plan().graph,
                       .track = "launches",
                       .kind = SpanKind::kSubmit,
                       .begin_us = graph_.trace()->ToMicros(launched),
                       .end_us = graph_.trace()->Now(),
                       .run = serial,
                       .executable = graph_.number(),
                       .slot = slot});
}

void RunTrace::RecordRun(const RunSlot& slot) const {
  graph_.trace()->Add(SpanOf(slot, "run of " + graph_.plan().graph, "runs slot " + std::to_string(slot.index),
                             SpanKind::kRun, graph_.trace()->ToMicros(slot.launched), graph_.trace()->Now()));
}

void RunTrace::RecordStateWaits(const RunSlot& slot) const {
  const std::vector<StateWaits::Wait>& waits = slot.queues.state_waits.waits();
  for (size_t use = 0; use < waits.size(); ++use) {
    if (!waits[use].ended) continue;
    const DeviceId device = graph_.plan().lanes[waits[use].lane].device;
    const absl::StatusOr<double> begin = graph_.driver().Elapsed(base_[device].event, waits[use].begin);
    const absl::StatusOr<double> end = graph_.driver().Elapsed(base_[device].event, waits[use].end);
    if (!begin.ok() || !end.ok()) continue;
    const std::string_view state = graph_.model().buffers[graph_.plan().states[use].buffer].name.view();
    Span span = SpanOf(slot, "wait for state " + std::string(state), TrackOf(slot, waits[use].lane), SpanKind::kWait,
                       base_[device].micros + *begin, base_[device].micros + *end);
    span.device = device;
    graph_.trace()->Add(std::move(span));
  }
}

}  // namespace penstock::runtime
