#include "graph/plan/reduce_graph.h"

#include <algorithm>
#include <map>
#include <vector>

namespace penstock::graph {
namespace {

// An edge from p to v is redundant if p comes before another predecessor of v. That is possible only if that one is
// deeper (the longest path to it has more edges), and p has a successor no later than the last predecessor of v:
// this decides most edges. Among the others, those are redundant whose p is a predecessor of v's last one. The rest are
// doubtful: their nodes p are examined 64 at a time, one bit each, in one sweep from the first of them to the last
// predecessor of the nodes to which their edges lead.
class Reduction {
 public:
  explicit Reduction(const CsrRows& preds) : preds_(preds) {}

  CsrRows Run() {
    FindDoubtful();
    const int64_t most = kMostExamined * static_cast<int64_t>(preds_.items());
    for (size_t i = 0; i < doubtful_.size() && examined_ <= most;) i = DecideNext(i);
    if (!any_implied_) return preds_;
    CsrRows kept;
    kept.Reserve(preds_.rows(), preds_.items());
    size_t edge = 0;
    for (int32_t v = 0; v < preds_.rows(); ++v) {
      for (const int32_t p : preds_[v]) {
        if (implied_[edge++] == 0) kept.Add(p);
      }
      kept.Close();
    }
    return kept;
  }

  int64_t examined() const { return examined_; }

 private:
  struct DoubtfulEdge {
    int32_t from, to;
    size_t index;  // among all edges
  };

  void FindDoubtful() {
    struct Node {
      int32_t depth = 0, first_successor = INT32_MAX;
    };
    std::vector<Node> nodes(preds_.rows());
    size_t edge = 0;
    for (int32_t v = 0; v < preds_.rows(); ++v) {
      const std::span<const int32_t> preds = preds_[v];
      int32_t deepest = -1;
      for (const int32_t p : preds) deepest = std::max(deepest, nodes[p].depth);
      nodes[v].depth = deepest + 1;
      for (const int32_t p : preds) {
        Node& from = nodes[p];
        if (from.depth < deepest && from.first_successor <= preds.back()) DecideByLast({p, v, edge});
        from.first_successor = std::min(from.first_successor, v);
        ++edge;
      }
    }
    if (doubtful_.empty()) return;
    std::sort(doubtful_.begin(), doubtful_.end(), [](const DoubtfulEdge& a, const DoubtfulEdge& b) {
      return a.from != b.from ? a.from < b.from : a.to < b.to;
    });
    before_.resize(preds_.rows());
    bit_.resize(before_.size());
    through_.resize(before_.size());
  }

  void DecideByLast(const DoubtfulEdge& edge) {
    const std::span<const int32_t> of_last = preds_[preds_[edge.to].back()];
    if (std::binary_search(of_last.begin(), of_last.end(), edge.from)) {
      MarkImplied(edge);
    } else {
      doubtful_.push_back(edge);
    }
  }

  void MarkImplied(const DoubtfulEdge& edge) {
    if (!any_implied_) implied_.assign(preds_.items(), 0);
    any_implied_ = true;
    implied_[edge.index] = 1;
  }

  // Decides the doubtful edges from the next 64 nodes, from `begin` on. Returns where the remaining ones begin.
  size_t DecideNext(size_t begin) {
    const int32_t first = doubtful_[begin].from;
    int32_t last = first;
    size_t end = begin;
    int nodes = 0;
    for (; end < doubtful_.size(); ++end) {
      uint64_t& bit = bit_[doubtful_[end].from];
      if (bit == 0 && nodes == 64) break;
      if (bit == 0) bit = uint64_t{1} << nodes++;
      last = std::max(last, preds_[doubtful_[end].to].back());
    }
    Sweep(first, last);
    for (size_t i = begin; i < end; ++i) {
      Through& through = through_[doubtful_[i].to];
      if (through.sweep != sweeps_) through = {sweeps_, BeforeAny(preds_[doubtful_[i].to])};
      if ((through.before & bit_[doubtful_[i].from]) != 0) MarkImplied(doubtful_[i]);
    }
    for (size_t i = begin; i < end; ++i) bit_[doubtful_[i].from] = 0;
    return end;
  }

