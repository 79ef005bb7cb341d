// The nodes of a graph in an order in which each stands behind those that it follows.
//
// Threads: pure function.
#pragma once

#include <vector>

#include "penstock/profile.h"

namespace penstock::analysis {

// Places in Graph::nodes; fewer than there are if nodes follow each other in a circle: then those in it, and those that
// follow them, are missing. Requires that each of Node::after names a node.
std::vector<int> NodeOrder(const Profile::Graph& graph);

}  // namespace penstock::analysis
