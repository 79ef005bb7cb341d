// Writes the shapes of one run into a slot's tables: boxes, views and ranges, and what follows from them (the bytes of
// copies and fills, the grids of kernels).
//
// Threads: free functions on tables, called by whoever owns the slot.
// Errors:  InvalidArgument for slices that leave their buffer, with the numbers of this run.
#pragma once

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {

// Those that no launch changes: once for each slot.
absl::Status ApplyFixedShapes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables);
// Those that depend on parameters, which SlotTables::param_values has: by each launch that changes one.
absl::Status ApplyDynamicShapes(const Model& model, const Program& program, SlotTables& tables);

}  // namespace penstock::runtime
