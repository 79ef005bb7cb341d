// How an executable's nodes reach their device: which mode was asked for, why it cannot be, what no graph takes.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph_schedule.h"
#include "graph/message.h"
#include "src/runtime/executable_core.h"
#include "src/runtime/runtime_core.h"

namespace penstock::runtime {

using graph::PlanKind;
using graph::PlanNode;

absl::Status ExecutableCore::ChooseMode(const CompileOptions& options) {
  Mode wanted = options.mode;
  if (const char* const env = std::getenv("PENSTOCK_MODE"); env != nullptr && *env != '\0') {
    const std::string_view name(env);
    if (name != "stream" && name != "graph") {
      return absl::InvalidArgumentError(graph::Prefix(*model_) + ": PENSTOCK_MODE is '" + graph::OneLine(name) +
                                        "'; it must be stream or graph");
    }
    wanted = name == "graph" ? Mode::kGraph : Mode::kStream;
  }
  if (wanted == Mode::kStream) return absl::OkStatus();
  std::vector<std::string>& notes = ledger_.notes;
  const auto several = [&](const graph::Lane& lane) { return lane.device != plan_.lanes[0].device; };
  if (std::any_of(plan_.lanes.begin(), plan_.lanes.end(), several)) {
    notes.push_back("no graphs: the plan is on several devices, and a graph stays on one");
  }
  if (trace_ != nullptr) notes.push_back("no graphs: a trace times each node by itself");
  if (runtime_->synchronous()) notes.push_back("no graphs: PENSTOCK_SYNC has each node waited for");
  if (notes.empty()) ledger_.mode = Mode::kGraph;
  return absl::OkStatus();
}

std::vector<bool> ExecutableCore::RefusedNodes() {
  std::vector<bool> refused(plan_.nodes.size());
  for (size_t n = 0; n < refused.size(); ++n) {
    const PlanNode& node = plan_.nodes[n];
    const bool foreign = node.kind == PlanKind::kLaunch && device(node.device).info.kind == driver::DeviceKind::kCuda;
    refused[n] = foreign || node.kind == PlanKind::kPeerCopy;
    if (!refused[n]) continue;
    ledger_.notes.push_back("node '" + graph::OneLine(node.name) + "' is in no graph: it " +
                            (foreign ? "is a Launch, which submits to a stream by itself"
                                     : "copies between devices, and a graph stays on one"));
  }
  return refused;
}

graph::GraphSchedule ExecutableCore::ScheduleGraphs() {
  graph::GraphSchedule schedule = graph::MakeGraphSchedule(plan_, RefusedNodes());
  if (!plan_.states.empty() || !plan_.arrivals.empty()) {
    ledger_.notes.push_back("States, and device memory that is bound, part graphs at their first and last touches: " +
                            std::to_string(schedule.graphs.size()) + " graphs a slot");
  }
  return schedule;
}

ReplayLedger ExecutableCore::ledger() const {
  ReplayLedger ledger = ledger_;
  for (const auto& slot : slots_) {
    if (slot->replay != nullptr) slot->replay->AddTo(ledger);
  }
  return ledger;
}

}  // namespace penstock::runtime
