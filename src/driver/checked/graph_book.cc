#include "src/driver/checked/graph_book.h"

#include <type_traits>

#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"
#include "src/driver/fill_box.h"

namespace penstock::driver::checked {
namespace {

KeptOp Kept(const CopyOp& op) { return op; }
KeptOp Kept(const BatchOp& op) { return op; }
KeptOp Kept(const FillOp& op) { return op; }
KeptOp Kept(const KernelOp& op) { return KeptKernel{.pointers = PointersOf(op), .uses = op.uses, .tag = op.tag}; }

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

}  // namespace

KeptOp KeptOf(const NodeOp& op) {
  return std::visit([](const auto* of) { return Kept(*of); }, op);
}

absl::StatusOr<size_t> BytesOf(const NodeOp& op) {
  return std::visit([](const auto* of) { return Bytes(*of); }, op);
}

void AddNode(GraphState& graph, std::span<const int32_t> after, const NodeOp& op) {
  std::vector<bool> before(graph.nodes.size());
  for (const int32_t node : after) {
    const auto at = static_cast<size_t>(node);
    before[at] = true;
    for (size_t i = 0; i < graph.order[at].size(); ++i) before[i] = before[i] || graph.order[at][i];
  }
  graph.nodes.push_back({.op = KeptOf(op)});
  graph.order.push_back(std::move(before));
}

std::vector<std::vector<MemoryUse>> DeclaredBy(const ExecState& exec) {
  std::vector<std::vector<MemoryUse>> declared(exec.nodes.size());
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    const auto* kernel = std::get_if<KeptKernel>(&exec.nodes[i].op);
    if (kernel == nullptr || kernel->uses == nullptr || !exec.nodes[i].enabled) continue;
    kernel->uses->AppendUses(kernel->tag.node, declared[i]);
  }
  return declared;
}

absl::Status UseNodes(const ExecState& exec, const std::vector<std::vector<MemoryUse>>& declared, Work launch,
                      MemoryRules& memory) {
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    if (!exec.nodes[i].enabled) continue;
    launch.graph_node = static_cast<int32_t>(i);
    PENSTOCK_RETURN_IF_ERROR(std::visit(
        [&](const auto& op) -> absl::Status {
          launch.plan_node = op.tag.node;
          if constexpr (std::is_same_v<decltype(op), const KeptKernel&>) {
            return memory.UseKernel(op.pointers, op.uses == nullptr ? nullptr : &declared[i], launch, exec.device)
                .status();
          } else {
            return memory.Use(op, launch, exec.device);
          }
        },
        exec.nodes[i].op));
  }
  return absl::OkStatus();
}

Totals TotalsOf(const ExecState& exec) {
  Totals totals;
  for (const GraphNode& node : exec.nodes) {
    if (node.enabled) std::visit([&](const auto& op) { Count(totals, op); }, node.op);
  }
  return totals;
}

}  // namespace penstock::driver::checked
