#include "tests/graph/oracle/graph_shares.h"

#include <algorithm>
#include <vector>

#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/plan_uses.h"

namespace penstock::graph {
namespace {

// Of the pairs that must run in order, those that nothing written in between separates: what is left out are pairs
// whose common elements another node between them writes, all of them.
std::vector<DeclaredPair> Edges(const Model& model) {
  const Footprints footprints = FootprintsOf(model);
  const auto separated = [&](const DeclaredPair& pair, const Footprint& a, const Footprint& b) {
    for (int32_t n = pair.before + 1; n < pair.after; ++n) {
      for (const Footprint& c : footprints[n]) {
        if (c.root != a.root || c.mode == AccessMode::kRead || c.unordered) continue;
        const auto common = a.whole ? b.atoms : b.whole ? a.atoms : a.atoms & b.atoms;
        if (c.whole || (!(a.whole && b.whole) && (common & ~c.atoms).none())) return true;
      }
    }
    return false;
  };
  std::vector<DeclaredPair> edges;
  for (const DeclaredPair& pair : DeclaredPairs(model)) {
    const auto& after = model.nodes[pair.after].after;
    bool edge = std::find(after.begin(), after.end(), pair.before) != after.end();
    for (const Footprint& a : footprints[pair.before]) {
      for (const Footprint& b : footprints[pair.after]) {
        edge = edge || (a.Conflicts(b) && !a.unordered && !b.unordered && !separated(pair, a, b));
      }
    }
    if (edge && std::find(edges.begin(), edges.end(), pair) == edges.end()) edges.push_back(pair);
  }
  return edges;
}

bool Implied(const std::vector<DeclaredPair>& edges, const Paths& closure, const DeclaredPair& edge) {
  return std::any_of(edges.begin(), edges.end(), [&](const DeclaredPair& other) {
    return other.after == edge.after && other.before != edge.before && closure[other.before][edge.before];
  });
}

// Kuhn's augmenting path: a next one for `v` in a chain, among the nodes behind it.
bool Augment(const Paths& before, const std::vector<size_t>& nodes, size_t v, std::vector<size_t>& chained,
             std::vector<bool>& seen) {
  for (const size_t u : nodes) {
    if (!before[u][v] || seen[u]) continue;
    seen[u] = true;
    if (chained[u] == before.size() || Augment(before, nodes, chained[u], chained, seen)) {
      chained[u] = v;
      return true;
    }
  }
  return false;
}

// How many of `nodes` may run at once: as many as the fewest chains that cover them (Dilworth 1950).
size_t Width(const Paths& before, const std::vector<size_t>& nodes) {
  std::vector<size_t> chained(before.size(), before.size());
  size_t links = 0;
  for (const size_t v : nodes) {
    std::vector<bool> seen(before.size());
    links += Augment(before, nodes, v, chained, seen);
  }
  return nodes.size() - links;
}

bool HasCappedLanes(const Plan& plan, const PlanOptions& options, const Paths& closure) {
  for (size_t d = 0; d < options.devices.size(); ++d) {
    const auto lanes = std::count_if(plan.lanes.begin(), plan.lanes.end(), [&](const Lane& lane) {
      return lane.device == static_cast<int32_t>(d) && lane.kind == LaneKind::kCompute;
    });
    if (lanes != options.max_lanes) continue;
    std::vector<size_t> nodes;
    for (const PlanNode& node : plan.nodes) {
      if (node.decl >= 0 && node.lane >= 0 && node.device == static_cast<int32_t>(d) &&
          plan.lanes[node.lane].kind == LaneKind::kCompute) {
        nodes.push_back(static_cast<size_t>(node.decl));
      }
    }
    if (Width(closure, nodes) > static_cast<size_t>(lanes)) return true;
  }
  return false;
}

bool ReusesMemory(const Plan& plan) {
  for (size_t b = 0; b < plan.instances.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      const Instance &x = plan.instances[a], &y = plan.instances[b];
      if (x.space == y.space && x.device == y.device && InArena(x.space) && x.offset < y.offset + y.bytes &&
          y.offset < x.offset + x.bytes) {
        return true;
      }
    }
  }
  return false;
}

// Whether a node writes where it reads.
bool WritesInPlace(const Plan& plan, const PlanNode& node) {
  return std::any_of(node.uses.begin(), node.uses.end(), [&](const Use& in) {
    return std::any_of(node.uses.begin(), node.uses.end(), [&](const Use& out) {
      const Instance &x = plan.instances[in.instance], &y = plan.instances[out.instance];
      return in.instance != out.instance && x.space == y.space && x.device == y.device && InArena(x.space) &&
             x.bytes > 0 && x.offset == y.offset;
    });
  });
}

void Add(Share& share, bool part) { share.part += part, ++share.of; }

}  // namespace

