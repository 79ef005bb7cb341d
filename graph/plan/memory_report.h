// Reports a plan's memory in each place, for people. Internal to the library: Executable::memory() exposes it.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/memory_report.h"

namespace penstock::graph {

// `devices` are the names of the devices for which the plan was made.
MemoryReport ReportMemory(const Plan& plan, const Model& model, const std::vector<std::string>& devices, int slots);

}  // namespace penstock::graph
