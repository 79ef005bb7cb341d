// LikelyMode: the mode in which a plan's runs should be faster, by what submitting it costs. Mode::kAuto begins with it
// (mode_trial.h).
//
// Threads: pure functions.
#pragma once

#include "graph/plan/graph_schedule.h"
#include "graph/plan/plan.h"
#include "penstock/mode.h"

namespace penstock::runtime {

// kStream or kGraph. The plan's work is the same in both modes, so only calls of the driver count.
Mode LikelyMode(const graph::Plan& plan, const graph::GraphSchedule& graphs);

}  // namespace penstock::runtime
