// Equality of graphs. Two graphs are equal if they have the same records by name and declare conflicting nodes in the
// same order; the order of other declarations, the thread, the source lines, and the constants and callables do not
// matter. Equal graphs under equal options have the same structure hash, and equal plans except for indices into the
// model, which follow its declaration order.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "graph/plan/plan.h"

namespace penstock::graph {

// The plan with the model's indices (PlanNode::decl, Instance::buffer, StateUse::buffer) replaced by ranks among the
// names, so that equal graphs give equal results.
Plan ByName(Plan plan, const Model& model);

}  // namespace penstock::graph
