// Edges from accesses: read after write, write after read, write after write, in access order, where two boxes of one
// buffer overlap.
//
// Two passes use this rule. DeclaredEdges works on buffers as declared; the planner keeps these edges whatever it does
// to the data, since they are the user's guarantee. InstanceEdges works on the instances of each buffer that
// InsertTransfers made, and adds the declared edges.
#include <algorithm>
#include <utility>

#include "graph/conflicts/hazards.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

CsrRows MakeEdges(int32_t nodes, const std::vector<Edge>& list) {
  std::vector<int32_t> end(nodes + 1), from(list.size());
  for (const Edge& e : list) ++end[e.to + 1];
  for (int32_t v = 0; v < nodes; ++v) end[v + 1] += end[v];
  std::vector<int32_t> next(end.begin(), end.end() - 1);
  for (const Edge& e : list) from[next[e.to]++] = e.from;
  CsrRows rows;
  rows.Reserve(nodes, list.size());
  for (int32_t v = 0; v < nodes; ++v) {
    for (int32_t i = end[v]; i < end[v + 1]; ++i) rows.Add(from[i]);
    rows.CloseAsSet();
  }
  return rows;
}

namespace {

// Reorders rows that follow `sequence`, so that row v belongs to node v.
CsrRows ByNode(const CsrRows& rows, const std::vector<DeclId>& sequence) {
  Table<DeclId, int32_t> row_of(sequence.size());
  int32_t row = 0;
  for (const DeclId n : sequence) row_of[n] = row++;
  CsrRows sorted;
  sorted.Reserve(sequence.size(), rows.items());
  for (const int32_t of_node : row_of) {
    for (const int32_t p : rows[of_node]) sorted.Add(p);
    sorted.Close();
  }
  return sorted;
}

// For each buffer: whether it has several instances.
Table<BufferId, uint8_t> SpreadBuffers(const Records& records, const Placed& placed, const Ordered& ordered) {
  Table<BufferId, uint8_t> instances(records.buffers.size());
  for (const Instance& instance : ordered.instances) {
    uint8_t& count = instances[instance.buffer];
    count = count == 0 ? 1 : 2;
  }
  for (uint8_t& count : instances) count = count > 1;
  for (const BufferId b : placed.copy_from) {  // read by a node that does not declare it
    if (b >= 0) instances[b] = 1;
  }
  return instances;
}

// The box that a Copy node reads or writes.
int32_t BoxOf(const Records& records, DeclId copy, AccessMode mode) {
  const std::span<const BoxRef> accesses = records.boxes[copy];
  return accesses[accesses[0].mode == mode ? 0 : 1].box;
}

// The boxes by which each buffer is accessed, with the parts that inserted copies move.
class StepBoxes {
 public:
  StepBoxes(const Records& records, const Ordered& ordered) : records_(records) {
    if (ordered.parts.empty()) return;
    std::vector<BufferPart> parts;
    for (const Step& step : ordered.steps) {
      if (step.part >= 0) parts.push_back({ordered.instances[step.src].buffer, step.part});
    }
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    tree_of_.assign(records.buffers.size(), -1);
    for (size_t i = 0; i < parts.size();) {
      const BufferId b = parts[i].first;
      const BoxTree& declared = *records.boxes.tree(b);
      std::vector<Region> boxes;
      for (int32_t box = 0; box < declared.size(); ++box) boxes.push_back(declared.box(box));
      const size_t first = i;
      for (; i < parts.size() && parts[i].first == b; ++i) boxes.push_back(ordered.parts[parts[i].second]);
      tree_of_[b] = static_cast<int32_t>(trees_.size());
      trees_.emplace_back(std::move(boxes));
      parts_of_.emplace_back(parts.begin() + static_cast<std::ptrdiff_t>(first),
                             parts.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  const BoxTree* tree(BufferId b) const {
    return tree_of_.empty() || tree_of_[b] < 0 ? records_.boxes.tree(b) : &trees_[static_cast<size_t>(tree_of_[b])];
  }
  // The box of a part that some inserted copy of the buffer moves.
  int32_t BoxOfPart(BufferId b, PartId part) const {
    if (part < 0) return 0;
    const std::vector<BufferPart>& parts = parts_of_[static_cast<size_t>(tree_of_[b])];
    const auto found = std::lower_bound(parts.begin(), parts.end(), BufferPart(b, part));
    return records_.boxes.tree(b)->size() + static_cast<int32_t>(found - parts.begin());
  }

 private:
  using BufferPart = std::pair<BufferId, PartId>;

  const Records& records_;
  Table<BufferId, int32_t> tree_of_;  // of buffers that are copied in parts; empty: none is
  std::vector<BoxTree> trees_;
  std::vector<std::vector<BufferPart>> parts_of_;  // by tree, ascending
};

// The declared edges between nodes of the plan: a dropped node passes on its predecessors.
class DeclaredSteps {
 public:
  explicit DeclaredSteps(const Records& records, const Checked& checked, const Placed& placed, CsrRows& edges)
      : checked_(checked), placed_(placed), edges_(edges), step_of_(records.nodes.size()) {
    if (placed.dropped.empty()) return;
    predecessors_.resize(records.nodes.size());
    for (const DeclId n : checked.sequence) {
      if (!placed.IsDropped(n)) continue;
      std::vector<DeclId>& found = predecessors_[n];
      ForEach(n, [&](DeclId p) { found.push_back(p); });
      std::sort(found.begin(), found.end());  // several paths may lead to one node
      found.erase(std::unique(found.begin(), found.end()), found.end());
    }
  }
  void SetStep(DeclId node, StepId step) { step_of_[node] = step; }
  void AddBefore(DeclId node) {
    ForEach(node, [&](DeclId p) { edges_.Add(step_of_[p]); });
  }

 private:
  template <class F>
  void ForEach(DeclId node, F&& f) const {
    for (const DeclId p : checked_.declared[node]) {
      if (!placed_.IsDropped(p)) {
        f(p);
      } else {
        for (const DeclId q : predecessors_[p]) f(q);
      }
    }
  }

  const Checked& checked_;
  const Placed& placed_;
  CsrRows& edges_;
  Table<DeclId, StepId> step_of_;
  Table<DeclId, std::vector<DeclId>> predecessors_;  // for each dropped node: its predecessors in the plan
};

}  // namespace

void DeclaredEdges(const Records& records, Checked& checked) {
  const int32_t count = records.nodes.count();
  const bool again = !checked.sequence.empty();
  Hazards hazards(records.buffers.size());
  Marks marks(records.nodes.size());
  CsrRows rows;
  rows.Reserve(records.nodes.size(), records.boxes.accesses() + records.after.items());
  for (int32_t i = 0; i < count; ++i) {
    const DeclId n = again ? checked.sequence[i] : DeclId(i);
    for (const BoxRef& ref : records.boxes[n]) {
      if (ref.base < 0 || ref.unordered) continue;
      hazards.Access(ref.base, records.boxes.tree(ref.base), ref.box, ref.mode, n, rows);
    }
    for (const int32_t p : records.after[n]) {
      if (p >= 0 && p < count) rows.Add(p);
    }
    marks.CloseDistinct(rows);
  }
  checked.declared = again ? ByNode(rows, checked.sequence) : std::move(rows);
  checked.surplus_edges = hazards.surplus();
}

// A staging instance and its bound counterpart may be one memory at launch; the copies between them are then skipped
// (though they still wait). So an access also conflicts with those to the counterpart, unless either is such a copy:
// `shared` tracks each pair as one place and leaves these copies out.
//
// A buffer with one instance has no inserted copies, so its accesses need only the declared edges. For the others,
// Unordered accesses count here like all others. Check has ensured a path between any two that conflict, and the steps
// follow an order of the declared edges; so an edge found here runs along that path and adds nothing to it.
void InstanceEdges(const Records& records, const Checked& checked, const Placed& placed, Ordered& ordered) {
  const Table<BufferId, uint8_t> spread = SpreadBuffers(records, placed, ordered);
  DeclaredSteps declared(records, checked, placed, ordered.edges);
  const StepBoxes boxes(records, ordered);
  Hazards own(ordered.instances.size()), shared(ordered.instances.size());
  Marks marks(ordered.steps.size());
  ordered.edges.Reserve(ordered.steps.size(), checked.declared.items() + 2 * ordered.steps.size());
  for (const StepId s : ordered.steps.ids()) {
    const Step& step = ordered.steps[s];
    const bool stages = step.kind == PlanKind::kStageIn || step.kind == PlanKind::kStageOut;
    const auto access = [&](InstanceId instance, int32_t box, AccessMode mode) {
      const BoxTree* const tree = boxes.tree(ordered.instances[instance].buffer);
      own.Access(instance, tree, box, mode, s, ordered.edges);
      const InstanceId fallback = ordered.fallback[instance];
      if (fallback >= 0 && !stages)
        shared.Access(std::min<int32_t>(instance, fallback), tree, box, mode, s, ordered.edges);
    };
    if (step.follows) ordered.edges.Add(s - 1);
    if (step.decl < 0) {
      const int32_t part = boxes.BoxOfPart(ordered.instances[step.src].buffer, step.part);
      access(step.src, step.copy < 0 ? part : BoxOf(records, step.copy, AccessMode::kRead), AccessMode::kRead);
      access(step.dst, step.copy < 0 ? part : BoxOf(records, step.copy, AccessMode::kWrite), AccessMode::kWrite);
      if (step.copy >= 0) declared.AddBefore(step.copy);
    } else {
      declared.SetStep(step.decl, s);
      declared.AddBefore(step.decl);
      const Use* use = ordered.UsesOf(step).data();
      for (const BoxRef& ref : records.boxes[step.decl]) {
        const InstanceId instance = use++->instance;
        if (spread[ordered.instances[instance].buffer] != 0) access(instance, ref.box, ref.mode);
      }
    }
    marks.CloseDistinct(ordered.edges);
  }
}

}  // namespace penstock::graph
