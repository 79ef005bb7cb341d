#include "src/runtime/calls/host_call.h"

#include <string>
#include <thread>

#include "src/base/annotate.h"
#include "src/base/catch_all.h"
#include "src/base/user_code.h"
#include "src/driver/copy_box.h"
#include "src/host/worker_pool.h"
#include "src/memory/streaming_copy.h"

namespace penstock::runtime {
namespace {

void CallHost(const CompiledGraph& graph, Slot& slot, int32_t call, int64_t serial) {
  const CallEntry& entry = graph.program().calls[call];
  const NodeCode& code = graph.model().nodes[entry.decl].code;
  const base::AnnotatedRange range(graph.annotations().node(entry.node), serial);
  base::WhenThreadEnds ended([&] { slot.fault.Fail(entry.node, base::EndedItsThread("the callable")); });
  absl::Status status;
  {
    base::UserCodeScope scope;
    status = base::CatchAll("the callable", [&] {
      return code.call(slot.tables.CallableOf(call, code), nullptr, slot.tables.argv.data() + entry.argv);
    });
  }
  ended.Cancel();
  if (!status.ok()) slot.fault.Fail(entry.node, status);
}

// `elsewhere`: the track of a thread that is no worker's and no device's.
void Record(const CompiledGraph& graph, const Slot& slot, int32_t node, int64_t serial, double begin,
            const std::string& elsewhere) {
  Trace* const trace = graph.trace().get();
  if (trace == nullptr) return;
  const int worker = host::WorkerPool::CurrentIndex();
  const std::string track = worker >= 0            ? "worker " + std::to_string(worker)
                            : base::InDeviceCode() ? "exported graphs"
                                                   : elsewhere;
  const std::string& name = graph.plan().nodes[node].name;
  trace->Add({.name = name,
              .track = track,
              .kind = SpanKind::kHost,
              .begin_us = begin,
              .end_us = trace->Now(),
              .run = serial,
              .executable = graph.number(),
              .node = node,
              .slot = slot.index});
}

}  // namespace

void RunHostStep(const CompiledGraph& graph, Slot& slot, int32_t step, int64_t serial) {
  const HostEntry& entry = graph.program().hosts[step];
  const double begin = graph.trace() != nullptr ? graph.trace()->Now() : 0;
  if (entry.call >= 0) {
    CallHost(graph, slot, entry.call, serial);
  } else {
    const driver::CopyOp& op = slot.tables.host_copies[step];
    entry.past_caches ? memory::StreamingCopy(op) : driver::CopyOnHost(op);
  }
  if (graph.trace() == nullptr) return;
  Record(graph, slot, graph.plan().host_steps[step].node, serial, begin,
         "small copies slot " + std::to_string(slot.index));
}

void RunHostcall(const CompiledGraph& graph, Slot& slot, const HostcallEntry& entry, int64_t serial) {
  const double begin = graph.trace() != nullptr ? graph.trace()->Now() : 0;
  CallHost(graph, slot, entry.call, serial);
  Record(graph, slot, entry.node, serial, begin, "poller");
}

void CallExportedNode(const CompiledGraph& graph, Slot& slot, const ExportedNode& node) {
  const base::DeviceCodeScope scope;
  if (slot.fault.failed()) return;
  while (!graph.EnterGate(node.node)) std::this_thread::yield();
  if (node.step >= 0) {
    RunHostStep(graph, slot, node.step, -1);
  } else {
    RunHostcall(graph, slot, graph.program().hostcalls[node.hostcall], -1);
  }
  graph.LeaveGate(node.node);
}

}  // namespace penstock::runtime
