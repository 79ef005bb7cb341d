// Compile's errors for arenas that do not fit.
//
// Threads: free functions without state.
#pragma once

#include <cstdint>
#include <string>

#include "graph/passes/passes.h"

namespace penstock::graph {

// "cuda:0", or "pinned memory" for none.
std::string ArenaName(const Records& records, DeviceId device);

// Adds a mistake if `slots` arenas of this size exceed the memory of its device, PlanOptions::device_bytes or
// PlanOptions::pinned_bytes.
void CheckBudget(const Records& records, const Ordered& ordered, Findings& findings, const Arena& arena);

// Adds the mistake of an arena whose size overflows.
void ArenaTooLarge(const Records& records, const Ordered& ordered, Findings& findings, DeviceId device);

}  // namespace penstock::graph
