// The plan as text: one node per line, then lanes, segments, host steps, instances, arenas and remarks.
#include <algorithm>
#include <string>

#include "graph/plan/plan.h"
#include "graph/plan/plan_names.h"

namespace penstock::graph {
namespace {

void Pad(std::string& line, size_t column) { line.resize(std::max(line.size() + 1, column), ' '); }

template <class Numbers>
std::string Join(const Numbers& numbers) {
  std::string text;
  for (const int32_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text.empty() ? "-" : text;
}

std::string NodeLine(const Plan& plan, const Model& model, NodeId index, size_t name_width) {
  const PlanNode& node = plan.nodes[index];
  std::string line = "  " + std::to_string(index);
  Pad(line, 8);
  line += node.name;
  Pad(line, 9 + name_width);
  line += KindName(node.kind);
  Pad(line, 23 + name_width);
  if (node.lane >= 0) {
    line += "device " + std::to_string(node.device) + " lane " + std::to_string(node.lane) + " segment " +
            std::to_string(node.segment);
  } else {
    line += "host step " + std::to_string(node.segment);
  }
  if (node.batch >= 0) line += " batch " + std::to_string(node.batch);
  Pad(line, 50 + name_width);
  line += "after " + Join(node.preds) + "  ";
  if (node.decl < 0) return line + InstanceName(plan, model, node.src) + " -> " + InstanceName(plan, model, node.dst);
  for (size_t u = 0; u < node.uses.size(); ++u) {
    line += (u > 0 ? ", " : "") + std::string(ModeName(node.uses[u].mode)) + " " +
            InstanceName(plan, model, node.uses[u].instance);
  }
  return line;
}

std::string Hex(uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15];
  return text;
}

// The waits between lanes while the run is submitted, without those of its epilogue.
size_t Waits(const Plan& plan) {
  size_t count = 0;
  for (CommandId c = 0; c < plan.epilogue_begin; ++c) count += plan.commands[c].op == Command::Op::kWait;
  return count;
}

// The copies submitted in batches.
int64_t PieceCount(const Plan& plan) {
  int64_t count = 0;
  for (const Command& c : plan.commands) count += c.count > 1 ? c.count : 0;
  return count;
}

}  // namespace

std::string PrintText(const Plan& plan, const Model& model) {
  size_t name_width = 4;
  for (const PlanNode& node : plan.nodes) name_width = std::max(name_width, node.name.size());
  std::string text = "plan '" + plan.graph + "': " + std::to_string(plan.nodes.size()) + " nodes, " +
                     std::to_string(plan.lanes.size()) + " lanes, " + std::to_string(plan.segments.size()) +
                     " segments, " + std::to_string(plan.host_steps.size()) + " host steps, " +
                     std::to_string(plan.events.size()) + " events, " + std::to_string(Waits(plan)) +
                     " waits, structure " + Hex(plan.structure_hash) + "\n";
  for (const NodeId n : plan.nodes.ids()) text += NodeLine(plan, model, n, name_width) + "\n";
  for (const LaneId l : plan.lanes.ids()) {
    const Lane& lane = plan.lanes[l];
    text += "lane " + std::to_string(l) + ": " + LaneName(lane.kind) + " of device " + std::to_string(lane.device) +
            ", priority " + std::to_string(lane.priority) + "\n";
  }
  for (const SegmentId s : plan.segments.ids()) {
    const Segment& segment = plan.segments[s];
    text += "segment " + std::to_string(s) + ": commands " + std::to_string(segment.begin) + " to " +
            std::to_string(segment.end) + ", after host steps " + Join(segment.after_hosts) + "\n";
  }
  for (const HostStepId h : plan.host_steps.ids()) {
    const HostStep& step = plan.host_steps[h];
    text += "host step " + std::to_string(h) + ": node " + std::to_string(step.node) + ", after host steps " +
            Join(step.after_hosts) + ", events " + Join(step.after_events) +
            (step.joins ? ", joins the one before" : "") + "\n";
  }
  for (const StateUse& use : plan.states) {
    text += "state " + InstanceName(plan, model, use.instance) + ": " + (use.written ? "written" : "read") +
            ", done at events " + Join(use.done_events) + "\n";
  }
  for (const ExternalDep& external_dep : plan.external_deps) {
    text += "bound on a device: " + InstanceName(plan, model, external_dep.instance) + "\n";
  }
  for (const InstanceId i : plan.instances.ids()) {
    const Instance& instance = plan.instances[i];
    text += "instance " + InstanceName(plan, model, i) + ": " + std::to_string(instance.bytes) + " bytes" +
            (instance.offset >= 0 ? " at " + std::to_string(instance.offset) : "") +
            (instance.stages ? ", stages" : "") + (instance.leased ? ", leased" : "") + "\n";
  }
  for (const Arena& arena : plan.arenas) {
    text += "arena of " + (arena.device < 0 ? "pinned memory" : "device " + std::to_string(arena.device)) + ": " +
            std::to_string(arena.bytes) + " bytes a slot\n";
  }
  if (plan.pieces_offset >= 0) {
    text += "of the pinned memory " + std::to_string(PieceCount(plan) * kPieceBytes) +
            " bytes a slot to list the copies of batches\n";
  }
  for (const auto* of : {&plan.remarks, &plan.shared_lanes}) {
    for (const std::string& remark : *of) text += "remark: " + remark + "\n";
  }
  return text;
}

}  // namespace penstock::graph
