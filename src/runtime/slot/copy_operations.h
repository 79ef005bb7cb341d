// The copies of a slot: which bytes each one moves in the run whose bindings the slot holds.
//
// Kinds, devices and whatever no launch changes are set once for each slot; shapes are set again if parameters decide
// them, addresses whenever memory is bound.
//
// Threads: free functions on a slot's tables, called by the slot's owner.
#pragma once

#include <vector>

#include "graph/plan/plan.h"
#include "src/driver/device_ref.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {

// Makes the copies, batches and host copies, which report failures through `fault`. Their addresses are those of the
// instances until PatchCopies.
void MakeCopies(const graph::Plan& plan, const Program& program, const std::vector<driver::DeviceRef>& devices,
                driver::RunFault& fault, SlotTables& tables);
// Writes widths, heights and pitches. Boxes must have been set.
void SetCopyShapes(const Program& program, SlotTables& tables);
// Writes the addresses of copies that a launch may move, which copies this run makes, and the lists of batches.
void PatchCopies(const Program& program, SlotTables& tables);

}  // namespace penstock::runtime
