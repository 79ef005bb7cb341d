// Edges of the nodes of one graph. A CUDA graph has no lanes: only its edges order its nodes. So what lane order gives
// for nothing must be said here: which nodes use the same bytes of an arena one after the other. And an edge may be
// left out only where a path of other edges implies it.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "graph/common/csr_rows.h"
#include "graph/plan/plan.h"

namespace penstock::graph {

// The predecessors of each node without those that a path of other edges implies. Row v of `preds`: distinct nodes less
// than v, ascending. Linear where edges are between neighbours in the order, and where the last predecessor of a node
// comes after the others directly; where neither is so, a sweep over the edges for each 64 nodes in doubt. Exact, so
// for given edges there is one result, until the sweeps have looked at kMostLooks times the edges: then all edges still
// in doubt are kept. `looks`, if any: at how many edges and nodes the sweeps have looked. Memory: three words a node.
inline constexpr int64_t kMostLooks = 16;
CsrRows TransitiveReduction(const CsrRows& preds, int64_t* looks = nullptr);

// What memory asks for beside PlanNode::preds: row v names the last users of the bytes that the instances first used by
// plan node v took over.
CsrRows MemoryEdges(const Plan& plan);

// Where a lane has more to say than the data: libraries keep a handle, and memory to work in, for each, and of the
// kernels that ask the host one waits there at a time. Row v names the Launch node before plan node v on its lane,
// where v is one, and the kHostcall node before it, where v is such a one.
CsrRows LaneEdges(const Plan& plan);

// What orders the nodes of one graph: the predecessors of each as positions in `nodes`, by preds and the edges beside
// them, reduced. `nodes` are ascending; of a batch its first stands for all, which start and end together: it comes
// after what any of them does. Nodes that are not in the graph come before or after all of it and are no predecessors.
// `memory`: MemoryEdges(plan); `in_lanes`: LaneEdges(plan). Linear in the nodes from the first to the last.
CsrRows EdgesOfGraph(const Plan& plan, const CsrRows& memory, const CsrRows& in_lanes, std::span<const int32_t> nodes);

}  // namespace penstock::graph
