// Edges of a graph segment. A CUDA graph has no lanes: only its edges order its nodes. So what lane order gives a
// stream segment for nothing must be said here: which nodes use the same bytes of an arena one after the other. And an
// edge may be left out only where a path of other edges implies it.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "graph/plan.h"
#include "graph/rows.h"

namespace penstock::graph {

// The predecessors of each node without those that a path of other edges implies. Row v of `preds`: distinct nodes less
// than v, ascending. Exact, so for given edges there is one result. Linear where edges are between neighbours in the
// order; where they are not, a sweep over the edges for each 64 nodes in doubt. Memory: two words a node.
Rows TransitiveReduction(const Rows& preds);

// What memory asks for beside PlanNode::preds: row v names the last users of the bytes that the instances first used by
// plan node v took over.
Rows MemoryEdges(const Plan& plan);

// The nodes of a stream segment, ascending, and their predecessors in it as positions in `nodes`: preds and memory
// edges, reduced. Nodes of other segments and host steps are not among them: these come before or after all of it.
struct GraphSegment {
  std::vector<int32_t> nodes;
  Rows preds;
};
GraphSegment EdgesOfGraphSegment(const Plan& plan, int32_t segment);

}  // namespace penstock::graph
