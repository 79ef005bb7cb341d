#include "graph/plan/reduce_graph.h"

#include <algorithm>
#include <map>
#include <vector>

namespace penstock::graph {
namespace {

// An edge from p to v is redundant if p comes before another predecessor of v. That is possible only if that one is
// deeper (the longest path to it has more edges), and p has a successor no later than the last predecessor of v:
// this decides most edges. Among the others, those are redundant whose p is a predecessor of v's last one. The
// nodes p of the rest are examined 64 at a time, one bit each, in one sweep from the first of them to the last
// predecessor in question.
class Reduction {
 public:
  explicit Reduction(const CsrRows& preds) : preds_(preds) {}

  CsrRows Run() {
    FindQuestions();
    const int64_t most = kMostLooks * static_cast<int64_t>(preds_.items());
    for (size_t i = 0; i < questions_.size() && looks_ <= most;) i = Answer(i);
    if (!any_implied_) return preds_;
    CsrRows kept;
    kept.Reserve(static_cast<size_t>(preds_.rows()), preds_.items());
    size_t edge = 0;
    for (int32_t v = 0; v < preds_.rows(); ++v) {
      for (const int32_t p : preds_[v]) {
        if (implied_[edge++] == 0) kept.Add(p);
      }
      kept.Close();
    }
    return kept;
  }

  int64_t looks() const { return looks_; }

 private:
  struct EdgeQuestion {
    int32_t from, to;
    size_t edge;
  };

  void FindQuestions() {
    struct Node {
      int32_t depth = 0, first_successor = INT32_MAX;
    };
    std::vector<Node> nodes(static_cast<size_t>(preds_.rows()));
    size_t edge = 0;
    for (int32_t v = 0; v < preds_.rows(); ++v) {
      const std::span<const int32_t> preds = preds_[v];
      int32_t deepest = -1;
      for (const int32_t p : preds) deepest = std::max(deepest, nodes[p].depth);
      nodes[v].depth = deepest + 1;
      for (const int32_t p : preds) {
        Node& from = nodes[p];
        if (from.depth < deepest && from.first_successor <= preds.back()) Ask({p, v, edge});
        from.first_successor = std::min(from.first_successor, v);
        ++edge;
      }
    }
    if (questions_.empty()) return;
    std::sort(questions_.begin(), questions_.end(), [](const EdgeQuestion& a, const EdgeQuestion& b) {
      return a.from != b.from ? a.from < b.from : a.to < b.to;
    });
    before_.resize(static_cast<size_t>(preds_.rows()));
    bit_.resize(before_.size());
    through_.resize(before_.size());
  }

  void Ask(const EdgeQuestion& question) {
    const std::span<const int32_t> of_last = preds_[preds_[question.to].back()];
    if (std::binary_search(of_last.begin(), of_last.end(), question.from)) {
      Imply(question);
    } else {
      questions_.push_back(question);
    }
  }

  void Imply(const EdgeQuestion& question) {
    if (!any_implied_) implied_.assign(preds_.items(), 0);
    any_implied_ = true;
    implied_[question.edge] = 1;
  }

  // Answers the questions about the next 64 nodes, from `begin` on. Returns where the remaining questions begin.
  size_t Answer(size_t begin) {
    const int32_t first = questions_[begin].from;
    int32_t last = first;
    size_t end = begin;
    int nodes = 0;
    for (; end < questions_.size(); ++end) {
      uint64_t& bit = bit_[questions_[end].from];
      if (bit == 0 && nodes == 64) break;
      if (bit == 0) bit = uint64_t{1} << nodes++;
      last = std::max(last, preds_[questions_[end].to].back());
    }
    Sweep(first, last);
    for (size_t i = begin; i < end; ++i) {
      Through& through = through_[questions_[i].to];
      if (through.sweep != sweeps_) through = {sweeps_, BeforeAny(preds_[questions_[i].to])};
      if ((through.before & bit_[questions_[i].from]) != 0) Imply(questions_[i]);
    }
    for (size_t i = begin; i < end; ++i) bit_[questions_[i].from] = 0;
    return end;
  }

