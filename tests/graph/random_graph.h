// Small random graphs that are right by construction: every read comes after a write, every Output is written, After
// makes no cycle. Buffers of all roles and places, all kinds of nodes, host nodes, pins, priorities, costs, capped
// lanes.
#pragma once

#include <cstdint>

#include "graph/plan.h"
#include "tests/graph/model_builder.h"

namespace penstock::graph {

struct RandomGraph {
  ModelBuilder builder;
  PlanOptions options;
};

// `nodes` is the most it may have (a few more are added so that each Output is written).
RandomGraph MakeRandomGraph(uint64_t seed, int nodes);

}  // namespace penstock::graph
