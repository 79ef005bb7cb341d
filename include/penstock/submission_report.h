// SubmissionReport: how an executable's runs were submitted, and what changed from run to run. What
// Executable::submission_report() returns. Nothing that keeps a node from being in a graph, or parts graphs but host
// nodes, goes without a note.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"
#include "penstock/mode.h"

namespace penstock {

struct PENSTOCK_EXPORT SubmissionReport {
  Mode mode = Mode::kStream;  // that runs use; kAuto: both in turns, until it is known which is faster
  // Under Mode::kAuto, how long a run took in either, from launch to the end of its work: medians in microseconds, 0
  // while not known. What was counted stays once it is decided.
  double stream_us = 0, graph_us = 0;
  // Why not another one, and which nodes are in no graph and why: a sentence each.
  std::vector<std::string> notes;

  // Of all slots together, since Compile.
  int64_t graphs = 0;  // instantiated: one that has to be made anew counts again, and a note says why
  int64_t graph_nodes = 0;  // in them, with those that a trace adds
  int64_t graph_launches = 0;  // several a run if host nodes split it
  int64_t nodes_set = 0;  // given new parameters: CUDA takes 0.3 to 1 us for each
  int64_t nodes_switched = 0;  // on or off: 0.25 us
  int64_t captures = 0;  // calls of Launch nodes to be captured: at Compile, for another argument, after a Get
  int64_t refreshes = 0;  // launches with one copy of the parameters of all nodes that read these by reference: 3.5 us
  // What the dear ways have taken, in microseconds: making graphs (all of `graphs`), and captures.
  double instantiating_us = 0, capturing_us = 0;

  // The same in words.
  std::string Text() const;
};

// The name of before 0.1.0.
using ReplayLedger [[deprecated("renamed SubmissionReport")]] = SubmissionReport;

}  // namespace penstock
