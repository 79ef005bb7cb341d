// Why entries form an acyclic graph: order nodes by level, then nodes of no group before others, then by candidate,
// component and number. An edge from one group to another leads to a higher level, one from a node of no group to the
// same level or a higher one, and one inside a group and level joins nodes of one component. So every edge leads up
// this order, in which the nodes of each region, and each other node, are consecutive: no path leaves a region and
// comes back, nor do two entries depend on each other, however candidates are merged, cut along the order or dropped.
#include "graph/plan/regions.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "graph/plan/reduce_graph.h"

namespace penstock::graph {
namespace {

// For each node: the most times that a path to it leaves a group.
std::vector<int32_t> LevelsOf(const CsrRows& preds, const std::vector<int32_t>& group) {
  std::vector<int32_t> level(group.size());
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) {
      const int32_t leaves = group[p] >= 0 && group[p] != group[v] ? 1 : 0;
      level[v] = std::max(level[v], level[p] + leaves);
    }
  }
  return level;
}

// Sets of joined nodes, each known by its first one.
class JoinedNodes {
 public:
  explicit JoinedNodes(size_t nodes) : before_(nodes) { std::iota(before_.begin(), before_.end(), 0); }
  int32_t First(int32_t v) {
    for (; before_[v] != v; v = before_[v]) before_[v] = before_[before_[v]];
    return v;
  }
  void Join(int32_t a, int32_t b) {
    a = First(a), b = First(b);
    before_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int32_t> before_;  // for each node: itself if it is the first, or one nearer to the first
};

// Connected nodes of one group and level, in the order of their first nodes.
struct Components {
  std::vector<int32_t> of;  // for each node; -1: it has no group
  CsrRows nodes;  // of each, ascending
};

Components FindComponents(const CsrRows& preds, const std::vector<int32_t>& group, const std::vector<int32_t>& level) {
  JoinedNodes joined(group.size());
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) {
      if (group[v] >= 0 && group[p] == group[v] && level[p] == level[v]) joined.Join(p, v);
    }
  }
  Components components;
  components.of.assign(group.size(), -1);
  std::vector<Edge> members;
  int32_t count = 0;
  for (int32_t v = 0; v < preds.rows(); ++v) {
    if (group[v] < 0) continue;
    const int32_t first = joined.First(v);
    components.of[v] = first == v ? count++ : components.of[first];
    members.push_back({v, components.of[v]});
  }
  components.nodes = MakeEdges(count, members);
  return components;
}

// Finds regions: merges components to candidates and divides these.
class RegionFinder {
 public:
  RegionFinder(const CsrRows& preds, const std::vector<int32_t>& group, int32_t least, int32_t most)
      : group_(group),
        least_(static_cast<size_t>(std::max(least, 1))),
        most_(static_cast<size_t>(std::max(most, 0))),
        level_(LevelsOf(preds, group)),
        components_(FindComponents(preds, group, level_)) {
    FindNeighbours(preds);
  }

  std::vector<std::vector<int32_t>> Run() {
    std::vector<int32_t> order(static_cast<size_t>(components_.nodes.rows()));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const int way = Compare(a, b);
      return way != 0 ? way < 0 : a < b;
    });
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && Compare(order[begin], order[end]) == 0) ++end;
      Divide(std::span(order).subspan(begin, end - begin));
    }
    return std::move(regions_);
  }

 private:
  // What stands for a node in the lists of neighbours: the first node of its component, if that will be in one region.
  int32_t StandsFor(int32_t node) const {
    const int32_t component = components_.of[node];
    if (component < 0) return node;
    const std::span<const int32_t> all = components_.nodes[component];
    return all.size() >= least_ && all.size() <= most_ ? all.front() : node;
  }

  void FindNeighbours(const CsrRows& preds) {
    std::vector<Edge> before, after;
    for (int32_t v = 0; v < preds.rows(); ++v) {
      const int32_t to = components_.of[v];
      for (const int32_t p : preds[v]) {
        const int32_t from = components_.of[p];
        if (from == to) continue;
        if (to >= 0) before.push_back({StandsFor(p), to});
        if (from >= 0) after.push_back({StandsFor(v), from});
      }
    }
    before_ = MakeEdges(components_.nodes.rows(), before);
    after_ = MakeEdges(components_.nodes.rows(), after);
  }

  // 0: the components belong to one candidate. A call takes the shorter of the lists, so that sorting is n log n.
  int Compare(int32_t a, int32_t b) const {
    const int32_t of_a = components_.nodes[a].front(), of_b = components_.nodes[b].front();
    if (group_[of_a] != group_[of_b]) return group_[of_a] < group_[of_b] ? -1 : 1;
    if (level_[of_a] != level_[of_b]) return level_[of_a] < level_[of_b] ? -1 : 1;
    const int way = Compare(before_[a], before_[b]);
    return way != 0 ? way : Compare(after_[a], after_[b]);
  }
  static int Compare(std::span<const int32_t> a, std::span<const int32_t> b) {
    const auto way = std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
    return way < 0 ? -1 : (way > 0 ? 1 : 0);
  }

  void Divide(std::span<const int32_t> candidate) {
    for (const int32_t component : candidate) {
      const std::span<const int32_t> nodes = components_.nodes[component];
      if (open_.size() + nodes.size() > most_) Close();
      if (nodes.size() > most_) {
        Cut(nodes);
      } else {
        open_.insert(open_.end(), nodes.begin(), nodes.end());
      }
    }
    Close();
  }

  // Into as few equal parts as possible; if these are too small, into parts as large as possible.
  void Cut(std::span<const int32_t> nodes) {
    if (most_ == 0) return;
    const size_t parts = (nodes.size() + most_ - 1) / most_;
    const bool equal = nodes.size() / parts >= least_;
    for (size_t i = 0; i < parts; ++i) {
      const size_t begin = equal ? nodes.size() * i / parts : most_ * i;
      const size_t end = equal ? nodes.size() * (i + 1) / parts : std::min(most_ * (i + 1), nodes.size());
      open_.assign(nodes.begin() + static_cast<ptrdiff_t>(begin), nodes.begin() + static_cast<ptrdiff_t>(end));
      Close();
    }
  }

  void Close() {
    std::sort(open_.begin(), open_.end());
    if (open_.size() >= least_) regions_.push_back(std::move(open_));
    open_.clear();
  }

  const std::vector<int32_t>& group_;
  const size_t least_, most_;
  const std::vector<int32_t> level_;  // for each node
  const Components components_;
  CsrRows before_, after_;  // for each component: what stands for its neighbours outside
  std::vector<int32_t> open_;  // the nodes of the region being made
  std::vector<std::vector<int32_t>> regions_;
};

