// What `penstock trace` shows, as JSON. Times are in microseconds, shares from 0 to 1; graphs go by the number of their
// executable, nodes by their place in the graph.
//
// Threads: pure function.
#pragma once

#include <cstddef>
#include <vector>

#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "src/analysis/runs.h"
#include "src/analysis/summary.h"

namespace penstock::cli {

// `runs` and `summary` are the profile's. Of each list the first `top`; paths are whole.
nlohmann::ordered_json TraceJson(const Profile& profile, const std::vector<analysis::GraphRun>& runs,
                                 const analysis::Summary& summary, size_t top);

// Of a node that declares operations, by its median time; 0: that time is not its own.
double GigaflopsPerSecond(const Profile::Node& node, const analysis::Summary::NodeUse& use);

// "kernel".
const char* EngineName(SpanKind kind);

}  // namespace penstock::cli
