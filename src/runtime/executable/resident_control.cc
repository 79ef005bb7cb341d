#include "src/runtime/executable/resident_control.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/graph_exec/region_operations.h"

namespace penstock::runtime {
namespace {

using detail::DecisionKind;
using Op = ExecCommand::Op;

int32_t ConditionIn(const CompiledGraph& graph, const RegionEntry& region) {
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const DeclId decl = graph.plan().nodes[region.nodes[i].node].decl;
    if (decl >= 0 && graph.model().nodes[decl].decides) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace

ResidentControl::ResidentControl(RunSlot& outer, NodeId node, const CompiledControl& control)
    : DeviceConstruct(outer, node, control), within_region_(control.within_region) {}

absl::StatusOr<std::unique_ptr<ResidentControl>> ResidentControl::Create(RunSlot& outer, NodeId node,
                                                                         const CompiledControl& control) {
  std::unique_ptr<ResidentControl> made(new ResidentControl(outer, node, control));
  if (made->is_loop()) PENSTOCK_RETURN_IF_ERROR(made->MakeLoopMemory(control.traced));
  return made;
}

// Takes the kernel of the regions in it over, of which there must be but one. Returns why not all is in regions.
std::string ResidentControl::AddKernels(const void*& kernel) const {
  std::string why;
  if (parts_.bodies.size() >= ResidentImage::kMostTargets) why = "it has too many bodies";
  parts_.ForEach([&](const PartSlot& part) {
    const GraphProgram& replay = part.slot().graph().program().replay;
    for (const GraphNodeEntry& entry : replay.entries) {
      if (!why.empty()) return;
      if (entry.op == Op::kConditional) {
        why = Inner(part, entry.index).AddKernels(kernel);
      } else if (entry.op == Op::kRegion) {
        const void* const of = replay.regions[entry.index].kernel.kernel;
        if (of != nullptr && kernel != nullptr && of != kernel) why = "nodes in it are of several translation units";
        if (of != nullptr) kernel = of;
      } else {
        why = "not all nodes in it are small, or compiled for compute capability 9.0 or more";
      }
    }
  });
  return why;
}

// How many loops there are in each other, at most.
int32_t ResidentControl::LoopDepth() const {
  int32_t depth = 0;
  parts_.ForEach([&](const PartSlot& part) {
    for (size_t c = 0; c < part.slot().constructs.size(); ++c) {
      depth = std::max(depth, Inner(part, static_cast<int32_t>(c)).LoopDepth());
    }
  });
  return depth + (is_loop() ? 1 : 0);
}

std::string ResidentControl::WhyNotResident() const {
  if (device_.info.kind != driver::DeviceKind::kCuda) return "it is on a host device";
  const void* kernel = nullptr;
  std::string why = AddKernels(kernel);
  if (!why.empty()) return why;
  if (LoopDepth() > static_cast<int32_t>(detail::kMostLoopDepth)) return "too many loops are in each other";
  return kernel != nullptr || within_region_ ? "" : "no node in it is a ParallelFor";
}

std::optional<LoopTotals> ResidentControl::Totals() const {
  if (loop_ == nullptr) return std::nullopt;
  const bool beside = control_->kind == ControlKind::kRepeat && !loop_->traced();
  return loop_->Totals(beside);
}

std::string ResidentControl::Note(const std::string& name) const {
  return "construct " + name + " runs in a region, without a launch for each part of it";
}

// --- sections ---

detail::Decision ResidentControl::DecisionOf(DecisionKind kind, uint32_t depth) const {
  detail::Decision decision = DeviceConstruct::DecisionOf(kind);
  decision.in_region = depth + 1;
  return decision;
}

void ResidentControl::AppendTo(Sections& to, uint32_t depth) {
  if (is_loop()) AppendLoop(to, depth);
  else AppendChoice(to, depth);
}

void ResidentControl::AppendChoice(Sections& to, uint32_t depth) {
  parts_.condition[0].SetDecision(DecisionOf(DecisionKind::kPick, depth));
  AppendPart(parts_.condition[0], to, depth);
  const size_t decides = to.size() - 1;
  std::vector<size_t> last;  // of each body
  std::vector<int32_t> begin;
  for (PartSlot& body : parts_.bodies) {
    begin.push_back(Next(to));
    if (body.slot().graph().program().replay.entries.empty()) {
      begin.back() = -1;
      continue;
    }
    AppendPart(body, to, depth);
    last.push_back(to.size() - 1);
  }
  const int32_t end = Next(to);
  for (int32_t& of : begin) of = of < 0 ? end : of;
  for (const size_t of : last) to[of].targets = {end};
  if (control_->kind == ControlKind::kIf) {
    to[decides].targets = {begin.size() > 1 ? begin[1] : end, begin[0]};  // any value but 0 is true
    return;
  }
  begin.push_back(end);
  to[decides].targets = std::move(begin);
}

void ResidentControl::AppendLoop(Sections& to, uint32_t depth) {
  const bool counted = control_->kind == ControlKind::kRepeat;
  if (!parts_.condition.empty()) {
    const DecisionKind enter = counted ? DecisionKind::kEnterCounted : DecisionKind::kEnter;
    parts_.condition[0].SetDecision(DecisionOf(enter, depth));
    AppendPart(parts_.condition[0], to, depth);
  } else {
    enter_ = DecisionOf(DecisionKind::kEnterCounted, depth);
    to.push_back({.decision = &enter_, .targets = {}});
  }
  const size_t enters = to.size() - 1;
  const int32_t begin = Next(to);
  if (!counted) parts_.bodies[0].SetDecision(DecisionOf(DecisionKind::kAgain, depth));
  AppendPart(parts_.bodies[0], to, depth + 1);
  if (counted) {
    again_ = DecisionOf(DecisionKind::kAgainCounted, depth);
    to.back().decision = &again_;
  }
  assert(counted || to.back().condition >= 0);
  const int32_t end = Next(to);
  for (ResidentSection* const of : {&to[enters], &to.back()}) {
    of->targets = {end, begin};
    of->loop = depth + 1;
  }
  to.back().again = true;
}

// The last of its sections has no targets yet, and is no construct's.
void ResidentControl::AppendPart(PartSlot& part, Sections& to, uint32_t depth) {
  const CompiledGraph& graph = part.slot().graph();
  const GraphProgram& replay = graph.program().replay;
  bool closed = true;
  const auto open = [&] {
    if (!std::exchange(closed, true)) to.back().targets = {Next(to)};
  };
  for (const GraphNodeEntry& entry : replay.entries) {
    open();
    if (entry.op == Op::kConditional) {
      Inner(part, entry.index).AppendTo(to, depth);
      continue;
    }
    const RegionEntry& region = replay.regions[entry.index];
    to.push_back({.slot = &part.slot(), .region = &region, .condition = ConditionIn(graph, region), .targets = {}});
    closed = false;
  }
  if (closed) to.emplace_back();
}

// --- the region ---

absl::Status ResidentControl::MakeImage() {
  Sections sections;
  AppendTo(sections, 0);
  AddOps(sections);
  PENSTOCK_ASSIGN_OR_RETURN(image_, ResidentImage::Create(outer_, device_, std::move(sections)));
  return absl::OkStatus();
}

// Each node once, and each section after the one before it, as if there were one iteration with all bodies.
void ResidentControl::AddOps(const Sections& sections) {
  std::vector<int32_t> last;  // the nodes of the section before that no other one of it comes after
  for (const ResidentSection& section : sections) {
    if (section.region == nullptr) continue;
    const auto begin = static_cast<int32_t>(ops_.size());
    const size_t count = section.region->nodes.size();
    std::vector<bool> is_first(count, true), is_last(count, true);
    for (const GraphNodeEntry& node : section.region->nodes) ops_.push_back(OperationOf(section.slot->tables, node));
    nodes_ += static_cast<int64_t>(count);
    for (const driver::RegionOp::Edge& edge : section.region->edges) {
      edges_.push_back({edge.before + begin, edge.after + begin});
      is_first[static_cast<size_t>(edge.after)] = is_last[static_cast<size_t>(edge.before)] = false;
    }
    std::vector<int32_t> ends;
    for (size_t i = 0; i < count; ++i) {
      const auto node = begin + static_cast<int32_t>(i);
      for (const int32_t before : last) {
        if (is_first[i]) edges_.push_back({before, node});
      }
      if (is_last[i]) ends.push_back(node);
    }
    last = std::move(ends);
    if (last.size() == 1) continue;
    ops_.emplace_back(&nothing_);  // so that there are not as many edges as pairs
    for (const int32_t end : last) edges_.push_back({end, static_cast<int32_t>(ops_.size()) - 1});
    last.assign(1, static_cast<int32_t>(ops_.size()) - 1);
  }
}

driver::RegionOp ResidentControl::Op(std::span<const driver::NodeOp> ops) const {
  return {.ops = ops, .edges = edges_, .resident = &image_->op(), .tag = {&outer_.fault, node_}};
}

// The first launch sets the node, since only then all memory is known.
absl::StatusOr<NodeNumbers> ResidentControl::AddTo(driver::Graph to, std::span<const int32_t> after) {
  if (image_ == nullptr) PENSTOCK_RETURN_IF_ERROR(MakeImage());
  const driver::FillOp byte{.dst = image_->memory(), .count = 1};
  const std::vector<driver::NodeOp> placeholders(ops_.size(), &byte);
  const driver::RegionOp op = Op(placeholders);
  PENSTOCK_ASSIGN_OR_RETURN(number_,
                            driver_.AddNode(to, after, &op, {.priority = outer_.graph().plan().nodes[node_].priority}));
  written_ = 0;
  return NodeNumbers{number_};
}

absl::Status ResidentControl::SetExec(driver::GraphExec exec, driver::GraphExec /*root*/) {
  exec_ = exec;
  return absl::OkStatus();
}

// --- runs ---

absl::Status ResidentControl::Update() {
  if (written_ == outer_.bound.changes && set_stop_ == stop_) return absl::OkStatus();
  TakeTrips();
  image_->UseStop(stop_);
  image_->Write();
  const driver::RegionOp op = Op(ops_);
  const absl::Status set = driver_.SetNode(exec_, number_, &op);
  if (!set.ok()) return base::WithNode(set, node_);
  written_ = outer_.bound.changes;
  set_stop_ = stop_;
  return absl::OkStatus();
}

void ResidentControl::TakeTrips() {
  enter_.most = again_.most = trips_;
  parts_.ForEach([](const PartSlot& part) {
    for (size_t c = 0; c < part.slot().constructs.size(); ++c) Inner(part, static_cast<int32_t>(c)).TakeTrips();
  });
}

}  // namespace penstock::runtime