  // before_[v]: the bits of the examined nodes that come before v.
  void Sweep(int32_t first, int32_t last) {
    ++sweeps_;
    first_ = first;
    for (int32_t v = first; v <= last; ++v) {
      const std::span<const int32_t> preds = preds_[v];
      uint64_t before = BeforeAny(preds);
      for (const int32_t p : preds) {
        if (p >= first) before |= bit_[p];
      }
      before_[v] = before;
    }
  }

  uint64_t BeforeAny(std::span<const int32_t> nodes) {
    examined_ += static_cast<int64_t>(nodes.size()) + 1;
    uint64_t before = 0;
    for (const int32_t p : nodes) {
      if (p >= first_) before |= before_[p];
    }
    return before;
  }

  // For one node, valid for one sweep: the bits of the nodes that come before one of its predecessors.
  struct Through {
    int32_t sweep = 0;
    uint64_t before = 0;
  };

  const CsrRows& preds_;
  std::vector<DoubtfulEdge> doubtful_;  // by node
  std::vector<uint8_t> implied_;  // for each edge, once one is found
  bool any_implied_ = false;
  std::vector<uint64_t> before_, bit_;
  std::vector<Through> through_;
  int32_t sweeps_ = 0, first_ = 0;  // first_: the first node of the last sweep
  int64_t examined_ = 0;
};

template <class F>
void ForEachTouched(const PlanNode& node, F&& f) {
  for (const Use& use : node.uses) f(use.instance);
  if (node.decl < 0) f(node.src), f(node.dst);
}

// The users of each instance, and among them those without an edge from an earlier user, or to a later one. Ordering
// these orders all.
struct Users {
  CsrRows all, first, last;
};

// Calls `f` with each of `preds` that is among `earlier`, by way of the shorter list. Both are ascending; `uses` marks
// the nodes in `earlier`, and no other node in `preds`.
template <class Preds, class F>
void ForEachCommon(const Preds& preds, std::span<const int32_t> earlier, const Table<NodeId, uint8_t>& uses, F&& f) {
  if (preds.size() <= earlier.size()) {
    for (const int32_t p : preds) {
      if (uses[p] != 0) f(p);
    }
    return;
  }
  for (const int32_t p : earlier) {
    if (std::binary_search(preds.begin(), preds.end(), p)) f(p);
  }
}

Users FindUsers(const Plan& plan) {
  std::vector<Edge> list;
  for (const NodeId n : plan.nodes.ids()) {
    ForEachTouched(plan.nodes[n], [&](InstanceId i) { list.push_back({n, i}); });
  }
  const int32_t count = plan.instances.count();
  Users users{MakeEdges(count, list), {}, {}};
  Table<NodeId, uint8_t> uses(plan.nodes.size()), has_later(plan.nodes.size());
  for (const InstanceId i : plan.instances.ids()) {
    const std::span<const int32_t> all = users.all[i];
    for (const NodeId n : all) uses[n] = 1;
    for (size_t u = 0; u < all.size(); ++u) {
      bool has_earlier = false;
      ForEachCommon(plan.nodes[all[u]].preds, all.first(u), uses, [&](int32_t p) {
        has_earlier = true;
        has_later[p] = 1;
      });
      if (!has_earlier) users.first.Add(all[u]);
    }
    for (const NodeId n : all) {
      if (has_later[n] == 0) users.last.Add(n);
      has_later[n] = uses[n] = 0;
    }
    users.first.Close();
    users.last.Close();
  }
  return users;
}

// The current tenant of each byte of one arena: regions by their first byte.
class Tenants {
 public:
  // Calls `f` with each instance that has some of the bytes, which `instance` then takes over.
  template <class F>
  void TakeOver(InstanceId instance, int64_t begin, int64_t end, F&& f) {
    auto it = regions_.lower_bound(begin);
    if (it != regions_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != regions_.end() && it->first < end) {
      const int64_t first = it->first;
      const Region region = it->second;
      f(region.instance);
      it = regions_.erase(it);
      if (first < begin) regions_.emplace(first, Region{begin, region.instance});
      if (region.end > end) it = regions_.emplace(end, region).first;
    }
    regions_.emplace(begin, Region{end, instance});
  }

