#include "src/runtime/graph_exec/slot_graphs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/runtime/core/synchronize_stream.h"
#include "src/runtime/graph_exec/graph_builder.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

// For each parameter, how many arguments of nodes it is.
std::vector<int32_t> UsesOfParams(const Program& program) {
  std::vector<int32_t> uses;
  const Table<ParamId, uint32_t>& begin = program.params.begin;
  for (ParamId p = 0; p + 1 < begin.count(); ++p) uses.push_back(static_cast<int32_t>(begin[p + 1] - begin[p]));
  return uses;
}

// Tells the constructs that are nodes of a graph.
absl::Status SetExecOf(const GraphConstructs& constructs, const GraphProgram& replay, GraphId graph,
                       driver::GraphExec exec, driver::GraphExec root) {
  for (EntryId e = replay.begin[graph]; e < replay.begin[graph + 1]; ++e) {
    const GraphNodeEntry& entry = replay.entries[e];
    if (entry.op != Op::kConditional) continue;
    PENSTOCK_RETURN_IF_ERROR(constructs[static_cast<size_t>(entry.index)]->SetExec(exec, root));
  }
  return absl::OkStatus();
}

// The last nodes of a graph whose entries have these.
NodeNumbers EndsOf(const GraphProgram& replay, const Table<EntryId, NodeNumbers>& last) {
  std::vector<bool> is_last(last.size(), true);
  for (const EntryId e : last.ids()) {
    for (const int32_t before : replay.preds[e]) is_last[static_cast<size_t>(before)] = false;
  }
  NodeNumbers ends;
  for (const EntryId e : last.ids()) {
    if (is_last[static_cast<size_t>(int32_t{e})]) ends.insert(ends.end(), last[e].begin(), last[e].end());
  }
  return ends;
}

absl::Status CheckKnown(const Slot& slot, NodeId node) {
  for (const graph::Use& use : slot.graph().plan().nodes[node].uses) {
    if (slot.tables.pointers[use.instance] != nullptr) continue;
    return absl::FailedPreconditionError("a launch, or the host, binds its memory later");
  }
  return absl::OkStatus();
}

// Some of what CUDA refuses in a body it refuses only when that is instantiated.
absl::Status TryInABody(driver::Driver& driver, int device, driver::Graph child) {
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph graph, driver.CreateGraph(device));
  const auto instantiate = [&]() -> absl::StatusOr<driver::GraphExec> {
    PENSTOCK_ASSIGN_OR_RETURN(const driver::ConditionalHandle handle, driver.CreateConditional(graph));
    PENSTOCK_ASSIGN_OR_RETURN(const driver::ConditionalNode node,
                              driver.AddConditional(graph, {}, handle, driver::ConditionalKind::kIf, 1));
    PENSTOCK_RETURN_IF_ERROR(driver.AddChild(node.bodies[0], {}, child).status());
    return driver.Instantiate(graph);
  };
  const absl::StatusOr<driver::GraphExec> exec = instantiate();
  if (exec.ok()) driver.DestroyExec(*exec);
  driver.DestroyGraph(graph);
  return exec.status();
}

}  // namespace

SlotGraphs::SlotGraphs(Slot& slot, const Parts& parts)
    : slot_(slot),
      replay_(slot.graph().program().replay),
      driver_(slot.graph().driver()),
      device_(slot.graph().local_device_of_lane(replay_.lane)),
      operations_(slot, parts.hostcalls),
      captured_(slot, parts.launch),
      heads_(slot, operations_),
      constructs_(parts.constructs),
      nodes_(replay_.entries.size()),
      last_(nodes_.size()),
      made_(static_cast<size_t>(replay_.graphs())),
      indirection_(nodes_.size(), UsesOfParams(slot.graph().program())) {
  differing_.reserve(nodes_.size());
  for (GraphId g = 0; g < replay_.graphs(); ++g) {
    for (EntryId e = replay_.begin[g]; e < replay_.begin[g + 1]; ++e) {
      nodes_[e].graph = g;
    }
  }
}

