// The calls for graphs and captures. The effects of a launch are checked as if each node were a stream operation.
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/checked/checked_class.h"
#include "src/driver/checked/graph_book.h"
#include "src/driver/checked/resolved_bodies.h"
#include "src/driver/conditional_rules.h"

namespace penstock::driver::checked {
namespace {

std::string TextOf(Graph graph) { return absl::StrCat("graph ", graph.bits); }
std::string TextOf(GraphExec exec) { return absl::StrCat("exec ", exec.bits); }

}  // namespace

// --- handles ---

template <class State, class Handle>
absl::StatusOr<CheckedDriver::Held<State>> CheckedDriver::HoldAny(Handle handle, const char* what,
                                                                  bool must_be_current) {
  base::MutexLock lock(mu_);
  State* const state = graphs_.Find(handle);
  if (state == nullptr) {
    return Violated(std::is_same_v<Handle, Graph> ? "graph is alive" : "exec is alive",
                    absl::StrCat(what, ": ", graphs_.WhyNot(handle)));
  }
  if (state->in_use) {
    return Violated("one thread at a time", absl::StrCat(what, ": ", TextOf(handle), " is in use by another call"));
  }
  if (const int now = current_.Now(); must_be_current && now != state->device) {
    return Violated("device is current", absl::StrCat(what, " of ", TextOf(handle), " of device ", state->device,
                                                      " while the thread's current device is ", now));
  }
  state->in_use = true;
  return Held<State>(*this, *state);
}

absl::StatusOr<CheckedDriver::Held<GraphState>> CheckedDriver::Hold(Graph graph, const char* what,
                                                                    bool must_be_current) {
  return HoldAny<GraphState>(graph, what, must_be_current);
}
absl::StatusOr<CheckedDriver::Held<ExecState>> CheckedDriver::Hold(GraphExec exec, const char* what) {
  return HoldAny<ExecState>(exec, what, /*must_be_current=*/true);
}

template <class Handle>
Handle CheckedDriver::Drop(Handle handle, const char* what) {
  base::MutexLock lock(mu_);
  const auto* const state = graphs_.Find(handle);
  if (state == nullptr) {
    (void)Violated("destroyed once", absl::StrCat(what, ": ", graphs_.WhyNot(handle)));
    return {};
  }
  if (state->in_use) {
    (void)Violated("one thread at a time", absl::StrCat(what, ": ", TextOf(handle), " is in use by another call"));
    return {};
  }
  if (!MayGo(handle, *state, what)) return {};
  const Handle inner = state->inner;
  graphs_.Remove(handle);
  return inner;
}

bool CheckedDriver::MayGo(Graph graph, const GraphState& state, const char* what) {
  if (!state.of) return true;
  (void)Violated("a body goes with its graph",
                 absl::StrCat(what, ": ", TextOf(graph), " is a body in ", TextOf(state.of), "; destroy that"));
  return false;
}

bool CheckedDriver::MayGo(GraphExec exec, const ExecState& /*state*/, const char* what) {
  const uint64_t body = graphs_.BodyAliveOf(exec);
  if (body == 0) return true;
  (void)Violated("bodies before their exec", absl::StrCat(what, ": ", TextOf(exec), " while exec ", body,
                                                          ", which BodyOf made of it, is alive; destroy that first"));
  return true;
}

absl::StatusOr<Graph> CheckedDriver::CreateGraph(int device) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kCreateGraph, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "CreateGraph"));
  PENSTOCK_ASSIGN_OR_RETURN(const Graph inner, inner_->CreateGraph(device));
  witness_->Change({.graphs = 1});
  base::MutexLock lock(mu_);
  return graphs_.Add(GraphState{.inner = inner, .device = device});
}

void CheckedDriver::DestroyGraph(Graph graph) {
  const Inside inside = BeginVoid({.kind = CallKind::kDestroyGraph, .graph = static_cast<uint32_t>(graph.bits)});
  if (!graph) return;
  const Graph inner = Drop(graph, "DestroyGraph");
  if (!inner) return;
  inner_->DestroyGraph(inner);
  witness_->Change({.graphs = -1});
}

void* CheckedDriver::NativeGraph(Graph graph) {
  const absl::StatusOr<Held<GraphState>> state = Hold(graph, "NativeGraph");
  return state.ok() ? inner_->NativeGraph((*state)->inner) : nullptr;
}

