// Where each buffer, and each part of one that an access or an alias names, lies in one run.
//
// Boxes that depend on no parameter are set once a slot, the others by each launch, which refuses those that leave
// their buffer. Everything else a launch writes for an access (address, the dimensions of a View) follows from its box.
//
// Threads: free functions on a slot's tables, called by whoever owns it.
// Errors:  InvalidArgument with the numbers of this run.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "penstock/detail/arguments.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {

// Sets SlotTables::boxes, those that depend on parameters or the others.
absl::Status SetBoxes(const Model& model, const Program& program, bool dynamic, SlotTables& tables);

// The box of an access in the run whose boxes are set.
BoxInRun BoxOf(const Model& model, const AccessDecl& access, const SlotTables& tables);
// A shape with 1 for the dimensions it lacks.
inline detail::Range RangeOf(const Shape& s) {
  switch (s.rank) {
    case 1: return {1, 1, s.size[0]};
    case 2: return {1, s.size[0], s.size[1]};
    default: return {s.size[0], s.size[1], s.size[2]};
  }
}

}  // namespace penstock::runtime
