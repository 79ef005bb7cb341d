// Which instances take the bytes of another: the outputs that a node writes in place of an input (NodeRef::InPlace).
//
// An output takes them where the node is the first to use it and comes last among all users of the input, both known
// by the lane clocks. Each of them is read or written as a whole by one access, and their elements have one size, so
// that element i of both has the same bytes. Where something is missing, nothing is done and a note says what.
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
  // Appends a note to the draft for each pair declared.
  InPlace(Draft& draft, const Lifetimes& lives);

  // The instance whose bytes `instance` takes from its first user on; -1: none.
  int32_t giver(int32_t instance) const { return giver_.empty() ? -1 : giver_[static_cast<size_t>(instance)]; }

 private:
  void Find(Draft& draft, int32_t step, const InPlacePair& pair);
  std::string WhyNot(const Draft& draft, int32_t step, const InPlacePair& pair, int32_t from, int32_t to) const;

  const Lifetimes& lives_;
  std::vector<int32_t> giver_;  // of each instance; empty: nobody asked
};

}  // namespace penstock::graph
