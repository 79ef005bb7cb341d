// What an executable does around the work itself: running host nodes on workers, and recording spans for a trace.
#include <chrono>
#include <string>

#include "penstock/status_macros.h"
#include "src/base/catch_all.h"
#include "src/base/user_code.h"
#include "src/driver/copy_box.h"
#include "src/driver/current_device.h"
#include "src/memory/streaming_copy.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/synchronize_stream.h"
#include "src/runtime/executable/executable_core.h"

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

absl::Status CallUser(const NodeCode& code, void* callable, void* const* argv) {
  base::UserCodeScope scope;
  return base::CatchAll("the callable", [&] { return code.call(callable, nullptr, argv); });
}

}  // namespace

void ExecutableCore::RunHostNode(Slot& slot, int32_t step, int64_t serial) {
  const HostEntry& entry = program_.hosts[static_cast<size_t>(step)];
  const int32_t n = plan_.host_steps[static_cast<size_t>(step)].node;
  const double begin = trace_ ? trace_->Now() : 0;
  if (entry.call >= 0) {
    CallHost(slot, entry.call);
  } else {
    const driver::CopyOp& op = slot.host_copies[static_cast<size_t>(step)];
    entry.past_caches ? memory::StreamingCopy(op) : driver::CopyOnHost(op);
  }
  if (trace_ != nullptr) RecordHostNode(n, serial, begin);
}

void ExecutableCore::CallHostcall(Slot& slot, const HostcallEntry& entry, int64_t serial) {
  const double begin = trace_ ? trace_->Now() : 0;
  CallHost(slot, entry.call);
  if (trace_ != nullptr) RecordHostNode(entry.node, serial, begin);
}

void ExecutableCore::CallHost(Slot& slot, int32_t call) const {
  const CallEntry& entry = program_.calls[static_cast<size_t>(call)];
  const NodeCode& code = model_->nodes[static_cast<size_t>(entry.decl)].code;
  base::WhenThreadEnds ended([&] { slot.fault.Fail(entry.node, base::EndedItsThread("the callable")); });
  const absl::Status status = CallUser(code, slot.CallableOf(call, code), slot.argv.data() + entry.argv);
  ended.Cancel();
  if (!status.ok()) slot.fault.Fail(entry.node, status);
}

void ExecutableCore::RecordHostNode(int32_t node, int64_t serial, double begin) const {
  const int worker = host::WorkerPool::CurrentIndex();
  const std::string thread = worker >= 0            ? "worker " + std::to_string(worker)
                             : base::InDeviceCode() ? "exported graphs"
                                                    : "poller";
  trace_->Add({plan_.nodes[static_cast<size_t>(node)].name, thread, SpanKind::kHost, begin, trace_->Now(), serial, -1});
}

void ExecutableCore::BeginStagedCopy(Slot& slot, int32_t ring) const {
  if (trace_ != nullptr) slot.staged_begin[static_cast<size_t>(ring)] = trace_->Now();
}

void ExecutableCore::RecordStagedCopy(Slot& slot, int32_t step, int64_t serial) const {
  if (trace_ == nullptr) return;
  const PlanNode& node = plan_.nodes[static_cast<size_t>(plan_.host_steps[static_cast<size_t>(step)].node)];
  const int32_t ring = program_.hosts[static_cast<size_t>(step)].ring;
  trace_->Add({node.name, "staging slot " + std::to_string(slot.index), SpanKindOf(node.kind),
               slot.staged_begin[static_cast<size_t>(ring)], trace_->Now(), serial, -1});
}

