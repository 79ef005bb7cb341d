// The counts of Outputs of variable size: rewrites a graph so that each run leaves in its slot how many elements of
// such an Output count, where the run's end finds it.
//
// It only rewrites the model. Behind all nodes comes a Copy node for each such Output, from its count to a buffer of
// one element in the slot's pinned memory. So a count is ordered, moved and batched like anything else that a run
// brings back.
//
// Threads: pure functions.
#pragma once

#include "penstock/detail/model.h"

namespace penstock::graph {

// Whether a buffer of the model is such an Output.
bool HasCounts(const Model& model);
// The model with these nodes and buffers, which come after all others, so that no index changes.
Model WithReturnedCounts(const Model& model);

}  // namespace penstock::graph
