// A graph declared a second time: with another serial, from other lines, its calls in any order that commutes with the
// first. What does not commute is decided by brute force: a buffer and its aliases, and two nodes that conflict on some
// atom by accesses that both take part in the order.
#pragma once

#include <cstdint>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"
#include "tests/graph/oracle/random_graph.h"

namespace penstock::graph {

struct DeclaredAgain {
  Model model;
  PlanOptions options;
};

// Parameters, buffers, nodes and each node's After in another order; also other constants, and one After said twice:
// nothing that a plan depends on.
DeclaredAgain DeclareAgain(const RandomGraph& graph, uint64_t seed);

}  // namespace penstock::graph
