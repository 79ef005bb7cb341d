// Score: what a plan costs, by the simulation of one run of it (graph/simulate).
//
// Bound memory counts as pinned. Of a run on several devices the end of each device but one adds a crossing. A node
// that takes less than twice its launch leaves most of its device free: only time and its lane bound it, not the
// kernels that run beside it.
//
// Threads: pure functions and plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/place/tasks.h"
#include "graph/plan/plan.h"
#include "penstock/machine_figures.h"

namespace penstock::graph {

struct ScoreOptions {
  int32_t workers = 1;  // of the host
  bool as_graph = false;  // nodes are submitted all at once, not one by one
};

struct PlaceScore {
  double makespan_us = 0;
  std::vector<double> work_us;  // of the declared nodes on each device of PlanOptions::devices
  int64_t between_bytes = 0, host_bytes = 0;  // as in PlacementReport
};

// `figures` are all known, and `tasks` are of the plan's model. Errors: those of Simulate.
absl::StatusOr<PlaceScore> ScoreOf(const Plan& plan, const PlaceTasks& tasks, const MachineFigures& figures,
                                   const ScoreOptions& options);

}  // namespace penstock::graph
