// GraphSchedule: a plan as CUDA graphs: the same nodes in far fewer submissions, all on one lane. Graphs have nodes on
// all devices of the plan.
//
// A graph takes as many nodes, in plan order, as can be submitted together. Its edges order them; they keep Launch
// nodes of one plan lane, and hostcall nodes, in their lane's order. The lane orders whatever is submitted. A graph
// ends with the plan's segment, before a node that cannot be in a graph, and where the plan first or last uses a State
// that it writes, so that other runs wait for this lane's work up to there and no more. But a graph does not end for a
// State before it has `least_us` of estimated work: it then waits for the State before it begins and releases it when
// it ends, since another launch would cost every run more than others gain. Nor does it end for States that the plan
// only reads, such as weights, or for device memory that a launch binds. Events are recorded only for host steps,
// States and the end of a run, each once, after the graph in question. Host steps wait as they do in stream mode,
// except that they wait for the whole graph.
//
// Small nodes of a graph may become regions (regions.h), which run resident: a region is one node of the CUDA graph.
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
using RegionId = Id<struct RegionTag>;

// Nodes that run as one, ascending, and the predecessors of each among them as positions in `nodes`, transitively
// reduced.
struct GraphRegion {
  std::vector<NodeId> nodes;
  CsrRows preds;
};

// The entries of one graph in a topological order, and the predecessors of each as positions, transitively reduced.
// Work before or after the graph is not included.
struct GraphPart {
  struct Entry {
    NodeId node;  // the first of a batch or a region
    RegionId region;  // none: the entry is no region
  };
  std::vector<Entry> entries;
  CsrRows preds;
};

// Which nodes may be in regions.
struct RegionRules {
  Table<NodeId, int32_t>
      group;  // those of one group may be in the same; -1: the node is in none. Empty: there are no regions
  int32_t least = 2, most = 1 << 14;  // nodes of a region
  int32_t most_at_once = INT32_MAX;  // regions of a graph that may run at a time
};

// Replaces Plan::commands. `segments` is parallel to Plan::segments and waits for the same host steps; the epilogue is
// as in Plan, but has nothing to join.
struct GraphSchedule {
  LaneId lane{};  // of all commands; none: the plan has no node on a device
  Table<CommandId, Command> commands;  // Op::kGraph: `arg` is an index in `graphs`
  Table<SegmentId, Segment> segments;
  Table<GraphId, GraphPart> graphs;
  Table<RegionId, GraphRegion> regions;
  CommandId epilogue_begin = 0, short_epilogue_begin = 0, epilogue_end = 0;
};

// A launch more costs each run 5 to 10 us of the device's time.
inline constexpr double kLeastGraphUs = 100;
// A graph ends where a State is done only if what is left of the segment takes an eighth of its time or more: that
// waits for all of the graph, on every device. Benchmark: bands.
inline constexpr double kOpenPerLeft = 8;

// The most kernels of a graph that may be ready at once, for each device: one runs 128 kernels at a time. A graph of
// few nodes, some of which take far longer than others, fills the device better with more of them ready. Benchmark:
// corners.
inline constexpr int32_t kMostWidth = 256, kMostWidthOfMany = 128;
inline constexpr int32_t kManyNodes = 1024;

// `refused[n]`: plan node n cannot be a graph node, and is submitted between graphs. The lane is one of those of the
// most urgent refused nodes. Where nodes other than gates are refused the plan must be on one device.
GraphSchedule MakeGraphSchedule(const Plan& plan, const Table<NodeId, bool>& refused, const RegionRules& regions = {},
                                double least_us = kLeastGraphUs);

}  // namespace penstock::graph
