// The work of an item in a stage of executables: it takes a slot of each on one device and has a run of each in turn.
//
// Threads: free functions on an item, called by the thread that has it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "src/runtime/pipeline/item.h"
#include "src/runtime/pipeline/stage_table.h"

namespace penstock::runtime {

// Whether every executable of the stage has a free slot on the device of that member.
bool HaveFreeSlots(const Stage& stage, int member);
// Takes one of each. ResourceExhausted if others hold all slots of one; then none is taken.
absl::Status TakeSlots(const Stage& stage, int member, PipelineItem& item);
void GiveSlotsBack(const Stage& stage, PipelineItem& item);

// Calls the stage's functions and launches its executables in the item's slots. If one after the first cannot be
// launched, the runs before it end first, and StatusOfRuns says why.
absl::Status StartRuns(const Stage& stage, int member, PipelineItem& item);
// RunsEnded: whether all runs have ended. StatusOfRuns: how they ended, with the first failure in sequence, since later
// ones only say that they waited for it.
bool RunsEnded(const PipelineItem& item);
absl::Status StatusOfRuns(const Stage& stage, PipelineItem& item);
// Whether none of the item's runs is in flight, not even an abandoned one.
bool IsDrained(const PipelineItem& item);
void CancelRuns(const PipelineItem& item);
// OK, or the poison of a State that the stage uses on the device.
absl::Status PoisonOf(const Stage& stage, int member, const PipelineItem& item);

// Calls user code; a failure is prefixed with `prefix`, and an exception becomes Internal.
absl::Status CallOnItem(const std::string& prefix, const detail::StageFunction& call, PipelineItem& item);

// Binds the memory between the executable `e` and its neighbours in the stage.
void BindLinks(const Stage& stage, size_t e, int member, PipelineItem& item);

}  // namespace penstock::runtime
