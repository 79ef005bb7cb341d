// Simulate: how long runs of a graph take, by discrete events. docs/explanation/simulator.md explains the model.
//
// Threads of the application launch runs, each into a free slot. A launch submits the nodes up to the first that follow
// a host step, and a worker submits more after each such step. A node begins once it is submitted, all that it follows
// has ended, and what it occupies has room. All times are counted in 2^-20 us, so results are the same on every machine
// and sums of whole microseconds are exact.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/simulate/sim_graph.h"

namespace penstock::graph {

struct SimOptions {
  int32_t runs = 64;
  int32_t slots = 2;
  bool as_graphs = false;  // all nodes submitted together are one CUDA graph; otherwise they are submitted one by one
  int32_t workers = 1;  // of the host
  // The application: `threads` launch in turn. For each run a thread waits until fewer than `in_flight` others are in
  // preparation or at work (0: does not wait), then does something else for `between_us`, and then launches, run r not
  // before r * period_us.
  int32_t threads = 1;
  int32_t in_flight = 0;
  double between_us = 0, period_us = 0;
  // What a thread spends on submitting: on each launch; on each node, where they are submitted one by one; on each
  // graph otherwise.
  double launch_us = 0, node_us = 0, graph_us = 0;
  // In addition, for each edge to another device: in a graph, at its launch; on streams, on an event's record and a
  // wait, when its second node is submitted. Edges from one graph to another cost none.
  double crossing_submit_us = 0;
  // What a device spends on each node beside the node's own cost, in either mode.
  double stream_latency_us = 0, graph_latency_us = 0;
  double start_us = 0;  // from a submission until the device may begin
  double crossing_us = 0;  // from the end of a node until one on another device may begin
  double completion_us = 0;  // from the end of a node on a device until the host knows
};

// What a span waited for last.
//   kNothing      nothing: it is the first
//   kApplication  the thread that launches: its span of the launch before
//   kSubmission   its submission
//   kPredecessor  a node that it follows; for a submission, a host step
//   kLane         the node before it on its lane, or the graph before its graph
//   kState        the run before it, which used the State
//   kResource     the span that had its place
//   kSlot         the end of the run that had its slot, or that let the application launch another
enum class SimWait : uint8_t { kNothing, kApplication, kSubmission, kPredecessor, kLane, kState, kResource, kSlot };

// One interval of work: a node in a run, or a submission.
struct SimSpan {
  int32_t node = -1;  // -1: a submission
  int32_t run = 0, slot = 0;
  SimResource resource = SimResource::kNothing;
  int32_t device = -1, from = -1;  // of the resource; -1: none
  int32_t place = 0;  // which of the resource's places: which thread, worker or kernel
  SimWait wait = SimWait::kNothing;
  int32_t waited_for = -1;  // place in SimResult::spans; -1: none
  double ready_us = 0;  // when it waited for nothing but a place
  double begin_us = 0, end_us = 0;
};

struct SimUse {
  SimResource resource{};
  int32_t device = -1, from = -1;
  int32_t places = 1;
  double busy_us = 0;  // the sum over its places
};

struct SimPeak {
  int32_t device = -1;  // -1: pinned host memory
  int64_t bytes = 0;  // the most that runs held at a time
};

struct SimResult {
  double makespan_us = 0;  // until the last run has ended
  // From the end of one run to that of the next, on average over the last three quarters of the runs, in whole rounds
  // through the slots.
  double run_us = 0;
  std::vector<double> launched_us, ended_us;  // of each run
  std::vector<SimSpan> spans;  // in the order in which they began
  std::vector<SimUse> uses;  // of each resource that something occupied
  std::vector<SimPeak> peaks;
  std::vector<int32_t> critical_path;  // spans, first to last: the last that ended, what that waited for, and so on
  int64_t events = 0;
};

// Errors: InvalidArgument names the node or option that is wrong: a predecessor that does not come before its node, a
// device that does not exist, a cost that is negative, not finite or so long that all together exceed 10^12 us, counts
// that are not positive, or more than 10 million nodes and 100 million predecessors of all runs together.
absl::StatusOr<SimResult> Simulate(const SimGraph& graph, const SimOptions& options);

// The time per run, as in SimResult::run_us, of runs that ended at these times, in any order.
double SteadyRunMicros(std::vector<double> ended_us, int32_t slots);

}  // namespace penstock::graph
