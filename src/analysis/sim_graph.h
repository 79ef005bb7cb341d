// The simulation of a graph of a profile (graph/simulate/simulate.h): what its nodes cost by the spans of its runs, and
// how the application launched it.
//
// The first quarter of the runs is left out. Of the others means count, not medians: only means add up to how long many
// runs take. Times between launches, for one, often have two peaks, and a median knows of one.
//
// A span on a device begins when the node could have begun, so the time during which all places of the resource were
// taken is subtracted. How many kernels a device runs at a time is found by their overlap and by how far the longest
// are from the shortest. Of what other graphs did on a device, only that it took places counts.
//
// A copy between devices occupies the link from the device of a node before it, or from the other one of two. What a
// crossing takes is measured too: from the end of a node until the next begins on another device.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/simulate/simulate.h"
#include "penstock/profile.h"
#include "src/analysis/machine.h"

namespace penstock::analysis {

// Where the cost of a node is from.
//   kMeasured   its spans
//   kNothing    it had none while other nodes had: it had nothing to do, or is part of a batch or a region
//   kEstimated  what it declares, and what the machine can do (roofline.h): the graph has not run
enum class CostSource : uint8_t { kMeasured, kNothing, kEstimated };

struct SimulatedGraph {
  graph::SimGraph graph;  // nodes as in Profile::Graph
  graph::SimOptions options;  // as it was run
  std::vector<CostSource> sources{};  // of each node
  int32_t measured_runs = 0;  // those that count
  double run_us = 0;  // measured from the end of a run to that of the next, on average; 0: unknown
  double latency_us = 0;  // measured from launch to end, on average; 0: unknown
};

// `machine` may be null. Errors: FailedPrecondition if the graph has not run and there is no machine.
absl::StatusOr<SimulatedGraph> SimulatedGraphOf(const Profile& profile, size_t graph, const Machine* machine);

// Fewer runs tell no pace: the first quarter does not count, and the rest vary.
constexpr int32_t kFewestRunsOfAPace = 8;

// Whether runs of the executable waited for a State that another run used. A profile does not say which nodes use it.
bool WaitsForStates(const Profile& profile, int64_t executable);

// Returns the time from the launch of a run to its end, on average.
double LatencyMicros(const graph::SimResult& result);

}  // namespace penstock::analysis
