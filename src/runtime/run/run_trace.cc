#include "src/runtime/run/run_trace.h"

#include <string>

#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/synchronize_stream.h"

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

const char* LaneText(graph::LaneKind kind) {
  switch (kind) {
    case graph::LaneKind::kUpload: return "upload";
    case graph::LaneKind::kDownload: return "download";
    case graph::LaneKind::kCompute: break;
  }
  return "compute";
}

}  // namespace

RunTrace::~RunTrace() {
  for (const driver::Event event : base_) {
    if (event) graph_.driver().DestroyEvent(event);
  }
}

void RunTrace::BeginStagedCopy(RunSlot& slot, int32_t ring) const {
  if (graph_.trace() != nullptr) slot.staged_begin[ring] = graph_.trace()->Now();
}

void RunTrace::RecordStagedCopy(const RunSlot& slot, int32_t step, int64_t serial) const {
  if (graph_.trace() == nullptr) return;
  const PlanNode& node = graph_.plan().nodes[graph_.plan().host_steps[step].node];
  const int32_t ring = graph_.program().hosts[step].ring;
  graph_.trace()->Add({node.name, "staging slot " + std::to_string(slot.index), SpanKindOf(node.kind),
                       slot.staged_begin[ring], graph_.trace()->Now(), serial, -1});
}

// Device clocks are related to the trace's once: an event is recorded on each device, after a timestamp if graphs have
// timestamps, and the host's clock is read as soon as the event is seen complete. The error is the time of one poll.
absl::Status RunTrace::SetBase(RunSlot& slot) {
  base_.resize(graph_.devices().size());
  base_us_.resize(graph_.devices().size());
  const NodeTimestamps* const timestamps = slot.replay == nullptr ? nullptr : slot.replay->timestamps();
  for (const LaneId l : graph_.plan().lanes.ids()) {
    const DeviceId d = graph_.plan().lanes[l].device;
    if (base_[d] || !slot.queues.streams[l]) continue;
    const int device = graph_.devices()[d].local;
    const driver::Stream stream = slot.queues.streams[l];
    const driver::CurrentDevice current(graph_.driver(), device);
    PENSTOCK_ASSIGN_OR_RETURN(base_[d], graph_.driver().CreateEvent(device, true));
    if (timestamps != nullptr) PENSTOCK_RETURN_IF_ERROR(graph_.driver().Launch(stream, timestamps->base()));
    PENSTOCK_RETURN_IF_ERROR(AwaitStream(graph_.driver(), base_[d], stream, slot.options().runtime.event_count()));
    base_us_[d] = graph_.trace()->Now();
    if (timestamps != nullptr) base_timestamp_ = timestamps->base_time();
  }
  return absl::OkStatus();
}

void RunTrace::Record(RunSlot& slot) const {
  if (graph_.trace() == nullptr) return;
  // Only what this run submitted: the events of later commands hold the times of an earlier run, or none.
  const std::vector<bool> submitted = slot.WasSubmitted();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (!submitted[c]) continue;
    const NodeId n = slot.schedule->commands[c].node;
    if (n < 0) continue;
    const DeviceId d = graph_.plan().nodes[n].device;
    const absl::StatusOr<double> begin = graph_.driver().Elapsed(base_[d], slot.queues.begin_timing[n]);
    const absl::StatusOr<double> end = graph_.driver().Elapsed(base_[d], slot.queues.end_timing[n]);
    if (!begin.ok() || !end.ok()) continue;  // a trace without the span is better than a run that fails for it
    RecordNode(slot, n, slot.schedule->nodes[c].size(), base_us_[d] + *begin, base_us_[d] + *end);
  }
  RecordGraphs(slot);
}

// A node that was switched off in this run took no time except for its timestamps.
void RunTrace::RecordGraphs(RunSlot& slot) const {
  NodeTimestamps* const timestamps = slot.replay == nullptr ? nullptr : slot.replay->timestamps();
  if (timestamps == nullptr) return;
  for (const EntryId e : graph_.program().replay.entries.ids()) {
    const GraphNodeEntry& entry = graph_.program().replay.entries[e];
    const NodeTimestamps::Times times = timestamps->Of(e);
    if (times.begin == 0 || times.end == 0 || !slot.replay->IsOn(e)) continue;
    const double base = base_us_[graph_.plan().nodes[entry.node].device];
    const auto micros = [&](uint64_t stamp) {
      return base + static_cast<double>(static_cast<int64_t>(stamp - base_timestamp_)) / 1000;
    };
    const bool batch = entry.op == ExecCommand::Op::kBatch;
    const int32_t nodes = batch ? graph_.program().batches[entry.index].count : 1;
    RecordNode(slot, entry.node, static_cast<size_t>(nodes), micros(times.begin), micros(times.end));
  }
  timestamps->Forget();
}

// `batched`: how many nodes the span stands for.
void RunTrace::RecordNode(const RunSlot& slot, int32_t node, size_t batched, double begin, double end) const {
  const PlanNode& of = graph_.plan().nodes[node];
  const graph::Lane& lane = graph_.plan().lanes[of.lane];
  const std::string others = batched > 1 ? " and " + std::to_string(batched - 1) + " more, a batch" : "";
  graph_.trace()->Add({of.name + others,
                       graph_.device(of.device).info.name + " slot " + std::to_string(slot.index) + " " +
                           LaneText(lane.kind) + " lane " + std::to_string(of.lane),
                       SpanKindOf(of.kind), begin, end, slot.progress.serial, of.device});
}

}  // namespace penstock::runtime
