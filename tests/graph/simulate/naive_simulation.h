// The model of docs/explanation/simulator.md once more, for small graphs: no queues and no events, but rules about the
// whole state, looked at again at every moment.
#pragma once

#include <vector>

#include "graph/simulate/simulate.h"

namespace penstock::graph {

struct NaiveResult {
  std::vector<double> launched_us, ended_us;  // of each run
  std::vector<std::vector<double>> begin_us, end_us;  // of each run's nodes
};

// Submissions that take time must take some: `launch_us`, and `node_us` or `graph_us`, are not 0.
NaiveResult SimulateNaively(const SimGraph& graph, const SimOptions& options);

}  // namespace penstock::graph
