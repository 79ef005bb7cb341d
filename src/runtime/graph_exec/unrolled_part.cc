#include "src/runtime/graph_exec/unrolled_part.h"

#include <cstddef>

#include "penstock/status_macros.h"

namespace penstock::runtime {

int32_t UnrolledPart::Kernels(const NodeOperations& operations) const {
  const Table<EntryId, GraphNodeEntry>& entries = slot_.graph().program().replay.entries;
  for (const EntryId e : entries.ids()) {
    switch (entries[e].op) {
      case ExecCommand::Op::kKernel:
      case ExecCommand::Op::kBatch:
      case ExecCommand::Op::kFill: break;
      case ExecCommand::Op::kCopy:
        if (!operations.IsEngineCopy(e)) break;
        return 0;
      default: return 0;
    }
  }
  return entries.count();
}

absl::Status UnrolledPart::Unroll(int32_t iterations, int32_t nodes) {
  handles_.resize(static_cast<size_t>(iterations - 1) * static_cast<size_t>(nodes));
  PENSTOCK_ASSIGN_OR_RETURN(
      list_, slot_.options().pinned.Allocate(handles_.size() * sizeof(uint64_t), slot_.options().pinned_node));
  iterations_ = iterations;
  nodes_ = nodes;
  return absl::OkStatus();
}

absl::Status UnrolledPart::Added(driver::Graph graph, int32_t iteration, int32_t first) {
  if (iteration == 0) {
    first_ = first;
    return absl::OkStatus();
  }
  auto* const list = static_cast<uint64_t*>(list_.data());
  for (int32_t node = 0; node < nodes_; ++node) {
    PENSTOCK_ASSIGN_OR_RETURN(const driver::NodeSwitch added, slot_.graph().driver().AddSwitch(graph, first + node));
    const size_t at = static_cast<size_t>(iteration - 1) * static_cast<size_t>(nodes_) + static_cast<size_t>(node);
    list[at] = handles_[at] = added.bits;
  }
  return absl::OkStatus();
}

void UnrolledPart::Switched(int32_t node, bool on) {
  auto* const list = static_cast<uint64_t*>(list_.data());
  for (auto at = static_cast<size_t>(node - first_); at < handles_.size(); at += static_cast<size_t>(nodes_)) {
    list[at] = on ? handles_[at] : 0;
  }
}

}  // namespace penstock::runtime
