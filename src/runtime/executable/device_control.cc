#include "src/runtime/executable/device_control.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/current_device.h"
#include "src/runtime/executable/executable_core.h"
#include "src/runtime/executable/tuning.h"

namespace penstock::runtime {
namespace {

using detail::DecisionKind;

constexpr uint32_t kDecidingThreads = 128;  // each can switch nodes

driver::ConditionalKind ConditionalKindOf(ControlKind kind) {
  switch (kind) {
    case ControlKind::kIf: return driver::ConditionalKind::kIf;
    case ControlKind::kSwitch: return driver::ConditionalKind::kSwitch;
    default: return driver::ConditionalKind::kWhile;
  }
}

// How many iterations a body with so many kernels holds if the loop has at most so many.
int32_t UnrollOf(int32_t kernels, int64_t most) {
  if (kernels == 0) return 1;
  const int64_t unroll = std::min({int64_t{tuning::kMostUnrolledNodes / kernels}, int64_t{tuning::kMostUnroll}, most});
  return static_cast<int32_t>(std::bit_floor(static_cast<uint64_t>(std::max(unroll, int64_t{1}))));
}

// A part without nodes has no graphs.
absl::StatusOr<NodeNumbers> AddPart(const PartSlot& part, driver::Graph to, std::span<const int32_t> after) {
  if (part.slot().graphs == nullptr) return NodeNumbers(after.begin(), after.end());
  return part.slot().graphs->AddTo(to, after);
}
absl::Status SetExecOf(const PartSlot& part, driver::GraphExec exec, driver::GraphExec root) {
  return part.slot().graphs == nullptr ? absl::OkStatus() : part.slot().graphs->SetExec(exec, root);
}

}  // namespace

DeviceControl::DeviceControl(RunSlot& outer, NodeId node, const CompiledControl& control)
    : DeviceConstruct(outer, node, control) {}

absl::StatusOr<std::unique_ptr<DeviceControl>> DeviceControl::Create(RunSlot& outer, NodeId node,
                                                                     const CompiledControl& control) {
  std::unique_ptr<DeviceControl> made(new DeviceControl(outer, node, control));
  PENSTOCK_RETURN_IF_ERROR(
      made->parts_.Try([](PartSlot& part) { return part.slot().MakeGraphs(SlotGraphs::Upload::kPart); }));
  PENSTOCK_RETURN_IF_ERROR(made->is_loop() ? made->MakeLoop(control.traced) : made->SwitchBodies());
  made->parts_.ForEach([&](const PartSlot& part) { outer.hostcalls.Add(part.slot().hostcalls); });
  return made;
}

DeviceControl::~DeviceControl() {
  const driver::CurrentDevice current(driver_, device_.local);
  DropExec();
}

absl::Status DeviceControl::MakeLoop(bool traced) {
  const driver::CurrentDevice current(driver_, device_.local);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::LoopKernels kernels, driver_.LoadLoopKernels(device_.local));
  PENSTOCK_RETURN_IF_ERROR(UnrollBody());
  PENSTOCK_RETURN_IF_ERROR(MakeLoopMemory(traced));
  Make(enter_, kernels.decide, driver::kDecidePointers);
  Make(again_, kernels.decide, driver::kDecidePointers);
  Make(look_, kernels.look, driver::kLookPointers);
  look_.args.state = loop_->state();
  if (switches_.nodes > 0) enter_.op.block[0] = again_.op.block[0] = kDecidingThreads;
  return absl::OkStatus();
}

absl::Status DeviceControl::UnrollBody() {
  SlotGraphs* const body = parts_.bodies[0].slot().graphs.get();
  if (body == nullptr) return absl::OkStatus();
  int64_t most = INT64_MAX;
  if (control_->kind == ControlKind::kWhile) most = control_->max;
  else if (parts_.condition.empty() && control_->trips.is_constant()) most = control_->trips.value;
  const int32_t kernels = body->Kernels(), unroll = UnrollOf(kernels, most);
  if (unroll == 1) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(MakeSwitches(unroll, kernels, unroll - 1));
  body->part().BeUnrolled(unroll, switches_.list);
  return absl::OkStatus();
}

absl::Status DeviceControl::SwitchBodies() {
  int32_t longest = 0;
  for (const PartSlot& body : parts_.bodies) {
    if (body.slot().graphs == nullptr) continue;
    const int32_t kernels = body.slot().graphs->Kernels();
    if (kernels == 0) return absl::OkStatus();
    longest = std::max(longest, kernels);
  }
  const auto bodies = static_cast<int32_t>(parts_.bodies.size());
  if (longest == 0 || longest > tuning::kMostPickedNodes || bodies > tuning::kMostPickedBodies) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(MakeSwitches(bodies, longest, bodies));
  for (int32_t b = 0; b < bodies; ++b) {
    SlotGraphs* const body = parts_.bodies[static_cast<size_t>(b)].slot().graphs.get();
    if (body == nullptr) continue;
    const auto begin = static_cast<size_t>(b) * static_cast<size_t>(longest);
    body->part().BePicked(b, switches_.list.subspan(begin, static_cast<size_t>(body->Kernels())));
  }
  return absl::OkStatus();
}