// Device clocks are tied to the trace's once: an event is recorded on each device, behind a stamp where graphs have
// some, and the host's clock read as soon as it is seen complete. The error is the time of one poll.
absl::Status ExecutableCore::SetTraceBase() {
  trace_base_.resize(runtime_->devices().size());
  trace_base_us_.resize(runtime_->devices().size());
  const NodeTimestamps* const timestamps = slots_[0]->replay == nullptr ? nullptr : slots_[0]->replay->timestamps();
  for (size_t l = 0; l < plan_.lanes.size(); ++l) {
    const auto d = static_cast<size_t>(plan_.lanes[l].device);
    if (trace_base_[d]) continue;
    const int device = runtime_->devices()[d].local;
    const driver::Stream stream = slots_[0]->streams[l];
    const driver::CurrentDevice current(*driver_, device);
    PENSTOCK_ASSIGN_OR_RETURN(trace_base_[d], driver_->CreateEvent(device, true));
    if (timestamps != nullptr) PENSTOCK_RETURN_IF_ERROR(driver_->Launch(stream, timestamps->base()));
    PENSTOCK_RETURN_IF_ERROR(AwaitStream(*driver_, trace_base_[d], stream, runtime_->event_count()));
    trace_base_us_[d] = trace_->Now();
    if (timestamps != nullptr) trace_base_timestamp_ = timestamps->base_time();
  }
  return absl::OkStatus();
}

void ExecutableCore::RecordTrace(Slot& slot, int64_t serial) {
  if (trace_ == nullptr) return;
  // Only what this run submitted: behind it the events hold the times of an earlier run, or none.
  const std::vector<bool> submitted = slot.WasSubmitted();
  for (int32_t c = 0; c < slot.schedule->epilogue_begin; ++c) {
    if (!submitted[static_cast<size_t>(c)]) continue;
    const int32_t node = slot.schedule->commands[static_cast<size_t>(c)].node;
    if (node < 0) continue;
    const auto n = static_cast<size_t>(node), d = static_cast<size_t>(plan_.nodes[n].device);
    const absl::StatusOr<double> begin = driver_->Elapsed(trace_base_[d], slot.begin_timing[n]);
    const absl::StatusOr<double> end = driver_->Elapsed(trace_base_[d], slot.end_timing[n]);
    if (!begin.ok() || !end.ok()) continue;  // a trace without the span is better than a run that fails for it
    RecordNode(slot, node, slot.schedule->nodes[c].size(), trace_base_us_[d] + *begin, trace_base_us_[d] + *end,
               serial);
  }
  RecordReplay(slot, serial);
}

// What was switched off in this run took no time, but its stamps' own.
void ExecutableCore::RecordReplay(Slot& slot, int64_t serial) {
  NodeTimestamps* const timestamps = slot.replay == nullptr ? nullptr : slot.replay->timestamps();
  if (timestamps == nullptr) return;
  for (size_t e = 0; e < program_.replay.entries.size(); ++e) {
    const GraphNodeEntry& entry = program_.replay.entries[e];
    const NodeTimestamps::Times times = timestamps->Of(static_cast<int32_t>(e));
    if (times.begin == 0 || times.end == 0 || !slot.replay->IsOn(static_cast<int32_t>(e))) continue;
    const double base = trace_base_us_[static_cast<size_t>(plan_.nodes[static_cast<size_t>(entry.node)].device)];
    const auto micros = [&](uint64_t stamp) {
      return base + static_cast<double>(static_cast<int64_t>(stamp - trace_base_timestamp_)) / 1000;
    };
    const bool batch = entry.op == ExecCommand::Op::kBatch;
    const int32_t nodes = batch ? program_.batches[static_cast<size_t>(entry.index)].count : 1;
    RecordNode(slot, entry.node, static_cast<size_t>(nodes), micros(times.begin), micros(times.end), serial);
  }
  timestamps->Forget();
}

// `batched`: how many nodes it stands for.
void ExecutableCore::RecordNode(const Slot& slot, int32_t node, size_t batched, double begin, double end,
                                int64_t serial) const {
  const PlanNode& of = plan_.nodes[static_cast<size_t>(node)];
  const graph::Lane& lane = plan_.lanes[static_cast<size_t>(of.lane)];
  const std::string others = batched > 1 ? " and " + std::to_string(batched - 1) + " more, a batch" : "";
  trace_->Add({of.name + others,
               device(of.device).info.name + " slot " + std::to_string(slot.index) + " " + LaneText(lane.kind) +
                   " lane " + std::to_string(of.lane),
               SpanKindOf(of.kind), begin, end, serial, of.device});
}

}  // namespace penstock::runtime