absl::StatusOr<std::unique_ptr<SlotGraphs>> SlotGraphs::Create(Slot& slot, const Parts& parts, Upload upload) {
  std::unique_ptr<SlotGraphs> graphs(new SlotGraphs(slot, parts));
  const driver::CurrentDevice current(graphs->driver_, graphs->device_);
  if (upload == Upload::kPart) graphs->part_ = std::make_unique<SwitchedPart>(slot);
  PENSTOCK_RETURN_IF_ERROR(graphs->Make(upload));
  return graphs;
}

// The numbers of an iteration's nodes follow each other, and are kept of the first.
absl::StatusOr<NodeNumbers> SlotGraphs::AddTo(driver::Graph to, std::span<const int32_t> after) {
  all_differ_ = true;
  NodeNumbers ends(after.begin(), after.end());
  for (int32_t i = 0; i < part_->iterations(); ++i) {
    const Table<EntryId, Node> before = nodes_;
    PENSTOCK_RETURN_IF_ERROR(AddEntries(
        slot_.graph(), GraphId(0), last_, [](int32_t) { return -1; },
        [&](int32_t e, std::vector<int32_t>& from, driver::NodePlace place) {
          if (from.empty()) from.assign(ends.begin(), ends.end());
          return AddEntry(e, to, from, place, Values::kUnknown);
        }));
    ends = EndsOf(replay_, last_);
    PENSTOCK_RETURN_IF_ERROR(part_->Added(to, i, nodes_[EntryId(0)].number, after.empty() ? -1 : after[0]));
    if (i > 0) nodes_ = before;
  }
  return ends;
}

absl::Status SlotGraphs::SetExec(driver::GraphExec exec, driver::GraphExec root) {
  any_stale_ = false;
  made_[GraphId(0)].exec = exec;
  made_[GraphId(0)].stale = false;
  PENSTOCK_RETURN_IF_ERROR(SwitchOff(GraphId(0), Values::kUnknown));
  return SetExecOf(constructs_, replay_, GraphId(0), exec, root);
}

absl::Status SlotGraphs::Make(Upload upload) {
  const bool timed = part_ == nullptr && slot_.graph().trace() != nullptr;
  using Use = NodeOperations::Use;
  PENSTOCK_RETURN_IF_ERROR(operations_.Make(timed ? Use::kTimedRuns : Use::kRuns));
  if (part_ != nullptr) return absl::OkStatus();
  if (timed && !nodes_.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(timestamps_, NodeTimestamps::Create({.compiled = &slot_.graph(),
                                                                   .regions = &operations_.regions(),
                                                                   .pinned = &slot_.options().pinned,
                                                                   .pinned_node = slot_.options().pinned_node,
                                                                   .fault = &slot_.fault}));
  }
  PENSTOCK_RETURN_IF_ERROR(CaptureWhatIsKnown());
  for (GraphId g = 0; g < replay_.graphs(); ++g) {
    if (captured_.HasAllOf(g)) PENSTOCK_RETURN_IF_ERROR(MakeGraph(g, Values::kUnknown));
  }
  return upload == Upload::kNow ? UploadAll() : absl::OkStatus();
}

SlotGraphs::~SlotGraphs() { Drop(); }

void SlotGraphs::Drop() {
  const driver::CurrentDevice current(driver_, device_);
  for (const int32_t c : replay_.conditionals) {
    if (static_cast<size_t>(c) < constructs_.size()) constructs_[static_cast<size_t>(c)]->DropExec();
  }
  for (Made& made : made_) {
    if (made.exec && part_ == nullptr) driver_.DestroyExec(made.exec);
    made.exec = {};
  }
  if (part_ == nullptr) captured_.Drop();  // a part may be added to another graph
}

