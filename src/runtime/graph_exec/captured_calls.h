// CapturedCalls: what the Launch nodes of a slot's graphs submitted when they were captured: one graph each, which
// becomes a child of the slot's graph.
//
// Ownership: owns the graphs; borrows the slot and the objects of its lanes.
// Threads:   used only by the slot's owner; any thread may read the counts.
// Errors:    the callable's own, or what broke the capture. The child is then the previous one.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/graph_exec/owner_count.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

class CapturedCalls {
 public:
  // `launch`: one for each lane.
  CapturedCalls(Slot& slot, std::vector<LaunchObjects>& launch);
  CapturedCalls(const CapturedCalls&) = delete;
  CapturedCalls& operator=(const CapturedCalls&) = delete;
  ~CapturedCalls() { Drop(); }

  // Calls a Launch node's callable with the slot's arguments. Returns false if its gate is full.
  absl::StatusOr<bool> Capture(EntryId entry);
  driver::Graph child(EntryId entry) const { return children_[entry]; }
  // Whether all Launch nodes of a graph have been captured.
  bool HasAllOf(GraphId graph) const;
  void Drop();

  int64_t captures() const { return captures_.get(); }
  int64_t capturing_ns() const { return capturing_ns_.get(); }

 private:
  Slot& slot_;
  std::vector<LaunchObjects>& launch_;
  const GraphProgram& replay_;
  driver::Driver& driver_;
  Table<EntryId, driver::Graph> children_;
  OwnerCount captures_, capturing_ns_;
};

}  // namespace penstock::runtime
