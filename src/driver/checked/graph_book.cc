#include "src/driver/checked/graph_book.h"

#include <type_traits>
#include <utility>

#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver::checked {
namespace {

KeptOp Kept(const CopyOp& op) { return op; }
KeptOp Kept(const BatchOp& op) { return op; }
KeptOp Kept(const FillOp& op) { return op; }
KeptOp Kept(const KernelOp& op) { return KeptKernel{.pointers = PointersOf(op), .uses = op.uses, .tag = op.tag}; }
KeptOp Kept(const RegionOp& op) { return KeptKernel{.pointers = {}, .uses = nullptr, .tag = op.tag}; }  // see NodeOf

absl::StatusOr<size_t> Bytes(const CopyOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const CopySize size, SizeOf(op));
  return size.bytes;
}
absl::StatusOr<size_t> Bytes(const BatchOp& op) { return op.size.bytes; }  // its table may be written later
absl::StatusOr<size_t> Bytes(const FillOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const FillSize size, SizeOf(op));
  return size.bytes;
}
absl::StatusOr<size_t> Bytes(const KernelOp& /*op*/) { return 0; }
absl::StatusOr<size_t> Bytes(const RegionOp& /*op*/) { return 0; }

void Count(Totals::Sum& sum, size_t bytes) {
  ++sum.calls;
  sum.bytes += static_cast<int64_t>(bytes);
}
void Count(Totals& totals, const CopyOp& op) {
  Count(totals.*SumOf(op.kind, false), SizeOf(op).value_or(CopySize()).bytes);
}
void Count(Totals& totals, const BatchOp& op) {
  Count(totals.*SumOf(op.kind, true), SizeOf(op).value_or(BatchSize()).bytes);
  totals.pieces += static_cast<int64_t>(op.count);
}
void Count(Totals& totals, const FillOp& op) { Count(totals.fills, SizeOf(op).value_or(FillSize()).bytes); }
void Count(Totals& /*totals*/, const KeptKernel& /*kernel*/) {}

// `declared`: the use is declared by a kernel.
template <class Op>
absl::Status UseOp(const Op& op, const std::vector<MemoryUse>& declared, const Work& work, int device,
                   MemoryRules& memory) {
  if constexpr (std::is_same_v<Op, KeptKernel>) {
    return memory.UseKernel(op.pointers, op.uses == nullptr ? nullptr : &declared, work, device).status();
  } else {
    return memory.Use(op, work, device);
  }
}

bool Runs(const GraphNode& node, size_t op) { return node.enabled && (node.off.empty() || !node.off[op]); }

}  // namespace

KeptOp KeptOf(const NodeOp& op) {
  return std::visit([](const auto* of) { return Kept(*of); }, op);
}

absl::StatusOr<size_t> BytesOf(const NodeOp& op) {
  return std::visit([](const auto* of) { return Bytes(*of); }, op);
}

GraphNode NodeOf(const NodeOp& op, int device) {
  const auto* const found = std::get_if<const RegionOp*>(&op);
  if (found == nullptr) return {.ops = {{KeptOf(op), device}}};
  const RegionOp& region = **found;
  GraphState parts;
  std::vector<std::vector<int32_t>> after(region.ops.size());
  for (const RegionOp::Edge& edge : region.edges) after[static_cast<size_t>(edge.after)].push_back(edge.before);
  for (size_t i = 0; i < region.ops.size(); ++i) AddNode(parts, after[i], {.ops = {{KeptOf(region.ops[i]), device}}});
  return ChildOf(parts);
}

GraphNode ChildOf(const GraphState& graph) {
  GraphNode child{.ops = {}, .is_child = true};
  struct Place {
    size_t node = 0, inside = 0;
  };
  std::vector<Place> places;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const GraphNode& of = graph.nodes[node];
    for (size_t i = 0; i < of.ops.size(); ++i) {
      std::vector<bool>& before = child.inside.emplace_back(places.size());
      for (size_t k = 0; k < places.size(); ++k) {
        before[k] = places[k].node == node ? of.inside[i][places[k].inside] : graph.order[node][places[k].node];
      }
      child.ops.push_back(of.ops[i]);
      places.push_back({node, i});
    }
  }
  return child;
}

