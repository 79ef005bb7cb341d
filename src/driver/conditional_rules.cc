#include "src/driver/conditional_rules.h"

#include "absl/strings/str_cat.h"

namespace penstock::driver {

absl::Status CheckBodies(ConditionalKind kind, int32_t bodies) {
  const int32_t most = kind == ConditionalKind::kIf ? 2 : kind == ConditionalKind::kWhile ? 1 : kMostBodies;
  if (bodies >= 1 && bodies <= most) return absl::OkStatus();
  constexpr const char* kNames[] = {"an if has one body, and a second for otherwise", "a loop has one body",
                                    "a switch has 1 to 64 bodies"};
  return absl::InvalidArgumentError(absl::StrCat(kNames[static_cast<size_t>(kind)], ", not ", bodies));
}

absl::Status NoSuchHandle() {
  return absl::InvalidArgumentError(
      "the handle is not one of this graph, or has its node already; make one by CreateConditional for each node, for "
      "the graph or body that the node is added to");
}

absl::Status NodeIsConditional(int32_t node) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node,
                   " is conditional, which is neither switched nor given an operation; change those of its bodies, "
                   "see BodyOf"));
}

absl::Status NoSuchBody() {
  return absl::InvalidArgumentError(
      "the graph was no body of the exec's graph when that was instantiated; name one that AddConditional returned");
}

absl::Status BodyIsNoExec() {
  return absl::InvalidArgumentError("a body runs only where its conditional node does; launch the exec of its graph");
}

absl::Status BodyIsNoGraph() { return absl::InvalidArgumentError("a body is instantiated with its graph; see BodyOf"); }

absl::Status HostCallInABody() {
  return absl::FailedPreconditionError(
      "CUDA allows no calls of the host in a body of a conditional node; add a kernel that asks the host "
      "(LoadHostcall), "
      "or make the call before or after the node");
}

absl::Status ChildCannotBeInABody(const std::string& kind) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the graph cannot be a child in a body of a conditional node, since it has ", kind,
      ", and CUDA allows there only kernels, fills, and copies of device and pinned memory; take that out, "
      "or let the host decide what to launch"));
}

absl::Status ConditionalInAChild() {
  return absl::FailedPreconditionError(
      "a graph with a conditional node cannot be a child of another in CUDA; add its nodes to the other graph");
}

absl::Status BodyIsNoChild() {
  return absl::FailedPreconditionError(
      "a body of a conditional node belongs to its graph and cannot be a child; make a graph of its own for both");
}

absl::Status NodeHasNoSwitch(int32_t node) {
  return absl::FailedPreconditionError(absl::StrCat(
      "node ", node, " cannot be switched by kernels, which only kernels, batches and fills can; put it into a body"));
}

absl::Status SwitchedBefore(int32_t node) {
  return absl::InvalidArgumentError(absl::StrCat("node ", node, " has a switch already; use that one"));
}

absl::Status SwitchInAChild() {
  return absl::FailedPreconditionError(
      "a graph with nodes that kernels switch cannot be a child of another; add its nodes to the other graph");
}

absl::Status InstantiatedBefore() {
  return absl::FailedPreconditionError(
      "CUDA instantiates a graph with a conditional node, or with nodes that kernels switch, only once; make another "
      "graph for another exec");
}

}  // namespace penstock::driver
