// Edges from accesses: read after write, write after read, write after write, in access order, where two boxes of one
// buffer overlap.
//
// Two passes use this rule. DeclaredEdges works on buffers as declared; the planner keeps these edges whatever it does
// to the data, since they are the user's guarantee. InstanceEdges works on the instances of each buffer that
// InsertTransfers made, and adds the declared edges.
#include <algorithm>

#include "graph/conflicts/hazards.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

CsrRows MakeEdges(int32_t nodes, const std::vector<Edge>& list) {
  std::vector<int32_t> end(static_cast<size_t>(nodes) + 1), from(list.size());
  for (const Edge& e : list) ++end[static_cast<size_t>(e.to) + 1];
  for (size_t v = 0; v < static_cast<size_t>(nodes); ++v) end[v + 1] += end[v];
  std::vector<int32_t> next(end.begin(), end.end() - 1);
  for (const Edge& e : list) from[next[e.to]++] = e.from;
  CsrRows rows;
  rows.Reserve(static_cast<size_t>(nodes), list.size());
  for (size_t v = 0; v < static_cast<size_t>(nodes); ++v) {
    for (int32_t i = end[v]; i < end[v + 1]; ++i) rows.Add(from[i]);
    rows.CloseAsSet();
  }
  return rows;
}

namespace {

// Reorders rows that follow `sequence`, so that row v belongs to node v.
CsrRows ByNode(const CsrRows& rows, const std::vector<int32_t>& sequence) {
  std::vector<int32_t> row_of(sequence.size());
  for (size_t i = 0; i < sequence.size(); ++i) row_of[sequence[i]] = static_cast<int32_t>(i);
  CsrRows sorted;
  sorted.Reserve(sequence.size(), rows.items());
  for (const int32_t row : row_of) {
    for (const int32_t p : rows[row]) sorted.Add(p);
    sorted.Close();
  }
  return sorted;
}

// For each buffer: whether it has several instances.
std::vector<uint8_t> SpreadBuffers(const Draft& draft) {
  std::vector<uint8_t> instances(draft.buffers.size());
  for (const Instance& instance : draft.instances) {
    uint8_t& count = instances[instance.buffer];
    count = count == 0 ? 1 : 2;
  }
  for (uint8_t& count : instances) count = count > 1;
  for (const int32_t b : draft.copy_from) {  // read by a node that does not declare it
    if (b >= 0) instances[b] = 1;
  }
  return instances;
}

// The box that a Copy node reads or writes.
int32_t BoxOf(const Draft& draft, int32_t copy, AccessMode mode) {
  const std::span<const BoxRef> accesses = draft.boxes[copy];
  return accesses[accesses[0].mode == mode ? 0 : 1].box;
}

// The declared edges between nodes of the plan: a dropped node passes on its predecessors.
class DeclaredSteps {
 public:
  explicit DeclaredSteps(Draft& draft) : d_(draft), step_of_(draft.nodes.size(), -1) {
    if (draft.dropped.empty()) return;
    behind_.resize(draft.nodes.size());
    for (const int32_t n : draft.sequence) {
      if (!draft.IsDropped(n)) continue;
      std::vector<int32_t>& behind = behind_[n];
      ForEach(n, [&](int32_t p) { behind.push_back(p); });
      std::sort(behind.begin(), behind.end());  // several paths may lead to one node
      behind.erase(std::unique(behind.begin(), behind.end()), behind.end());
    }
  }
  void Stands(int32_t node, int32_t step) { step_of_[node] = step; }
  void AddBefore(int32_t node) {
    ForEach(node, [&](int32_t p) { d_.edges.Add(step_of_[p]); });
  }

 private:
  template <class F>
  void ForEach(int32_t node, F&& f) const {
    for (const int32_t p : d_.declared[node]) {
      if (!d_.IsDropped(p)) {
        f(p);
      } else {
        for (const int32_t q : behind_[p]) f(q);
      }
    }
  }

  Draft& d_;
  std::vector<int32_t> step_of_;  // for each node
  std::vector<std::vector<int32_t>> behind_;  // for each dropped node: its predecessors in the plan
};

}  // namespace

void DeclaredEdges(Draft& draft) {
  const auto count = static_cast<int32_t>(draft.nodes.size());
  const bool again = !draft.sequence.empty();
  Hazards hazards(draft.buffers.size());
  Marks marks(draft.nodes.size());
  CsrRows rows;
  rows.Reserve(draft.nodes.size(), draft.boxes.accesses() + draft.after.items());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t n = again ? draft.sequence[i] : i;
    for (const BoxRef& ref : draft.boxes[n]) {
      if (ref.base < 0 || ref.unordered) continue;
      hazards.Access(ref.base, draft.boxes.tree(ref.base), ref.box, ref.mode, n, rows);
    }
    for (const int32_t p : draft.after[n]) {
      if (p >= 0 && p < count) rows.Add(p);
    }
    marks.CloseDistinct(rows);
  }
  draft.declared = again ? ByNode(rows, draft.sequence) : std::move(rows);
  draft.surplus_edges = hazards.surplus();
}

// A staging instance and its bound counterpart may be one memory at launch; the copies between them are then skipped
// (though they still wait). So an access also conflicts with those to the counterpart, unless either is such a copy:
// `shared` tracks each pair as one place and leaves these copies out.
//
// A buffer with one instance has no inserted copies, so its accesses need only the declared edges. For the others,
// Unordered accesses count here like all others. Check has ensured a path between any two that conflict, and the steps
// follow an order of the declared edges; so an edge found here runs along that path and adds nothing to it.
void InstanceEdges(Draft& draft) {
  const std::vector<uint8_t> spread = SpreadBuffers(draft);
  DeclaredSteps declared(draft);
  Hazards own(draft.instances.size()), shared(draft.instances.size());
  Marks marks(draft.steps.size());
  draft.edges.Reserve(draft.steps.size(), draft.declared.items() + 2 * draft.steps.size());
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    const Step& step = draft.steps[s];
    const bool stages = step.kind == PlanKind::kStageIn || step.kind == PlanKind::kStageOut;
    const auto access = [&](int32_t instance, int32_t box, AccessMode mode) {
      const BoxTree* tree = draft.boxes.tree(draft.instances[instance].buffer);
      own.Access(instance, tree, box, mode, s, draft.edges);
      const int32_t fallback = draft.fallback[instance];
      if (fallback >= 0 && !stages) shared.Access(std::min(instance, fallback), tree, box, mode, s, draft.edges);
    };
    if (step.follows) draft.edges.Add(s - 1);
    if (step.decl < 0) {
      access(step.src, step.copy < 0 ? 0 : BoxOf(draft, step.copy, AccessMode::kRead), AccessMode::kRead);
      access(step.dst, step.copy < 0 ? 0 : BoxOf(draft, step.copy, AccessMode::kWrite), AccessMode::kWrite);
      if (step.copy >= 0) declared.AddBefore(step.copy);
    } else {
      declared.Stands(step.decl, s);
      declared.AddBefore(step.decl);
      size_t use = static_cast<size_t>(step.first_use);
      for (const BoxRef& ref : draft.boxes[step.decl]) {
        const int32_t instance = draft.uses[use].instance;
        ++use;
        const auto buffer = static_cast<size_t>(draft.instances[instance].buffer);
        if (spread[buffer] != 0) access(instance, ref.box, ref.mode);
      }
    }
    marks.CloseDistinct(draft.edges);
  }
}

}  // namespace penstock::graph
