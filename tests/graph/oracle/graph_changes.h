// Single changes that make another graph of a random one: each touches one thing a plan may depend on.
#pragma once

#include <random>
#include <span>

#include "tests/graph/oracle/random_graph.h"

namespace penstock::graph {

// Picks the place by `random`. False when the graph holds no place for it, and is then as it was. The graph that comes
// out may be one that the planner refuses.
struct GraphChange {
  const char* name;
  bool (*apply)(RandomGraph&, std::mt19937_64& random);
};
std::span<const GraphChange> GraphChanges();

// Gives nodes what the generator leaves out: arguments, extents and shapes of their own, some from parameters.
void AddArguments(RandomGraph& graph, std::mt19937_64& random);

}  // namespace penstock::graph
