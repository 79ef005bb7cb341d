// What plan.h says of a plan's form, and of the commands that end a run.
#pragma once

#include <string>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

// Indices, devices, lanes and sizes are what plan.h says. Returns an empty string, or what is wrong.
std::string CheckShape(const Model& model, const PlanOptions& options, const Plan& plan);

// Every declared node is on the device it is pinned to, or else on the default one; copies between host memory are on
// none, and a copy from a device to host memory is on the one that holds what it copies.
std::string CheckPlaces(const Model& model, const PlanOptions& options, const Plan& plan);

// No device has more compute lanes than it may.
std::string CheckLanes(const PlanOptions& options, const Plan& plan);

// Every node of a device has ended once its done event has: after the whole run from both beginnings, and after any
// first part of the commands from `epilogue_begin`.
std::string CheckFinish(const Plan& plan);
// Of that, after the whole run from the short beginning.
std::string CheckShortFinish(const Plan& plan);

}  // namespace penstock::graph