  // before_[v]: the bits of the nodes in question that come before v.
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
    looks_ += static_cast<int64_t>(nodes.size()) + 1;
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
  std::vector<EdgeQuestion> questions_;  // by node
  std::vector<uint8_t> implied_;  // for each edge, once one is found
  bool any_implied_ = false;
  std::vector<uint64_t> before_, bit_;
  std::vector<Through> through_;
  int32_t sweeps_ = 0, first_ = 0;  // first_: the first node of the last sweep
  int64_t looks_ = 0;
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
void ForEachCommon(const Preds& preds, std::span<const int32_t> earlier, const std::vector<uint8_t>& uses, F&& f) {
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
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    ForEachTouched(plan.nodes[n], [&](int32_t i) { list.push_back({static_cast<int32_t>(n), i}); });
  }
  const auto count = static_cast<int32_t>(plan.instances.size());
  Users users{MakeEdges(count, list), {}, {}};
  std::vector<uint8_t> uses(plan.nodes.size()), has_later(plan.nodes.size());
  for (int32_t i = 0; i < count; ++i) {
    const std::span<const int32_t> all = users.all[i];
    for (const int32_t n : all) uses[n] = 1;
    for (size_t u = 0; u < all.size(); ++u) {
      bool has_earlier = false;
      ForEachCommon(plan.nodes[all[u]].preds, all.first(u), uses, [&](int32_t p) {
        has_earlier = true;
        has_later[p] = 1;
      });
      if (!has_earlier) users.first.Add(all[u]);
    }
    for (const int32_t n : all) {
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
  void TakeOver(int32_t instance, int64_t begin, int64_t end, F&& f) {
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
    int32_t instance;
  };
  std::map<int64_t, Region> regions_;
};

int32_t FirstOfBatch(const Plan& plan, int32_t node) {
  const int32_t first = plan.nodes[node].batch;
  return first < 0 ? node : first;
}

// The index after the last node that `first` stands for: those of its batch, or itself.
int32_t EndOfBatch(const Plan& plan, int32_t first) {
  auto end = static_cast<size_t>(first) + 1;
  while (end < plan.nodes.size() && plan.nodes[end].batch == first) ++end;
  return static_cast<int32_t>(end);
}

}  // namespace

CsrRows TransitiveReduction(const CsrRows& preds, int64_t* looks) {
  Reduction reduction(preds);
  CsrRows reduced = reduction.Run();
  if (looks != nullptr) *looks = reduction.looks();
  return reduced;
}

CsrRows MemoryEdges(const Plan& plan) {
  const Users users = FindUsers(plan);
  std::map<int32_t, Tenants> arenas;  // by device
  std::vector<uint8_t> seen(plan.instances.size());
  std::vector<Edge> edges;
  for (const PlanNode& node : plan.nodes) {
    ForEachTouched(node, [&](int32_t i) {
      const Instance& instance = plan.instances[i];
      if (seen[i] != 0 || instance.offset < 0 || instance.bytes == 0) return;
      seen[i] = 1;
      arenas[instance.device].TakeOver(i, instance.offset, instance.offset + instance.bytes, [&](int32_t earlier) {
        for (const int32_t from : users.last[earlier]) {
          for (const int32_t to : users.first[i]) {
            if (from != to) edges.push_back({from, to});  // the same node: it writes in place
          }
        }
      });
    });
  }
  return MakeEdges(static_cast<int32_t>(plan.nodes.size()), edges);
}

CsrRows LaneEdges(const Plan& plan) {
  CsrRows rows;
  // For each lane, the previous node.
  std::vector<int32_t> launch(plan.lanes.size(), -1), ask(plan.lanes.size(), -1);
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanKind kind = plan.nodes[n].kind;
    if (kind == PlanKind::kLaunch || kind == PlanKind::kHostcall) {
      int32_t& before = (kind == PlanKind::kLaunch ? launch : ask)[plan.nodes[n].lane];
      if (before >= 0) rows.Add(before);
      before = static_cast<int32_t>(n);
    }
    rows.Close();
  }
  return rows;
}

CsrRows EdgesOfGraph(const Plan& plan, const CsrRows& memory, const CsrRows& in_lanes, std::span<const NodeId> nodes) {
  if (nodes.empty()) return {};
  const int32_t first = nodes.front(), last = nodes.back();
  std::vector<int32_t> position(static_cast<size_t>(last - first) + 1, -1);  // for each plan node from `first` on
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i] - first] = static_cast<int32_t>(i);
  std::vector<Edge> edges;
  const auto add = [&](int32_t from, int32_t to) {
    from = FirstOfBatch(plan, from);
    if (from < first || from == to) return;
    const int32_t p = position[from - first];
    if (p >= 0) edges.push_back({p, position[to - first]});
  };
  for (const int32_t n : nodes) {
    for (int32_t m = n, end = EndOfBatch(plan, n); m < end; ++m) {
      for (const int32_t p : plan.nodes[m].preds) add(p, n);
      for (const int32_t p : memory[m]) add(p, n);
      for (const int32_t p : in_lanes[m]) add(p, n);
    }
  }
  return TransitiveReduction(MakeEdges(static_cast<int32_t>(nodes.size()), edges));
}

}  // namespace penstock::graph
