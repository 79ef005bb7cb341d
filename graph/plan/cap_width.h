// CapWidth: adds edges to a very wide graph so that only so many of its nodes can be ready at once.
//
// A device runs at most so many kernels at a time; a CUDA graph with more branches than that is instantiated, stored
// and launched more slowly, and runs no faster (docs/adr/077).
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/common/csr_rows.h"

namespace penstock::graph {

// The predecessors of each node, and as few more as divide those that `counts` into at most `width` chains. Rows of
// `preds` have nodes less than their own, ascending. A node continues the chain of a predecessor that is the last of
// its chain, or begins one; if there are `width` already, it waits for the last node of the chain that has gone longest
// without a new node. Nodes that do not count gain no edges. Edges that chains imply are left out: all but the last
// from one chain to a node, and those from a node that precedes an earlier node of the same chain.
//
// A graph none of whose levels has more than `width` nodes stays as it is: nodes of different levels are seldom ready
// at once. `Width::kStrict`: only one with at most `width` nodes that count does. Linear in nodes and edges; takes
// `width` bits a node.
enum class Width : uint8_t { kOfLevels, kStrict };
CsrRows CapWidth(CsrRows preds, const std::vector<bool>& counts, int32_t width, Width of = Width::kOfLevels);

}  // namespace penstock::graph