absl::Status SlotGraphs::CaptureWhatIsKnown() {
  const driver::CurrentDevice current(driver_, device_);
  for (const EntryId e : replay_.launch) {
    const GraphNodeEntry& entry = replay_.entries[e];
    if (entry.varies && part_ == nullptr) continue;
    absl::Status captured = part_ != nullptr ? CheckKnown(slot_, entry.node) : absl::OkStatus();
    if (captured.ok()) captured = CaptureEntry(e).status();  // no other thread calls it before it is compiled
    if (captured.ok() && part_ != nullptr) captured = TryInABody(driver_, device_, captured_.child(e));
    if (!captured.ok()) return base::WithNode(slot_.graph().Describe(entry.node, captured), entry.node);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SlotGraphs::Capture() {
  if (replay_.launch.empty()) return true;
  for (const EntryId e : all_differ_ ? replay_.launch : differing_) {
    const GraphNodeEntry& entry = replay_.entries[e];
    const Node& of = nodes_[e];
    if (entry.op != Op::kLaunch || (of.known && operations_.IsSet(e))) continue;
    absl::StatusOr<bool> captured = CaptureEntry(e);
    if (captured.ok() && *captured) continue;
    if (captured.ok()) return false;
    all_differ_ = true;
    return base::WithNode(captured.status(), entry.node);
  }
  return true;
}

// A child with a new structure has its graph instantiated again.
absl::StatusOr<bool> SlotGraphs::CaptureEntry(EntryId e) {
  Node& node = nodes_[e];
  Made& made = made_[node.graph];
  node.known = false;
  absl::StatusOr<bool> captured = captured_.Capture(e);
  if (!captured.ok() || !*captured) return captured;
  if (!made.stale) {
    ++counts_.sets;
    absl::Status set = driver_.SetChild(made.exec, node.number, captured_.child(e));
    if (!set.ok() && set.code() != absl::StatusCode::kFailedPrecondition) return set;
    if (!set.ok()) RequireInstantiation(e, base::Str(slot_.graph().Describe(replay_.entries[e].node, set).message()));
  }
  operations_.Keep(e);
  node.known = true;
  return true;
}

absl::Status SlotGraphs::MakeGraph(GraphId graph, Values values) {
  const TimedScope timed(counts_.instantiating_ns);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Graph nodes, driver_.CreateGraph(device_));
  const auto instantiate = [&]() -> absl::StatusOr<driver::GraphExec> {
    PENSTOCK_RETURN_IF_ERROR(AddNodes(graph, nodes, values));
    return driver_.Instantiate(nodes);
  };
  const absl::StatusOr<driver::GraphExec> exec = instantiate();
  absl::Status constructs;  // these let go of the old exec
  if (exec.ok()) constructs = SetExecOf(constructs_, replay_, graph, *exec, *exec);
  driver_.DestroyGraph(nodes);
  PENSTOCK_RETURN_IF_ERROR(exec.status());
  ++counts_.instantiations;
  slot_.options().runtime.observed().counts.instantiations += 1;
  Made& made = made_[graph];
  if (made.exec) driver_.DestroyExec(made.exec);
  made.exec = *exec;
  PENSTOCK_RETURN_IF_ERROR(constructs);
  made.stale = false;
  return SwitchOff(graph, values);
}

absl::Status SlotGraphs::AddNodes(GraphId graph, driver::Graph to, Values values) {
  PENSTOCK_ASSIGN_OR_RETURN(const int heads, heads_.Add(graph, to));
  counts_.nodes_made += heads;
  return AddEntries(
      slot_.graph(), graph, last_, [&](int32_t e) { return heads_.Of(graph, e); },
      [&](int32_t e, std::vector<int32_t>& after, driver::NodePlace place) {
        return AddEntry(e, to, after, place, values);
      });
}

// Adds the node of an entry, and the timestamps around it.
absl::StatusOr<NodeNumbers> SlotGraphs::AddEntry(EntryId e, driver::Graph to, std::vector<int32_t>& after,
                                                 driver::NodePlace place, Values values) {
  Node& node = nodes_[e];
  if (timestamps_ != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool added, timestamps_->AddBegin(e, to, after, place.device));
    counts_.nodes_made += added ? 1 : 0;
  }
  NodeNumbers ends;
  if (replay_.entries[e].op == Op::kConditional) {
    node.known = true;
    GraphConstruct& construct = *constructs_[static_cast<size_t>(replay_.entries[e].index)];
    PENSTOCK_ASSIGN_OR_RETURN(ends, construct.AddTo(to, after));
    counts_.regions += construct.RegionNodes() > 0 ? 1 : 0;
    counts_.region_nodes += construct.RegionNodes();
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(node.number, AddNode(e, to, after, place, values));
    ends.assign(1, node.number);
  }
  ++counts_.nodes_made;
  if (replay_.entries[e].op == Op::kRegion) {
    ++counts_.regions;
    counts_.region_nodes += static_cast<int64_t>(replay_.regions[replay_.entries[e].index].nodes.size());
  }
  node.enabled = true;
  if (timestamps_ == nullptr) return ends;
  ++counts_.nodes_made;
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t end, timestamps_->AddEnd(e, to, ends, place.device));
  return NodeNumbers{end};
}

