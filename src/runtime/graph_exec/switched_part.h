// SwitchedPart: how the nodes of a part of a construct stand in a graph if kernels of the construct switch them: those
// of an unrolled loop's body once for each iteration that it holds, those of a body of an If or a Switch once
// (penstock/detail/decision.h).
//
// Ownership: borrows the slot, and the list of switches, which the device reads.
// Threads:   used only by the slot's owner. The device reads the list while a run is in flight.
// Errors:    the driver's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "src/driver/driver.h"
#include "src/runtime/graph_exec/node_operations.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class SwitchedPart {
 public:
  explicit SwitchedPart(Slot& slot) : slot_(slot) {}

  // How many nodes it has if all are kernels, which others can switch; otherwise 0.
  int32_t Kernels(const NodeOperations& operations) const;
  // From now on so many iterations stand in the graph, and the nodes of all but the first have switches; or it is a
  // body of an If or a Switch, with this number, and all its nodes have switches. The list has a place for each switch.
  // Either is called at most once, before any node is added.
  void BeUnrolled(int32_t iterations, std::span<uint64_t> list);
  void BePicked(int32_t body, std::span<uint64_t> list);

  int32_t iterations() const { return iterations_; }
  // The nodes of an iteration have been added, the first of which has this number, after the node that decides. Adds
  // their switches.
  absl::Status Added(driver::Graph graph, int32_t iteration, int32_t first, int32_t decides);
  // The number of a node in an iteration, from that in the first.
  int32_t NumberIn(int32_t iteration, int32_t node) const { return node + iteration * nodes(); }
  // The host has switched a node on or off, in all iterations: what it has switched off no kernel switches on.
  void Switched(int32_t node, bool on);

 private:
  int32_t nodes() const { return slot_.graph().program().replay.entries.count(); }

  Slot& slot_;
  int32_t iterations_ = 1;
  int32_t body_ = -1;  // -1: it is no body of an If or a Switch that has switches
  int32_t first_ = 0;  // the number of the first node
  std::vector<uint64_t> handles_;
  std::span<uint64_t> list_;  // the same, 0 for nodes that the host has switched off
};

}  // namespace penstock::runtime
