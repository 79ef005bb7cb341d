// Lower: writes the plan: commands segment by segment (the waits of a step, the step, the record of its event if one is
// needed), host steps, and the epilogue, the commands that end a run.
//
// A run may end with only some of its segments submitted, and then waits between lanes are missing too. So the epilogue
// first joins every lane of a device; from `short_epilogue_begin` on it joins only lanes whose work the clocks do not
// already show to be covered, which is enough once everything has been submitted.
#include <algorithm>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

class Writer {
 public:
  explicit Writer(Draft& draft)
      : records_(draft.records),
        ordered_(draft.ordered),
        reduced_(draft.reduced),
        packed_(draft.packed),
        host_step_(ordered_.steps.size()),
        gates_(ByStep(packed_.states, [](const FirstLastUses& t) { return std::span(t.firsts); })),
        writes_(ByStep(packed_.states,
                       [](const FirstLastUses& t) { return std::span(&t.first_write, t.first_write >= 0); })),
        dones_(ByStep(packed_.states, [](const FirstLastUses& t) { return std::span(&t.lasts.back(), 1); })),
        external_deps_(ByStep(packed_.external_deps, [](const FirstLastUses& t) { return std::span(t.firsts); })) {}

  Plan Write() {
    plan_.graph = std::string(records_.model.name.view());
    plan_.instances = std::move(ordered_.instances);
    for (const InstanceId i : plan_.instances.ids()) plan_.instances[i].offset = packed_.offset[i];
    plan_.lanes = std::move(ordered_.lanes);
    plan_.parts = ordered_.parts;
    plan_.arenas = std::move(packed_.arenas);
    plan_.pieces_offset = packed_.pieces_offset;
    plan_.events = std::move(packed_.events);
    MakeStates();
    plan_.nodes.reserve(ordered_.steps.size());
    plan_.commands.reserve(2 * ordered_.steps.size() + reduced_.waits.items());
    for (const StepId v : ordered_.steps.ids()) {
      if (ordered_.steps[v].on_host()) {
        AddHostStep(v);
      } else {
        AddCommands(v);
      }
      AddNode(v);
    }
    Finish();
    return std::move(plan_);
  }

 private:
  // For each step: the entries that have it among their `steps`. Without entries there are no rows.
  template <class Steps>
  CsrRows ByStep(const std::vector<FirstLastUses>& entries, Steps steps) const {
    if (entries.empty()) return {};
    std::vector<Edge> list;
    int32_t entry = 0;
    for (const FirstLastUses& uses : entries) {
      for (const StepId v : steps(uses)) list.push_back({entry, v});
      ++entry;
    }
    return MakeEdges(ordered_.steps.count(), list);
  }

  void MakeStates() {
    for (const FirstLastUses& touches : packed_.states) {
      StateUse use{plan_.instances[touches.instance].buffer, touches.instance, touches.first_write >= 0, {}};
      for (const StepId v : touches.lasts) use.done_events.push_back(packed_.event[v]);
      plan_.states.push_back(std::move(use));
    }
    for (const FirstLastUses& touches : packed_.external_deps) {
      plan_.external_deps.push_back({plan_.instances[touches.instance].buffer, touches.instance});
    }
  }

  EventId NewEvent(LaneId lane) {
    plan_.events.push_back({plan_.lanes[lane].device});
    return plan_.events.next() - 1;
  }

  void Emit(Command::Op op, LaneId lane, int32_t arg) { plan_.commands.push_back({op, lane, arg}); }

  void EmitAll(Command::Op op, LaneId lane, const CsrRows& entries, StepId v) {
    if (entries.rows() == 0) return;
    for (const int32_t e : entries[v]) Emit(op, lane, e);
  }

  void AddCommands(StepId v) {
    const SegmentId segment = ordered_.segment[v];
    const LaneId lane = ordered_.lane[v];
    if (segment == plan_.segments.next()) {
      const CommandId begin = plan_.commands.next();
      plan_.segments.push_back({Segment::Kind::kStream, begin, begin, HostSteps(reduced_.segment_hosts[segment])});
    }
    EmitAll(Command::Op::kStateWait, lane, gates_, v);
    EmitAll(Command::Op::kWaitExternal, lane, external_deps_, v);
    for (const StepId p : reduced_.waits[v]) Emit(Command::Op::kWait, lane, packed_.event[p]);
    if (v != ordered_.LastOfBatch(v)) return;  // the last one has the waits of all
    EmitAll(Command::Op::kStateWrite, lane, writes_, v);
    const StepId first = ordered_.FirstOfBatch(v);
    plan_.commands.push_back({Command::Op::kNode, lane, first, v - first + 1});
    if (const EventId event = packed_.event[v]; event >= 0) Emit(Command::Op::kRecord, lane, event);
    EmitAll(Command::Op::kStateDone, lane, dones_, v);
    plan_.segments.back().end = plan_.commands.next();
  }

  std::vector<HostStepId> HostSteps(std::span<const int32_t> steps) const {
    std::vector<HostStepId> found;
    found.reserve(steps.size());
    for (const StepId s : steps) found.push_back(host_step_[s]);
    return found;
  }

  void AddHostStep(StepId v) {
    host_step_[v] = plan_.host_steps.next();
    HostStep step;
    step.node = NodeId(v);
    step.joins = ordered_.steps[v].batch >= 0 && ordered_.steps[v].batch != v;
    step.after_hosts = HostSteps(reduced_.host_waits[v]);
    for (const StepId p : reduced_.waits[v]) {
      step.after_segment = std::max<int32_t>(step.after_segment, ordered_.segment[p]);
      step.after_events.push_back(packed_.event[p]);
    }
    plan_.host_steps.push_back(std::move(step));
  }