absl::StatusOr<int32_t> SlotGraphs::AddNode(EntryId e, driver::Graph to, const std::vector<int32_t>& after,
                                            driver::NodePlace place, Values values) {
  const GraphNodeEntry& entry = replay_.entries[e];
  if (entry.op == Op::kLaunch) return driver_.AddChild(to, after, captured_.child(e));
  Node& node = nodes_[e];
  PENSTOCK_ASSIGN_OR_RETURN(const NodeOperations::Wanted wanted, operations_.Of(e, indirection_.indirect(e)));
  node.known = (values == Values::kKnown || !entry.varies) && !wanted.disabled;
  if (!node.known) {
    return operations_.WithPlaceholder(e, wanted.disabled,
                                       [&](const driver::NodeOp& op) { return driver_.AddNode(to, after, op, place); });
  }
  operations_.Keep(e);
  return driver_.AddNode(to, after, wanted.op, place);
}

absl::Status SlotGraphs::SwitchOff(GraphId graph, Values values) {
  for (EntryId e = replay_.begin[graph]; e < replay_.begin[graph + 1]; ++e) {
    if (nodes_[e].known || (replay_.entries[e].varies && values == Values::kUnknown)) continue;
    const absl::Status off = Enable(nodes_[e], false);
    if (!off.ok()) return slot_.graph().Describe(replay_.entries[e].node, off);
  }
  return EnableHeads(graph);
}

// An upload must end before its graph can be destroyed, so it is waited for even after a failure.
absl::Status SlotGraphs::UploadAll() {
  if (nodes_.empty()) return absl::OkStatus();
  const driver::Stream stream = slot_.queues.streams[replay_.lane];
  PENSTOCK_ASSIGN_OR_RETURN(const driver::Event event, driver_.CreateEvent(device_, false));
  absl::Status uploaded;
  for (const Made& made : made_) {
    if (uploaded.ok() && made.exec) uploaded = driver_.Upload(made.exec, stream);
  }
  const absl::Status awaited = AwaitStream(driver_, event, stream, slot_.options().runtime.event_count());
  driver_.DestroyEvent(event);
  return uploaded.ok() ? awaited : uploaded;
}

bool SlotGraphs::ReadsIndirectly(size_t param) { return indirection_.AllRead(param); }

bool SlotGraphs::TakesParam(CallId call) {
  const EntryId entry = replay_.of_call[call];
  if (entry < 0) return true;
  if (indirection_.Reads(entry)) return false;
  Mark(entry);
  return true;
}

void SlotGraphs::ValueDiffers(CallId call) {
  if (const EntryId entry = replay_.of_call[call]; entry >= 0) Mark(entry);
}

void SlotGraphs::FillDiffers(FillId fill) {
  if (const EntryId entry = replay_.of_fill[fill]; entry >= 0) Mark(entry);
}

