// Segments: cuts the order where stream steps wait for host steps, and renumbers everything to the final order.
//
// A stream step's level is the largest number of transitions from a host step to a stream step on a path to it. Stream
// steps of one level form one segment, submitted in one go once the host steps it waits for (all of lower levels) are
// done. A host step has the level of the last stream step it waits for, and comes after that segment. Within a level
// the order is kept. Since every edge leads to an equal or higher level, the result is a topological order.
#include <algorithm>
#include <numeric>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// The sort key: twice the level of each step, plus one for host steps.
std::vector<int32_t> Ranks(const Draft& draft) {
  std::vector<int32_t> rank(draft.steps.size());
  if (std::none_of(draft.steps.begin(), draft.steps.end(), [](const Step& s) { return s.on_host(); })) return rank;
  for (const int32_t v : draft.order) {
    const int32_t on_host = draft.steps[v].on_host();
    int32_t level = 0;
    for (const int32_t p : draft.edges[v]) {  // from a host step to a stream step: one level up
      level = std::max(level, (rank[p] + 1 - on_host) / 2);
    }
    rank[v] = 2 * level + on_host;
  }
  return rank;
}

// Sorts `order` by rank; stable.
void SortByRank(Draft& draft, const std::vector<int32_t>& rank) {
  std::vector<int32_t> next(1), sorted(draft.order.size());
  for (const int32_t r : rank) {
    if (static_cast<size_t>(r) + 2 > next.size()) next.resize(static_cast<size_t>(r) + 2);
    ++next[static_cast<size_t>(r) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const int32_t v : draft.order) {
    sorted[next[rank[v]]++] = v;
  }
  draft.order = std::move(sorted);
}

}  // namespace

void Renumber(Draft& draft) {
  std::vector<int32_t> position(draft.order.size());
  std::vector<Step> steps;
  std::vector<double> cost;
  CsrRows edges;
  steps.reserve(draft.order.size());
  cost.reserve(draft.order.size());
  edges.Reserve(draft.order.size(), draft.edges.items());
  for (size_t i = 0; i < draft.order.size(); ++i) position[draft.order[i]] = static_cast<int32_t>(i);
  for (const int32_t v : draft.order) {
    steps.push_back(draft.steps[v]);
    cost.push_back(draft.cost[v]);
    for (const int32_t p : draft.edges[v]) edges.Add(position[p]);
    SortShort(edges.open());
    edges.Close();
  }
  draft.steps = std::move(steps);
  draft.cost = std::move(cost);
  draft.edges = std::move(edges);
}

void Segments(Draft& draft) {
  const std::vector<int32_t> rank = Ranks(draft);
  SortByRank(draft, rank);
  int32_t last = -1;
  draft.segment.reserve(draft.order.size());
  for (const int32_t v : draft.order) {
    const int32_t r = rank[v];
    if (r % 2 != 0) {
      draft.segment.push_back(-1);
      continue;
    }
    draft.segments += r != last;
    last = r;
    draft.segment.push_back(draft.segments - 1);
  }
  Renumber(draft);
}

}  // namespace penstock::graph
