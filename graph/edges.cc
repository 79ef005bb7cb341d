// Edges from accesses: read after write, write after read, write after write, in the order accesses are made.
//
// Two passes use the same rule. DeclaredEdges looks at buffers as declared; the planner keeps these edges whatever it
// does to the data, since they are what the user was promised. InstanceEdges looks at the copies of each buffer that
// Transfers made, and joins in the declared ones.
#include <algorithm>

#include "graph/passes.h"

namespace penstock::graph {
namespace {

// The last writer of each place and who has read it since.
class Hazards {
 public:
  explicit Hazards(size_t places) : places_(places) {}

  void Access(int32_t place, AccessMode mode, int32_t node, std::vector<Edge>& out) {
    Place& p = places_[static_cast<size_t>(place)];
    if (mode == AccessMode::kRead || p.readers < 0) Add(p.writer, node, out);
    if (mode == AccessMode::kRead) {
      readers_.push_back({node, p.readers});
      p.readers = static_cast<int32_t>(readers_.size()) - 1;
      return;
    }
    for (int32_t r = p.readers; r >= 0; r = readers_[static_cast<size_t>(r)].next) {
      Add(readers_[static_cast<size_t>(r)].node, node, out);
    }
    p = {node, -1};
  }

 private:
  struct Place {
    int32_t writer = -1;
    int32_t readers = -1;  // first of a list in readers_
  };
  struct Reader {
    int32_t node, next;
  };

  static void Add(int32_t from, int32_t to, std::vector<Edge>& out) {
    if (from >= 0 && from != to) out.push_back({from, to});
  }

  std::vector<Place> places_;
  std::vector<Reader> readers_;
};

}  // namespace

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
  Hazards hazards(draft.model.buffers.size());
  for (int32_t n = 0; n < count; ++n) {
    const NodeDecl& node = draft.model.nodes[static_cast<size_t>(n)];
    for (const AccessDecl& access : node.accesses) {
      if (IsSound(draft.model, access)) hazards.Access(access.buffer, access.mode, n, list);
    }
    for (const int32_t other : node.after) {
      if (other >= 0 && other < count) list.push_back({other, n});
    }
  }
  draft.declared = MakeEdges(count, list);
}

// A staging instance and its bound twin may be one memory at launch; the copies between them are then skipped (though
// they still wait). So an access conflicts with those to the twin too, unless either is such a copy: `shared` tracks
// each pair as one place and leaves these copies out.
void InstanceEdges(Draft& draft) {
  std::vector<Edge> list;
  std::vector<int32_t> step_of(draft.model.nodes.size());
  Hazards own(draft.instances.size()), shared(draft.instances.size());
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    const Step& step = draft.steps[static_cast<size_t>(s)];
    const bool stages = step.kind == PlanKind::kStageIn || step.kind == PlanKind::kStageOut;
    const auto access = [&](int32_t instance, AccessMode mode) {
      own.Access(instance, mode, s, list);
      const int32_t twin = draft.twin[static_cast<size_t>(instance)];
      if (twin >= 0 && !stages) shared.Access(std::min(instance, twin), mode, s, list);
    };
    if (step.decl < 0) {
      access(step.src, AccessMode::kRead);
      access(step.dst, AccessMode::kWrite);
      continue;
    }
    step_of[static_cast<size_t>(step.decl)] = s;
    for (int32_t u = step.first_use; u < step.first_use + step.uses; ++u) {
      access(draft.uses[static_cast<size_t>(u)].instance, draft.uses[static_cast<size_t>(u)].mode);
    }
  }
  for (int32_t n = 0; n < draft.declared.rows(); ++n) {
    for (const int32_t p : draft.declared[n]) {
      list.push_back({step_of[static_cast<size_t>(p)], step_of[static_cast<size_t>(n)]});
    }
  }
  draft.edges = MakeEdges(draft.step_count(), list);
}

}  // namespace penstock::graph
