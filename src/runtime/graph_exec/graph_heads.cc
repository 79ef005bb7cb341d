#include "src/runtime/graph_exec/graph_heads.h"

#include <algorithm>

#include "penstock/status_macros.h"
#include "src/base/status.h"

namespace penstock::runtime {

bool MayReadParams(const Slot& slot, const GraphNodeEntry& entry) {
  return entry.op == ExecCommand::Op::kKernel && slot.graph().program().calls[entry.index].indirect_range != nullptr;
}

GraphHeads::GraphHeads(const Slot& slot, const NodeOperations& operations)
    : slot_(slot),
      replay_(slot.graph().program().replay),
      operations_(operations),
      graphs_(static_cast<size_t>(replay_.graphs())) {
  for (GraphId g = 0; g < replay_.graphs() && refreshing_ < 0; ++g) {
    for (EntryId e = replay_.begin[g]; e < replay_.begin[g + 1]; ++e) {
      if (MayReadParams(slot_, replay_.entries[e])) refreshing_ = g;
    }
  }
}

// The refreshing graph copies parameters to all devices that have nodes, in whichever graph, which may read them.
absl::StatusOr<int> GraphHeads::Add(GraphId graph, driver::Graph to) {
  OfGraph& of = graphs_[graph];
  of.heads.clear();
  of.enabled = true;
  for (const DeviceId device : operations_.devices()) {
    const Wish wish = WishOf(graph, device);
    if (wish.roots < 2 && !(wish.reads && refreshing_ == graph)) continue;
    const driver::NodePlace place{.priority = wish.priority, .device = slot_.graph().device(device).local};
    PENSTOCK_ASSIGN_OR_RETURN(const int32_t number,
                              slot_.graph().driver().AddNode(to, {}, &operations_.refresh(device), place));
    of.heads.push_back({device, number});
  }
  return static_cast<int>(of.heads.size());
}

GraphHeads::Wish GraphHeads::WishOf(GraphId graph, DeviceId device) const {
  Wish wish;
  for (const EntryId e : replay_.entries.ids()) {
    const GraphNodeEntry& entry = replay_.entries[e];
    const graph::PlanNode& node = slot_.graph().plan().nodes[entry.node];
    if (node.device != device) continue;
    wish.reads = wish.reads || MayReadParams(slot_, entry);
    if (e < replay_.begin[graph] || e >= replay_.begin[graph + 1]) continue;
    wish.roots += replay_.preds[e].empty() && WantsHead(graph, e) ? 1 : 0;
    wish.priority = std::min(wish.priority, node.priority);
  }
  return wish;
}

// Nodes that begin their graph and nodes that may read the head's parameters come after the head, but no copies by the
// copy engines: those would begin 8 us later after a kernel, even after one that is switched off.
bool GraphHeads::WantsHead(GraphId graph, EntryId e) const {
  if (operations_.IsEngineCopy(e)) return false;
  return replay_.preds[e].empty() || (graph == refreshing_ && MayReadParams(slot_, replay_.entries[e]));
}

int32_t GraphHeads::Of(GraphId graph, EntryId e) const {
  const DeviceId device = slot_.graph().plan().nodes[replay_.entries[e].node].device;
  for (const Head& head : graphs_[graph].heads) {
    if (head.device == device) return WantsHead(graph, e) ? head.number : -1;
  }
  return -1;
}

absl::StatusOr<int> GraphHeads::Enable(GraphId graph, driver::GraphExec exec, bool enabled) {
  OfGraph& of = graphs_[graph];
  if (of.enabled == enabled) return 0;
  for (const Head& head : of.heads) {
    const absl::Status status = slot_.graph().driver().EnableNode(exec, head.number, enabled);
    if (!status.ok()) return base::Prefixed("switching the copy of parameters, the first node of a graph", status);
  }
  of.enabled = enabled;
  return static_cast<int>(of.heads.size());
}

}  // namespace penstock::runtime
