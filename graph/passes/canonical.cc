// Canonical: an order of the model's records that does not depend on the order of commuting declarations.
//
// The declared edges hold what declaration order determined: which of two conflicting nodes comes first. From here on
// nothing else of it matters: nodes are ordered by depth (the longest path that leads to them), nodes of one depth by
// name, with Copy nodes last, since they take the data from where it already is; buffers by name. Names are unique, so
// equal graphs give equal plans.
//
// By name: shorter names first, then byte by byte, which puts "node 9" before "node 10".
#include "graph/passes/canonical.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// A key of a name's length and its first 6 bytes after the common prefix; equal keys need a full comparison.
struct Key {
  uint64_t head;
  int32_t record;
};

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

uint64_t Head(std::string_view text) {
  const size_t bytes = std::min<size_t>(text.size(), 6);
  uint64_t head = 0;
  for (size_t i = 0; i < bytes; ++i) head = head << 8 | static_cast<unsigned char>(text[i]);
  return std::min<uint64_t>(text.size(), 0xffff) << 48 | head << 8 * (6 - bytes);
}

template <class I>
std::vector<I> SortedByName(const Names& names) {
  std::string_view common = names.size() == 0 ? "" : names[0];
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].starts_with(common)) common = common.substr(0, CommonPrefix(common, names[i]));
  }

  std::vector<Key> keys;
  keys.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    keys.push_back({Head(names[i].substr(common.size())), static_cast<int32_t>(i)});
  }
  const auto less = [&](const Key& a, const Key& b) {
    if (a.head != b.head) return a.head < b.head;
    const std::string_view x = names[a.record], y = names[b.record];
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  };
  if (!std::is_sorted(keys.begin(), keys.end(), less)) std::sort(keys.begin(), keys.end(), less);
  std::vector<I> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(key.record);
  return order;
}

// For each node: twice the length in edges of the longest path that leads to it, plus one for copies.
Table<DeclId, int32_t> Levels(const Records& records, const Checked& checked) {
  Table<DeclId, int32_t> level(checked.sequence.size());
  for (const DeclId v : checked.sequence) {
    int32_t depth = 0;
    for (const DeclId p : checked.declared[v]) depth = std::max(depth, level[p] / 2 + 1);
    level[v] = 2 * depth + (records.nodes[v].kind == NodeKind::kCopy);
  }
  return level;
}

template <class Record>
Names NamesOf(const std::vector<Record>& records) {
  Names names;
  for (const Record& record : records) names.Add(record.name.view());
  return names;
}

template <class I>
Table<I, int32_t> Inverse(const std::vector<I>& order) {
  Table<I, int32_t> rank(order.size());
  int32_t next = 0;
  for (const I record : order) rank[record] = next++;
  return rank;
}

}  // namespace

void Canonical(const Records& records, Checked& checked) {
  checked.buffers_by_name = SortedByName<BufferId>(records.buffer_names);
  const std::vector<DeclId> by_name = SortedByName<DeclId>(records.node_names);
  const Table<DeclId, int32_t> level = Levels(records, checked);
  std::vector<int32_t> next(2 * by_name.size() + 1);
  for (const int32_t l : level) ++next[l + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const DeclId v : by_name) {
    checked.sequence[next[level[v]]++] = v;
  }
  // Redundant edges change no depth, but they affect what is made of the edges. In the canonical order they are unique.
  if (checked.surplus_edges) DeclaredEdges(records, checked);
}

Plan ByName(Plan plan, const Model& model) {
  const auto node_rank = Inverse(SortedByName<DeclId>(NamesOf(model.nodes)));
  const auto buffer_rank = Inverse(SortedByName<BufferId>(NamesOf(model.buffers)));
  for (PlanNode& node : plan.nodes) {
    if (node.decl >= 0) node.decl = node_rank[node.decl];
    if (node.copy >= 0) node.copy = node_rank[node.copy];
  }
  for (Instance& i : plan.instances) i.buffer = buffer_rank[i.buffer];
  for (StateUse& use : plan.states) use.buffer = buffer_rank[use.buffer];
  for (ExternalDep& external_dep : plan.external_deps) external_dep.buffer = buffer_rank[external_dep.buffer];
  return plan;
}

}  // namespace penstock::graph
