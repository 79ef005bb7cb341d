// SimProgram: a SimGraph prepared for one Simulate: checked, with times in ticks and each node's successors. Internal
// to graph/simulate and src/driver/sim, which knows only ticks and pools.
//
// Threads: plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/simulate/simulate.h"

namespace penstock::graph {

// Simulated time in units of 2^-20 us.
using SimTicks = int64_t;
inline constexpr double kTicksPerMicro = 1 << 20;
inline SimTicks InTicks(double us) { return std::llround(us * kTicksPerMicro); }
inline double InMicros(SimTicks ticks) { return static_cast<double>(ticks) / kTicksPerMicro; }

// `to` waits until `latency` after the end of the node.
struct SimEdge {
  int32_t to = 0;
  SimWait wait = SimWait::kPredecessor;
  SimTicks latency = 0;
};

// Places of one resource.
struct SimPool {
  SimResource resource{};
  int32_t device = -1, from = -1;
  int32_t places = 1;
  int32_t opposite = -1;  // the other copy engine of the device; -1: none
  double slowdown = 1;  // while that is busy
};

// Appends a device's three pools: kernels, uploads, downloads.
void AddPoolsOf(const SimDevice& device, int32_t number, std::vector<SimPool>& pools);

// Nodes that are submitted together: those of a segment of the plan or, if they touch States, of a part of one. Host
// steps that follow nothing are submitted with the first.
struct SimSegment {
  struct Submission {
    int32_t node;
    SimTicks after;  // the time since the submission began until the node may begin
  };
  std::vector<Submission> nodes{};
  int32_t host_steps = 0;  // that it waits for
  SimTicks cost = 0;
  bool goes_on = false;  // with the segment of which the one before is a part
  // The States that it is the first to touch, all of whose touches the run before must have submitted; and the last.
  std::vector<int32_t> first_of{}, last_of{};
};

struct SimProgram {
  static constexpr int32_t kLaunchers = 0, kWorkers = 1;  // pools

  int32_t nodes = 0;  // of the SimGraph; those from here on stand for the ends of CUDA graphs
  std::vector<SimTicks> cost;  // of each node
  std::vector<bool> on_host;  // of each node
  std::vector<int32_t> device;  // of each node
  std::vector<int32_t> pool;  // of each node; -1: it occupies nothing
  // How soon who advances a run sees that something has ended, among what has ended meanwhile: of each node on a
  // device; of each host step where nodes are submitted as graphs, of what it follows.
  std::vector<int32_t> seen;
  // For each node on a device, the last part of its segment; for each host step, that of what it follows, or -1.
  std::vector<int32_t> last_part;
  std::vector<int32_t> waits;  // of each node: how many edges lead to it, and 1 if it is submitted
  std::vector<SimPool> pools;
  std::vector<SimSegment> segments;  // at least one

  std::span<const SimEdge> Successors(int32_t node) const { return Row(edges, edge_end, node); }
  // The segments that wait for a host step.
  std::span<const int32_t> SegmentsAfter(int32_t node) const { return Row(after_host, after_host_end, node); }
  // The States that a node touches.
  std::span<const int32_t> StatesOf(int32_t node) const { return Row(touched, touched_end, node); }

  // Rows of the three above, one after the other, with where each ends.
  std::vector<SimEdge> edges;
  std::vector<int32_t> edge_end, after_host, after_host_end, touched, touched_end;

 private:
  template <class T>
  static std::span<const T> Row(const std::vector<T>& all, const std::vector<int32_t>& end, int32_t row) {
    const int32_t begin = row > 0 ? end[static_cast<size_t>(row) - 1] : 0;
    return {all.data() + begin, all.data() + end[static_cast<size_t>(row)]};
  }
};

absl::Status CheckSimulation(const SimGraph& graph, const SimOptions& options);

// Of what CheckSimulation has found right.
SimProgram MakeSimProgram(const SimGraph& graph, const SimOptions& options);

}  // namespace penstock::graph
