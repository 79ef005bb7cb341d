// Executes a node on the host: calls the user's callable, or copies. If the graph has a trace, records a span.
//
// Threads: workers, the hostcall poller, a driver's own thread for exported graphs, and for small copies the thread
// that
//          advances the run. The callable's gate has been entered, except before CallExportedNode.
// Errors:  what the callable returns or throws fails the slot's run with the node; so does ending its thread.
#pragma once

#include <cstdint>

#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

// A host step (Plan::host_steps) of the run `serial`.
void RunHostStep(const CompiledGraph& graph, Slot& slot, int32_t step, int64_t serial);
// A node that a device calls.
void RunHostcall(const CompiledGraph& graph, Slot& slot, const HostcallEntry& entry, int64_t serial);

// A node of an exported graph: a host step, or if `step` is -1 an entry of Program::hostcalls. CallExportedNode waits
// while the callable's gate is full; see exported_graph.h.
struct ExportedNode {
  int32_t node = -1;  // of the plan
  int32_t step = -1, hostcall = -1;
};
void CallExportedNode(const CompiledGraph& graph, Slot& slot, const ExportedNode& node);

}  // namespace penstock::runtime