// A captured graph keeps the values from the time of capture, so the callable must be captured again.
void SlotGraphs::CallableDiffers(CallId call) {
  const EntryId entry = replay_.of_call[call];
  if (entry < 0 || replay_.entries[entry].op != Op::kLaunch) return;
  nodes_[entry].known = false;
  Mark(entry);
}

void SlotGraphs::Mark(EntryId entry) {
  Node& node = nodes_[entry];
  if (node.marked) return;
  node.marked = true;
  differing_.push_back(entry);
}

absl::Status SlotGraphs::Update() {
  ChangeIndirection();
  absl::Status updated;
  if (all_differ_) updated = UpdateEntries(replay_.varying);
  if (updated.ok()) updated = UpdateEntries(differing_);  // some of these do not vary from launch to launch
  if (!updated.ok()) {
    all_differ_ = true;
    return updated;
  }
  PENSTOCK_RETURN_IF_ERROR(InstantiateStale());
  for (const int32_t c : replay_.conditionals) {
    PENSTOCK_RETURN_IF_ERROR(constructs_[static_cast<size_t>(c)]->Update());
  }
  for (const EntryId e : differing_) nodes_[e].marked = false;
  differing_.clear();
  all_differ_ = false;
  return heads_.refreshing() < 0 ? absl::OkStatus() : EnableHeads(heads_.refreshing());
}

absl::Status SlotGraphs::InstantiateStale() {
  for (GraphId g = 0; any_stale_ && g < replay_.graphs(); ++g) {
    if (made_[g].stale) PENSTOCK_RETURN_IF_ERROR(MakeGraph(g, Values::kKnown));
  }
  any_stale_ = false;
  return absl::OkStatus();
}

// Graphs are instantiated again for this although CUDA could set another kernel: such a node would begin 0.11 us later
// from then on, whatever is set after that.
void SlotGraphs::ChangeIndirection() {
  if (all_differ_) return;
  if (indirection_.ShouldEnable(differing_.size())) {
    for (const EntryId e : differing_) EnableIndirection(e);
  }
  if (indirection_.ShouldDisable()) indirection_.DisableAll([this](int32_t e) { DisableIndirection(e); });
}

void SlotGraphs::EnableIndirection(EntryId entry) {
  const GraphNodeEntry& of = replay_.entries[entry];
  if (!MayReadParams(slot_, of) || !indirection_.Enable(entry)) return;
  for (const int32_t p : slot_.graph().program().params.of_call[of.index]) {
    indirection_.TakeFrom(slot_.graph().program().params.patches[p].param);
  }
  RequireInstantiation(entry, "the parameters of many nodes come by one copy from now on");
}

// The arguments by value have not been kept up to date.
void SlotGraphs::DisableIndirection(EntryId entry) {
  const GraphNodeEntry& of = replay_.entries[entry];
  for (const int32_t p : slot_.graph().program().params.of_call[of.index]) {
    const ParamPatch& patch = slot_.graph().program().params.patches[p];
    const std::byte* const value = slot_.tables.param_bytes.data() + slot_.graph().program().params.at[patch.param];
    std::memcpy(slot_.tables.args.data() + patch.at, value, patch.size);
    indirection_.GiveBack(patch.param);
  }
  RequireInstantiation(entry, "parameters have stayed as they were, and are its nodes' own again");
}

void SlotGraphs::RequireInstantiation(EntryId entry, std::string why) {
  Made& made = made_[nodes_[entry].graph];
  if (made.stale) return;
  made.stale = any_stale_ = true;
  base::MutexLock lock(mu_);
  reinstantiated_ = std::move(why);
}

absl::Status SlotGraphs::UpdateEntries(const std::vector<EntryId>& entries) {
  for (const EntryId e : entries) {
    const absl::Status updated = UpdateEntry(e);
    if (!updated.ok()) return base::WithNode(updated, replay_.entries[e].node);
  }
  return absl::OkStatus();
}

