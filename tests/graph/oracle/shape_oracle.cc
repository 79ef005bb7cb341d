#include "tests/graph/oracle/shape_oracle.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tests/graph/oracle/atoms.h"
#include "tests/graph/oracle/execution.h"
#include "tests/graph/oracle/plan_uses.h"

namespace penstock::graph {
namespace {

std::string CheckCommand(const Plan& plan, const Command& command, int32_t segment) {
  const Lane& lane = plan.lanes[command.lane];
  if (command.op == Command::Op::kRecord) {
    return plan.events[command.arg].device != lane.device ? "an event of another device" : "";
  }
  if (command.op != Command::Op::kNode) return "";
  const PlanNode& node = plan.nodes[command.arg];
  if (node.lane != command.lane || node.segment != segment) return "a node on another lane";
  return lane.device != node.device ? "a lane of another device" : "";
}

std::string CheckSegments(const Plan& plan) {
  int32_t at = 0;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    if (segment.begin != at || segment.end <= segment.begin) return "segments do not stand side by side";
    at = segment.end;
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      std::string wrong = CheckCommand(plan, plan.commands[c], static_cast<int32_t>(s));
      if (!wrong.empty()) return wrong;
    }
  }
  return at != plan.epilogue_begin ? "finish commands do not follow the segments" : "";
}

std::string CheckHostSteps(const Plan& plan) {
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    const PlanNode& node = plan.nodes[plan.host_steps[h].node];
    if (node.lane >= 0 || node.device >= 0 || !IsHostKind(node.kind) || node.segment != static_cast<int32_t>(h)) {
      return "a host step that is none";
    }
  }
  return "";
}

// Small copies of one kind, on one lane, none of which waits for another; as many as make a batch worth it. The host's
// stand side by side among the host steps.
std::string CheckBatches(const PlanOptions& options, const Plan& plan) {
  std::vector<int32_t> batch(plan.nodes.size(), -1);
  int64_t pieces = 0;
  const auto add = [&](int32_t first, int32_t count, int32_t least) -> std::string {
    const PlanNode& one = plan.nodes[first];
    if (count < least) return "a batch of " + std::to_string(count);
    for (int32_t n = first; n < first + count; ++n) {
      const PlanNode& node = plan.nodes[n];
      if (node.kind != one.kind || node.lane != one.lane) return "a batch of different nodes";
      if (node.src < 0) return "a batch of what copies nothing";
      for (const int32_t i : {node.src, node.dst}) {
        const Instance& end = plan.instances[i];
        if (end.space == Space::kState) return "a State's copy in a batch";
        if (end.space == Space::kBound && end.device >= 0) return "a copy of bound device memory in a batch";
      }
      for (const int32_t p : node.preds) {
        if (p >= first) return "a batch of nodes that wait for each other";
      }
      batch[n] = first;
    }
    return "";
  };
  for (const Command& c : plan.commands) {
    if (c.count < 2) continue;
    pieces += c.count;
    if (std::string wrong = add(c.arg, c.count, options.batch_from); !wrong.empty()) return wrong;
  }
  for (size_t h = 0; h < plan.host_steps.size(); ++h) {
    size_t end = h + 1;
    while (end < plan.host_steps.size() && plan.host_steps[end].joins) ++end;
    if (end - h > 1) {
      const int32_t first = plan.host_steps[h].node;
      if (plan.host_steps[end - 1].node - first + 1 != static_cast<int32_t>(end - h)) return "a task with gaps";
      if (std::string wrong = add(first, static_cast<int32_t>(end - h), 2); !wrong.empty()) return wrong;
    }
    h = end - 1;
  }
  for (size_t n = 0; n < batch.size(); ++n) {
    if (plan.nodes[n].batch != batch[n]) return "a node that says something else of its batch than the commands";
  }
  const bool fits = pieces == 0 ? plan.pieces_offset < 0
                                : plan.pieces_offset % kPieceBytes == 0 && plan.arenas[0].device < 0 &&
                                      plan.pieces_offset + pieces * kPieceBytes == plan.arenas[0].bytes;
  return fits ? "" : "no room, or too much, to list the copies of batches";
}

std::string CheckEachRunsOnce(const Model& model, const Plan& plan) {
  std::vector<int> times(plan.nodes.size());
  for (int32_t c = 0; c < plan.epilogue_begin; ++c) {
    ForEachNode(plan.commands[c], [&](size_t n) { ++times[n]; });
  }
  for (const HostStep& step : plan.host_steps) ++times[step.node];
  for (const int t : times) {
    if (t != 1) return "a node runs " + std::to_string(t) + " times";
  }
  std::set<int32_t> declared;
  for (const PlanNode& node : plan.nodes) {
    if (node.decl >= 0 && !declared.insert(node.decl).second) return "a declared node stands there twice";
  }
  // Whether what is missing is missed shows in what others read, and at the end.
  for (int32_t n = 0; n < static_cast<int32_t>(model.nodes.size()); ++n) {
    const NodeDecl& node = model.nodes[n];
    if (declared.count(n) == 0 && node.kind != NodeKind::kCopy) return "a declared node is missing";
  }
  return "";
}

