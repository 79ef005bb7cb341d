// Tells which memory a node of a slot's plan uses, and how, in the run whose bindings the slot holds. Only a checked
// driver calls this, so nothing is precomputed.
#include "src/runtime/slot/box_shapes.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {
void Slot::AppendUses(int32_t node, std::vector<driver::MemoryUse>& out) const {
  const graph::PlanNode& planned = graph().plan().nodes[node];
  const NodeDecl& decl = graph().model().nodes[planned.decl];
  for (size_t u = 0; u < planned.uses.size(); ++u) {
    const graph::Use& use = planned.uses[u];
    const AccessDecl& access = decl.accesses[u];
    // A kernel that makes a hostcall touches nothing, and the host node may be given any host memory.
    const graph::Instance& instance = graph().plan().instances[use.instance];
    const bool anything = instance.space == graph::Space::kBound && instance.device < 0;
    if (anything && !tables.bound_pinned[instance.buffer]) continue;
    const BoxInRun box = BoxOf(graph().model(), access, tables);
    const detail::Range size = RangeOf(box.shape);
    driver::MemoryUse& m = out.emplace_back();
    m.data = static_cast<const std::byte*>(tables.pointers[use.instance]) + box.offset;
    m.width = static_cast<size_t>(size.width) * graph().model().buffers[access.buffer].type.size;
    m.height = static_cast<size_t>(size.height);
    m.depth = static_cast<size_t>(size.depth);
    m.pitch = static_cast<size_t>(box.row);
    m.slice = static_cast<size_t>(box.slice);
    m.reads = Reads(use.mode);
    m.writes = use.mode != AccessMode::kRead;
    const BufferDecl& of = graph().model().buffers[instance.buffer];
    m.keeps = use.mode == AccessMode::kWriteSome && of.role != BufferRole::kInternal && of.count.buffer < 0;
    m.ordered = !access.unordered;
  }
}

}  // namespace penstock::runtime
