#include "graph/simulate/plan_sim_graph.h"

#include <algorithm>
#include <utility>

namespace penstock::graph {
namespace {

template <class F>
void ForEachUsedInstance(const PlanNode& node, F&& f) {
  for (const Use& use : node.uses) f(use.instance);
  if (node.src >= 0) f(node.src);
  if (node.dst >= 0) f(node.dst);
}

SimResource ResourceOf(PlanKind kind) {
  switch (kind) {
    case PlanKind::kUpload: return SimResource::kUpload;
    case PlanKind::kDownload: return SimResource::kDownload;
    case PlanKind::kPeerCopy: return SimResource::kPeer;
    case PlanKind::kHostcall:
    case PlanKind::kGate: return SimResource::kNothing;
    case PlanKind::kDeviceCopy:
    case PlanKind::kFill:
    case PlanKind::kParallelFor:
    case PlanKind::kKernel:
    case PlanKind::kLaunch:
    case PlanKind::kConditional: return SimResource::kKernel;
    case PlanKind::kStageIn:
    case PlanKind::kStageOut:
    case PlanKind::kHostCopy:
    case PlanKind::kHost:
    case PlanKind::kControl: break;
  }
  return SimResource::kWorker;
}

class PlanReader {
 public:
  PlanReader(const Plan& plan, const PlanCosts& costs) : plan_(plan), costs_(costs) {}

  SimGraph Read() {
    for (const NodeId n : plan_.nodes.ids()) AddNode(n);
    CountCrossings();
    AddMemory();
    AddStates();
    return std::move(graph_);
  }

  SimGraph Read(const GraphSchedule& schedule) {
    for (const NodeId n : plan_.nodes.ids()) AddNode(n);
    AddMemory();
    AddGraphs(schedule);
    return std::move(graph_);
  }

 private:
  void AddNode(NodeId n) {
    const PlanNode& from = plan_.nodes[n];
    SimNode& to = graph_.nodes.emplace_back();
    to.on_host = IsHostKind(from.kind);
    to.resource = IsLeftOut(from) ? SimResource::kNothing : ResourceOf(from.kind);
    to.device = to.on_host ? -1 : static_cast<int32_t>(from.device);
    to.lane = from.lane;
    if (from.kind == PlanKind::kPeerCopy) to.from = plan_.instances[from.src].device;
    for (const NodeId p : from.preds) to.after.push_back(p);
    if (!IsLeftOut(from)) SetCost(n, from, to);
    const auto devices = static_cast<size_t>(std::max(to.device, to.from) + int64_t{1});
    if (graph_.devices.size() < devices) graph_.devices.resize(devices);
  }

  // The plan waits only for what other waits do not imply.
  void CountCrossings() {
    Table<LaneId, int32_t> waits(plan_.lanes.size());
    for (const Segment& segment : plan_.segments) {
      for (int32_t c = segment.begin; c < segment.end; ++c) {
        const Command& command = plan_.commands[CommandId(c)];
        if (command.op == Command::Op::kWait) {
          waits[command.lane] += plan_.events[EventId(command.arg)].device != plan_.lanes[command.lane].device;
        }
        bool is_first = true;
        ForEachNode(command, [&](NodeId n) {
          const int32_t before = std::exchange(waits[command.lane], 0);
          graph_.nodes[static_cast<size_t>(int32_t{n})].crossings = std::exchange(is_first, false) ? before : 0;
        });
      }
    }
  }

  // Whether the node has nothing to do, since bound memory is pinned, or is not.
  bool IsLeftOut(const PlanNode& node) const {
    if (node.when != When::kAlways) return (node.when == When::kIfPinned) != costs_.is_pinned;
    if (node.kind != PlanKind::kStageIn && node.kind != PlanKind::kStageOut) return false;
    return costs_.is_pinned && (plan_.instances[node.src].stages || plan_.instances[node.dst].stages);
  }

  void SetCost(NodeId n, const PlanNode& from, SimNode& to) const {
    to.us = from.cost;
    if (n < costs_.us.count() && costs_.us[n] >= 0) {
      to.us = costs_.us[n];
    } else if (const double gbs = Bandwidth(from.kind); gbs > 0 && from.decl < 0 && from.copy < 0) {
      to.us = costs_.copy_us;
      to.bytes = MostBytes(plan_, from);
      to.gbs = gbs;
    }
  }

  double Bandwidth(PlanKind kind) const {
    switch (kind) {
      case PlanKind::kUpload: return costs_.upload;
      case PlanKind::kDownload: return costs_.download;
      case PlanKind::kPeerCopy: return costs_.peer;
      case PlanKind::kStageIn:
      case PlanKind::kStageOut: return costs_.host_copy;
      default: return 0;
    }
  }

