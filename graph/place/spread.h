// Spreading: a graph of one device over several. MakePlaceGraph says what its nodes are as tasks, assign.h gives these
// a device, and SpreadOver makes a graph for the simulator of it.
//
// All devices are alike. Host steps stay on the host. Uploads stay with the first node that reads them, and downloads
// with the first that they follow. Where a node's result is needed on another device, a copy there precedes the first
// node that needs it, once for all that do.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "graph/place/place_graph.h"
#include "graph/simulate/sim_graph.h"

namespace penstock::graph {

// Lists, for each node and each entry of its SimNode::after, how many bytes of that predecessor's results the node
// takes. 0 means that the node only runs after it.
using EdgeBytes = std::vector<absl::InlinedVector<int64_t, 4>>;

struct SpreadTarget {
  int32_t devices = 1;
  std::vector<PlaceLink> links{};  // from device a to b, at a * devices + b
  int32_t workers = 1;  // of the host
  double node_us = 0;  // what a device spends on each node beside its cost
  double crossing_us = 0;  // as in SimOptions
};

// The tasks are the nodes, with their numbers. The host is a device of its own, the last; copies to and from the host
// are tasks of it that take no time, since they occupy nothing that tasks do.
//
// Errors of all: InvalidArgument if the nodes are on several devices, or if the sizes of what is given do not fit.
absl::StatusOr<PlaceGraph> MakePlaceGraph(const SimGraph& graph, const EdgeBytes& bytes, const SpreadTarget& target);

// States a device for each task that takes nothing from other tasks on a device: one after the other in turn. Affinity
// has to begin somewhere.
void DealFirstTasks(PlaceGraph& graph);

struct SpreadGraph {
  SimGraph graph;  // without memory
  std::vector<int32_t> origin;  // of each node: which it was; -1: a copy between devices
  int64_t copied_bytes = 0;  // between devices
  int32_t copies = 0, crossings = 0;  // nodes that copy; edges to another device
};

// `device`: of each node, as assigned; host steps, uploads and downloads do not count.
absl::StatusOr<SpreadGraph> SpreadOver(const SimGraph& graph, const EdgeBytes& bytes,
                                       const std::vector<int32_t>& device, const SpreadTarget& target);

}  // namespace penstock::graph
