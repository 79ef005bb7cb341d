// ResidentSection: a part of a resident region that its workers do from the beginning to the end before they go to
// another. A region without constructs is one section; a construct (control.h) is several.
//
// Ownership: borrows all that it names.
// Threads:   plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/detail/decision.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

struct ResidentSection {
  // The slot whose operations the nodes do, and the nodes; null: there are none.
  const Slot* slot = nullptr;
  const RegionEntry* region = nullptr;
  // The node of `region`, the last of all, that is the condition; -1: none is. Then `decision` decides; null: there is
  // nothing to be decided.
  int32_t condition = -1;
  const detail::Decision* decision = nullptr;
  // The sections that may come next, of which the choice is the index; the last is for every other choice, too. One
  // past the last section is the end of the region. Empty: it is the region's only section.
  std::vector<int32_t> targets;
  // The section ends where a loop begins, or an iteration of it: one more than the number of loops around it.
  uint32_t loop = 0;
  bool again = false;  // an iteration

  int32_t workers() const { return region == nullptr ? 0 : region->schedule.workers; }
};

}  // namespace penstock::runtime
