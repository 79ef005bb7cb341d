// Which instances held contents at the same time, as seen in a schedule rather than concluded from order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/schedule.h"

namespace penstock::graph {

// Pairs of instances, the lower index first, whose lives overlap: from the start of the first node that uses an
// instance to the end of the last.
std::vector<std::pair<int32_t, int32_t>> LivedAtOnce(const Plan& plan, const std::vector<Moment>& schedule);

}  // namespace penstock::graph
