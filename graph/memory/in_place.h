// InPlace: which instances take over the bytes of another: outputs that a node writes in place of an input
// (NodeRef::InPlace).
//
// An output takes over the bytes if the node is its first user and the last of all users of the input, both according
// to the lane clocks. Each must be accessed as a whole by one access, and their elements must have one size, so that
// element i of both has the same bytes. If a condition fails, nothing changes and a remark gives the reason.
//
// Threads: immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/memory/lifetimes.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

class InPlace {
 public:
  // Appends a remark for each pair declared.
  InPlace(const Records& records, const Ordered& ordered, const Reduced& reduced, const Lifetimes& lives,
          Findings& findings);

  // The instance whose bytes `instance` takes over at its first use, if any.
  InstanceId giver(InstanceId instance) const { return giver_.empty() ? InstanceId() : giver_[instance]; }

 private:
  void Find(StepId step, const InPlacePair& pair, Findings& findings);
  std::string WhyNot(StepId step, const InPlacePair& pair, InstanceId from, InstanceId to) const;

  const Records& records_;
  const Ordered& ordered_;
  const Reduced& reduced_;
  const Lifetimes& lives_;
  Table<InstanceId, InstanceId> giver_;  // empty: no pair was declared
};

}  // namespace penstock::graph
