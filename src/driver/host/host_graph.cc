#include "src/driver/host/host_graph.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/conditional_rules.h"
#include "src/driver/node_op.h"

namespace penstock::driver::host {
absl::StatusOr<std::shared_ptr<const KeptOp>> Keep(const WorkMaker& maker, int device, const NodeOp& op) {
  PENSTOCK_RETURN_IF_ERROR(CheckNode(op));
  std::shared_ptr<const RegionTasks> tasks;
  if (const auto* const batch = std::get_if<const BatchOp*>(&op)) {
    // Only the table's location is checked: its pieces may not be written yet.
    PENSTOCK_RETURN_IF_ERROR(maker.CheckTable(**batch));
  } else if (const auto* const region = std::get_if<const RegionOp*>(&op)) {
    PENSTOCK_ASSIGN_OR_RETURN(tasks, maker.MakeTasks(device, **region));
  } else {
    PENSTOCK_RETURN_IF_ERROR(maker.Make(device, op).status());
  }
  return std::make_shared<const KeptOp>(op, std::move(tasks));
}

// --- graphs ---

absl::StatusOr<Graph> HostGraphs::CreateGraph(int device) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  return Adopt(GraphNodes(device, GraphNodes::Kind::kBuilt));
}

absl::StatusOr<Graph> HostGraphs::Adopt(GraphNodes nodes) {
  auto kept = std::make_shared<GraphNodes>(std::move(nodes));
  base::MutexLock lock(mu_);
  const Graph graph{graphs_.Add({.nodes = std::move(kept)})};
  if (!graph) return absl::ResourceExhaustedError("too many graphs are alive");
  return graph;
}

void HostGraphs::DestroyGraph(Graph graph) {
  base::MutexLock lock(mu_);
  const Entry* const entry = graphs_.Find(graph.bits);
  if (entry != nullptr && !entry->nodes->is_body()) Remove(graph);
}

void HostGraphs::Remove(Graph graph) {
  const std::vector<Graph> bodies = std::move(graphs_.Find(graph.bits)->bodies);
  graphs_.Remove(graph.bits);
  for (const Graph body : bodies) Remove(body);
}

absl::StatusOr<std::shared_ptr<GraphNodes>> HostGraphs::Find(Graph graph) {
  base::MutexLock lock(mu_);
  const auto* found = graphs_.Find(graph.bits);
  if (!found) return NotAlive("graph");
  return found->nodes;
}

absl::StatusOr<int32_t> HostGraphs::AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                            NodePlace place) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  PENSTOCK_ASSIGN_OR_RETURN(const int device, nodes->DeviceOf(place, op));
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const KeptOp> kept, Keep(maker_, device, op));
  return nodes->Add(after, std::move(kept), place);
}

absl::StatusOr<int32_t> HostGraphs::AddHost(Graph graph, std::span<const int32_t> after, const NodeOp& call) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  return nodes->AddHost(after, call);
}

absl::StatusOr<int32_t> HostGraphs::AddChild(Graph graph, std::span<const int32_t> after, Graph child) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> of_child, Find(child));
  if (nodes == of_child) return ChildOfItself();
  return nodes->AddChild(after, *of_child);
}

absl::StatusOr<int32_t> HostGraphs::CountNodes(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  return nodes->count();
}

// --- execs ---

absl::StatusOr<GraphExec> HostGraphs::Instantiate(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  if (nodes->is_body()) return BodyIsNoGraph();
  auto made = std::make_shared<Exec>();
  made->nodes = nodes->Clone(
      [&](const GraphNodes& body, const std::shared_ptr<GraphNodes>& copy) { made->bodies.push_back({&body, copy}); });
  {
    base::MutexLock lock(mu_);
    Entry* const entry = graphs_.Find(graph.bits);
    if (entry == nullptr) return NotAlive("graph");
    const bool once = nodes->has_conditional() || nodes->has_switch();
    if (std::exchange(entry->instantiated, true) && once) return InstantiatedBefore();
  }
  return Add(std::move(made));
}

absl::StatusOr<GraphExec> HostGraphs::Add(std::shared_ptr<Exec> made) {
  base::MutexLock lock(mu_);
  const GraphExec exec{execs_.Add(std::move(made))};
  if (!exec) return absl::ResourceExhaustedError("too many instances of graphs are alive");
  return exec;
}

void HostGraphs::DestroyExec(GraphExec exec) {
  base::MutexLock lock(mu_);
  execs_.Remove(exec.bits);
}

