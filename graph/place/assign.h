// Assign: gives each task of a PlaceGraph a device, in one of several ways, and says when the tasks would run. The
// estimate knows no lanes, no copy engines and no submission: the simulator scores the plans that come of it.
//
// Every way keeps the devices that are stated. It costs O(t log t + e * d) for t tasks with e inputs in all and d
// devices, and HEFT also searches for gaps that are long enough.
//
// Threads: pure functions. The same graph gives the same result on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/place/place_graph.h"

namespace penstock::graph {

struct Assignment {
  std::vector<int32_t> device;  // of each task
  std::vector<double> begin_us, end_us;
  double makespan_us = 0;  // the end of the last task
};

// Errors of all three: InvalidArgument if the graph is not as place_graph.h says, if `device` does not exist, or if no
// device that a task may have can run it; ResourceExhausted if none of those that can has room for it. They name the
// task.

// Puts all tasks on one device, except those that state another one or cannot run there: these go to the first device
// that can take them.
absl::StatusOr<Assignment> AssignToOne(const PlaceGraph& graph, int32_t device);

// Puts each task where the most bytes of its inputs are or, if it cannot run there, where the next most are, and so on.
// Of devices that have as many, `device` comes first, and then the lowest.
absl::StatusOr<Assignment> AssignByAffinity(const PlaceGraph& graph, int32_t device);

// HEFT takes the tasks in the order of their upward ranks, and puts each on the device on which it ends first. A task
// may run in a gap before tasks that were assigned earlier (Topcuoglu, Hariri and Wu, "Performance-effective and
// low-complexity task scheduling for heterogeneous computing", 2002). A device without room for a task is left out.
absl::StatusOr<Assignment> AssignByHeft(const PlaceGraph& graph);

}  // namespace penstock::graph
