// The most bytes of an arena that hold something at once where the nodes of a plan run one after another, found by
// looking at every instance at every node.
#pragma once

#include <cstdint>

#include "graph/plan/plan.h"

namespace penstock::graph {

// `device` -1: pinned memory. Bytes that several instances have at once count once.
int64_t PeakOf(const Plan& plan, int32_t device);

}  // namespace penstock::graph
