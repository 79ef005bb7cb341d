// Summary: where the time of a profile went, in numbers: engines, graphs, nodes and waits.
//
// Looked at is the time from the first launch of the profile to the end of its last run; if no run is known, the whole
// profile. Busy times are unions: what two spans cover at once counts once. The time of a node in a run is the union of
// its spans there, so a loop and its iterations count once. Nodes that are declared by the same line of the same graph
// and do as many operations are one, on whatever device and however often the graph has been compiled.
//
// Threads: plain values, and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/runs.h"

namespace penstock::analysis {

struct Summary {
  struct EngineUse {
    int device = -1;  // place in Profile::devices; -1: the host
    SpanKind kind = SpanKind::kHost;  // kKernel, kUpload or kDownload of a device, kHost of the host
    double busy_us = 0;  // of the time looked at
    int64_t spans = 0;
  };
  struct NodeUse {
    size_t graph = 0;  // the first of those that are one: place in Profile::graphs
    int node = -1;  // place in Graph::nodes
    int64_t runs = 0;  // in which it has a span
    double total_us = 0, median_us = 0;  // of its time in a run
    bool batched = false;  // some of that is also other nodes' time: a span stands for several
  };
  struct GraphUse {
    size_t graph = 0;
    int64_t runs = 0;  // that are known from their launch to their end
    double total_us = 0, shortest_us = 0, median_us = 0, longest_us = 0;  // of these
    size_t median_run = 0;  // one that took about as long as the median: place among the runs; if `runs` is not 0
  };

  double begin_us = 0, end_us = 0;  // the time looked at
  int64_t launches = 0, runs = 0;  // of all graphs since they were compiled, and whose spans are kept
  double waits_us = 0;  // all of `waits`; those of several threads add up
  std::vector<EngineUse> engines;  // of each device the three, then the host
  std::vector<GraphUse> graphs;  // those with launches or runs: what took longest in all first
  std::vector<NodeUse> nodes;  // what took longest in all first
  std::vector<const Span*> waits;  // for slots, not for States; the longest first

  double length_us() const { return end_us - begin_us; }
  double Share(double us) const { return length_us() > 0 ? us / length_us() : 0; }
};

// `runs`: those of the profile. The summary points into the profile.
Summary SummaryOf(const Profile& profile, const std::vector<GraphRun>& runs);

}  // namespace penstock::analysis