absl::StatusOr<GraphExec> CheckedDriver::Instantiate(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kInstantiate, .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "Instantiate"));
  GraphState whole = *state;
  std::vector<BodyPlace> bodies;
  std::string at_once;
  {
    base::MutexLock lock(mu_);
    bodies = ResolveBodies(whole, graphs_, at_once);
  }
  if (!at_once.empty()) {
    return Violated("one loop at a time", absl::StrCat("Instantiate: ", at_once, " ", TextOf(graph),
                                                       " are loops that no edge orders, which breaks CUDA's context"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const GraphExec inner, inner_->Instantiate(state->inner));
  witness_->Change({.execs = 1});
  base::MutexLock lock(mu_);
  const GraphExec exec = graphs_.Add(
      ExecState{.inner = inner, .device = state->device, .nodes = whole.nodes, .bodies = std::move(bodies)});
  book_.Add(exec, OrderOf(whole));
  return exec;
}

void CheckedDriver::DestroyExec(GraphExec exec) {
  const Inside inside = BeginVoid({.kind = CallKind::kDestroyExec, .exec = static_cast<uint32_t>(exec.bits)});
  if (!exec) return;
  const GraphExec inner = Drop(exec, "DestroyExec");
  if (!inner) return;
  bool idle = true;
  {
    base::MutexLock lock(mu_);
    idle = book_.IsIdle(LineOf(exec)) || witness_->dead();
    if (!idle) {
      (void)Violated("destroyed when idle",
                     absl::StrCat("DestroyExec: ", TextOf(exec), " has ", book_.operations(LineOf(exec)),
                                  " launches or uploads, and the host has not seen an event after the last complete"));
    }
    book_.Remove(exec);
  }
  witness_->Change({.execs = -1});
  if (idle) inner_->DestroyExec(inner);  // otherwise a launch may still use it
}

// --- nodes ---

absl::StatusOr<int32_t> CheckedDriver::AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                               NodePlace place) {
  const absl::StatusOr<size_t> bytes = BytesOf(op);
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kAddNode,
                                                        .node = TagOf(op).node,
                                                        .bytes = bytes.value_or(0),
                                                        .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_RETURN_IF_ERROR(bytes.status());
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "AddNode"));
  PENSTOCK_RETURN_IF_ERROR(CheckAfter(*state, graph, after, "AddNode"));
  if (place.device >= 0) PENSTOCK_RETURN_IF_ERROR(CheckDevice(place.device, "AddNode"));
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t below, inner_->AddNode(state->inner, after, op, place));
  const int device = place.device < 0 ? state->device : place.device;
  return Added(*state, graph, below, after, NodeOf(op, device), "AddNode");
}

// The callee's effect on memory is unknown here.
absl::StatusOr<int32_t> CheckedDriver::AddHost(Graph graph, std::span<const int32_t> after, const HostCall& call) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kAddNode, .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "AddHost"));
  PENSTOCK_RETURN_IF_ERROR(CheckAfter(*state, graph, after, "AddHost"));
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t below, inner_->AddHost(state->inner, after, call));
  return Added(*state, graph, below, after, GraphNode{}, "AddHost");
}

absl::Status CheckedDriver::CheckAfter(const GraphState& state, Graph graph, std::span<const int32_t> after,
                                       const char* what) {
  const auto number = static_cast<int32_t>(state.nodes.size());
  for (const int32_t before : after) {
    if (before >= 0 && before < number) continue;
    return Violated("after earlier nodes", absl::StrCat(what, ": node ", number, " of ", TextOf(graph), " after node ",
                                                        before, ", which is not there"));
  }
  return absl::OkStatus();
}

// The node's number, which must equal that of the driver below.
absl::StatusOr<int32_t> CheckedDriver::Added(GraphState& state, Graph graph, int32_t below,
                                             std::span<const int32_t> after, GraphNode node, const char* what) {
  const auto number = static_cast<int32_t>(state.nodes.size());
  if (below != number) {
    return Violated("nodes count from 0", absl::StrCat(what, ": node ", number, " of ", TextOf(graph), " is number ",
                                                       below, " of the driver below"));
  }
  checked::AddNode(state, after, std::move(node));
  return number;
}

absl::Status CheckedDriver::CheckNode(const ExecState& state, GraphExec exec, int32_t node, const char* what) {
  if (node >= 0 && static_cast<size_t>(node) < state.nodes.size()) return absl::OkStatus();
  return Violated("node exists",
                  absl::StrCat(what, ": node ", node, " of ", TextOf(exec), ", which has ", state.nodes.size()));
}

