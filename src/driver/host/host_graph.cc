#include "src/driver/host/host_graph.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/node_op.h"

namespace penstock::driver::host {
namespace {

// Checks what AddNode requires of an operation: the rules of every graph, and those of this driver's streams.
absl::Status CheckWork(const WorkMaker& maker, int device, const NodeOp& op) {
  PENSTOCK_RETURN_IF_ERROR(CheckNode(op));
  // For a batch, only the table's location is checked: its pieces may not be written yet.
  if (const auto* const batch = std::get_if<const BatchOp*>(&op)) return maker.CheckTable(**batch);
  return maker.Make(device, op).status();
}

}  // namespace

// --- graphs ---

absl::StatusOr<Graph> HostGraphs::CreateGraph(int device) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  return Adopt(GraphNodes(device, false));
}

absl::StatusOr<Graph> HostGraphs::Adopt(GraphNodes nodes) {
  auto kept = std::make_shared<GraphNodes>(std::move(nodes));
  base::MutexLock lock(mu_);
  const Graph graph{graphs_.Add(std::move(kept))};
  if (!graph) return absl::ResourceExhaustedError("too many graphs are alive");
  return graph;
}

void HostGraphs::DestroyGraph(Graph graph) {
  base::MutexLock lock(mu_);
  graphs_.Remove(graph.bits);
}

absl::StatusOr<std::shared_ptr<GraphNodes>> HostGraphs::Find(Graph graph) {
  base::MutexLock lock(mu_);
  const auto* found = graphs_.Find(graph.bits);
  if (!found) return NotAlive("graph");
  return *found;
}

absl::StatusOr<int32_t> HostGraphs::AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                            int priority) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> nodes, Find(graph));
  PENSTOCK_RETURN_IF_ERROR(CheckWork(maker_, nodes->device(), op));
  return nodes->Add(after, op, priority);
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
  auto made = std::make_shared<Exec>(Exec{.nodes = *nodes});
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
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  if (device == found->nodes.device()) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("a graph of device ", found->nodes.device(), " cannot be launched on a stream of device ", device));
}

absl::Status HostGraphs::Upload(GraphExec exec, Stream stream) { return FindFor(exec, stream).status(); }

absl::Status HostGraphs::LaunchGraph(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, FindFor(exec, stream));
  std::vector<GraphStep> steps;
  for (const GraphNode& node : found->nodes.all()) {
    GraphStep& step = steps.emplace_back(GraphStep{.after = node.after, .priority = node.priority});
    if (!node.enabled || !node.kept) continue;
    absl::StatusOr<Work> work = maker_.Make(found->nodes.device(), node.kept->op());
    if (!work.ok()) return base::Prefixed(found->nodes.TextOf(steps.size() - 1), work.status());
    step.work = *std::move(work);
  }
  return scheduler_.SubmitGraph(stream, std::move(steps), found->turn);
}

absl::Status HostGraphs::SetNode(GraphExec exec, int32_t node, const NodeOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_RETURN_IF_ERROR(CheckWork(maker_, found->nodes.device(), op));
  return found->nodes.Set(node, op);
}

absl::Status HostGraphs::EnableNode(GraphExec exec, int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  return found->nodes.Enable(node, enabled);
}

absl::Status HostGraphs::SetChild(GraphExec exec, int32_t node, Graph child) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<GraphNodes> of_child, Find(child));
  return found->nodes.SetChild(node, *of_child);
}

}  // namespace penstock::driver::host