  void AddMemory() {
    Table<InstanceId, std::vector<int32_t>> users(plan_.instances.size());
    for (const NodeId n : plan_.nodes.ids()) {
      ForEachUsedInstance(plan_.nodes[n], [&](InstanceId i) {
        if (users[i].empty() || users[i].back() != n) users[i].push_back(n);
      });
    }
    for (const InstanceId i : plan_.instances.ids()) {
      const Instance& instance = plan_.instances[i];
      if (!InArena(instance.space) || users[i].empty()) continue;
      graph_.memory.push_back({instance.device, instance.bytes, std::move(users[i])});
    }
  }

  // What a plan only reads orders none of its runs.
  void AddStates() {
    for (const StateUse& state : plan_.states) {
      if (!state.written) continue;
      std::vector<int32_t>& touches = graph_.states.emplace_back();
      for (const NodeId n : plan_.nodes.ids()) {
        bool touched = false;
        ForEachUsedInstance(plan_.nodes[n], [&](InstanceId i) { touched = touched || i == state.instance; });
        if (touched) touches.push_back(n);
      }
    }
  }

  // A graph waits as a whole for the State that some of its nodes touch, and lets go of it as a whole.
  void AddGraphs(const GraphSchedule& schedule) {
    std::vector<std::vector<int32_t>> touches(plan_.states.size());
    std::vector<bool> is_used(plan_.states.size());
    int32_t number = 0;
    for (const Command& command : schedule.commands) {
      const auto use = static_cast<size_t>(command.arg);
      if (command.op == Command::Op::kStateWait) is_used[use] = true;
      if (command.op == Command::Op::kStateDone) is_used[use] = false;
      const std::vector<int32_t> nodes = NodesOf(command, schedule);
      if (nodes.empty()) continue;
      for (const int32_t n : nodes) graph_.nodes[static_cast<size_t>(n)].graph = number;
      ++number;
      for (size_t s = 0; s < touches.size(); ++s) {
        if (is_used[s]) touches[s].insert(touches[s].end(), nodes.begin(), nodes.end());
      }
    }
    for (const GraphPart& part : schedule.graphs) AddEdges(part);
    for (size_t s = 0; s < touches.size(); ++s) {
      if (plan_.states[s].written) graph_.states.push_back(std::move(touches[s]));
    }
  }

  // The first node of a region stands for all of them.
  std::vector<int32_t> NodesOf(const Command& command, const GraphSchedule& schedule) const {
    std::vector<int32_t> nodes;
    ForEachNode(command, [&](NodeId n) { nodes.push_back(n); });
    if (command.op != Command::Op::kGraph) return nodes;
    for (const GraphPart::Entry& entry : schedule.graphs[GraphId(command.arg)].entries) {
      nodes.push_back(entry.node);
      ForEachOtherOf(entry.node, [&](NodeId n) { nodes.push_back(n); });
    }
    return nodes;
  }

  // Calls `f` with the other nodes of a batch, which directly follow the first.
  template <class F>
  void ForEachOtherOf(NodeId first, F&& f) const {
    for (NodeId n = first + 1; n < plan_.nodes.count() && plan_.nodes[n].batch == first; ++n) f(n);
  }

  SimNode& NodeOf(const GraphPart& part, int32_t entry) {
    return graph_.nodes[static_cast<size_t>(int32_t{part.entries[static_cast<size_t>(entry)].node})];
  }

  void AddEdges(const GraphPart& part) {
    for (int32_t e = 0; e < part.preds.rows(); ++e) {
      SimNode& node = NodeOf(part, e);
      auto& after = node.after;
      node.crossings = 0;
      for (const int32_t p : part.preds[e]) {
        after.push_back(part.entries[static_cast<size_t>(p)].node);
        node.crossings += NodeOf(part, p).device != node.device ? 1 : 0;
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      ForEachOtherOf(part.entries[static_cast<size_t>(e)].node, [&](NodeId n) {
        SimNode& other = graph_.nodes[static_cast<size_t>(int32_t{n})];
        other.after = node.after;
        other.crossings = 0;
      });
    }
  }

  const Plan& plan_;
  const PlanCosts& costs_;
  SimGraph graph_;
};

}  // namespace

SimGraph MakeSimGraph(const Plan& plan, const PlanCosts& costs) { return PlanReader(plan, costs).Read(); }

SimGraph MakeSimGraph(const Plan& plan, const PlanCosts& costs, const GraphSchedule& graphs) {
  return PlanReader(plan, costs).Read(graphs);
}

}  // namespace penstock::graph
