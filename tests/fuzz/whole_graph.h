// What is wrong with a graph as a whole, found by brute force over pairs of nodes and over the atoms that accesses
// cover (tests/graph/oracle/oracle.h), once every record of it is sound: cycles, data that is read but not written,
// missing order.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/detail/model.h"
#include "tests/fuzz/hostile_graph.h"

namespace penstock::fuzz {

// Whether the oracles of tests/graph can follow the graph: no mistake of it is known, and what is accessed in parts has
// elements of whole atoms, and few of them.
bool CanBeCut(const HostileGraph& graph);

struct Verdict {
  std::vector<Known> wrong;
  bool sure = true;  // there is nothing else
};
// REQUIRES: the graph can be cut.
Verdict JudgeWhole(const HostileGraph& graph);

// Whether all that nodes read in a run with these values has been bound, or written by a node before: where parameters
// place what is written, a plan cannot tell.
bool ReadsOnlyData(const Model& model, const std::vector<int64_t>& values);

}  // namespace penstock::fuzz