absl::Status CheckedDriver::SetNode(GraphExec exec, int32_t node, const NodeOp& op) {
  const absl::StatusOr<size_t> bytes = BytesOf(op);
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kSetNode,
                                                        .node = TagOf(op).node,
                                                        .bytes = bytes.value_or(0),
                                                        .exec = static_cast<uint32_t>(exec.bits),
                                                        .graph_node = node}));
  PENSTOCK_RETURN_IF_ERROR(bytes.status());
  PENSTOCK_ASSIGN_OR_RETURN(const Held<ExecState> state, Hold(exec, "SetNode"));
  PENSTOCK_RETURN_IF_ERROR(CheckNode(*state, exec, node, "SetNode"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Held<ExecState>> whole, HoldWhole(*state, "SetNode"));
  PENSTOCK_RETURN_IF_ERROR(inner_->SetNode(state->inner, node, op));
  GraphNode& now = state->nodes[static_cast<size_t>(node)];
  GraphNode next = NodeOf(op, now.ops[0].device);
  if (next.inside != now.inside) {
    return Violated("a region keeps its order", absl::StrCat("SetNode: node ", node, " of ", TextOf(exec),
                                                             " is given other edges between its operations"));
  }
  now.ops = std::move(next.ops);
  if (whole) SetInBody(**whole, *state, node);
  return absl::OkStatus();
}

absl::Status CheckedDriver::EnableNode(GraphExec exec, int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const Inside inside,
      Begin({.kind = CallKind::kEnableNode, .exec = static_cast<uint32_t>(exec.bits), .graph_node = node}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<ExecState> state, Hold(exec, "EnableNode"));
  PENSTOCK_RETURN_IF_ERROR(CheckNode(*state, exec, node, "EnableNode"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Held<ExecState>> whole, HoldWhole(*state, "EnableNode"));
  PENSTOCK_RETURN_IF_ERROR(inner_->EnableNode(state->inner, node, enabled));
  state->nodes[static_cast<size_t>(node)].enabled = enabled;
  if (whole) EnableInBody(**whole, *state, node, enabled);
  return absl::OkStatus();
}

// --- children ---

absl::StatusOr<int32_t> CheckedDriver::CountNodes(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kCountNodes, .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "CountNodes"));
  return inner_->CountNodes(state->inner);
}

absl::StatusOr<int32_t> CheckedDriver::AddChild(Graph graph, std::span<const int32_t> after, Graph child) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kAddChild,
                                                        .graph = static_cast<uint32_t>(graph.bits),
                                                        .child = static_cast<uint32_t>(child.bits)}));
  if (graph == child) {
    return Violated("no child of itself", absl::StrCat("AddChild: ", TextOf(graph), " to itself"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "AddChild"));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> of_child, Hold(child, "AddChild", /*must_be_current=*/false));
  PENSTOCK_RETURN_IF_ERROR(CheckAfter(*state, graph, after, "AddChild"));
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t below, inner_->AddChild(state->inner, after, of_child->inner));
  return Added(*state, graph, below, after, ChildOf(*of_child), "AddChild");
}

absl::Status CheckedDriver::SetChild(GraphExec exec, int32_t node, Graph child) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kSetChild,
                                                        .exec = static_cast<uint32_t>(exec.bits),
                                                        .graph_node = node,
                                                        .child = static_cast<uint32_t>(child.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<ExecState> state, Hold(exec, "SetChild"));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> of_child, Hold(child, "SetChild", /*must_be_current=*/false));
  PENSTOCK_RETURN_IF_ERROR(CheckNode(*state, exec, node, "SetChild"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Held<ExecState>> whole, HoldWhole(*state, "SetChild"));
  PENSTOCK_RETURN_IF_ERROR(inner_->SetChild(state->inner, node, of_child->inner));
  GraphNode& set = state->nodes[static_cast<size_t>(node)];
  set = ChildOf(*of_child);
  if (whole) {
    SetInBody(**whole, *state, node);  // the order of its nodes is that of the old child
    return absl::OkStatus();
  }
  base::MutexLock lock(mu_);
  book_.SetInside(exec, node, set.inside);
  return absl::OkStatus();
}

// --- launches ---

absl::StatusOr<Stream> CheckedDriver::Submitting(const ExecState& state, GraphExec exec, Stream stream,
                                                 const char* what) {
  const StreamState* const on = book_.Find(stream);
  if (on != nullptr && on->device != state.device) {
    return Violated("one device", absl::StrCat(what, ": ", TextOf(exec), " of device ", state.device, " on stream ",
                                               stream.bits, " of device ", on->device));
  }
  return Submitting(stream, what);
}

