// Observed: what a runtime keeps for those who look at it: its profile, its counts and its pace.
//
// Ownership: belongs to the runtime's core.
// Threads:   thread-safe, as its parts are.
#pragma once

#include "src/observe/profile_recorder.h"
#include "src/observe/run_counts.h"
#include "src/observe/run_meter.h"
#include "src/observe/runtime_counts.h"

namespace penstock::observe {

struct Observed {
  ProfileRecorder profile;
  GraphCounts graphs;
  RuntimeCounts counts;
  RunMeter meter;
};

}  // namespace penstock::observe