// `switched`: the groups that have switches.
absl::Status DeviceControl::MakeSwitches(int32_t groups, int32_t nodes, int32_t switched) {
  const size_t places = static_cast<size_t>(switched) * static_cast<size_t>(nodes);
  PENSTOCK_ASSIGN_OR_RETURN(memory::PinnedBlock pinned,
                            outer_.options().pinned.Allocate(places * sizeof(uint64_t), outer_.options().pinned_node));
  const std::span all(static_cast<uint64_t*>(pinned.data()), places);
  std::fill(all.begin(), all.end(), 0);
  switches_ = {.pinned = std::move(pinned), .groups = groups, .nodes = nodes, .list = all};
  return absl::OkStatus();
}

std::string DeviceControl::Note(const std::string& name) const {
  if (switches_.nodes == 0) return "";
  if (!is_loop())
    return "the condition of construct " + name + " switches the kernels of its bodies, without a conditional node";
  return "a body of construct " + name + " holds " + std::to_string(switches_.groups) +
         " iterations, which share the cost of a round";
}

std::optional<LoopTotals> DeviceControl::Totals() const {
  if (loop_ == nullptr) return std::nullopt;
  return loop_->Totals(decides_beside_body());
}

DeviceControl::Decision DeviceControl::DecisionOf(uint64_t handle, DecisionKind kind) const {
  Decision decision = DeviceConstruct::DecisionOf(kind);
  decision.handle = handle;
  if (switches_.nodes == 0) return decision;
  decision.switches = switches_.list.data();
  decision.unroll = static_cast<uint32_t>(switches_.groups);
  decision.nodes = static_cast<uint32_t>(switches_.nodes);
  return decision;
}

template <class Args>
void DeviceControl::Make(LibraryNode<Args>& node, const driver::LibraryCode& code,
                         std::span<const uint32_t> pointers) const {
  node.op = driver::LibraryOp(code, node.argv, sizeof(Args));
  node.op.pointer_offsets = pointers.data();
  node.op.pointer_count = static_cast<uint32_t>(pointers.size());
  node.op.tag = {&outer_.fault, node_};
}

// --- nodes ---

std::optional<GraphConstruct::Refusal> DeviceControl::Capture() {
  std::optional<Refusal> refusal;
  parts_.ForEach([&](const PartSlot& part) {
    if (!refusal && part.slot().graphs != nullptr) refusal = CapturePart(part);
  });
  return refusal;
}

std::optional<GraphConstruct::Refusal> DeviceControl::CapturePart(const PartSlot& part) const {
  part.SetKnown(outer_, node_);
  absl::Status captured = part.slot().graphs->CaptureWhatIsKnown();
  (void)base::TakeNode(captured);
  if (!captured.ok()) {
    return Refusal{control_->id, "a body cannot hold what a Launch node submits: " + base::Str(captured.message())};
  }
  for (const auto& inner : part.slot().constructs) {
    if (std::optional<Refusal> refusal = inner->Capture()) return refusal;
  }
  return std::nullopt;
}

absl::StatusOr<NodeNumbers> DeviceControl::AddTo(driver::Graph to, std::span<const int32_t> after) {
  if (picks_by_switches()) return AddSwitchedBodies(to, after);
  PENSTOCK_ASSIGN_OR_RETURN(const driver::ConditionalHandle handle, driver_.CreateConditional(to));
  PENSTOCK_ASSIGN_OR_RETURN(const NodeNumbers decided, AddEntry(to, after, handle.bits));
  const auto bodies = std::max(static_cast<int32_t>(parts_.bodies.size()), 1);  // a Switch may have none
  PENSTOCK_ASSIGN_OR_RETURN(driver::ConditionalNode node,
                            driver_.AddConditional(to, decided, handle, ConditionalKindOf(control_->kind), bodies));
  body_graphs_ = std::move(node.bodies);
  for (size_t b = 0; b < parts_.bodies.size(); ++b) {
    PENSTOCK_RETURN_IF_ERROR(AddBody(parts_.bodies[b], body_graphs_[b], handle.bits));
  }
  return NodeNumbers{node.number};
}

// The bodies stand side by side: the nodes of all but one do nothing.
absl::StatusOr<NodeNumbers> DeviceControl::AddSwitchedBodies(driver::Graph to, std::span<const int32_t> after) {
  parts_.condition[0].SetDecision(
      DecisionOf(0, control_->kind == ControlKind::kIf ? DecisionKind::kSwitchIf : DecisionKind::kSwitch));
  PENSTOCK_ASSIGN_OR_RETURN(const NodeNumbers decided, AddPart(parts_.condition[0], to, after));
  NodeNumbers last;
  for (const PartSlot& body : parts_.bodies) {
    if (body.slot().graphs == nullptr) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const NodeNumbers ends, AddPart(body, to, decided));
    last.insert(last.end(), ends.begin(), ends.end());
  }
  return last;
}