absl::Status SlotGraphs::UpdateEntry(EntryId e) {
  Node& node = nodes_[e];
  // Capture and InstantiateStale handle these.
  if (replay_.entries[e].op == Op::kLaunch || made_[node.graph].stale) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const NodeOperations::Wanted wanted, operations_.Of(e, indirection_.indirect(e)));
  if (!wanted.disabled && !(node.known && operations_.IsSet(e))) {
    node.known = false;
    if (!operations_.CanBeSet(e)) {
      RequireInstantiation(e, "a copy of rows between devices has changed");
      return absl::OkStatus();
    }
    const int32_t times = part_ == nullptr ? 1 : part_->iterations();
    for (int32_t i = 0; i < times; ++i) {
      ++counts_.sets;
      const int32_t number = i == 0 ? node.number : part_->NumberIn(i, node.number);
      PENSTOCK_RETURN_IF_ERROR(driver_.SetNode(made_[node.graph].exec, number, wanted.op));
    }
    operations_.Keep(e);
    node.known = true;
  }
  return node.enabled == wanted.disabled ? Enable(node, !wanted.disabled) : absl::OkStatus();
}

absl::Status SlotGraphs::EnableHeads(GraphId graph) {
  const bool enabled = graph == heads_.refreshing() && indirection_.stale();
  PENSTOCK_ASSIGN_OR_RETURN(const int switched, heads_.Enable(graph, made_[graph].exec, enabled));
  counts_.switches += switched;
  return absl::OkStatus();
}

absl::Status SlotGraphs::Enable(Node& node, bool enabled) {
  const int32_t times = part_ == nullptr ? 1 : part_->iterations();
  for (int32_t i = 0; i < times; ++i) {
    ++counts_.switches;
    const int32_t number = i == 0 ? node.number : part_->NumberIn(i, node.number);
    PENSTOCK_RETURN_IF_ERROR(driver_.EnableNode(made_[node.graph].exec, number, enabled));
  }
  if (part_ != nullptr) part_->Switched(node.number, enabled);
  node.enabled = enabled;
  return absl::OkStatus();
}

absl::Status SlotGraphs::Launch(GraphId graph, driver::Stream stream) {
  ++counts_.launches;
  PENSTOCK_RETURN_IF_ERROR(Refresh(stream));
  PENSTOCK_RETURN_IF_ERROR(driver_.LaunchGraph(made_[graph].exec, stream));
  if (graph == heads_.refreshing() && indirection_.stale()) {
    ++counts_.refreshes;
    indirection_.Copied();
  }
  return absl::OkStatus();
}

absl::Status SlotGraphs::Refresh(driver::Stream stream) {
  PENSTOCK_RETURN_IF_ERROR(operations_.RefreshRegions(stream));
  for (const int32_t c : replay_.conditionals) {
    PENSTOCK_RETURN_IF_ERROR(constructs_[static_cast<size_t>(c)]->Refresh(stream));
  }
  return absl::OkStatus();
}

void SlotGraphs::AddTo(SubmissionReport& submission_report) const {
  submission_report.graphs += counts_.instantiations.get();
  submission_report.graph_nodes += counts_.nodes_made.get();
  submission_report.regions += counts_.regions.get();
  submission_report.region_nodes += counts_.region_nodes.get();
  submission_report.graph_launches += counts_.launches.get();
  submission_report.nodes_set += counts_.sets.get();
  submission_report.nodes_switched += counts_.switches.get();
  submission_report.refreshes += counts_.refreshes.get();
  submission_report.captures += captured_.captures();
  submission_report.instantiating_us += static_cast<double>(counts_.instantiating_ns.get()) / 1000;
  submission_report.capturing_us += static_cast<double>(captured_.capturing_ns()) / 1000;
  base::MutexLock lock(mu_);
  if (!reinstantiated_.empty()) submission_report.notes.push_back("a graph was instantiated again: " + reinstantiated_);
}

}  // namespace penstock::runtime
