#include "graph/reduce_graph.h"

#include <algorithm>
#include <map>
#include <vector>

namespace penstock::graph {
namespace {

// An edge from p to v is implied when p comes before another predecessor of v. That can be only where that one is
// deeper (the longest path to it has more edges), and p has a successor no later than the last predecessor of v: most
// edges are answered so. The nodes p of the others are looked at 64 at a time, a bit each, in one sweep over the nodes
// from the first of them to the last predecessor in question.
class Reduction {
 public:
  explicit Reduction(const Rows& preds) : preds_(preds) {}

  Rows Run() {
    FindQuestions();
    for (size_t i = 0; i < questions_.size();) i = Answer(i);
    if (!any_implied_) return preds_;
    Rows kept;
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

 private:
  struct Question {
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
      for (const int32_t p : preds) deepest = std::max(deepest, nodes[static_cast<size_t>(p)].depth);
      nodes[static_cast<size_t>(v)].depth = deepest + 1;
      for (const int32_t p : preds) {
        Node& from = nodes[static_cast<size_t>(p)];
        if (from.depth < deepest && from.first_successor <= preds.back()) questions_.push_back({p, v, edge});
        from.first_successor = std::min(from.first_successor, v);
        ++edge;
      }
    }
    if (questions_.empty()) return;
    implied_.assign(edge, 0);
    std::sort(questions_.begin(), questions_.end(),
              [](const Question& a, const Question& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
    before_.resize(static_cast<size_t>(preds_.rows()));
    bit_.resize(before_.size());
  }

  // Those of 64 nodes, from `begin` on. Returns where the next begin.
  size_t Answer(size_t begin) {
    const int32_t first = questions_[begin].from;
    int32_t last = first;
    size_t end = begin;
    int nodes = 0;
    for (; end < questions_.size(); ++end) {
      uint64_t& bit = bit_[static_cast<size_t>(questions_[end].from)];
      if (bit == 0 && nodes == 64) break;
      if (bit == 0) bit = uint64_t{1} << nodes++;
      last = std::max(last, preds_[questions_[end].to].back());
    }
    Sweep(first, last);
    for (size_t i = begin; i < end; ++i) {
      if (!IsImplied(questions_[i])) continue;
      implied_[questions_[i].edge] = 1;
      any_implied_ = true;
    }
    for (size_t i = begin; i < end; ++i) bit_[static_cast<size_t>(questions_[i].from)] = 0;
    return end;
  }

  // before_[v]: the bits of those in question that come before v.
  void Sweep(int32_t first, int32_t last) {
    for (int32_t v = first; v <= last; ++v) {
      uint64_t before = 0;
      for (const int32_t p : preds_[v]) {
        if (p >= first) before |= before_[static_cast<size_t>(p)] | bit_[static_cast<size_t>(p)];
      }
      before_[static_cast<size_t>(v)] = before;
    }
  }

  bool IsImplied(const Question& question) const {
    const std::span<const int32_t> preds = preds_[question.to];
    return std::any_of(preds.begin(), preds.end(), [&](int32_t other) {
      return other > question.from &&
             (before_[static_cast<size_t>(other)] & bit_[static_cast<size_t>(question.from)]) != 0;
    });
  }

  const Rows& preds_;
  std::vector<Question> questions_;  // by node
  std::vector<uint8_t> implied_;  // by edge
  bool any_implied_ = false;
  std::vector<uint64_t> before_, bit_;
};

template <class F>
void ForEachInstance(const PlanNode& node, F&& f) {
  for (const Use& use : node.uses) f(use.instance);
  if (node.decl < 0) f(node.src), f(node.dst);
}

bool UsesInstance(const PlanNode& node, int32_t instance) {
  bool found = false;
  ForEachInstance(node, [&](int32_t i) { found = found || i == instance; });
  return found;
}

// The users of each instance, and among them those that none before, or none behind, is joined to by an edge. With
// these in order all are.
struct Users {
  Rows all, first, last;
};

Users FindUsers(const Plan& plan) {
  std::vector<Edge> list;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    ForEachInstance(plan.nodes[n], [&](int32_t i) { list.push_back({static_cast<int32_t>(n), i}); });
  }
  const auto count = static_cast<int32_t>(plan.instances.size());
  Users users{MakeEdges(count, list), {}, {}};
  std::vector<uint8_t> has_later(plan.nodes.size());
  for (int32_t i = 0; i < count; ++i) {
    for (const int32_t n : users.all[i]) {
      bool has_earlier = false;
      for (const int32_t p : plan.nodes[static_cast<size_t>(n)].preds) {
        if (!UsesInstance(plan.nodes[static_cast<size_t>(p)], i)) continue;
        has_earlier = true;
        has_later[static_cast<size_t>(p)] = 1;
      }
      if (!has_earlier) users.first.Add(n);
    }
    for (const int32_t n : users.all[i]) {
      if (!has_later[static_cast<size_t>(n)]) users.last.Add(n);
      has_later[static_cast<size_t>(n)] = 0;
    }
    users.first.Close();
    users.last.Close();
  }
  return users;
}

// Who has each byte of one arena now: regions by their first byte.
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
  const int32_t first = plan.nodes[static_cast<size_t>(node)].batch;
  return first < 0 ? node : first;
}

// Behind the last of the nodes that `first` stands for: those of its batch, or itself.
int32_t EndOfBatch(const Plan& plan, int32_t first) {
  auto end = static_cast<size_t>(first) + 1;
  while (end < plan.nodes.size() && plan.nodes[end].batch == first) ++end;
  return static_cast<int32_t>(end);
}

}  // namespace

Rows TransitiveReduction(const Rows& preds) { return Reduction(preds).Run(); }

Rows MemoryEdges(const Plan& plan) {
  const Users users = FindUsers(plan);
  std::map<int32_t, Tenants> arenas;  // by device
  std::vector<uint8_t> seen(plan.instances.size());
  std::vector<Edge> edges;
  for (const PlanNode& node : plan.nodes) {
    ForEachInstance(node, [&](int32_t i) {
      const Instance& instance = plan.instances[static_cast<size_t>(i)];
      if (seen[static_cast<size_t>(i)] != 0 || instance.offset < 0 || instance.bytes == 0) return;
      seen[static_cast<size_t>(i)] = 1;
      arenas[instance.device].TakeOver(i, instance.offset, instance.offset + instance.bytes, [&](int32_t earlier) {
        for (const int32_t from : users.last[earlier]) {
          for (const int32_t to : users.first[i]) {
            if (from != to) edges.push_back({from, to});  // one node: it writes in place
          }
        }
      });
    });
  }
  return MakeEdges(static_cast<int32_t>(plan.nodes.size()), edges);
}

Rows LaneEdges(const Plan& plan) {
  Rows rows;
  // Of each lane, the one before.
  std::vector<int32_t> launch(plan.lanes.size(), -1), ask(plan.lanes.size(), -1);
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanKind kind = plan.nodes[n].kind;
    if (kind == PlanKind::kLaunch || kind == PlanKind::kAsk) {
      int32_t& before = (kind == PlanKind::kLaunch ? launch : ask)[static_cast<size_t>(plan.nodes[n].lane)];
      if (before >= 0) rows.Add(before);
      before = static_cast<int32_t>(n);
    }
    rows.Close();
  }
  return rows;
}

