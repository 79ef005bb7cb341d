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
  // Appends a remark to the draft for each pair declared.
  InPlace(Draft& draft, const Lifetimes& lives);

  // The instance whose bytes `instance` takes over at its first use; -1: none.
  int32_t giver(int32_t instance) const { return giver_.empty() ? -1 : giver_[instance]; }

 private:
  void Find(Draft& draft, int32_t step, const InPlacePair& pair);
  std::string WhyNot(const Draft& draft, int32_t step, const InPlacePair& pair, int32_t from, int32_t to) const;

  const Lifetimes& lives_;
  std::vector<int32_t> giver_;  // for each instance; empty: no pair was declared
};

}  // namespace penstock::graph
