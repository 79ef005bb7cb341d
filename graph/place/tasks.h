// PlaceTasks: the nodes of a graph as tasks to be assigned to devices (place_graph.h).
//
// There is a task for each declared node; one that costs nothing for each buffer whose contents are on a device before
// the run and are read; and if there are host nodes, the host is one more device. A task takes from another what it
// reads of what that writes, and waits for those that After names. Nodes with a pin, host nodes and constructs state
// their device. What the host binds needs no task: it can be copied to any device as soon as a run begins.
//
// A node costs what is known of it (PlanOptions::costs); else what its launch takes and, beside that, its declared
// bytes over the device's memory bandwidth, or its operations over the device's rate, whichever takes longer.
//
// Threads: pure functions and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/place/place_graph.h"
#include "graph/plan/plan.h"
#include "penstock/machine_figures.h"

namespace penstock::graph {

struct PlaceTasks {
  PlaceGraph graph;  // without limits of memory
  std::vector<DeviceId> devices;  // of the plan, as in PlaceGraph::devices: the default one first; none: the host
  Table<DeviceId, int32_t> place_of;  // the reverse of it
  Table<DeclId, int32_t> task;  // of each node
  Table<DeclId, int64_t> copied;  // what a Copy node copies, in bytes
  std::vector<int64_t> memory;  // of each task: the buffers that it is the first to use, in bytes

  // Returns what a planned node takes, in microseconds, on that device or on the host.
  double Cost(DeclId node, DeviceId device) const {
    const int32_t stated = graph.tasks[static_cast<size_t>(task[node])].device;
    return graph.cost(task[node], stated >= 0 ? stated : place_of[device]);
  }
};

// The devices that nodes may be placed on: those that can do all that the default one can, which comes first.
std::vector<DeviceId> PlaceableDevices(const PlanOptions& options);

// Makes the tasks of a graph that MakePlan accepts, or refuses only for lack of memory. No figure may be unknown.
PlaceTasks MakePlaceTasks(const Model& model, const PlanOptions& options, const MachineFigures& figures);

// Limits memory: each device has room for what PlanOptions grants a slot, and each buffer takes its bytes on the device
// of the first task that uses it. Arenas use memory again, so a plan may fit where this does not.
void LimitMemory(const PlanOptions& options, PlaceTasks& tasks);

}  // namespace penstock::graph
