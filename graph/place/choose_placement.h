// ChoosePlacement: plans a graph for all devices that can take its nodes, in several ways, and keeps the plan that the
// simulator finds fastest.
//
// The candidates are all on the default device; affinity; and HEFT (assign.h). One that assigns as an earlier one is
// not planned again. One whose plan does not fit in memory is planned once more under limits, and then left out.
// Another than the default device is taken only if it takes at most 0.95 times as long, or if the default device alone
// has not enough memory. Of candidates that take as long, the first is taken.
//
// `before_pass` is told of the steps of all candidates as of one plan's passes, and may end the choice.
//
// With one device, or if every node has a pin, the graph is planned once and nothing is simulated.
//
// Threads: pure functions. The same graph gives the same result on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/place/score.h"
#include "graph/plan/plan.h"
#include "penstock/placement.h"

namespace penstock::graph {

inline constexpr double kLeastGain = 0.05;

struct PlaceOptions {
  const MachineFigures* figures = nullptr;  // null: all are assumed
  int32_t workers = 1;  // of the host
  bool as_graph = false;  // plans are submitted as graphs, not node by node
};

struct PlacedPlan {
  Plan plan;
  Table<DeclId, DeviceId> placement;  // PlanOptions::placement of the plan
  std::vector<PlacementReport::Candidate> candidates;  // empty: there was nothing to choose
};

// `options` have no placement. Errors: those of MakePlan and of CheckFigures.
absl::StatusOr<PlacedPlan> ChoosePlacement(const Model& model, const PlanOptions& options, const PlaceOptions& how,
                                           const BeforePass& before_pass = {});

// For people: the candidates, and where the nodes of the plan are. `devices` are the names of its devices.
PlacementReport ReportPlacement(const Plan& plan, const Model& model, const std::vector<std::string>& devices,
                                const std::vector<PlacementReport::Candidate>& candidates);

}  // namespace penstock::graph
