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
Table<StepId, int32_t> Ranks(const Ordered& ordered) {
  Table<StepId, int32_t> rank(ordered.steps.size());
  if (std::none_of(ordered.steps.begin(), ordered.steps.end(), [](const Step& s) { return s.on_host(); })) return rank;
  for (const StepId v : ordered.order) {
    const int32_t on_host = ordered.steps[v].on_host();
    int32_t level = 0;
    for (const StepId p : ordered.edges[v]) {  // from a host step to a stream step: one level up
      level = std::max(level, (rank[p] + 1 - on_host) / 2);
    }
    rank[v] = 2 * level + on_host;
  }
  return rank;
}

// Sorts `order` by rank; stable.
void SortByRank(Ordered& ordered, const Table<StepId, int32_t>& rank) {
  std::vector<int32_t> next(1);
  std::vector<StepId> sorted(ordered.order.size());
  for (const int32_t r : rank) {
    if (static_cast<size_t>(r) + 2 > next.size()) next.resize(static_cast<size_t>(r) + 2);
    ++next[r + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const StepId v : ordered.order) {
    sorted[next[rank[v]]++] = v;
  }
  ordered.order = std::move(sorted);
}

}  // namespace

void Renumber(Ordered& ordered) {
  Table<StepId, StepId> position(ordered.order.size());
  Table<StepId, Step> steps;
  Table<StepId, double> cost;
  CsrRows edges;
  steps.reserve(ordered.order.size());
  cost.reserve(ordered.order.size());
  edges.Reserve(ordered.order.size(), ordered.edges.items());
  StepId next = 0;
  for (const StepId v : ordered.order) {
    position[v] = next;
    ++next;
  }
  for (const StepId v : ordered.order) {
    steps.push_back(ordered.steps[v]);
    cost.push_back(ordered.cost[v]);
    for (const StepId p : ordered.edges[v]) edges.Add(position[p]);
    SortShort(edges.open());
    edges.Close();
  }
  ordered.steps = std::move(steps);
  ordered.cost = std::move(cost);
  ordered.edges = std::move(edges);
}

void Segments(Ordered& ordered) {
  const Table<StepId, int32_t> rank = Ranks(ordered);
  SortByRank(ordered, rank);
  int32_t last = -1;
  ordered.segment.reserve(ordered.order.size());
  for (const StepId v : ordered.order) {
    const int32_t r = rank[v];
    if (r % 2 != 0) {
      ordered.segment.push_back(SegmentId());
      continue;
    }
    ordered.segments += r != last;
    last = r;
    ordered.segment.push_back(ordered.segments - 1);
  }
  Renumber(ordered);
}

}  // namespace penstock::graph