Rows EdgesOfGraph(const Plan& plan, const Rows& memory, const Rows& in_lanes, std::span<const int32_t> nodes) {
  if (nodes.empty()) return {};
  const int32_t first = nodes.front(), last = nodes.back();
  std::vector<int32_t> position(static_cast<size_t>(last - first) + 1, -1);  // of each plan node from `first` on
  for (size_t i = 0; i < nodes.size(); ++i) position[static_cast<size_t>(nodes[i] - first)] = static_cast<int32_t>(i);
  std::vector<Edge> edges;
  const auto add = [&](int32_t from, int32_t to) {
    from = FirstOfBatch(plan, from);
    if (from < first || from == to) return;
    const int32_t p = position[static_cast<size_t>(from - first)];
    if (p >= 0) edges.push_back({p, position[static_cast<size_t>(to - first)]});
  };
  for (const int32_t n : nodes) {
    for (int32_t m = n, end = EndOfBatch(plan, n); m < end; ++m) {
      for (const int32_t p : plan.nodes[static_cast<size_t>(m)].preds) add(p, n);
      for (const int32_t p : memory[m]) add(p, n);
      for (const int32_t p : in_lanes[m]) add(p, n);
    }
  }
  return TransitiveReduction(MakeEdges(static_cast<int32_t>(nodes.size()), edges));
}

}  // namespace penstock::graph
