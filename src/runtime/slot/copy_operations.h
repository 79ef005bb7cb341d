// The copies of a slot: which bytes each one moves in the run whose bindings the slot holds.
//
// Kinds, devices and what no launch changes are set once a slot; shapes again where parameters decide them, addresses
// whenever memory is bound.
//
// Threads: free functions on a slot, called by whoever owns it.
#pragma once

#include <vector>

#include "graph/plan/plan.h"
#include "src/driver/device_ref.h"

namespace penstock::runtime {

struct Program;
struct Slot;

// Makes Slot::copies, Slot::batches and Slot::host_copies. Their addresses are those of the instances until
// PatchCopies.
void MakeCopies(const graph::Plan& plan, const Program& program, const std::vector<driver::DeviceRef>& devices,
                Slot& slot);
// Writes widths, heights, pitches. Boxes must have been set.
void SetCopyShapes(const Program& program, Slot& slot);
// Writes the addresses of copies that a launch may move, and which of them it makes; and the lists of batches.
void PatchCopies(const Program& program, Slot& slot);

}  // namespace penstock::runtime