  void AddNode(StepId v) {
    const Step& step = ordered_.steps[v];
    PlanNode& node = plan_.nodes.emplace_back();
    node.kind = step.kind;
    if (step.decl >= 0) {
      node.name = records_.node_names[step.decl];
    } else {
      node.name = NameOf(step);
    }
    node.decl = step.decl;
    node.device = step.device;
    node.lane = ordered_.lane[v];
    node.segment = step.on_host() ? int32_t{host_step_[v]} : int32_t{ordered_.segment[v]};
    node.priority = step.priority;
    node.cost = ordered_.cost[v];
    node.src = step.src;
    node.dst = step.dst;
    node.copy = step.copy;
    node.part = step.part;
    node.batch = NodeId(step.batch);
    node.when = step.when;
    const std::span<const Use> uses = ordered_.UsesOf(step);
    node.uses.assign(uses.begin(), uses.end());
    const std::span<const int32_t> preds = reduced_.preds[v];
    node.preds.assign(preds.begin(), preds.end());
  }

  std::string NameOf(const Step& step) const {
    const char* what = step.kind == PlanKind::kUpload     ? "upload "
                       : step.kind == PlanKind::kDownload ? "download "
                       : step.kind == PlanKind::kPeerCopy ? "peer copy "
                       : step.kind == PlanKind::kStageIn  ? "stage "
                                                          : "unstage ";
    if (step.copy >= 0) return what + std::string(records_.node_names[step.copy]);
    const BufferId buffer = plan_.instances[step.src].buffer;
    std::string name = what + std::string(records_.buffer_name(buffer).view());
    if (step.part < 0) return name;
    return name + " " + SliceText(records_.model.buffers[buffer], ordered_.parts[step.part]);
  }

  struct Join {
    LaneId lane;  // where the done event is recorded
    std::vector<LaneId> covered,
        open;  // other lanes of the device: those that some lane's last step comes after, and the rest
  };

  // For each device in use: the lane whose last step comes after the most others' last steps.
  std::vector<Join> Joins() const {
    Table<LaneId, StepId> tail(plan_.lanes.size());
    for (const StepId v : ordered_.steps.ids()) {
      if (ordered_.lane[v] >= 0) tail[ordered_.lane[v]] = v;
    }
    Table<DeviceId, std::vector<LaneId>> lanes_of(records_.options.devices.size());
    for (const LaneId l : plan_.lanes.ids()) lanes_of[plan_.lanes[l].device].push_back(l);
    std::vector<Join> joins;
    for (const std::vector<LaneId>& lanes : lanes_of) {
      if (!lanes.empty()) joins.push_back(BestJoin(lanes, tail));
    }
    return joins;
  }

  Join BestJoin(const std::vector<LaneId>& lanes, const Table<LaneId, StepId>& tail) const {
    const auto covers = [&](LaneId candidate, LaneId lane) {
      return Before(ordered_, reduced_, tail[lane], tail[candidate]);
    };
    Join best{lanes.front(), {}, {}};
    std::ptrdiff_t most = -1;
    for (const LaneId candidate : lanes) {
      const auto covered = std::count_if(lanes.begin(), lanes.end(), [&](LaneId l) { return covers(candidate, l); });
      if (covered > most) best.lane = candidate;
      most = std::max(most, covered);
    }
    for (const LaneId lane : lanes) {
      if (lane == best.lane) continue;
      const bool covered = std::any_of(lanes.begin(), lanes.end(), [&](LaneId l) { return covers(l, lane); });
      (covered ? best.covered : best.open).push_back(lane);
    }
    return best;
  }

  void Finish() {
    const std::vector<Join> joins = Joins();
    plan_.epilogue_begin = plan_.commands.next();
    for (const Join& join : joins) JoinLanes(join.covered, join.lane);
    plan_.short_epilogue_begin = plan_.commands.next();
    for (const Join& join : joins) {
      JoinLanes(join.open, join.lane);
      const EventId done = NewEvent(join.lane);
      Emit(Command::Op::kRecord, join.lane, done);
      plan_.done_events.push_back(done);
    }
    plan_.epilogue_end = plan_.commands.next();
  }

  void JoinLanes(const std::vector<LaneId>& lanes, LaneId into) {
    if (lanes.empty()) return;
    const EventId event = NewEvent(into);  // each record is waited for immediately
    for (const LaneId lane : lanes) {
      Emit(Command::Op::kRecord, lane, event);
      Emit(Command::Op::kWait, into, event);
    }
  }

  const Records& records_;
  Ordered& ordered_;
  const Reduced& reduced_;
  Packed& packed_;
  Plan plan_;
  Table<StepId, HostStepId> host_step_;  // of each host step
  const CsrRows gates_, writes_, dones_;  // for each step: Plan::states it is a first touch, first write, last touch of
  const CsrRows external_deps_;  // for each step: the Plan::external_deps of which it is a first touch
};

}  // namespace

Plan Lower(Draft& draft) {
  Plan plan = Writer(draft).Write();
  plan.structure_hash = draft.checked.structure_hash;
  plan.remarks = std::move(draft.findings.remarks);
  plan.shared_lanes = std::move(draft.findings.shared_lanes);
  return plan;
}

}  // namespace penstock::graph
