#include "src/runtime/graph_exec/whole_graph.h"

#include <algorithm>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/runtime/graph_exec/graph_builder.h"

namespace penstock::runtime {

namespace {
using Op = ExecCommand::Op;
}  // namespace

WholeGraph::WholeGraph(Slot& slot, std::vector<LaunchObjects>& launch, const Hostcalls* hostcalls)
    : slot_(slot),
      replay_(slot.graph().program().replay),
      driver_(slot.graph().driver()),
      device_(slot.graph().local_device_of_lane(replay_.lane)),
      operations_(slot, hostcalls),
      captured_(slot, launch),
      entry_last_(replay_.entries.size()),
      steps_(slot.tables.is_noop.size()) {}

WholeGraph::~WholeGraph() {
  const driver::CurrentDevice current(driver_, device_);
  if (graph_) driver_.DestroyGraph(graph_);
  captured_.Drop();
}

absl::StatusOr<std::unique_ptr<WholeGraph>> WholeGraph::Create(Slot& slot, std::vector<LaunchObjects>& launch,
                                                               const Hostcalls* hostcalls) {
  std::unique_ptr<WholeGraph> whole(new WholeGraph(slot, launch, hostcalls));
  const driver::CurrentDevice current(whole->driver_, whole->device_);
  PENSTOCK_RETURN_IF_ERROR(whole->operations_.Make(NodeOperations::Use::kExport));
  PENSTOCK_RETURN_IF_ERROR(whole->CaptureAll());
  PENSTOCK_RETURN_IF_ERROR(whole->Build());
  whole->native_ = whole->driver_.NativeGraph(whole->graph_);
  return whole;
}

absl::Status WholeGraph::CaptureAll() {
  for (const EntryId e : replay_.launch) {
    const absl::StatusOr<bool> captured = captured_.Capture(e);
    if (captured.ok() && *captured) continue;
    const absl::Status failed =
        captured.ok() ? absl::ResourceExhaustedError("its callable is running as often as it may; try again later")
                      : captured.status();
    return base::WithNode(failed, replay_.entries[e].node);
  }
  return absl::OkStatus();
}

// A single graph is the whole graph; several become children.
absl::Status WholeGraph::Build() {
  const std::vector<bool>& noop = slot_.tables.is_noop;
  const bool alone = replay_.graphs() == 1 && std::all_of(noop.begin(), noop.end(), [](bool is) { return is; });
  PENSTOCK_ASSIGN_OR_RETURN(graph_, driver_.CreateGraph(device_));
  return alone ? AddGraph(0, graph_) : Join();
}

// Adds graphs and host steps in sequence, as a run submits them: each segment after the steps that it waits for.
absl::Status WholeGraph::Join() {
  const Schedule& schedule = slot_.graph().program().graphs;
  for (const graph::Segment& segment : schedule.segments) {
    for (const HostStepId step : segment.after_hosts) PENSTOCK_RETURN_IF_ERROR(AddHostStep(step));
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const ExecCommand& command = schedule.commands[c];
      if (command.op == Op::kGraph) PENSTOCK_RETURN_IF_ERROR(AddPart(command.index));
    }
  }
  for (const HostStepId step : steps_.ids()) PENSTOCK_RETURN_IF_ERROR(AddHostStep(step));
  return absl::OkStatus();
}

absl::Status WholeGraph::AddPart(GraphId graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph part, driver_.CreateGraph(device_));
  absl::Status added = AddGraph(graph, part);
  if (added.ok()) {
    const absl::StatusOr<int32_t> child = driver_.AddChild(graph_, last_, part);
    if (child.ok()) last_.assign(1, *child);
    added = child.status();
  }
  driver_.DestroyGraph(part);
  return added;
}

// Adds the step after those that it waits for. These may be as many as the plan has, so a list replaces recursion: on
// it a step is below those that it waits for.
absl::Status WholeGraph::AddHostStep(HostStepId last) {
  std::vector<HostStepId> open = {last};
  while (!open.empty()) {
    const HostStepId step = open.back();
    const graph::HostStep& planned = slot_.graph().plan().host_steps[step];
    const size_t before = open.size();
    const auto open_first = [&](HostStepId other) {
      if (!steps_[other]) open.push_back(other);
    };
    if (!steps_[step]) {
      if (planned.joins) open_first(step - 1);
      std::for_each(planned.after_hosts.rbegin(), planned.after_hosts.rend(), open_first);
      if (open.size() > before) continue;
    }
    open.pop_back();
    const bool has_been_added = steps_[step];
    steps_[step] = true;
    if (has_been_added || slot_.tables.is_noop[step]) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const int32_t added, AddHost({.node = planned.node, .step = step}, graph_, last_));
    last_.assign(1, added);
  }
  return absl::OkStatus();
}

absl::Status WholeGraph::AddGraph(GraphId graph, driver::Graph to) {
  return AddEntries(
      slot_.graph(), graph, entry_last_, [](int32_t) { return -1; },
      [&](int32_t e, std::vector<int32_t>& after, driver::NodePlace place) -> absl::StatusOr<NodeNumbers> {
        PENSTOCK_ASSIGN_OR_RETURN(const int32_t number, AddNode(e, to, after, place));
        return NodeNumbers{number};
      });
}

absl::StatusOr<int32_t> WholeGraph::AddNode(EntryId e, driver::Graph to, const std::vector<int32_t>& after,
                                            driver::NodePlace place) {
  const GraphNodeEntry& entry = replay_.entries[e];
  if (entry.op == Op::kLaunch) return driver_.AddChild(to, after, captured_.child(e));
  if (entry.op == Op::kHostcall) return AddHost({.node = entry.node, .hostcall = entry.index}, to, after);
  PENSTOCK_ASSIGN_OR_RETURN(const NodeOperations::Wanted wanted, operations_.Of(e, /*indirect=*/false));
  return wanted.disabled ? AddNothing(to, after) : driver_.AddNode(to, after, wanted.op, place);
}

absl::StatusOr<int32_t> WholeGraph::AddNothing(driver::Graph to, const std::vector<int32_t>& after) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph empty, driver_.CreateGraph(device_));
  absl::StatusOr<int32_t> number = driver_.AddChild(to, after, empty);
  driver_.DestroyGraph(empty);
  return number;
}

absl::StatusOr<int32_t> WholeGraph::AddHost(const ExportedNode& node, driver::Graph to,
                                            std::span<const int32_t> after) {
  HostNode& host = *host_nodes_.emplace_back(std::make_unique<HostNode>());
  host = {.node = node, .slot = &slot_, .code = {.call = &WholeGraph::CallHostNode, .context = &host}};
  return driver_.AddHost(to, after, host.code);
}

void WholeGraph::CallHostNode(void* context) {
  const HostNode& of = *static_cast<const HostNode*>(context);
  CallExportedNode(of.slot->graph(), *of.slot, of.node);
}

}  // namespace penstock::runtime
