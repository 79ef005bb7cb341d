#include "graph/plan/graph_schedule.h"

#include <algorithm>
#include <utility>

#include "graph/plan/cap_width.h"
#include "graph/plan/reduce_graph.h"
#include "graph/plan/regions.h"

namespace penstock::graph {
namespace {

// For each event: whether a host step or a State uses it. The others only join lanes.
Table<EventId, bool> WatchedEvents(const Plan& plan) {
  Table<EventId, bool> watched(plan.events.size());
  const auto add = [&](const std::vector<EventId>& events) {
    for (const EventId e : events) watched[e] = true;
  };
  for (const HostStep& step : plan.host_steps) add(step.after_events);
  for (const StateUse& use : plan.states) add(use.done_events);
  return watched;
}

// A node that is submitted separately has the priority of its lane.
LaneId LaneFor(const Plan& plan, const Table<NodeId, bool>& refused) {
  Table<LaneId, bool> wanted(plan.lanes.size());
  for (const NodeId n : plan.nodes.ids()) {
    if (refused[n] && plan.nodes[n].lane >= 0) wanted[plan.nodes[n].lane] = true;
  }
  LaneId best;
  int32_t priority = 0;
  for (const LaneId l : plan.lanes.ids()) {
    if (!wanted[l] || (best >= 0 && plan.lanes[l].priority >= priority)) continue;
    best = l;
    priority = plan.lanes[l].priority;
  }
  return best < 0 && !plan.lanes.empty() ? LaneId(0) : best;
}

// Walks the plan's commands and keeps one graph open. Anything submitted separately closes it first.
class Scheduler {
 public:
  Scheduler(const Plan& plan, const Table<NodeId, bool>& refused, const RegionRules& regions, double least_us)
      : plan_(plan),
        refused_(refused),
        regions_(regions),
        least_us_(least_us),
        memory_(MemoryEdges(plan)),
        in_lanes_(LaneEdges(plan)),
        watched_(WatchedEvents(plan)),
        state_waited_(plan.states.size()),
        external_dep_waited_(plan.external_deps.size()) {
    made_.lane = LaneFor(plan, refused);
  }

  GraphSchedule Make() {
    for (const Segment& segment : plan_.segments) AddSegment(segment);
    made_.epilogue_begin = made_.short_epilogue_begin = next();
    for (const EventId e : plan_.done_events) Emit({Command::Op::kRecord, -1, e});
    made_.epilogue_end = next();
    return std::move(made_);
  }

 private:
  CommandId next() const { return made_.commands.next(); }

  void Emit(Command command) {
    command.lane = made_.lane;
    made_.commands.push_back(command);
  }

  void AddSegment(const Segment& segment) {
    const CommandId begin = next();
    left_us_ = 0;
    for (int32_t c = segment.begin; c < segment.end; ++c) left_us_ += CostOf(plan_.commands[c]);
    for (int32_t c = segment.begin; c < segment.end; ++c) AddCommand(plan_.commands[c]);
    CloseGraph();
    made_.segments.push_back({Segment::Kind::kGraph, begin, next(), segment.after_hosts});
  }

  void AddCommand(const Command& command) {
    left_us_ -= CostOf(command);
    switch (command.op) {
      case Command::Op::kNode: AddNode(command); break;
      case Command::Op::kRecord: AddRecord(command); break;
      case Command::Op::kStateWait: AddStateWait(command); break;
      case Command::Op::kWaitExternal:
        if (IsFirst(command, external_dep_waited_)) Emit(command);  // before the open graph
        break;
      case Command::Op::kStateWrite: EndsGraph(command) ? AddAlone(command) : Emit(command); break;
      case Command::Op::kStateDone:
        EndsGraph(command) && MuchIsLeft() ? AddAlone(command) : AddAfterGraph(command);
        break;
      case Command::Op::kWait:  // there is only one lane
      case Command::Op::kGraph: break;  // not in a plan
    }
  }

  void AddNode(const Command& command) {
    if (IsRefused(command)) return AddAlone(command);
    open_.push_back(command.arg);
    open_us_ += CostOf(command);
  }
  double CostOf(const Command& command) const {
    double cost = 0;
    if (command.op == Command::Op::kNode) ForEachNode(command, [&](NodeId n) { cost += plan_.nodes[n].cost; });
    return cost;
  }

  bool IsRefused(const Command& command) const {
    bool refused = false;
    ForEachNode(command, [&](NodeId n) { refused = refused || refused_[n]; });
    return refused;
  }

  // After the graph that has the node; immediately if the node is submitted separately.
  void AddRecord(const Command& command) {
    if (watched_[command.arg]) AddAfterGraph(command);
  }

  void AddAfterGraph(const Command& command) {
    if (open_.empty()) return Emit(command);
    pending_.push_back(command);
  }

  // Several lanes of a plan wait for the same thing. One lane need not: the first wait precedes all that
  // touch the memory.
  static bool IsFirst(const Command& command, std::vector<bool>& waited) {
    const auto at = static_cast<size_t>(command.arg);
    if (waited[at]) return false;
    return waited[at] = true;
  }

  // Whether the open graph ends at this use of a State.
  bool EndsGraph(const Command& command) const { return plan_.states[command.arg].written && open_us_ >= least_us_; }

  // Whether what comes after is so much that later runs gain more by having the State sooner than this one loses: all
  // of it waits for all of the open graph, and on another device it may wait for nothing there.
  bool MuchIsLeft() const { return left_us_ >= std::max(least_us_, open_us_ / kOpenPerLeft); }

