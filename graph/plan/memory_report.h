// What a plan takes of each place's memory, for people. Internal to the library: Executable::memory() is its face.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/memory_report.h"

namespace penstock::graph {

// `devices` are the names of the devices that the plan was made for.
MemoryReport ReportMemory(const Plan& plan, const Model& model, const std::vector<std::string>& devices, int slots);

}  // namespace penstock::graph
