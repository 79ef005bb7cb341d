#include "src/driver/host/host_graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/driver/node_op.h"

namespace penstock::driver::host {
namespace {

// What AddNode asks of an operation: what every graph does, and what a stream of this driver does.
absl::Status CheckWork(const WorkMaker& maker, int device, const NodeOp& op) {
  PENSTOCK_RETURN_IF_ERROR(CheckNode(op));
  // Of a batch the table's place alone: its pieces may not be written yet.
  if (const auto* const batch = std::get_if<const BatchOp*>(&op)) return maker.CheckTable(**batch);
  return maker.Make(device, op).status();
}

// Node `number` may come after earlier nodes, each named once.
absl::Status CheckEdges(int32_t number, std::span<const int32_t> after) {
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] < 0 || after[i] >= number) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", number, " of a graph cannot come after node ", after[i], "; name earlier nodes"));
    }
    const std::span<const int32_t> named = after.first(i);
    if (std::find(named.begin(), named.end(), after[i]) != named.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", number, " of a graph comes after node ", after[i], " twice; name it once"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

KeptOp::KeptOp(const NodeOp& op) {
  std::visit([this](const auto* of) { op_ = *of; }, op);
  auto* const kernel = std::get_if<KernelOp>(&op_);
  if (!kernel) return;
  args_ = std::make_unique<const ArgBlock>(*kernel);
  pointer_offsets_.assign(kernel->pointer_offsets, kernel->pointer_offsets + kernel->pointer_count);
  kernel->argv = args_->argv();
  kernel->args = args_->data();
  kernel->pointer_offsets = pointer_offsets_.data();
}

// --- graphs ---

absl::StatusOr<Graph> HostGraphs::CreateGraph(int device) {
  PENSTOCK_RETURN_IF_ERROR(maker_.CheckDevice(device));
  auto nodes = std::make_shared<Nodes>();
  nodes->device = device;
  base::MutexLock lock(mu_);
  const Graph graph{graphs_.Add(std::move(nodes))};
  if (!graph) return absl::ResourceExhaustedError("too many graphs are alive");
  return graph;
}

void HostGraphs::DestroyGraph(Graph graph) {
  base::MutexLock lock(mu_);
  graphs_.Remove(graph.bits);
}

absl::StatusOr<std::shared_ptr<HostGraphs::Nodes>> HostGraphs::Find(Graph graph) {
  base::MutexLock lock(mu_);
  const auto* found = graphs_.Find(graph.bits);
  if (!found) return NotAlive("graph");
  return *found;
}

absl::StatusOr<int32_t> HostGraphs::AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                            int priority) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Nodes> nodes, Find(graph));
  const auto number = static_cast<int32_t>(nodes->all.size());
  PENSTOCK_RETURN_IF_ERROR(CheckEdges(number, after));
  PENSTOCK_RETURN_IF_ERROR(CheckWork(maker_, nodes->device, op));
  nodes->all.push_back({std::make_shared<const KeptOp>(op), {after.begin(), after.end()}, priority});
  return number;
}

// --- execs ---

absl::StatusOr<GraphExec> HostGraphs::Instantiate(Graph graph) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Nodes> nodes, Find(graph));
  auto made = std::make_shared<Exec>();
  made->nodes = *nodes;
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

absl::StatusOr<HostGraphs::Node*> HostGraphs::NodeOf(Exec& exec, int32_t node) {
  std::vector<Node>& nodes = exec.nodes.all;
  if (node >= 0 && static_cast<size_t>(node) < nodes.size()) return &nodes[static_cast<size_t>(node)];
  return absl::InvalidArgumentError(absl::StrCat("there is no node ", node, "; this graph has ", nodes.size()));
}

absl::StatusOr<std::shared_ptr<HostGraphs::Exec>> HostGraphs::FindFor(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(const int device, scheduler_.DeviceOf(stream));
  if (device == found->nodes.device) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("a graph of device ", found->nodes.device, " cannot be launched on a stream of device ", device));
}

absl::Status HostGraphs::Upload(GraphExec exec, Stream stream) { return FindFor(exec, stream).status(); }

absl::Status HostGraphs::LaunchGraph(GraphExec exec, Stream stream) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, FindFor(exec, stream));
  std::vector<GraphStep> steps;
  for (const Node& node : found->nodes.all) {
    GraphStep& step = steps.emplace_back(GraphStep{.after = node.after, .priority = node.priority});
    if (!node.enabled) continue;
    absl::StatusOr<Work> work = maker_.Make(found->nodes.device, node.kept->op());
    if (!work.ok()) return base::Prefixed(absl::StrCat("node ", steps.size() - 1, " of a graph"), work.status());
    step.work = *std::move(work);
  }
  return scheduler_.SubmitGraph(stream, std::move(steps), found->turn);
}

absl::Status HostGraphs::SetNode(GraphExec exec, int32_t node, const NodeOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(Node* const set, NodeOf(*found, node));
  PENSTOCK_RETURN_IF_ERROR(CheckWork(maker_, found->nodes.device, op));
  PENSTOCK_RETURN_IF_ERROR(CheckReplacement(ShapeOf(set->kept->op()), op));
  set->kept = std::make_shared<const KeptOp>(op);
  return absl::OkStatus();
}

absl::Status HostGraphs::EnableNode(GraphExec exec, int32_t node, bool enabled) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Exec> found, Find(exec));
  PENSTOCK_ASSIGN_OR_RETURN(Node* const set, NodeOf(*found, node));
  set->enabled = enabled;
  return absl::OkStatus();
}

}  // namespace penstock::driver::host
