// Equal graphs. Two graphs are equal when they have the same records by name and the declaration order of conflicting
// nodes agrees; in what other order, by which thread, from which source lines and with which constants and callables
// they were declared does not matter. Equal graphs under equal options have equal plans, but for indices into the
// model, which follow its declaration order; and one structure hash.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "graph/plan/plan.h"

namespace penstock::graph {

// The plan with the model's indices (PlanNode::decl, Instance::buffer, StateUse::buffer) replaced by ranks among the
// names: equal graphs have equal plans ByName.
Plan ByName(Plan plan, const Model& model);

}  // namespace penstock::graph