absl::StatusOr<std::shared_ptr<HostGraphs::Exec>> HostGraphs::Find(GraphExec exec) {
  base::MutexLock lock(mu_);
  const auto* found = execs_.Find(exec.bits);
  if (!found) return NotAlive("instance of a graph");
  return *found;
}

absl::StatusOr<std::shared_ptr<HostGraphs::Exec>> HostGraphs::FindFor(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Exec> found, Find(exec));
  if (found->nodes->is_body()) return BodyIsNoExec();
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  if (device == found->nodes->device()) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("a graph of device ", found->nodes->device(), " cannot be launched on a stream of device ", device));
}

absl::Status HostGraphs::Upload(GraphExec exec, Stream stream) { return FindFor(exec, stream).status(); }

absl::Status HostGraphs::LaunchGraph(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, FindFor(exec, stream));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<GraphStep> steps, StepsOf(*found->nodes));
  return scheduler_.SubmitGraph(stream, std::move(steps), found->turn);
}

absl::StatusOr<std::vector<GraphStep>> HostGraphs::StepsOf(const GraphNodes& nodes) const {
  std::vector<GraphStep> steps;
  for (const GraphNode& node : nodes.all()) {
    absl::StatusOr<GraphStep> step = StepOf(node);
    if (!step.ok()) return base::Prefixed(nodes.TextOf(steps.size()), step.status());
    steps.push_back(*std::move(step));
  }
  return steps;
}

absl::StatusOr<GraphStep> HostGraphs::StepOf(const GraphNode& node) const {
  GraphStep step{.after = node.after, .priority = node.priority, .device = node.device, .is_on = node.is_on};
  if (node.enabled && node.kept && node.kept->tasks() != nullptr) {
    step.work = {EngineKind::kCompute, MakeRegionTask(TagOf(node.kept->op()), node.kept->tasks())};
  } else if (node.enabled && node.kept) {
    PENSTOCK_ASSIGN_OR_RETURN(step.work, maker_.Make(node.device, node.kept->op()));
  }
  if (!node.bodies) return step;
  step.branch =
      std::make_unique<BranchSteps>(BranchSteps{.kind = node.bodies->kind, .value = node.bodies->value, .bodies = {}});
  for (const std::shared_ptr<GraphNodes>& body : node.bodies->graphs) {
    absl::StatusOr<std::vector<GraphStep>> steps = StepsOf(*body);
    if (!steps.ok()) return base::Prefixed(absl::StrCat("body ", step.branch->bodies.size()), steps.status());
    step.branch->bodies.push_back(*std::move(steps));
  }
  return step;
}

absl::Status HostGraphs::SetNode(GraphExec exec, int32_t node, const NodeOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(const int device, found->nodes->DeviceOf(node));
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<const KeptOp> kept, Keep(maker_, device, op));
  return found->nodes->Set(node, std::move(kept));
}

absl::Status HostGraphs::EnableNode(GraphExec exec, int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  return found->nodes->Enable(node, enabled);
}

absl::Status HostGraphs::SetChild(GraphExec exec, int32_t node, Graph child) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> of_child, Find(child));
  return found->nodes->SetChild(node, *of_child);
}

// --- conditional nodes ---

absl::StatusOr<ConditionalHandle> HostGraphs::CreateConditional(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  return nodes->CreateConditional();
}

absl::StatusOr<ConditionalNode> HostGraphs::AddConditional(Graph graph, std::span<const int32_t> after,
                                                           ConditionalHandle handle, ConditionalKind kind,
                                                           int32_t bodies) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  PENSTOCK_ASSIGN_OR_RETURN(const int32_t number, nodes->AddConditional(after, handle, kind, bodies));
  ConditionalNode node{.number = number, .bodies = {}};
  base::MutexLock lock(mu_);
  for (const std::shared_ptr<GraphNodes>& body : nodes->bodies_of(number).graphs) {
    node.bodies.push_back(Graph{graphs_.Add({.nodes = body})});
    if (!node.bodies.back()) return absl::ResourceExhaustedError("too many graphs are alive");
    if (Entry* const entry = graphs_.Find(graph.bits)) entry->bodies.push_back(node.bodies.back());
  }
  return node;
}

absl::StatusOr<NodeSwitch> HostGraphs::AddSwitch(Graph graph, int32_t node) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  return nodes->AddSwitch(node);
}

absl::StatusOr<GraphExec> HostGraphs::BodyOf(GraphExec exec, Graph body) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(body));
  for (const Body& of : found->bodies) {
    if (of.of == nodes.get()) return Add(std::make_shared<Exec>(Exec{.nodes = of.nodes}));
  }
  return NoSuchBody();
}

}  // namespace penstock::driver::host
