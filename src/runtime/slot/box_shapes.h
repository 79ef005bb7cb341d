// The location, in one run, of each buffer and of each part of a buffer that an access or an alias names.
//
// Boxes that depend on no parameter are set once for each slot, the others by each launch, which refuses boxes that
// leave their buffer. Everything else that a launch writes for an access (its address, the dimensions of a View)
// follows from its box.
//
// Threads: free functions on a slot's tables, called by the slot's owner.
// Errors:  InvalidArgument with the numbers of this run.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "penstock/detail/arguments.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {

// Sets the SlotTables::boxes that depend on no parameter, or those that do.
absl::Status SetFixedBoxes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables);
absl::Status SetDynamicBoxes(const Model& model, const graph::Plan& plan, const Program& program, SlotTables& tables);

// The box of an access in the run whose boxes are set.
BoxInRun BoxOf(const Model& model, const AccessDecl& access, const SlotTables& tables);
// The range of a shape, with 1 for missing dimensions.
inline detail::Range RangeOf(const Shape& s) {
  switch (s.rank) {
    case 1: return {1, 1, s.size[0]};
    case 2: return {1, s.size[0], s.size[1]};
    default: return {s.size[0], s.size[1], s.size[2]};
  }
}

}  // namespace penstock::runtime
