// Edges from accesses: read after write, write after read, write after write, in the order accesses are made, where two
// boxes of one buffer overlap.
//
// Two passes use the same rule. DeclaredEdges looks at buffers as declared; the planner keeps these edges whatever it
// does to the data, since they are what the user was promised. InstanceEdges looks at the copies of each buffer that
// Transfers made, and joins in the declared ones.
#include <algorithm>

#include "graph/hazards.h"
#include "graph/passes.h"

namespace penstock::graph {

Rows MakeEdges(int32_t nodes, const std::vector<Edge>& list) {
  std::vector<int32_t> end(static_cast<size_t>(nodes) + 1), from(list.size());
  for (const Edge& e : list) ++end[static_cast<size_t>(e.to) + 1];
  for (size_t v = 0; v < static_cast<size_t>(nodes); ++v) end[v + 1] += end[v];
  std::vector<int32_t> next(end.begin(), end.end() - 1);
  for (const Edge& e : list) from[static_cast<size_t>(next[static_cast<size_t>(e.to)]++)] = e.from;
  Rows rows;
  rows.Reserve(static_cast<size_t>(nodes), list.size());
  for (size_t v = 0; v < static_cast<size_t>(nodes); ++v) {
    std::sort(from.begin() + end[v], from.begin() + end[v + 1]);
    int32_t last = -1;
    for (int32_t i = end[v]; i < end[v + 1]; ++i) {
      const int32_t p = from[static_cast<size_t>(i)];
      if (p != last) rows.Add(p);
      last = p;
    }
    rows.Close();
  }
  return rows;
}

void DeclaredEdges(Draft& draft) {
  const auto count = static_cast<int32_t>(draft.model.nodes.size());
  std::vector<Edge> list;
  list.reserve(draft.boxes.accesses() + draft.after.size());
  const bool again = !draft.sequence.empty();
  Hazards hazards(draft.model.buffers.size());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t n = again ? draft.sequence[static_cast<size_t>(i)] : i;
    for (const BoxRef& ref : draft.boxes[n]) {
      if (ref.base < 0 || ref.unordered) continue;
      hazards.Access(ref.base, draft.boxes.tree(ref.base), ref.box, ref.mode, n, list);
    }
  }
  for (const Edge& after : draft.after) {
    if (after.from >= 0 && after.from < count) list.push_back(after);
  }
  draft.declared = MakeEdges(count, list);
  draft.surplus_edges = hazards.surplus();
}

// A staging instance and its bound twin may be one memory at launch; the copies between them are then skipped (though
// they still wait). So an access conflicts with those to the twin too, unless either is such a copy: `shared` tracks
// each pair as one place and leaves these copies out.
//
// Unordered accesses count here like all others. Check has made sure of a path between any two that conflict, and the
// steps follow an order of the declared edges; so the edge found here runs the way of that path and adds nothing to it.
void InstanceEdges(Draft& draft) {
  std::vector<Edge> list;
  list.reserve(draft.declared.items() + draft.boxes.accesses());
  std::vector<int32_t> step_of(draft.model.nodes.size());
  Hazards own(draft.instances.size()), shared(draft.instances.size());
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    const Step& step = draft.steps[static_cast<size_t>(s)];
    const bool stages = step.kind == PlanKind::kStageIn || step.kind == PlanKind::kStageOut;
    const auto access = [&](int32_t instance, int32_t box, AccessMode mode) {
      const BoxTree* tree = draft.boxes.tree(draft.instances[static_cast<size_t>(instance)].buffer);
      own.Access(instance, tree, box, mode, s, list);
      const int32_t twin = draft.twin[static_cast<size_t>(instance)];
      if (twin >= 0 && !stages) shared.Access(std::min(instance, twin), tree, box, mode, s, list);
    };
    if (step.decl < 0) {
      access(step.src, 0, AccessMode::kRead);
      access(step.dst, 0, AccessMode::kWrite);
      continue;
    }
    step_of[static_cast<size_t>(step.decl)] = s;
    size_t use = static_cast<size_t>(step.first_use);
    for (const BoxRef& ref : draft.boxes[step.decl]) access(draft.uses[use++].instance, ref.box, ref.mode);
  }
  for (int32_t n = 0; n < draft.declared.rows(); ++n) {
    for (const int32_t p : draft.declared[n]) {
      list.push_back({step_of[static_cast<size_t>(p)], step_of[static_cast<size_t>(n)]});
    }
  }
  draft.edges = MakeEdges(draft.step_count(), list);
}

}  // namespace penstock::graph
