// SubmissionReport: how an executable's runs were submitted, and what changed from run to run.
// Executable::submission_report() returns it. Every reason for leaving a node out of a graph, or for splitting a graph
// other than at a host node, is reported as a remark.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/export.h"
#include "penstock/mode.h"

namespace penstock {

struct PENSTOCK_EXPORT SubmissionReport {
  // A While, or a Repeat that is no part of the graph around it.
  struct Loop {
    std::string name;  // of the construct
    int64_t iterations = 0;  // in all runs; those of a loop that is at work on a device are missing until it ends
    // What one has taken on average, with all that lies between two, in microseconds; 0 if unknown: before the first
    // run has ended, and where a Repeat of a large body has one iteration, about which it decides when that begins.
    double iteration_us = 0;
  };
  // Maps that are one kernel (map.h). Bytes are those of the largest extent that parameters allow.
  struct Fused {
    std::string name;  // of the node
    std::string text;  // a sentence with the Maps, their lines, and the Buffers that are not needed
    int64_t maps = 0;  // how many they are
    int64_t traffic_bytes = 0;  // that a run does not read or write
    int64_t memory_bytes = 0;  // of the Buffers that are not needed, in each slot
  };

  Mode mode = Mode::kStream;  // the mode of runs; kAuto: both in turn, until the faster one is known
  // Under Mode::kAuto, how long a run took in each mode, from launch to the end of its work: medians in microseconds, 0
  // until known. The values stay after the decision.
  double stream_us = 0, graph_us = 0;
  // Remarks: why another mode is not used, and which nodes are in no graph and why; a sentence each.
  std::vector<std::string> notes;

  // Totals over all slots since Compile.
  int64_t graphs = 0;  // graphs instantiated, again for each reinstantiation, whose reason is a remark
  int64_t graph_nodes = 0;  // nodes in them, those that a trace adds included
  int64_t regions = 0;  // of the graph nodes: regions that run resident (Resident)
  int64_t region_nodes = 0;  // what these consist of
  int64_t graph_launches = 0;  // several per run if host nodes split it
  int64_t nodes_set = 0;  // nodes given new parameters, at 0.3 to 1 us each in CUDA
  int64_t nodes_switched = 0;  // nodes switched on or off, at 0.25 us each
  int64_t captures = 0;  // captures of Launch nodes: at Compile, for another argument, after a Get
  int64_t refreshes = 0;  // launches that copied the parameters of all nodes that read these by reference: 3.5 us
  std::vector<Fused> fused;  // those of bodies of constructs included
  std::vector<Loop> loops;  // each before those in its body
  // Time in microseconds for the expensive steps: instantiating graphs (all of `graphs`), and captures.
  double instantiating_us = 0, capturing_us = 0;

  // The report as text.
  std::string Text() const;
};

// The name before 0.1.0.
using ReplayLedger [[deprecated("renamed SubmissionReport")]] = SubmissionReport;

}  // namespace penstock