// The graph as it is, without regions.
Contraction NothingContracted(const CsrRows& preds) {
  Contraction result;
  result.preds = preds;
  result.entry_of.resize(static_cast<size_t>(preds.rows()));
  std::iota(result.entry_of.begin(), result.entry_of.end(), 0);
  result.entries.reserve(result.entry_of.size());
  for (int32_t v = 0; v < preds.rows(); ++v) result.entries.push_back({v, -1});
  return result;
}

// The entries in the order of their first nodes, and entry_of by that order.
Contraction EntriesByFirstNode(int32_t nodes, std::vector<std::vector<int32_t>> regions) {
  Contraction result;
  result.regions = std::move(regions);
  std::vector<int32_t> region_of(static_cast<size_t>(nodes), -1);
  for (size_t r = 0; r < result.regions.size(); ++r) {
    for (const int32_t v : result.regions[r]) region_of[v] = static_cast<int32_t>(r);
  }
  result.entry_of.resize(region_of.size());
  for (int32_t v = 0; v < nodes; ++v) {
    const int32_t first = region_of[v] < 0 ? v : result.regions[region_of[v]].front();
    result.entry_of[v] = first == v ? static_cast<int32_t>(result.entries.size()) : result.entry_of[first];
    if (first == v) result.entries.push_back({v, region_of[v]});
  }
  return result;
}

// The rows' indices in a topological order: the next is the least of those whose predecessors are in it.
std::vector<int32_t> LeastFirst(const CsrRows& preds) {
  std::vector<Edge> reversed;
  reversed.reserve(preds.items());
  std::vector<int32_t> missing(static_cast<size_t>(preds.rows()));
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) reversed.push_back({v, p});
    missing[v] = static_cast<int32_t>(preds[v].size());
    if (missing[v] == 0) ready.push(v);
  }
  const CsrRows succs = MakeEdges(preds.rows(), reversed);
  std::vector<int32_t> order;
  order.reserve(missing.size());
  while (!ready.empty()) {
    const int32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const int32_t s : succs[v]) {
      if (--missing[s] == 0) ready.push(s);
    }
  }
  return order;
}

// Puts entries and regions into a topological order.
void SortEntries(const CsrRows& preds, Contraction& result) {
  std::vector<Edge> edges;
  edges.reserve(preds.items());
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) {
      if (result.entry_of[p] != result.entry_of[v]) edges.push_back({result.entry_of[p], result.entry_of[v]});
    }
  }
  const auto count = static_cast<int32_t>(result.entries.size());
  const std::vector<int32_t> order = LeastFirst(MakeEdges(count, edges));
  std::vector<int32_t> position(order.size());
  std::vector<Contraction::Entry> entries;
  std::vector<std::vector<int32_t>> regions;
  for (const int32_t e : order) {
    position[e] = static_cast<int32_t>(entries.size());
    Contraction::Entry entry = result.entries[e];
    if (entry.region >= 0) {
      regions.push_back(std::move(result.regions[entry.region]));
      entry.region = static_cast<int32_t>(regions.size()) - 1;
    }
    entries.push_back(entry);
  }
  for (int32_t& e : result.entry_of) e = position[e];
  for (Edge& edge : edges) edge = {position[edge.from], position[edge.to]};
  result.entries = std::move(entries);
  result.regions = std::move(regions);
  result.preds = TransitiveReduction(MakeEdges(count, edges));
}

}  // namespace

Contraction FindRegions(const CsrRows& preds, const std::vector<int32_t>& group, int32_t least, int32_t most) {
  if (std::all_of(group.begin(), group.end(), [](int32_t g) { return g < 0; })) return NothingContracted(preds);
  std::vector<std::vector<int32_t>> regions = RegionFinder(preds, group, least, most).Run();
  if (regions.empty()) return NothingContracted(preds);
  Contraction result = EntriesByFirstNode(preds.rows(), std::move(regions));
  SortEntries(preds, result);
  return result;
}

}  // namespace penstock::graph
