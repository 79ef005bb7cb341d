#include "tests/graph/oracle/oracle.h"

#include <algorithm>

#include "tests/graph/oracle/plan_uses.h"

namespace penstock::graph {
namespace {

bool NodesConflict(const std::vector<Footprint>& i, const std::vector<Footprint>& j, bool loose) {
  return std::any_of(i.begin(), i.end(), [&](const Footprint& a) {
    return std::any_of(j.begin(), j.end(),
                       [&](const Footprint& b) { return a.Conflicts(b) && (a.unordered || b.unordered) == loose; });
  });
}

std::vector<DeclaredPair> ConflictingPairs(const Model& model, bool loose) {
  const Footprints footprints = FootprintsOf(model);
  std::vector<DeclaredPair> pairs;
  for (size_t j = 0; j < footprints.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      if (NodesConflict(footprints[i], footprints[j], loose)) {
        pairs.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j)});
      }
    }
  }
  return pairs;
}

// The staging instance of a kHost buffer, and the bound memory that takes its place when it is pinned.
bool AreTwins(const Instance& a, const Instance& b) {
  return a.buffer == b.buffer && ((a.stages && b.space == Space::kBound) || (b.stages && a.space == Space::kBound));
}

bool InOneArena(const Instance& a, const Instance& b) {
  return a.space == b.space && InArena(a.space) && a.device == b.device;
}

bool ShareBytes(const Instance& a, const Instance& b) {
  return InOneArena(a, b) && a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

std::vector<int32_t> UsersOf(const Plan& plan, int32_t instance) {
  std::vector<int32_t> users;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const std::vector<Use> uses = UsesOf(plan.nodes[n]);
    if (std::any_of(uses.begin(), uses.end(), [&](const Use& u) { return u.instance == instance; })) {
      users.push_back(static_cast<int32_t>(n));
    }
  }
  return users;
}

// Whether the node says InPlace of what these instances are to it, and does with them what that asks for.
bool WritesInPlace(const Model& model, const PlanNode& node, int32_t from, int32_t to) {
  const NodeDecl& decl = model.nodes[node.decl];
  const auto access_of = [&](int32_t instance) {  // the only one, or -1
    int32_t found = -1;
    for (size_t i = 0; i < node.uses.size(); ++i) {
      if (node.uses[i].instance != instance) continue;
      if (found >= 0) return -1;
      found = static_cast<int32_t>(i);
    }
    return found;
  };
  const int32_t in = access_of(from), out = access_of(to);
  if (in < 0 || out < 0) return false;
  const AccessDecl &reads = decl.accesses[in], &writes = decl.accesses[out];
  const auto size = [&](const AccessDecl& a) { return model.buffers[a.buffer].type.size; };
  const auto whole = [&](const AccessDecl& a) {  // all atoms, in their order, whatever the parameters
    bool all = true;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const std::vector<int32_t> atoms = AtomsAt(model, a, ParamValues(model, seed));
      all = all && static_cast<int64_t>(atoms.size()) == AtomCount(model, RootOf(model, a.buffer));
      for (size_t i = 0; i < atoms.size(); ++i) all = all && atoms[i] == static_cast<int32_t>(i);
    }
    return all;
  };
  return reads.mode == AccessMode::kRead && writes.mode == AccessMode::kWrite && size(reads) == size(writes) &&
         std::any_of(decl.in_place.begin(), decl.in_place.end(),
                     [&](const InPlaceDecl& pair) { return pair.in == reads.buffer && pair.out == writes.buffer; }) &&
         whole(reads) && whole(writes);
}

bool AllBefore(const Execution& run, const std::vector<int32_t>& first, const std::vector<int32_t>& second) {
  return std::all_of(first.begin(), first.end(), [&](int32_t a) {
    return std::all_of(second.begin(), second.end(), [&](int32_t b) { return run.Before(a, b); });
  });
}

}  // namespace

