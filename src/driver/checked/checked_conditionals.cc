// The calls for conditional nodes.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/checked/checked_class.h"

namespace penstock::driver::checked {

absl::StatusOr<ConditionalHandle> CheckedDriver::CreateConditional(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kCreateConditional, .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "CreateConditional"));
  return inner_->CreateConditional(state->inner);
}

absl::StatusOr<ConditionalNode> CheckedDriver::AddConditional(Graph graph, std::span<const int32_t> after,
                                                              ConditionalHandle handle, ConditionalKind kind,
                                                              int32_t bodies) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kAddConditional, .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "AddConditional"));
  PENSTOCK_RETURN_IF_ERROR(CheckAfter(*state, graph, after, "AddConditional"));
  PENSTOCK_ASSIGN_OR_RETURN(const ConditionalNode below,
                            inner_->AddConditional(state->inner, after, handle, kind, bodies));
  GraphNode node{.ops = {}, .kind = kind};
  {
    base::MutexLock lock(mu_);
    for (const Graph body : below.bodies) {
      node.bodies.push_back(graphs_.Add(GraphState{.inner = body, .device = state->device, .of = graph}));
    }
  }
  ConditionalNode added{.bodies = node.bodies};
  PENSTOCK_ASSIGN_OR_RETURN(added.number, Added(*state, graph, below.number, after, std::move(node), "AddConditional"));
  return added;
}

absl::StatusOr<GraphExec> CheckedDriver::BodyOf(GraphExec exec, Graph body) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside, Begin({.kind = CallKind::kBodyOf,
                                                        .graph = static_cast<uint32_t>(body.bits),
                                                        .exec = static_cast<uint32_t>(exec.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<ExecState> state, Hold(exec, "BodyOf"));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> of, Hold(body, "BodyOf"));
  PENSTOCK_ASSIGN_OR_RETURN(const GraphExec inner, inner_->BodyOf(state->inner, of->inner));
  witness_->Change({.execs = 1});
  base::MutexLock lock(mu_);
  ExecState made{.inner = inner, .device = state->device, .whole = exec};
  while (made.place < state->bodies.size() && !(state->bodies[made.place].body == body)) ++made.place;
  if (made.place == state->bodies.size()) {
    return Violated("a body of the exec", absl::StrCat("BodyOf: the driver below found graph ", body.bits, " in exec ",
                                                       exec.bits, ", which has no such body"));
  }
  made.nodes = state->bodies[made.place].nodes;
  return graphs_.Add(std::move(made));
}

// A node that may be switched off is judged as one that is on, and alternatives as if they were in an order.
absl::StatusOr<NodeSwitch> CheckedDriver::AddSwitch(Graph graph, int32_t node, Alternative alternative) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kAddSwitch, .graph = static_cast<uint32_t>(graph.bits)}));
  PENSTOCK_ASSIGN_OR_RETURN(const Held<GraphState> state, Hold(graph, "AddSwitch"));
  PENSTOCK_ASSIGN_OR_RETURN(const NodeSwitch added, inner_->AddSwitch(state->inner, node, alternative));
  state->nodes[static_cast<size_t>(node)].has_switch = true;
  PutInOrder(*state, static_cast<size_t>(node), alternative);
  return added;
}

absl::StatusOr<LoopKernels> CheckedDriver::LoadLoopKernels(int device) {
  PENSTOCK_ASSIGN_OR_RETURN(const Inside inside,
                            Begin({.kind = CallKind::kLoadKernel, .device = static_cast<int16_t>(device)}));
  PENSTOCK_RETURN_IF_ERROR(CheckDevice(device, "LoadLoopKernels"));
  return inner_->LoadLoopKernels(device);
}

absl::StatusOr<std::optional<CheckedDriver::Held<ExecState>>> CheckedDriver::HoldWhole(const ExecState& state,
                                                                                       const char* what) {
  std::optional<Held<ExecState>> whole;
  if (!state.whole) return whole;
  PENSTOCK_ASSIGN_OR_RETURN(Held<ExecState> held, Hold(state.whole, what));
  whole.emplace(std::move(held));
  return whole;
}

}  // namespace penstock::driver::checked
