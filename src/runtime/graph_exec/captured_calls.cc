#include "src/runtime/graph_exec/captured_calls.h"

#include <algorithm>

#include "penstock/status_macros.h"
#include "src/driver/current_device.h"
#include "src/runtime/calls/launch_call.h"

namespace penstock::runtime {

CapturedCalls::CapturedCalls(Slot& slot, std::vector<LaunchObjects>& launch)
    : slot_(slot),
      launch_(launch),
      replay_(slot.graph().program().replay),
      driver_(slot.graph().driver()),
      children_(replay_.entries.size()) {}

absl::StatusOr<bool> CapturedCalls::Capture(EntryId e) {
  const GraphNodeEntry& entry = replay_.entries[e];
  const CompiledGraph& graph = slot_.graph();
  if (!graph.EnterGate(entry.node)) return false;
  const TimedScope timed(capturing_ns_);
  const driver::CurrentDevice current(driver_, graph.local_device_of(entry.node));
  const LaneId lane = graph.plan().nodes[entry.node].lane;
  const absl::StatusOr<CapturedLaunch> captured = CaptureLaunch(graph, slot_, launch_[lane], entry.index);
  graph.LeaveGate(entry.node);
  PENSTOCK_RETURN_IF_ERROR(captured.status());
  captures_ += captured->calls;
  slot_.options().runtime.observed().counts.captures += captured->calls;
  driver::Graph& child = children_[e];
  if (child) driver_.DestroyGraph(child);
  child = captured->graph;
  return true;
}

bool CapturedCalls::HasAllOf(GraphId graph) const {
  const auto from = [&](GraphId of) {
    return std::lower_bound(replay_.launch.begin(), replay_.launch.end(), replay_.begin[of]);  // in ascending order
  };
  return std::all_of(from(graph), from(graph + 1), [&](EntryId e) { return child(e); });
}

void CapturedCalls::Drop() {
  for (driver::Graph& child : children_) {
    if (child) driver_.DestroyGraph(child);
    child = {};
  }
}

}  // namespace penstock::runtime
