// What a run of a graph would take on a host device, by what its nodes declare: no measurement, but the estimate that
// `penstock doctor --before` makes (estimate.h), with the graph moved there.
//
// Threads: pure functions.
#pragma once

#include "src/analysis/facts.h"

namespace penstock::analysis {

struct RunOnHost {
  double us = 0;  // the time per run of many, in the faster mode; 0: unknown
  const char* why_unknown = "";
};

// Known where the machine is, and where every node says what it does: a Host node or a loop does not.
RunOnHost EstimateOnHost(const Facts& facts, int graph);

}  // namespace penstock::analysis
