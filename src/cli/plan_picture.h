// The plans of a profile as text, as Graphviz digraphs and as SVG.
//
// Threads: pure functions.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "penstock/profile.h"
#include "src/cli/find_graphs.h"

namespace penstock::cli {

// Each graph with its lanes, its nodes as a table, and what was remarked when it was submitted.
void WritePlanText(const Profile& profile, const GraphPlaces& graphs, std::ostream& out);
// One digraph: a cluster for each graph, in it one for each lane.
std::string PlanDot(const Profile& profile, const GraphPlaces& graphs);
// One picture that needs nothing else: a column for the host and one for each lane, the nodes below each other in an
// order in which they may run, an arc for each edge. A pointer held over a node shows its line and bytes.
std::string PlanSvg(const Profile& profile, const GraphPlaces& graphs);

// "host:0", or "host" for -1.
std::string DeviceText(const Profile& profile, int device);
// "host:0 lane 2 upload", or "host" for -1.
std::string LaneTitle(const Profile& profile, const Profile::Graph& graph, int lane);
// "graph 3 'saxpy': 12 nodes, 4 lanes, 2 slots ...".
std::string GraphHeading(const Profile::Graph& graph);
// The nodes on the host, then those of lane 0, 1, ...
std::vector<std::vector<int>> NodesOfLanes(const Profile::Graph& graph);

}  // namespace penstock::cli
