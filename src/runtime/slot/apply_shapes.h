// Writes the shapes of one run into a slot's tables: boxes, views and ranges, and what follows from them (the bytes of
// copies and fills, the grids of kernels).
//
// Threads: free functions on tables, called by the slot's owner.
// Errors:  InvalidArgument for slices that leave their buffer, with the numbers of this run.
#pragma once

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {

// Writes the shapes that no launch changes; called once for each slot.
absl::Status ApplyFixedShapes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables);
// Writes those that depend on parameters (SlotTables::param_values); called by each launch that changes one.
absl::Status ApplyDynamicShapes(const Model& model, const graph::Plan& plan, const Program& program,
                                SlotTables& tables);

}  // namespace penstock::runtime
