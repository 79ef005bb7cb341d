// The copies of a slot: which bytes each one moves in the run whose bindings the slot holds.
//
// Kinds, devices and what no launch changes are set once a slot; shapes again where parameters decide them, addresses
// whenever memory is bound.
//
// Threads: free functions on a slot's tables, called by whoever owns it.
#pragma once

#include <vector>

#include "graph/plan/plan.h"
#include "src/driver/device_ref.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {

// Makes the copies, batches and host copies, which fail a run by `fault`. Until PatchCopies their addresses are those
// of the instances.
void MakeCopies(const graph::Plan& plan, const Program& program, const std::vector<driver::DeviceRef>& devices,
                driver::RunFault& fault, SlotTables& tables);
// Writes widths, heights, pitches. Boxes must have been set.
void SetCopyShapes(const Program& program, SlotTables& tables);
// Writes the addresses of copies that a launch may move, and which of them it makes; and the lists of batches.
void PatchCopies(const Program& program, SlotTables& tables);

}  // namespace penstock::runtime
