// GraphSchedule: a plan on one device as CUDA graphs: the same nodes in far fewer submissions, all on one lane.
//
// A graph takes as many nodes, in plan order, as can be submitted together. Its edges order them; they keep Launch
// nodes of one plan lane, and hostcall nodes, in their lane's order. The lane orders whatever is submitted. A graph
// ends with the plan's segment, before a node that cannot be in a graph, and wherever the order with other runs has a
// step (States that the plan writes, external dependencies), so other runs wait for this lane's work up to there and no
// more. States that it only reads, such as weights, do not split a graph: a writer waits for the whole graph, and the
// graph for earlier writers. Events are recorded only for host steps, States and the end of a run, each once, after the
// graph in question. Host steps wait as they do in stream mode, except that they wait for the whole graph.
//
// Ownership: plain values.
// Threads:   pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/common/csr_rows.h"
#include "graph/plan/plan.h"

namespace penstock::graph {

using GraphId = Id<struct GraphTag>;

// The nodes of one graph, ascending (a batch is represented by its first node), and the predecessors of each as
// positions in `nodes`, transitively reduced. Work before or after the graph is not included.
struct GraphPart {
  std::vector<NodeId> nodes;
  CsrRows preds;
};

// Replaces Plan::commands. `segments` is parallel to Plan::segments and waits for the same host steps; the epilogue is
// as in Plan, but has nothing to join.
struct GraphSchedule {
  LaneId lane{};  // of all commands; none: the plan has no node on a device
  Table<CommandId, Command> commands;  // Op::kGraph: `arg` is an index in `graphs`
  Table<SegmentId, Segment> segments;
  Table<GraphId, GraphPart> graphs;
  CommandId epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
};

// `refused[n]`: plan node n cannot be a graph node, and is submitted between graphs. The lane is one of those of the
// most urgent refused nodes. The plan's nodes must be on one device or the host.
GraphSchedule MakeGraphSchedule(const Plan& plan, const Table<NodeId, bool>& refused);

}  // namespace penstock::graph