  void AddStateWait(const Command& command) {
    if (!IsFirst(command, state_waited_)) return;
    EndsGraph(command) ? AddAlone(command) : Emit(command);  // after the open graph, or before it
  }

  void AddAlone(const Command& command) {
    CloseGraph();
    Emit(command);
  }

  void CloseGraph() {
    if (open_.empty()) return;
    Emit({Command::Op::kGraph, -1, made_.graphs.next()});
    for (const Command& after : pending_) Emit(after);
    pending_.clear();
    open_us_ = 0;
    GraphPart part = PartOf(std::exchange(open_, {}));
    if (!regions_.group.empty()) {
      part.preds = TransitiveReduction(
          CapWidth(std::move(part.preds), MayBeResident(part), regions_.most_at_once, Width::kStrict));
    }
    const int32_t width = part.preds.rows() < kManyNodes ? kMostWidth : kMostWidthOfMany;
    for (const DeviceId device : DevicesOf(part)) {
      if (part.preds.rows() <= width) break;
      part.preds = CapWidth(std::move(part.preds), CountsForWidth(part, device), width);
    }
    made_.graphs.push_back(std::move(part));
  }

  std::vector<DeviceId> DevicesOf(const GraphPart& part) const {
    std::vector<DeviceId> devices;
    for (const GraphPart::Entry& entry : part.entries) devices.push_back(plan_.nodes[entry.node].device);
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return devices;
  }

  GraphPart PartOf(const std::vector<NodeId>& nodes) {
    CsrRows preds = EdgesOfGraph(plan_, memory_, in_lanes_, nodes);
    if (!regions_.group.empty()) return PartWithRegions(nodes, preds);
    GraphPart part;
    part.preds = std::move(preds);
    for (const NodeId n : nodes) part.entries.push_back({n, RegionId()});
    return part;
  }

  GraphPart PartWithRegions(const std::vector<NodeId>& nodes, const CsrRows& preds) {
    std::vector<int32_t> group;
    for (const NodeId n : nodes) group.push_back(regions_.group[n]);
    Contraction made = FindRegions(preds, group, regions_.least, regions_.most);
    const auto first = static_cast<int32_t>(made_.regions.size());
    for (const std::vector<int32_t>& region : made.regions) made_.regions.push_back(RegionOf(nodes, preds, region));
    GraphPart part;
    part.preds = std::move(made.preds);
    for (const Contraction::Entry& entry : made.entries) {
      const RegionId region = entry.region < 0 ? RegionId() : RegionId(first + entry.region);
      part.entries.push_back({nodes[static_cast<size_t>(entry.node)], region});
    }
    return part;
  }

  // `members`: positions in `nodes`.
  static GraphRegion RegionOf(const std::vector<NodeId>& nodes, const CsrRows& preds,
                              const std::vector<int32_t>& members) {
    GraphRegion region;
    for (const int32_t m : members) {
      region.nodes.push_back(nodes[static_cast<size_t>(m)]);
      for (const int32_t p : preds[m]) {
        const auto at = std::lower_bound(members.begin(), members.end(), p);
        if (at != members.end() && *at == p) region.preds.Add(static_cast<int32_t>(at - members.begin()));
      }
      region.preds.Close();
    }
    return region;
  }

  // For each entry of a graph: whether it is a region, or a construct, in which there may be some, one at a time.
  std::vector<bool> MayBeResident(const GraphPart& part) const {
    std::vector<bool> may;
    for (const GraphPart::Entry& entry : part.entries) {
      may.push_back(entry.region >= 0 || plan_.nodes[entry.node].kind == PlanKind::kConditional);
    }
    return may;
  }

  // For each entry of a graph: whether it is one that fits this device only so many times. Copies between the host and
  // a device have engines of their own, nodes that call the host wait for it, and lanes order Launch nodes.
  std::vector<bool> CountsForWidth(const GraphPart& part, DeviceId device) const {
    std::vector<bool> counts;
    for (const GraphPart::Entry& entry : part.entries) {
      const PlanKind kind = plan_.nodes[entry.node].kind;
      const bool is_kernel = kind == PlanKind::kFill || kind == PlanKind::kParallelFor || kind == PlanKind::kKernel ||
                             kind == PlanKind::kDeviceCopy;
      counts.push_back(is_kernel && plan_.nodes[entry.node].device == device);
    }
    return counts;
  }

  const Plan& plan_;
  const Table<NodeId, bool>& refused_;
  const RegionRules& regions_;
  const double least_us_;
  const CsrRows memory_, in_lanes_;
  const Table<EventId, bool> watched_;
  std::vector<bool> state_waited_,
      external_dep_waited_;  // for Plan::states and Plan::external_deps: whether there is a wait already
  std::vector<NodeId> open_;  // nodes of the open graph
  double open_us_ = 0;  // the sum of their costs
  double left_us_ = 0;  // of the nodes that come after in the segment
  std::vector<Command> pending_;  // records, and ends of States, to come after it
  GraphSchedule made_;
};

}  // namespace

GraphSchedule MakeGraphSchedule(const Plan& plan, const Table<NodeId, bool>& refused, const RegionRules& regions,
                                double least_us) {
  return Scheduler(plan, refused, regions, least_us).Make();
}

}  // namespace penstock::graph