// Copies reach both their ends; everything else only the memory of its own device, or of the host, as does what a
// device asks for.
std::string CheckReach(const Plan& plan) {
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanNode& node = plan.nodes[n];
    for (const int32_t p : node.preds) {
      if (p < 0 || p >= static_cast<int32_t>(n)) return "nodes are not in topological order";
    }
    if (node.src >= 0) continue;
    for (const Use& use : UsesOf(node)) {
      const Instance& instance = plan.instances[use.instance];
      const bool on_device = instance.space == Space::kDevice || instance.space == Space::kState ||
                             (instance.space == Space::kBound && instance.device >= 0);
      const bool wants_device = node.device >= 0 && node.kind != PlanKind::kHostcall;
      if (on_device != wants_device || (on_device && instance.device != node.device)) {
        return "node " + Label(plan, static_cast<int32_t>(n)) + " cannot reach its data";
      }
    }
  }
  return "";
}

std::string CheckInstances(const Model& model, const Plan& plan) {
  for (const Instance& i : plan.instances) {
    if (i.bytes != MaxSpan(model, i.buffer)) return "an instance has another size than its buffer";
    if (!InArena(i.space)) continue;
    const bool inside = std::any_of(plan.arenas.begin(), plan.arenas.end(), [&](const Arena& arena) {
      const int64_t end = arena.device < 0 && plan.pieces_offset >= 0 ? plan.pieces_offset : arena.bytes;
      return arena.device == i.device && i.offset >= 0 && i.offset % 256 == 0 && i.offset + i.bytes <= end;
    });
    if (!inside) return "an instance lies outside its arena";
  }
  return "";
}

}  // namespace

std::string CheckShape(const Model& model, const PlanOptions& options, const Plan& plan) {
  std::string wrong = CheckSegments(plan);
  if (wrong.empty()) wrong = CheckHostSteps(plan);
  if (wrong.empty()) wrong = CheckEachRunsOnce(model, plan);
  if (wrong.empty()) wrong = CheckBatches(options, plan);
  if (wrong.empty()) wrong = CheckReach(plan);
  if (wrong.empty()) wrong = CheckInstances(model, plan);
  return wrong;
}

std::string CheckPlaces(const Model& model, const PlanOptions& options, const Plan& plan) {
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanNode& node = plan.nodes[n];
    if (node.decl < 0) continue;
    const NodeDecl& decl = model.nodes[node.decl];
    DeviceId device = options.default_device;
    if (!options.placement.empty() && options.placement[node.decl] >= 0) device = options.placement[node.decl];
    if (decl.device >= 0) device = decl.device;
    if (decl.kind == NodeKind::kHost) {
      device = -1;
      if (node.kind == PlanKind::kHostcall) {
        const bool may = decl.host_way != HostWay::kWorker && node.device >= 0;
        if (!may || !options.devices[node.device].no_hostcalls.empty()) {
          return "node " + Label(plan, static_cast<int32_t>(n)) + " is asked for where it must not be";
        }
        device = node.device;
      }
    }
    if (decl.kind == NodeKind::kCopy) {
      const Instance &src = plan.instances[node.src], &dst = plan.instances[node.dst];
      const BufferDecl& target = model.buffers[dst.buffer];
      const bool bound = IsBound(target.role) && target.where != kDevice;
      if (dst.device < 0 || bound) device = IsStage(node) ? DeviceId() : src.device;
      if (dst.device >= 0 && dst.device != device) {
        return "node " + Label(plan, static_cast<int32_t>(n)) + " copies to another device than its own";
      }
    }
    if (node.device != device) return "node " + Label(plan, static_cast<int32_t>(n)) + " is on another device";
  }
  return "";
}

std::string CheckLanes(const PlanOptions& options, const Plan& plan) {
  std::vector<int32_t> compute(options.devices.size()), peer(options.devices.size());
  for (const Lane& lane : plan.lanes) {
    if ((lane.kind == LaneKind::kCompute && ++compute[lane.device] > options.max_lanes) ||
        (lane.kind == LaneKind::kPeer && ++peer[lane.device] > options.max_lanes)) {
      return "more lanes than allowed on device " + std::to_string(lane.device);
    }
  }
  return "";
}

namespace {

std::string CheckFinishFrom(const Plan& plan, int32_t cut, int32_t begin) {
  const Execution run(plan, cut, begin);
  if (!run.problem().empty()) return run.problem();
  for (int32_t n = 0; n < static_cast<int32_t>(plan.nodes.size()); ++n) {
    const PlanNode& node = plan.nodes[n];
    const bool done =
        node.lane < 0 || std::any_of(
                             plan.done_events.begin(), plan.done_events.end(),
                             [&](int32_t e) { return plan.events[e].device == node.device && run.BeforeEvent(n, e); });
    if (!done) return "after " + std::to_string(cut) + " commands the done event does not wait for " + Label(plan, n);
  }
  return "";
}

}  // namespace

std::string CheckShortFinish(const Plan& plan) {
  return CheckFinishFrom(plan, plan.epilogue_begin, plan.short_epilogue_begin);
}

std::string CheckFinish(const Plan& plan) {
  std::string wrong = CheckShortFinish(plan);
  for (int32_t cut = 0; cut <= plan.epilogue_begin && wrong.empty(); ++cut) {
    wrong = CheckFinishFrom(plan, cut, plan.epilogue_begin);
  }
  return wrong;
}

}  // namespace penstock::graph
