#include "src/runtime/graph_exec/switched_part.h"

#include <cstddef>

#include "penstock/status_macros.h"

namespace penstock::runtime {

int32_t SwitchedPart::Kernels(const NodeOperations& operations) const {
  const Table<EntryId, GraphNodeEntry>& entries = slot_.graph().program().replay.entries;
  for (const EntryId e : entries.ids()) {
    switch (entries[e].op) {
      case ExecCommand::Op::kKernel:
      case ExecCommand::Op::kBatch:
      case ExecCommand::Op::kFill:
      case ExecCommand::Op::kRegion:
      case ExecCommand::Op::kHostcall: break;
      case ExecCommand::Op::kCopy:
        if (!operations.IsEngineCopy(e)) break;
        return 0;
      default: return 0;
    }
  }
  return entries.count();
}

void SwitchedPart::BeUnrolled(int32_t iterations, std::span<uint64_t> list) {
  iterations_ = iterations;
  handles_.resize(list.size());
  list_ = list;
}

void SwitchedPart::BePicked(int32_t body, std::span<uint64_t> list) {
  body_ = body;
  handles_.resize(list.size());
  list_ = list;
}

absl::Status SwitchedPart::Added(driver::Graph graph, int32_t iteration, int32_t first, int32_t decides) {
  if (iteration == 0) first_ = first;
  driver::Alternative alternative;
  if (body_ >= 0) alternative = {.of = decides, .body = body_};
  const int32_t without = body_ >= 0 ? 0 : 1;
  for (int32_t node = 0; iteration >= without && node < nodes(); ++node) {
    PENSTOCK_ASSIGN_OR_RETURN(const driver::NodeSwitch added,
                              slot_.graph().driver().AddSwitch(graph, first + node, alternative));
    const size_t at =
        static_cast<size_t>(iteration - without) * static_cast<size_t>(nodes()) + static_cast<size_t>(node);
    list_[at] = handles_[at] = added.bits;
  }
  return absl::OkStatus();
}

void SwitchedPart::Switched(int32_t node, bool on) {
  for (auto at = static_cast<size_t>(node - first_); at < handles_.size(); at += static_cast<size_t>(nodes())) {
    list_[at] = on ? handles_[at] : 0;
  }
}

}  // namespace penstock::runtime