 private:
  struct Region {
    int64_t end;
    InstanceId instance;
  };
  std::map<int64_t, Region> regions_;
};

NodeId FirstOfBatch(const Plan& plan, NodeId node) {
  const NodeId first = plan.nodes[node].batch;
  return first < 0 ? node : first;
}

// The index after the last node that `first` stands for: those of its batch, or itself.
NodeId EndOfBatch(const Plan& plan, NodeId first) {
  NodeId end = first + 1;
  while (end < plan.nodes.count() && plan.nodes[end].batch == first) ++end;
  return end;
}

}  // namespace

CsrRows TransitiveReduction(const CsrRows& preds, int64_t* examined) {
  Reduction reduction(preds);
  CsrRows reduced = reduction.Run();
  if (examined != nullptr) *examined = reduction.examined();
  return reduced;
}

CsrRows MemoryEdges(const Plan& plan) {
  const Users users = FindUsers(plan);
  std::map<DeviceId, Tenants> arenas;
  Table<InstanceId, uint8_t> seen(plan.instances.size());
  std::vector<Edge> edges;
  for (const PlanNode& node : plan.nodes) {
    ForEachTouched(node, [&](InstanceId i) {
      const Instance& instance = plan.instances[i];
      if (seen[i] != 0 || instance.offset < 0 || instance.bytes == 0) return;
      seen[i] = 1;
      arenas[instance.device].TakeOver(i, instance.offset, instance.offset + instance.bytes, [&](InstanceId earlier) {
        for (const int32_t from : users.last[earlier]) {
          for (const int32_t to : users.first[i]) {
            if (from != to) edges.push_back({from, to});  // the same node: it writes in place
          }
        }
      });
    });
  }
  return MakeEdges(plan.nodes.count(), edges);
}

CsrRows LaneEdges(const Plan& plan) {
  CsrRows rows;
  // For each lane, the previous node.
  Table<LaneId, NodeId> launch(plan.lanes.size()), hostcall(plan.lanes.size());
  for (const NodeId n : plan.nodes.ids()) {
    const PlanKind kind = plan.nodes[n].kind;
    if (kind == PlanKind::kLaunch || kind == PlanKind::kHostcall) {
      NodeId& before = (kind == PlanKind::kLaunch ? launch : hostcall)[plan.nodes[n].lane];
      if (before >= 0) rows.Add(before);
      before = n;
    }
    rows.Close();
  }
  return rows;
}

CsrRows EdgesOfGraph(const Plan& plan, const CsrRows& memory, const CsrRows& in_lanes, std::span<const NodeId> nodes) {
  if (nodes.empty()) return {};
  const NodeId first = nodes.front(), last = nodes.back();
  std::vector<int32_t> position(static_cast<size_t>(last - first) + 1, -1);  // for each plan node from `first` on
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i] - first] = static_cast<int32_t>(i);
  std::vector<Edge> edges;
  const auto add = [&](NodeId from, NodeId to) {
    from = FirstOfBatch(plan, from);
    if (from < first || from == to) return;
    const int32_t p = position[from - first];
    if (p >= 0) edges.push_back({p, position[to - first]});
  };
  for (const NodeId n : nodes) {
    for (NodeId m = n, end = EndOfBatch(plan, n); m < end; ++m) {
      for (const int32_t p : plan.nodes[m].preds) add(p, n);
      for (const int32_t p : memory[m]) add(p, n);
      for (const int32_t p : in_lanes[m]) add(p, n);
    }
  }
  return TransitiveReduction(MakeEdges(static_cast<int32_t>(nodes.size()), edges));
}

}  // namespace penstock::graph