// Adds what sets the value first, and returns it.
absl::StatusOr<NodeNumbers> DeviceControl::AddEntry(driver::Graph to, std::span<const int32_t> after, uint64_t handle) {
  if (!parts_.condition.empty()) {
    DecisionKind kind = DecisionKind::kPick;
    if (is_loop()) kind = control_->kind == ControlKind::kWhile ? DecisionKind::kEnter : DecisionKind::kEnterCounted;
    parts_.condition[0].SetDecision(DecisionOf(handle, kind));
    return AddPart(parts_.condition[0], to, after);
  }
  enter_.args.decision = DecisionOf(handle, DecisionKind::kEnterCounted);
  set_trips_ = enter_.args.decision.most = trips_;
  PENSTOCK_ASSIGN_OR_RETURN(enter_.number, driver_.AddNode(to, after, &enter_.op, {}));
  return NodeNumbers{enter_.number};
}

absl::Status DeviceControl::AddBody(PartSlot& part, driver::Graph to, uint64_t handle) {
  return is_loop() ? AddLoopBody(part, to, handle) : AddPart(part, to, {}).status();
}

absl::Status DeviceControl::AddLoopBody(PartSlot& part, driver::Graph to, uint64_t handle) {
  set_stop_ = look_.args.stop = stop_;
  PENSTOCK_ASSIGN_OR_RETURN(look_.number, driver_.AddNode(to, {}, &look_.op, {}));
  if (control_->kind == ControlKind::kWhile) {
    part.SetDecision(DecisionOf(handle, DecisionKind::kAgain));
    return AddPart(part, to, {}).status();
  }
  again_.args.decision = DecisionOf(handle, DecisionKind::kAgainCounted);
  PENSTOCK_ASSIGN_OR_RETURN(NodeNumbers before, AddPart(part, to, {}));
  if (decides_beside_body()) before.clear();
  before.push_back(look_.number);
  return driver_.AddNode(to, before, &again_.op, {}).status();
}

absl::Status DeviceControl::SetExec(driver::GraphExec exec, driver::GraphExec root) {
  DropExec();
  exec_ = exec;
  for (const PartSlot& part : parts_.condition) PENSTOCK_RETURN_IF_ERROR(SetExecOf(part, exec, root));
  if (picks_by_switches()) {
    for (const PartSlot& body : parts_.bodies) PENSTOCK_RETURN_IF_ERROR(SetExecOf(body, exec, root));
    return absl::OkStatus();
  }
  for (size_t b = 0; b < parts_.bodies.size(); ++b) {
    PENSTOCK_ASSIGN_OR_RETURN(const driver::GraphExec body, driver_.BodyOf(root, body_graphs_[b]));
    body_execs_.push_back(body);
    PENSTOCK_RETURN_IF_ERROR(SetExecOf(parts_.bodies[b], body, root));
  }
  return absl::OkStatus();
}

void DeviceControl::DropExec() {
  parts_.ForEach([](const PartSlot& part) {
    if (part.slot().graphs != nullptr) part.slot().graphs->Drop();
  });
  for (const driver::GraphExec body : body_execs_) driver_.DestroyExec(body);
  body_execs_.clear();
  exec_ = {};
}

// --- runs ---

absl::Status DeviceControl::UpdateLoop() {
  if (control_->kind == ControlKind::kRepeat && trips_ != set_trips_) {
    enter_.args.decision.most = trips_;
    PENSTOCK_RETURN_IF_ERROR(driver_.SetNode(exec_, enter_.number, &enter_.op));
    set_trips_ = trips_;
  }
  if (is_loop() && stop_ != set_stop_) {
    look_.args.stop = stop_;
    PENSTOCK_RETURN_IF_ERROR(driver_.SetNode(body_execs_[0], look_.number, &look_.op));
    set_stop_ = stop_;
  }
  return absl::OkStatus();
}

absl::Status DeviceControl::Update() {
  const absl::Status loop = UpdateLoop();
  if (!loop.ok()) return base::WithNode(loop, node_);
  return parts_.Try([&](PartSlot& part) {
    if (part.slot().graphs == nullptr) return absl::OkStatus();
    absl::Status updated = part.slot().graphs->Update();
    const int32_t node = base::TakeNode(updated);
    return updated.ok() ? updated : base::WithNode(part.core().Describe(node, updated), node_);
  });
}

absl::Status DeviceControl::Refresh(driver::Stream stream) {
  return parts_.Try([&](PartSlot& part) {
    return part.slot().graphs == nullptr ? absl::OkStatus() : part.slot().graphs->Refresh(stream);
  });
}

}  // namespace penstock::runtime