std::string Share::text() const {
  const auto tenths = static_cast<int64_t>(value() * 1000 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " % " + name + " (" + std::to_string(part) +
         " of " + std::to_string(of) + ")";
}

void GraphShares::CountAccesses(const Model& model) {
  const auto has_param = [](const Extent& extent) {
    return std::any_of(extent.dims.begin(), extent.dims.begin() + extent.rank,
                       [](const Dim& dim) { return !dim.is_constant(); });
  };
  bool param = false;
  for (const BufferDecl& decl : model.buffers) {
    param = param || has_param(decl.extent) || (!decl.box.whole() && has_param(decl.box->offset));
  }
  for (const NodeDecl& node : model.nodes) {
    for (const AccessDecl& access : node.accesses) {
      Add(slices, !access.box.whole());
      Add(aliases, model.buffers[access.buffer].is_alias);
      param = param || (!access.box.whole() && (has_param(access.box->size) || has_param(access.box->offset)));
    }
  }
  bool state_part = false;
  for (const std::vector<Footprint>& of_node : FootprintsOf(model)) {
    for (const Footprint& f : of_node) {
      state_part = state_part || (!f.whole && model.buffers[f.root].role == BufferRole::kState);
    }
  }
  Add(state_parts, state_part);
  Add(params, param);
  Add(loose, !LoosePairs(model).empty());
}

void GraphShares::Count(const Model& model, const PlanOptions& options, const Plan& plan) {
  const std::vector<DeclaredPair> edges = Edges(model);
  const Paths closure = PathsOf(model, edges);
  std::vector<int32_t> lane(model.nodes.size(), -1);
  for (const PlanNode& node : plan.nodes) {
    if (node.decl >= 0) lane[node.decl] = node.lane;
  }
  for (const DeclaredPair& edge : edges) {
    Add(redundant, Implied(edges, closure, edge));
    const int32_t from = lane[edge.before], to = lane[edge.after];
    if (from >= 0 && to >= 0) Add(cross_lane, from != to);
  }
  CountAccesses(model);
  for (const NodeDecl& node : model.nodes) Add(pins, node.device >= 0 && node.device != options.default_device);
  Add(capped, HasCappedLanes(plan, options, closure));
  Add(states, !plan.states.empty());
  Add(external_deps, !plan.external_deps.empty());
  Add(hosts, !plan.host_steps.empty());
  Add(segments, plan.segments.size() > 1);
  Add(staged, std::any_of(plan.instances.begin(), plan.instances.end(), [](const Instance& i) { return i.stages; }));
  Add(peers, std::any_of(plan.nodes.begin(), plan.nodes.end(),
                         [](const PlanNode& n) { return n.kind == PlanKind::kPeerCopy; }));
  Add(reused, ReusesMemory(plan));
  Add(in_place, std::any_of(plan.nodes.begin(), plan.nodes.end(),
                            [&](const PlanNode& node) { return node.decl >= 0 && WritesInPlace(plan, node); }));
  Add(batches, plan.pieces_offset >= 0);
  Add(tasks,
      std::any_of(plan.host_steps.begin(), plan.host_steps.end(), [](const HostStep& step) { return step.joins; }));
}

}  // namespace penstock::graph
