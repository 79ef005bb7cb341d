// A plan on one device as CUDA graphs: the same nodes in far fewer submissions, all on one lane.
//
// A graph takes as many nodes, in the plan's order, as may be submitted in one go; its edges order them, Launch nodes
// of one of the plan's lanes, and nodes that ask the host, as they are there, and the lane orders what is submitted. A
// graph ends where the plan's segment does, before a node that no graph takes, and wherever the order with other runs
// has a step (States that the plan writes, memory that arrives): what other runs wait for is what this lane has done up
// to there, and no more. States that it only reads, as weights are, part no graph: who writes one waits for the whole
// graph, and the graph waits for who has. Only what host steps, States or the end of a run look at is recorded: once,
// behind the graph that it is about.
// Host steps wait as they do in stream mode, though for the whole graph.
//
// Ownership: plain values.
// Threads:   pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/common/csr_rows.h"
#include "graph/plan/plan.h"

namespace penstock::graph {

// The nodes of one graph, ascending (of a batch its first, for all of it), and the predecessors of each as positions in
// `nodes`: what orders them, transitively reduced. What comes before the graph, or behind it, is not among them.
struct GraphPart {
  std::vector<int32_t> nodes;
  CsrRows preds;
};

// What is submitted instead of Plan::commands. `segments` is parallel to Plan::segments and waits for the same host
// steps; `finish_*` are as in Plan, but there is nothing to join.
struct GraphSchedule {
  int32_t lane = -1;  // of all commands; -1: the plan has no node on a device
  std::vector<Command> commands;  // Op::kGraph: `arg` is an entry of `graphs`
  std::vector<Segment> segments;
  std::vector<GraphPart> graphs;
  int32_t epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
};

// `refused[n]`: plan node n is no node of a graph, and is submitted between graphs. The lane is one that refused nodes
// of the most urgent priority have. The plan's nodes must be on one device or the host.
GraphSchedule MakeGraphSchedule(const Plan& plan, const std::vector<bool>& refused);

}  // namespace penstock::graph
