// GraphHeads: the first nodes of a slot's graphs, at most one on each device. A head copies the slot's parameters to
// its device, for kernels that read them by reference (parameter_indirection.h). One that copies nothing is switched
// off but still pays: a graph that begins with one kernel is launched faster than one that begins with many
// (bench/replay).
//
// Ownership: borrows the slot and its operations.
// Threads:   used only by the slot's owner.
// Errors:    the driver's.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/graph_exec/node_operations.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

// Whether the node has code that reads parameters by reference.
bool MayReadParams(const Slot& slot, const GraphNodeEntry& entry);

class GraphHeads {
 public:
  GraphHeads(const Slot& slot, const NodeOperations& operations);

  // Adds the heads of a graph that has no nodes yet, and returns how many these are. They are on.
  absl::StatusOr<int> Add(GraphId graph, driver::Graph to);
  // The head that the entry is to come after; -1: it need not.
  int32_t Of(GraphId graph, EntryId entry) const;
  // Switches the heads of a graph, and returns how many it has switched.
  absl::StatusOr<int> Enable(GraphId graph, driver::GraphExec exec, bool enabled);
  // The first graph with nodes that may read parameters by reference. Its heads copy the parameters: it runs before all
  // others with such nodes. None: no node may.
  GraphId refreshing() const { return refreshing_; }

 private:
  struct Head {
    DeviceId device;
    int32_t number;
  };
  struct OfGraph {
    absl::InlinedVector<Head, 1> heads;
    bool enabled = true;
  };
  struct Wish {
    int roots = 0;  // entries on the device that begin the graph
    int priority = 0;  // of the most urgent entry
    bool reads = false;  // some graph's kernels there may read parameters
  };
  Wish WishOf(GraphId graph, DeviceId device) const;
  bool WantsHead(GraphId graph, EntryId entry) const;

  const Slot& slot_;
  const GraphProgram& replay_;
  const NodeOperations& operations_;
  Table<GraphId, OfGraph> graphs_;
  GraphId refreshing_{};  // constant
};

}  // namespace penstock::runtime