std::vector<DeclaredPair> DeclaredPairs(const Model& model) {
  std::vector<DeclaredPair> pairs = ConflictingPairs(model, false);
  for (size_t j = 0; j < model.nodes.size(); ++j) {
    for (const int32_t other : model.nodes[j].after) pairs.push_back({other, static_cast<int32_t>(j)});
  }
  return pairs;
}

std::vector<DeclaredPair> LoosePairs(const Model& model) { return ConflictingPairs(model, true); }

Paths PathsOf(const Model& model, const std::vector<DeclaredPair>& pairs) {
  const size_t count = model.nodes.size();
  Paths paths(count, std::vector<bool>(count));
  for (const auto& [before, after] : pairs) paths[after][before] = true;
  for (size_t k = 0; k < count; ++k) {  // Warshall
    for (size_t v = 0; v < count; ++v) {
      if (!paths[v][k]) continue;
      for (size_t u = 0; u < count; ++u) paths[v][u] = paths[v][u] || paths[k][u];
    }
  }
  return paths;
}

std::vector<int32_t> SequenceOf(const Model& model) {
  const Paths paths = PathsOf(model, DeclaredPairs(model));
  std::vector<int32_t> sequence;
  std::vector<bool> taken(model.nodes.size());
  for (size_t v = 0; v < taken.size();) {
    bool ready = !taken[v];
    for (size_t u = 0; u < taken.size(); ++u) ready = ready && (!paths[v][u] || taken[u]);
    if (ready) sequence.push_back(static_cast<int32_t>(v));
    if (ready) taken[v] = true;
    v = ready ? 0 : v + 1;
  }
  return sequence;
}

OrderOracle::OrderOracle(const Model& model, const Plan& plan) : plan_(plan) {
  std::vector<int32_t> node_of(model.nodes.size(), -1);
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    if (plan.nodes[n].decl >= 0) node_of[plan.nodes[n].decl] = static_cast<int32_t>(n);
  }
  std::vector<DeclaredPair> declared_pairs = DeclaredPairs(model);
  if (std::count(node_of.begin(), node_of.end(), -1) > 0) {  // what was dropped still orders the others
    const Paths paths = PathsOf(model, declared_pairs);
    declared_pairs.clear();
    for (size_t b = 0; b < node_of.size(); ++b) {
      for (size_t a = 0; a < node_of.size(); ++a) {
        if (!paths[b][a] || node_of[a] < 0 || node_of[b] < 0) continue;
        declared_pairs.push_back({static_cast<int32_t>(a), static_cast<int32_t>(b)});
      }
    }
  }
  for (const auto& [before, after] : declared_pairs) {
    pairs_.push_back({node_of[before], node_of[after], true});
  }
  for (size_t n = 0; n < plan.nodes.size(); ++n) {  // both forms of a Copy node
    if (plan.nodes[n].decl >= 0 || plan.nodes[n].copy < 0) continue;
    for (const auto& [before, after] : declared_pairs) {
      if (after == plan.nodes[n].copy) pairs_.push_back({node_of[before], static_cast<int32_t>(n), true});
    }
    pairs_.push_back({static_cast<int32_t>(n), node_of[plan.nodes[n].copy], true});
  }
  const Footprints declared = FootprintsOf(model);
  std::vector<std::vector<Used>> used;
  for (const PlanNode& node : plan.nodes) used.push_back(UsedBy(model, node, declared));
  for (int32_t b = 0; b < static_cast<int32_t>(plan.nodes.size()); ++b) {
    for (int32_t a = 0; a < b; ++a) {
      if (Clash(a, b, used)) pairs_.push_back({a, b, false});
    }
  }
}

