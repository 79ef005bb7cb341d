// Compile's errors for arenas that do not fit.
//
// Threads: free functions of the draft.
#pragma once

#include <cstdint>
#include <string>

#include "graph/passes/passes.h"

namespace penstock::graph {

// "cuda:0", or "pinned memory" for -1.
std::string ArenaName(const Draft& draft, int32_t device);

// Adds a mistake if `slots` arenas of this size exceed the memory of its device, PlanOptions::device_bytes or
// PlanOptions::pinned_bytes.
void CheckBudget(Draft& draft, const Arena& arena);

// Adds the mistake of an arena whose size overflows.
void ArenaTooLarge(Draft& draft, int32_t device);

}  // namespace penstock::graph
