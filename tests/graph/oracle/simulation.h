// A plan executed in simulated memory, in a random legal interleaving. Contents are followed through every copy, so the
// simulation sees what order alone does not: data that is never brought, brought too early, or to the wrong place.
#pragma once

#include <cstdint>
#include <string>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

// Compares what each declared node reads, and the bound outputs at the end, with the declared graph executed in
// sequence (reference.h). Each kHost buffer is bound to pinned memory (its staging is skipped) or not, by the seed.
// Returns an empty string, or what differs.
std::string Simulate(const Model& model, const Plan& plan, uint64_t seed);

}  // namespace penstock::graph
