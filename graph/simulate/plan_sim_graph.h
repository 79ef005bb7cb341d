// The SimGraph of a Plan: what a plan would cost before it has run.
//
// A construct is one node, and a batch or a region as many as it has nodes.
//
// Threads: pure functions.
#pragma once

#include "graph/plan/graph_schedule.h"
#include "graph/plan/plan.h"
#include "graph/simulate/sim_graph.h"

namespace penstock::graph {

// What is known of costs. What is not is PlanNode::cost, the planner's estimate.
struct PlanCosts {
  Table<NodeId, double> us;  // of each node; missing or negative: unknown
  // Bandwidths of copies of whole buffers, in GB/s, and what each of them takes beside its bytes. 0: unknown.
  double upload = 0, download = 0, peer = 0;
  double host_copy = 0;  // by host threads
  double copy_us = 0;
  bool is_pinned = true;  // whether bound kHost memory is pinned: copies for other memory are left out
};

// One SimDevice for each device of the plan's nodes, with its defaults.
SimGraph MakeSimGraph(const Plan& plan, const PlanCosts& costs);
// The same for SimOptions::as_graphs, with the plan's graphs: their edges, and where they end. A node that is submitted
// between graphs counts as one.
SimGraph MakeSimGraph(const Plan& plan, const PlanCosts& costs, const GraphSchedule& graphs);

}  // namespace penstock::graph
