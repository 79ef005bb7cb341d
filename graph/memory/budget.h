// Arenas that do not fit: what Compile says.
//
// Threads: free functions of the draft.
#pragma once

#include <cstdint>
#include <string>

#include "graph/passes/passes.h"

namespace penstock::graph {

// "cuda:0", or "pinned memory" for -1.
std::string ArenaName(const Draft& draft, int32_t device);

// A mistake where `slots` arenas of this size are more than the memory of its device, PlanOptions::device_bytes or
// PlanOptions::pinned_bytes.
void CheckBudget(Draft& draft, const Arena& arena);

// The mistake of an arena whose bytes cannot be counted.
void ArenaTooLarge(Draft& draft, int32_t device);

}  // namespace penstock::graph
