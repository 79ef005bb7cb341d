// Segments: cuts the order where stream steps wait for host steps, and renumbers everything to the final order.
//
// A stream step's level is the number of times a path to it goes from a host step to a stream step. Stream steps of one
// level make one segment, submitted in one go once the host steps it waits for (all of lower levels) are done. A host
// step has the level of the last stream step it waits for and stands behind that segment. Within a level the order
// stays. Since every edge leads to an equal or higher level, the result is a topological order.
#include <algorithm>

#include "graph/passes.h"

namespace penstock::graph {
namespace {

std::vector<int32_t> Levels(const Draft& draft) {
  std::vector<int32_t> level(static_cast<size_t>(draft.step_count()));
  for (const int32_t v : draft.order) {
    const bool on_host = draft.steps[static_cast<size_t>(v)].on_host();
    for (const int32_t p : draft.edges[v]) {
      const bool crosses = !on_host && draft.steps[static_cast<size_t>(p)].on_host();
      level[static_cast<size_t>(v)] = std::max(level[static_cast<size_t>(v)], level[static_cast<size_t>(p)] + crosses);
    }
  }
  return level;
}

// Sorts `order` by level, stream steps before host steps; stable.
void SortByLevel(Draft& draft, const std::vector<int32_t>& level) {
  const auto key = [&](int32_t v) {
    return static_cast<size_t>(level[static_cast<size_t>(v)]) * 2 + draft.steps[static_cast<size_t>(v)].on_host();
  };
  std::vector<int32_t> next(1), sorted(draft.order.size());
  for (const int32_t v : draft.order) {
    if (key(v) + 2 > next.size()) next.resize(key(v) + 2);
    ++next[key(v) + 1];
  }
  for (size_t k = 1; k < next.size(); ++k) next[k] += next[k - 1];
  for (const int32_t v : draft.order) sorted[static_cast<size_t>(next[key(v)]++)] = v;
  draft.order = std::move(sorted);
}

void Renumber(Draft& draft) {
  std::vector<int32_t> position(draft.order.size());
  std::vector<Step> steps;
  std::vector<double> cost;
  Rows edges;
  steps.reserve(draft.order.size());
  cost.reserve(draft.order.size());
  edges.Reserve(draft.order.size(), draft.edges.items());
  for (size_t i = 0; i < draft.order.size(); ++i)
    position[static_cast<size_t>(draft.order[i])] = static_cast<int32_t>(i);
  for (const int32_t v : draft.order) {
    steps.push_back(draft.steps[static_cast<size_t>(v)]);
    cost.push_back(draft.cost[static_cast<size_t>(v)]);
    for (const int32_t p : draft.edges[v]) edges.Add(position[static_cast<size_t>(p)]);
    std::sort(edges.open().begin(), edges.open().end());
    edges.Close();
  }
  draft.steps = std::move(steps);
  draft.cost = std::move(cost);
  draft.edges = std::move(edges);
}

}  // namespace

void Segments(Draft& draft) {
  const std::vector<int32_t> level = Levels(draft);
  SortByLevel(draft, level);
  int32_t last = -1;
  draft.segment.reserve(draft.order.size());
  for (const int32_t v : draft.order) {
    if (draft.steps[static_cast<size_t>(v)].on_host()) {
      draft.segment.push_back(-1);
      continue;
    }
    draft.segments += level[static_cast<size_t>(v)] != last;
    last = level[static_cast<size_t>(v)];
    draft.segment.push_back(draft.segments - 1);
  }
  Renumber(draft);
}

}  // namespace penstock::graph