absl::Status CheckedDriver::Upload(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kUpload,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .exec = static_cast<uint32_t>(exec.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<ExecState> state, Hold(exec, "Upload"));
  if (state->whole) return BodyIsNoExec();
  Stream inner;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(*state, exec, stream, "Upload"));
    book_.Upload(exec, stream);
  }
  return inner_->Upload(state->inner, inner);
}

absl::Status CheckedDriver::LaunchGraph(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kLaunchGraph,
                                                        .stream = static_cast<uint32_t>(stream.bits),
                                                        .exec = static_cast<uint32_t>(exec.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<ExecState> state, Hold(exec, "LaunchGraph"));
  if (state->whole) return BodyIsNoExec();
  const std::vector<std::vector<MemoryUse>> declared = DeclaredBy(*state);
  Stream inner;
  {
    base::MutexLock lock(mu_);
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(*state, exec, stream, "LaunchGraph"));
    const Work launch = book_.Launch(exec, stream);
    PENSTOCK_RETURN_IF_ERROR(UseNodes(*state, declared, launch, memory_));
  }
  const Totals done = TotalsOf(*state);  // tables do not change until the work is done
  PENSTOCK_RETURN_IF_ERROR(inner_->LaunchGraph(state->inner, inner));
  witness_->Count(done);
  return absl::OkStatus();
}

// --- captures ---

absl::Status CheckedDriver::BeginCapture(Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kBeginCapture, .stream = static_cast<uint32_t>(stream.bits)}));
  Stream inner;
  {
    base::MutexLock lock(mu_);
    if (CaptureState* const capture = graphs_.FindCapture(stream); capture != nullptr) {
      absl::Status refused =
          Violated("one capture a stream", absl::StrCat("BeginCapture: stream ", stream.bits, " captures already"));
      if (capture->broken.ok()) capture->broken = refused;
      return refused;
    }
    PENSTOCK_ASSIGN_OR_RETURN(inner, Submitting(stream, "BeginCapture"));
  }
  PENSTOCK_RETURN_IF_ERROR(inner_->BeginCapture(inner));
  witness_->Change({.captures = 1});
  base::MutexLock lock(mu_);
  graphs_.Add(CaptureState{.stream = stream, .by = std::this_thread::get_id()});
  return absl::OkStatus();
}

// Ends the capture below, whatever failed here, unless it is another thread's, whose end CUDA refuses.
absl::StatusOr<Graph> CheckedDriver::EndCapture(Stream stream) {
  const absl::StatusOr<Inside> inside =
      Begin({.kind = CallKind::kEndCapture, .stream = static_cast<uint32_t>(stream.bits)});
  absl::Status failure = inside.status();
  PENSTOCK_ASSIGN_OR_RETURN(const Ended ended, TakeCapture(stream, failure));
  absl::StatusOr<Graph> inner = inner_->EndCapture(ended.stream);
  witness_->Change({.captures = -1});
  if (failure.ok()) failure = ended.capture.broken;
  if (inner.ok() && !failure.ok()) inner_->DestroyGraph(*inner);
  PENSTOCK_RETURN_IF_ERROR(failure);
  PENSTOCK_RETURN_IF_ERROR(inner.status());
  witness_->Change({.graphs = 1});
  base::MutexLock lock(mu_);
  return graphs_.Add(GraphOf(*inner, ended.device, ended.capture.ops));
}

// If something has failed before, a refusal returns `failure` instead of its own message.
absl::StatusOr<CheckedDriver::Ended> CheckedDriver::TakeCapture(Stream stream, const absl::Status& failure) {
  base::MutexLock lock(mu_);
  const StreamState* const state = book_.Find(stream);
  CaptureState* const capture = graphs_.FindCapture(stream);
  if (capture != nullptr && capture->by == std::this_thread::get_id()) {
    Ended ended{.stream = state->inner, .device = state->device, .capture = std::move(*capture)};
    graphs_.DropCapture(stream);
    return ended;
  }
  PENSTOCK_RETURN_IF_ERROR(failure);
  if (state == nullptr) return Violated("stream is alive", absl::StrCat("EndCapture: ", book_.WhyNot(stream)));
  if (capture == nullptr) {
    return Violated("a capture ends once", absl::StrCat("EndCapture: stream ", stream.bits, " does not capture"));
  }
  return Violated("one thread feeds a capture",
                  absl::StrCat("EndCapture: stream ", stream.bits, " captures for another thread"));
}

}  // namespace penstock::driver::checked
