// Checks of the graph as a whole: cycles here, data in check_data.cc, missing order in check_unordered.cc.
//
// Accesses alone cannot make a cycle, since they point forward in declaration order; After can, alone or with them.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "graph/common/message.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// Whether all predecessors are declared before their successors, as accesses' predecessors are: the usual case.
bool PointForward(const CsrRows& after) {
  for (int32_t v = 0; v < after.rows() && after.items() > 0; ++v) {
    for (const int32_t p : after[v]) {
      if (p >= v) return false;
    }
  }
  return true;
}

// The model's nodes with predecessors first, and the lowest index first among the candidates. Shorter than the model if
// there is a cycle.
std::vector<DeclId> TopologicalSequence(const Records& records, const Checked& checked) {
  const CsrRows& preds = checked.declared;
  const int32_t count = preds.rows();
  std::vector<DeclId> sequence;
  if (PointForward(records.after)) {
    sequence.resize(count);
    std::iota(sequence.begin(), sequence.end(), 0);
    return sequence;
  }
  std::vector<Edge> reversed;
  Table<DeclId, int32_t> missing;
  for (int32_t v = 0; v < count; ++v) missing.push_back(static_cast<int32_t>(preds[v].size()));
  sequence.reserve(count);
  for (int32_t v = 0; v < count; ++v) {
    for (const int32_t p : preds[v]) reversed.push_back({v, p});
  }
  const CsrRows succs = MakeEdges(count, reversed);
  std::vector<int32_t> ready;  // a heap, smallest first
  for (int32_t v = count - 1; v >= 0; --v) {
    if (missing[v] == 0) ready.push_back(v);
  }
  std::make_heap(ready.begin(), ready.end(), std::greater<>());
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const int32_t v = ready.back();
    ready.pop_back();
    sequence.push_back(v);
    for (const int32_t s : succs[v]) {
      if (--missing[s] > 0) continue;
      ready.push_back(s);
      std::push_heap(ready.begin(), ready.end(), std::greater<>());
    }
  }
  return sequence;
}

// Every node outside `sequence` has a predecessor outside it too, so walking back must reach a cycle.
void NameCycle(const Records& records, const Checked& checked, Findings& findings) {
  const int32_t count = checked.declared.rows();
  std::vector<bool> sorted(count);
  for (const DeclId v : checked.sequence) sorted[v] = true;
  int32_t at = 0;
  while (sorted[at]) ++at;
  std::vector<int32_t> path, seen(count, -1);
  while (seen[at] < 0) {
    seen[at] = static_cast<int32_t>(path.size());
    path.push_back(at);
    int32_t next = count;
    for (const int32_t p : checked.declared[at]) {
      if (!sorted[p]) next = std::min(next, p);
    }
    at = next;
  }
  path.erase(path.begin(), path.begin() + seen[at]);
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  path.push_back(path.front());
  std::string text = Prefix(records.model) + ": nodes wait for each other: ";
  for (size_t i = 0; i < path.size(); ++i) {
    text += (i > 0 ? " after " : "") + Quoted(records.model.nodes[path[i]].name);
  }
  findings.AddMistake(absl::StatusCode::kInvalidArgument, text + "; none of them could start; remove an After");
}

}  // namespace

void Check(const Records& records, Checked& checked, Findings& findings) {
  checked.sequence = TopologicalSequence(records, checked);
  if (checked.sequence.size() < records.model.nodes.size()) NameCycle(records, checked, findings);
  CheckData(records, checked, findings);
  CheckUnordered(records, checked, findings);
}

}  // namespace penstock::graph
