// UnrolledPart: how the nodes of a part of a construct stand in a graph: once, or several times, once for each
// iteration that the unrolled body of a loop holds, with the switches by which the loop's kernels leave out the
// iterations after its last one (penstock/detail/decision.h).
//
// Ownership: owns the list of switches, which the device reads; borrows the slot.
// Threads:   used only by the slot's owner. The device reads the list while a run is in flight.
// Errors:    the driver's and the pool's.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"
#include "src/runtime/graph_exec/node_operations.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class UnrolledPart {
 public:
  explicit UnrolledPart(Slot& slot) : slot_(slot) {}

  // How many nodes it has if all are kernels, which others can switch; otherwise 0.
  int32_t Kernels(const NodeOperations& operations) const;
  // From now on so many iterations of as many nodes stand in the graph. Called at most once, before any is added.
  absl::Status Unroll(int32_t iterations, int32_t nodes);

  int32_t iterations() const { return iterations_; }
  int32_t nodes() const { return nodes_; }
  // Decision::switches; null if there is one iteration.
  const uint64_t* switches() const { return static_cast<const uint64_t*>(list_.data()); }

  // The nodes of an iteration have been added, the first of which has this number. Adds their switches, unless it is
  // the first iteration.
  absl::Status Added(driver::Graph graph, int32_t iteration, int32_t first);
  // The number of a node in an iteration, from that in the first.
  int32_t NumberIn(int32_t iteration, int32_t node) const { return node + iteration * nodes_; }
  // The host has switched a node on or off, in all iterations: what it has switched off no kernel switches on.
  void Switched(int32_t node, bool on);

 private:
  Slot& slot_;
  int32_t iterations_ = 1, nodes_ = 0;
  int32_t first_ = 0;  // the number of the first node
  std::vector<uint64_t> handles_;  // of all iterations but the first
  memory::PinnedBlock list_;  // the same, 0 for nodes that the host has switched off
};

}  // namespace penstock::runtime
