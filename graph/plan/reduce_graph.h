// Edges between the nodes of one graph. A CUDA graph has no lanes: only its edges order its nodes. So orders that lanes
// give for free must become edges, such as those between nodes that use the same arena bytes in turn. An edge may be
// left out only if a path of other edges implies it.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "graph/common/csr_rows.h"
#include "graph/plan/plan.h"

namespace penstock::graph {

// The predecessors of each node, without those that a path of other edges implies. Row v of `preds` has distinct nodes
// less than v, ascending. Linear if edges join neighbours in the order, or if each node's last predecessor is a direct
// successor of the others; otherwise it sweeps the edges once for each 64 nodes in doubt. Exact, so the result is
// unique for given edges, until the sweeps have examined kMostExamined times the edges: then all edges still in doubt
// are kept. `examined`, if not null, receives the number of edges and nodes examined. Memory: three words per node.
inline constexpr int64_t kMostExamined = 16;
CsrRows TransitiveReduction(const CsrRows& preds, int64_t* examined = nullptr);

// The edges that memory needs beside PlanNode::preds: row v has the last users of the bytes that the instances first
// used by plan node v took over.
CsrRows MemoryEdges(const Plan& plan);

// The edges that lanes need beside the data's: libraries keep a handle and a workspace per lane, and only one hostcall
// kernel per lane may wait. Row v has the previous Launch node on its lane if plan node v is a Launch node, and the
// previous kHostcall node if v is one.
CsrRows LaneEdges(const Plan& plan);

// The order of one graph's nodes: the predecessors of each as positions in `nodes`, by preds and the additional
// edges, reduced. `nodes` is ascending; the first node of a batch stands for all, which start and end together,
// and comes after the predecessors of any of them. Nodes outside the graph come before or after all of it, and
// are not predecessors. `memory` is MemoryEdges(plan), `in_lanes` LaneEdges(plan). Linear in the nodes from the
// first to the last.
CsrRows EdgesOfGraph(const Plan& plan, const CsrRows& memory, const CsrRows& in_lanes, std::span<const NodeId> nodes);

}  // namespace penstock::graph
