// What is known of a machine (penstock/machine_figures.h), and what is assumed where it is not
// (graph/common/assumed_figures.h).
//
// Threads: pure functions.
#pragma once

#include "absl/status/status.h"
#include "graph/place/place_graph.h"
#include "graph/plan/plan.h"
#include "penstock/machine_figures.h"

namespace penstock::graph {

// InvalidArgument: the figures are of other devices than these, or one of them is none of a machine.
absl::Status CheckFigures(const MachineFigures& figures, const Table<DeviceId, PlanDevice>& devices);

// All figures of these devices: those that are known and right, and assumptions for the rest.
MachineFigures AssumeFigures(const MachineFigures* known, const Table<DeviceId, PlanDevice>& devices);

// A copy from one device to another. All figures are known.
PlaceLink PeerLink(const MachineFigures& figures, DeviceId from, DeviceId to);

}  // namespace penstock::graph
