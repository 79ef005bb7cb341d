// The critical path of a run: the chain of nodes that made it take as long as it took, and the gaps between them.
//
// It is followed backwards from the node that ended last. The step before a node is what ended last of the nodes that
// it follows, and of the node before it on its lane where runs are submitted on streams, whose lanes do one thing at a
// time. A node without a span (it had nothing to do, or is a part of another's span) is passed through.
//
// Each moment of the run is in one step or one gap: the steps, the gaps before them and the tail add up to its length.
// A step that began before the one before it had ended (the clocks of devices differ by the time of a poll, a hostcall
// is within its kernel) counts from there on only.
//
// Threads: plain values, and a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/runs.h"

namespace penstock::analysis {

struct CriticalPath {
  // What a step had to wait for.
  enum class After : uint8_t { kLaunch, kNode, kLane };
  struct Step {
    int node = -1;  // place in Graph::nodes
    After after = After::kLaunch;  // kNode: the step before is one that the node follows; kLane: it used the lane
    double gap_us = 0;  // from the end of the step before, or the launch, to its begin
    double submit_us = 0;  // of the gap, while the run was still being submitted
    double begin_us = 0, end_us = 0;  // what the step adds to the path
    double length_us() const { return end_us - begin_us; }
  };

  double begin_us = 0, end_us = 0;  // of the run
  std::vector<Step> steps;  // in the order of time; empty: the run has no span of a node
  double tail_us = 0;  // from the end of the last step to the run's

  double length_us() const { return end_us - begin_us; }
  double gaps_us() const;  // all of them, and the tail
  double Share(double us) const { return length_us() > 0 ? us / length_us() : 0; }
};

// `graph` is the one whose run it is.
CriticalPath CriticalPathOf(const Profile::Graph& graph, const GraphRun& run);

}  // namespace penstock::analysis
