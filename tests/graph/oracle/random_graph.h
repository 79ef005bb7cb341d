// Small random graphs that are right by construction: every read comes after a write, every Output is written, After
// makes no cycle, and joins whatever Unordered accesses leave open. Buffers of all roles and places, States, slices and
// aliases, dimensions and offsets that are parameters, all kinds of nodes, host nodes, pins, placements, priorities,
// costs, capped lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/model_text.h"

namespace penstock::graph {

struct RandomGraph {
  ModelBuilder builder;
  PlanOptions options;
};

// `nodes` is the most it may have (a few more are added so that each Output is written).
RandomGraph MakeRandomGraph(uint64_t seed, int nodes);

// What InPlace may say of a node beside what it says already: pairs of a buffer that it only reads and one that it
// writes, neither of which it names.
std::vector<InPlaceDecl> InPlacePairsOf(const NodeDecl& node);

// The same, planned. It is a failure when the planner refuses.
struct RandomPlan {
  RandomGraph graph;
  Plan plan;
  const Model& model() const { return graph.builder.model; }
  std::string text() const { return ModelText(model()) + PrintText(plan, model()); }
};
RandomPlan PlanRandom(uint64_t seed, int nodes);
// The same with everything on the first device.
RandomPlan PlanRandomOnOneDevice(uint64_t seed, int nodes);

}  // namespace penstock::graph
