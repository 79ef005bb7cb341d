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
      : d_(draft),
        host_step_(draft.steps.size(), -1),
        gates_(ByStep(draft.states, [](const FirstLastUses& t) { return std::span<const int32_t>(t.firsts); })),
        writes_(
            ByStep(draft.states, [](const FirstLastUses& t) { return std::span(&t.first_write, t.first_write >= 0); })),
        dones_(ByStep(draft.states, [](const FirstLastUses& t) { return std::span(&t.lasts.back(), 1); })),
        external_deps_(
            ByStep(draft.external_deps, [](const FirstLastUses& t) { return std::span<const int32_t>(t.firsts); })) {}

  Plan Write() {
    plan_.graph = std::string(d_.model.name.view());
    plan_.structure_hash = d_.structure_hash;
    plan_.instances = std::move(d_.instances);
    plan_.lanes = std::move(d_.lanes);
    plan_.arenas = std::move(d_.arenas);
    plan_.pieces_offset = d_.pieces_offset;
    plan_.events = std::move(d_.events);
    MakeStates();
    plan_.nodes.reserve(d_.steps.size());
    plan_.commands.reserve(2 * d_.steps.size() + d_.waits.items());
    for (int32_t v = 0; v < d_.step_count(); ++v) {
      if (d_.steps[v].on_host()) {
        AddHostStep(v);
      } else {
        AddCommands(v);
      }
      AddNode(v);
    }
    Finish();
    plan_.notes = std::move(d_.notes);
    return std::move(plan_);
  }

 private:
  // For each step: the entries that have it among their `steps`. Without entries there are no rows.
  template <class Steps>
  CsrRows ByStep(const std::vector<FirstLastUses>& entries, Steps steps) const {
    if (entries.empty()) return {};
    std::vector<Edge> list;
    for (size_t e = 0; e < entries.size(); ++e) {
      for (const int32_t v : steps(entries[e])) list.push_back({static_cast<int32_t>(e), v});
    }
    return MakeEdges(d_.step_count(), list);
  }

  void MakeStates() {
    for (const FirstLastUses& touches : d_.states) {
      StateUse use{plan_.instances[touches.instance].buffer, touches.instance, touches.first_write >= 0, {}};
      for (const int32_t v : touches.lasts) use.done_events.push_back(d_.event[v]);
      plan_.states.push_back(std::move(use));
    }
    for (const FirstLastUses& touches : d_.external_deps) {
      plan_.external_deps.push_back({plan_.instances[touches.instance].buffer, touches.instance});
    }
  }

  int32_t NewEvent(int32_t lane) {
    plan_.events.push_back({plan_.lanes[lane].device});
    return static_cast<int32_t>(plan_.events.size()) - 1;
  }

  void Emit(Command::Op op, int32_t lane, int32_t arg) { plan_.commands.push_back({op, lane, arg}); }

  void EmitAll(Command::Op op, int32_t lane, const CsrRows& entries, int32_t v) {
    if (entries.rows() == 0) return;
    for (const int32_t e : entries[v]) Emit(op, lane, e);
  }

  void AddCommands(int32_t v) {
    const int32_t segment = d_.segment[v], lane = d_.lane[v];
    if (segment == static_cast<int32_t>(plan_.segments.size())) {
      const auto begin = static_cast<int32_t>(plan_.commands.size());
      plan_.segments.push_back({Segment::Kind::kStream, begin, begin, HostSteps(d_.segment_hosts[segment])});
    }
    EmitAll(Command::Op::kStateWait, lane, gates_, v);
    EmitAll(Command::Op::kWaitExternal, lane, external_deps_, v);
    for (const int32_t p : d_.waits[v]) Emit(Command::Op::kWait, lane, d_.event[p]);
    if (v != d_.LastOfBatch(v)) return;  // the last one has the waits of all
    EmitAll(Command::Op::kStateWrite, lane, writes_, v);
    const int32_t first = d_.FirstOfBatch(v);
    plan_.commands.push_back({Command::Op::kNode, lane, first, v - first + 1});
    if (const int32_t event = d_.event[v]; event >= 0) Emit(Command::Op::kRecord, lane, event);
    EmitAll(Command::Op::kStateDone, lane, dones_, v);
    plan_.segments.back().end = static_cast<int32_t>(plan_.commands.size());
  }

  std::vector<HostStepId> HostSteps(std::span<const int32_t> steps) const {
    std::vector<HostStepId> found;
    found.reserve(steps.size());
    for (const int32_t s : steps) found.push_back(host_step_[s]);
    return found;
  }

  void AddHostStep(int32_t v) {
    host_step_[v] = static_cast<int32_t>(plan_.host_steps.size());
    HostStep step;
    step.node = v;
    step.joins = d_.steps[v].batch >= 0 && d_.steps[v].batch != v;
    step.after_hosts = HostSteps(d_.host_waits[v]);
    for (const int32_t p : d_.waits[v]) {
      step.after_segment = std::max<int32_t>(step.after_segment, d_.segment[p]);
      step.after_events.push_back(d_.event[p]);
    }
    plan_.host_steps.push_back(std::move(step));
  }

  void AddNode(int32_t v) {
    const Step& step = d_.steps[v];
    PlanNode& node = plan_.nodes.emplace_back();
    node.kind = step.kind;
    if (step.decl >= 0) {
      node.name = d_.node_names[step.decl];
    } else {
      node.name = NameOf(step);
    }
    node.decl = step.decl;
    node.device = step.device;
    node.lane = d_.lane[v];
    node.segment = step.on_host() ? host_step_[v] : d_.segment[v];
    node.priority = step.priority;
    node.src = step.src;
    node.dst = step.dst;
    node.copy = step.copy;
    node.batch = step.batch;
    node.when = step.when;
    node.uses.assign(d_.uses.begin() + step.first_use, d_.uses.begin() + step.first_use + step.uses);
    const std::span<const int32_t> preds = d_.preds[v];
    node.preds.assign(preds.begin(), preds.end());
  }

  std::string NameOf(const Step& step) const {
    const char* what = step.kind == PlanKind::kUpload     ? "upload "
                       : step.kind == PlanKind::kDownload ? "download "
                       : step.kind == PlanKind::kPeerCopy ? "peer copy "
                       : step.kind == PlanKind::kStageIn  ? "stage "
                                                          : "unstage ";
    if (step.copy >= 0) return what + std::string(d_.node_names[step.copy]);
    return what + std::string(d_.buffer_name(step.buffer).view());
  }

  struct Join {
    int32_t lane;  // where the done event is recorded
    std::vector<int32_t> covered,
        open;  // other lanes of the device: those that some lane's last step comes after, and the rest
  };

  // For each device in use: the lane whose last step comes after the most others' last steps.
  std::vector<Join> Joins() const {
    std::vector<int32_t> tail(plan_.lanes.size(), -1);
    for (int32_t v = 0; v < d_.step_count(); ++v) {
      if (d_.lane[v] >= 0) tail[d_.lane[v]] = v;
    }
    std::vector<std::vector<int32_t>> lanes_of(d_.options.devices.size());
    for (size_t l = 0; l < plan_.lanes.size(); ++l) {
      lanes_of[plan_.lanes[l].device].push_back(static_cast<int32_t>(l));
    }
    std::vector<Join> joins;
    for (const std::vector<int32_t>& lanes : lanes_of) {
      if (!lanes.empty()) joins.push_back(BestJoin(lanes, tail));
    }
    return joins;
  }

  Join BestJoin(const std::vector<int32_t>& lanes, const std::vector<int32_t>& tail) const {
    const auto covers = [&](int32_t candidate, int32_t lane) { return d_.Before(tail[lane], tail[candidate]); };
    Join best{lanes.front(), {}, {}};
    std::ptrdiff_t most = -1;
    for (const int32_t candidate : lanes) {
      const auto covered = std::count_if(lanes.begin(), lanes.end(), [&](int32_t l) { return covers(candidate, l); });
      if (covered > most) best.lane = candidate;
      most = std::max(most, covered);
    }
    for (const int32_t lane : lanes) {
      if (lane == best.lane) continue;
      const bool covered = std::any_of(lanes.begin(), lanes.end(), [&](int32_t l) { return covers(l, lane); });
      (covered ? best.covered : best.open).push_back(lane);
    }
    return best;
  }

  void Finish() {
    const std::vector<Join> joins = Joins();
    plan_.epilogue_begin = static_cast<int32_t>(plan_.commands.size());
    for (const Join& join : joins) BatchCopies(join.covered, join.lane);
    plan_.short_epilogue_begin = static_cast<int32_t>(plan_.commands.size());
    for (const Join& join : joins) {
      BatchCopies(join.open, join.lane);
      const int32_t done = NewEvent(join.lane);
      Emit(Command::Op::kRecord, join.lane, done);
      plan_.done_events.push_back(done);
    }
    plan_.epilogue_end = static_cast<int32_t>(plan_.commands.size());
  }

  void BatchCopies(const std::vector<int32_t>& lanes, int32_t into) {
    if (lanes.empty()) return;
    const int32_t event = NewEvent(into);  // each record is waited for immediately
    for (const int32_t lane : lanes) {
      Emit(Command::Op::kRecord, lane, event);
      Emit(Command::Op::kWait, into, event);
    }
  }

  Draft& d_;
  Plan plan_;
  std::vector<int32_t> host_step_;  // for each host step: its index in Plan::host_steps
  const CsrRows gates_, writes_, dones_;  // for each step: Plan::states it is a first touch, first write, last touch of
  const CsrRows external_deps_;  // for each step: the Plan::external_deps of which it is a first touch
};

}  // namespace

Plan Lower(Draft& draft) { return Writer(draft).Write(); }

}  // namespace penstock::graph
