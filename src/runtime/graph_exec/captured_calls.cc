#include "src/runtime/graph_exec/captured_calls.h"

#include <algorithm>

#include "penstock/status_macros.h"
#include "src/runtime/calls/launch_call.h"

namespace penstock::runtime {

CapturedCalls::CapturedCalls(Slot& slot, std::vector<LaunchObjects>& launch)
    : slot_(slot),
      launch_(launch),
      replay_(slot.graph().program().replay),
      driver_(slot.graph().driver()),
      children_(replay_.entries.size()) {}

absl::StatusOr<bool> CapturedCalls::Capture(int32_t e) {
  const GraphNodeEntry& entry = replay_.entries[e];
  const CompiledGraph& graph = slot_.graph();
  if (!graph.EnterGate(entry.node)) return false;
  const TimedScope timed(capturing_ns_);
  const int32_t lane = graph.plan().nodes[entry.node].lane;
  const absl::StatusOr<CapturedLaunch> captured = CaptureLaunch(graph, slot_, launch_[lane], entry.index);
  graph.LeaveGate(entry.node);
  PENSTOCK_RETURN_IF_ERROR(captured.status());
  captures_ += captured->calls;
  driver::Graph& child = children_[e];
  if (child) driver_.DestroyGraph(child);
  child = captured->graph;
  return true;
}

bool CapturedCalls::HasAllOf(int32_t graph) const {
  const auto g = static_cast<size_t>(graph);
  const auto from = [&](size_t of) {
    return std::lower_bound(replay_.launch.begin(), replay_.launch.end(), replay_.begin[of]);  // in ascending order
  };
  return std::all_of(from(g), from(g + 1), [&](int32_t e) { return child(e); });
}

void CapturedCalls::Drop() {
  for (driver::Graph& child : children_) {
    if (child) driver_.DestroyGraph(child);
    child = {};
  }
}

}  // namespace penstock::runtime