std::vector<OrderOracle::Used> OrderOracle::UsedBy(const Model& model, const PlanNode& node,
                                                   const Footprints& declared) const {
  std::vector<Used> used;
  const std::vector<Use> uses = UsesOf(node);
  for (size_t i = 0; i < uses.size(); ++i) {
    const int32_t root = plan_.instances[uses[i].instance].buffer;
    Footprint footprint{root, uses[i].mode};
    if (node.decl >= 0) {
      footprint = declared[node.decl][i];
    } else if (node.copy >= 0) {
      footprint = declared[node.copy][AccessOfCopy(model, node, uses[i].mode)];
    } else if (node.part >= 0) {
      footprint.whole = false;
      for (const int32_t atom : AtomsOfPart(model, root, plan_.parts[node.part])) {
        footprint.atoms.set(static_cast<size_t>(atom));
      }
    }
    if (footprint.root != root) footprint = Footprint{root, uses[i].mode};  // read from where the same contents are
    used.push_back({uses[i].instance, footprint});
  }
  return used;
}

// Copies between host fallbacks do nothing where these are one memory.
bool OrderOracle::Clash(int32_t a, int32_t b, const std::vector<std::vector<Used>>& used) const {
  const bool stages = IsStage(plan_.nodes[a]) || IsStage(plan_.nodes[b]);
  for (const Used& u : used[a]) {
    for (const Used& v : used[b]) {
      if (!u.footprint.Conflicts(v.footprint)) continue;
      const auto &x = plan_.instances[u.instance], &y = plan_.instances[v.instance];
      if (u.instance == v.instance || (!stages && AreTwins(x, y))) return true;
    }
  }
  return false;
}

std::string OrderOracle::Check(const Execution& run) const {
  if (!run.problem().empty()) return run.problem();
  for (const auto& [a, b, forward] : pairs_) {
    if (run.Before(a, b) || (!forward && run.Before(b, a))) continue;
    return forward ? "node " + Label(plan_, a) + " is not before " + Label(plan_, b) + " as declared"
                   : "nodes " + Label(plan_, a) + " and " + Label(plan_, b) + " touch the same bytes in no order";
  }
  return "";
}

bool MayLiveAtOnce(const Plan& plan, const Execution& run, int32_t a, int32_t b) {
  const std::vector<int32_t> first = UsersOf(plan, a), second = UsersOf(plan, b);
  return !first.empty() && !second.empty() && !AllBefore(run, first, second) && !AllBefore(run, second, first);
}

bool MayHandOver(const Model& model, const Plan& plan, const Execution& run, int32_t a, int32_t b) {
  const auto handed = [&](int32_t from, int32_t to) {
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      const PlanNode& node = plan.nodes[n];
      if (node.decl < 0 || !WritesInPlace(model, node, from, to)) continue;
      const auto self = static_cast<int32_t>(n);
      const std::vector<int32_t> before = UsersOf(plan, from), behind = UsersOf(plan, to);
      const auto is_before = [&](int32_t u) { return u == self || run.Before(u, self); };
      const auto is_behind = [&](int32_t u) { return u == self || run.Before(self, u); };
      if (std::all_of(before.begin(), before.end(), is_before) && std::all_of(behind.begin(), behind.end(), is_behind))
        return true;
    }
    return false;
  };
  return handed(a, b) || handed(b, a);
}

std::string CheckMemory(const Model& model, const Plan& plan, const Execution& run) {
  if (!run.problem().empty()) return run.problem();
  for (int32_t b = 0; b < static_cast<int32_t>(plan.instances.size()); ++b) {
    for (int32_t a = 0; a < b; ++a) {
      const Instance &x = plan.instances[a], &y = plan.instances[b];
      if (ShareBytes(x, y) && (x.leased || y.leased)) return "leased memory is shared";
      if (ShareBytes(x, y) && MayLiveAtOnce(plan, run, a, b) &&
          !(x.offset == y.offset && MayHandOver(model, plan, run, a, b))) {
        return "instances " + std::to_string(a) + " and " + std::to_string(b) + " share bytes and may live at once";
      }
    }
  }
  return "";
}

std::string CheckOrder(const Model& model, const Plan& plan) {
  const Execution run(plan);
  const std::string wrong = OrderOracle(model, plan).Check(run);
  return wrong.empty() ? CheckMemory(model, plan, run) : wrong;
}

}  // namespace penstock::graph