void AddNode(GraphState& graph, std::span<const int32_t> after, GraphNode node) {
  std::vector<bool> before(graph.nodes.size());
  for (const int32_t earlier : after) {
    const auto at = static_cast<size_t>(earlier);
    before[at] = true;
    for (size_t i = 0; i < graph.order[at].size(); ++i) before[i] = before[i] || graph.order[at][i];
  }
  graph.nodes.push_back(std::move(node));
  graph.order.push_back(std::move(before));
}

GraphState GraphOf(Graph inner, int device, std::vector<KeptOp> ops) {
  GraphState graph{.inner = inner, .device = device};
  for (KeptOp& op : ops) {
    graph.order.emplace_back(graph.nodes.size(), true);
    graph.nodes.push_back({.ops = {{std::move(op), device}}});
  }
  return graph;
}

void PutInOrder(GraphState& graph, size_t node, Alternative alternative) {
  graph.nodes[node].alternative = alternative;
  if (alternative.of < 0) return;
  for (size_t earlier = 0; earlier < node; ++earlier) {
    const Alternative& other = graph.nodes[earlier].alternative;
    if (other.of == alternative.of && other.body != alternative.body) graph.order[node][earlier] = true;
  }
}

GraphOrder OrderOf(const GraphState& graph) {
  GraphOrder order{.nodes = graph.order};
  for (const GraphNode& node : graph.nodes) order.inside.push_back(node.inside);
  return order;
}

// --- launches ---

std::vector<std::vector<MemoryUse>> DeclaredBy(const ExecState& exec) {
  std::vector<std::vector<MemoryUse>> declared;
  for (const GraphNode& node : exec.nodes) {
    for (size_t i = 0; i < node.ops.size(); ++i) {
      std::vector<MemoryUse>& uses = declared.emplace_back();
      const auto* kernel = std::get_if<KeptKernel>(&node.ops[i].op);
      if (kernel == nullptr || kernel->uses == nullptr || !Runs(node, i)) continue;
      kernel->uses->AppendUses(kernel->tag.node, uses);
    }
  }
  return declared;
}

absl::Status UseNodes(const ExecState& exec, const std::vector<std::vector<MemoryUse>>& declared, Work launch,
                      MemoryRules& memory) {
  auto uses = declared.begin();
  for (size_t n = 0; n < exec.nodes.size(); ++n) {
    const GraphNode& node = exec.nodes[n];
    launch.graph_node = static_cast<int32_t>(n);
    for (size_t i = 0; i < node.ops.size(); ++i, ++uses) {
      if (!Runs(node, i)) continue;
      launch.child_node = node.is_child ? static_cast<int32_t>(i) : -1;
      PENSTOCK_RETURN_IF_ERROR(std::visit(
          [&](const auto& op) {
            launch.plan_node = op.tag.node;
            return UseOp(op, *uses, launch, node.ops[i].device, memory);
          },
          node.ops[i].op));
    }
  }
  return absl::OkStatus();
}

Totals TotalsOf(const ExecState& exec) {
  Totals totals;
  for (const GraphNode& node : exec.nodes) {
    if (!node.enabled || node.has_switch || !node.bodies.empty()) continue;
    for (const PlacedOp& placed : node.ops) std::visit([&](const auto& op) { Count(totals, op); }, placed.op);
  }
  return totals;
}

// --- captures ---

void GraphBook::Remove(Graph graph) {
  const GraphState* const state = Find(graph);
  if (state == nullptr) return;
  std::vector<Graph> bodies;
  for (const GraphNode& node : state->nodes) bodies.insert(bodies.end(), node.bodies.begin(), node.bodies.end());
  graphs_.Remove(graph.bits);
  for (const Graph body : bodies) Remove(body);
}

uint64_t GraphBook::BodyAliveOf(GraphExec exec) const {
  for (const auto& [number, state] : execs_.alive()) {
    if (state.whole == exec) return number;
  }
  return 0;
}

CaptureState* GraphBook::FindCapture(Stream stream) {
  const auto at = captures_.find(stream.bits);
  return at == captures_.end() ? nullptr : &at->second;
}

const CaptureState* GraphBook::FindCaptureBy(std::thread::id thread) const {
  for (const auto& [bits, capture] : captures_) {
    if (capture.by == thread) return &capture;
  }
  return nullptr;
}

bool GraphBook::DropCapture(Stream stream) { return captures_.erase(stream.bits) > 0; }

}  // namespace penstock::driver::checked
