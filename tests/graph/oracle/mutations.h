// Plans made wrong in one place after the other, to see the oracle object each time. What it does not notice is either
// an oracle that is blind, or a plan that does more than it must.
#pragma once

#include <cstdint>
#include <string>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

struct Tally {
  int64_t tried = 0, noticed = 0;
  std::string missed;  // the first that was not noticed
  void Add(const Tally& other) {
    tried += other.tried, noticed += other.noticed;
    if (missed.empty()) missed = other.missed;
  }
};

// Each wait of a lane or a host step for an event.
Tally RemoveEachEventWait(const Model& model, const Plan& plan);

// Each wait of a host step or a segment for a host step.
Tally RemoveEachHostWait(const Model& model, const Plan& plan);

// Each wait among the commands that end a run; those of the short way must be missed after a whole run.
Tally RemoveEachFinishWait(const Plan& plan);

// Each edge in PlanNode::preds. The nodes ordered by these edges alone keep the order owed; without one they do not.
// (A stream plan enforces an edge by whatever comes cheapest; lane order alone is no command that could be removed.)
Tally RemoveEachKeptEdge(const Model& model, const Plan& plan);

// Each pair of instances in one arena that may live at once, and of which none may be handed over to the other, is
// given the same bytes, which no other instance has.
Tally OverlapEachLivePair(const Model& model, const Plan& plan);

}  // namespace penstock::graph
