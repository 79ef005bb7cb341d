// Profile: what a runtime was given to run, on which devices, and when each part of it ran. Runtime::Profile returns
// it.
//
//   ps::Runtime runtime = *ps::Runtime::Create({.profile_spans = 100'000});
//   ...
//   PS_RETURN_IF_ERROR(runtime.Profile().Write("app.profile"));
//
// PENSTOCK_PROFILE=app.profile does the same for any program, without a change.
//
// Recorded are executables that were compiled with CompileOptions::profile, or all of them with
// RuntimeOptions::profile_spans. Their runs are traced (trace.h says what that costs), into the trace that they were
// compiled with, or else one of the runtime's. Besides what a trace has otherwise, there is a span of each launch, of
// each wait for a free slot, and of each run from its launch to its end. Of a trace of the application's, its own spans
// are in the profile as long as that trace exists.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/device.h"
#include "penstock/export.h"
#include "penstock/pipeline_stats.h"
#include "penstock/placement.h"
#include "penstock/submission_report.h"
#include "penstock/trace.h"

namespace penstock {

struct PENSTOCK_EXPORT Profile {
  // The version of the format that Json writes. A change that old readers would misread counts it up.
  static constexpr int kVersion = 1;

  // What nodes of a plan use one after the other: a stream, unless the plan is submitted as graphs.
  struct Lane {
    int device = 0;  // index in `devices`
    std::string kind;  // "upload", "peer", "download" or "compute"
  };
  // A node of a plan: one that was declared, or one that the planner added.
  struct Node {
    std::string name;  // as declared, or "upload x"
    std::string kind;  // as in Executable::PlanText: "upload", "parallel for", "host"
    std::string where;  // the source line that declared it, "saxpy.cu:30"; empty if the planner added it
    int device = -1;  // index in `devices`; -1 on the host
    int lane = -1;  // index in Graph::lanes; -1 on the host
    std::vector<int> after;  // the nodes that it directly follows, as places in Graph::nodes
    int64_t read_bytes = 0, written_bytes = 0;  // the most that it may, by what it declares
    double flops = 0;  // floating-point operations of one execution (NodeRef::Flops); 0: not declared
  };
  // An executable on one of its devices, or a condition or body of a construct that the host drives.
  struct Graph {
    int64_t executable = -1;  // as in Span::executable
    std::string name;  // of the graph
    std::string where;  // the source line that made the graph; empty in profiles of older versions
    int slots = 0;  // on this device
    int64_t slot_device_bytes = 0, slot_pinned_bytes = 0;  // of the memory of one slot
    std::vector<Lane> lanes;  // Node::lane is a place here
    std::vector<Node> nodes;  // Span::node is a place here
    int64_t launches = 0;  // so far
    SubmissionReport report;  // how it was submitted so far
    // What Placement::kAutomatic compared, with `work_us` as in `devices`; empty: it had nothing to choose.
    std::vector<PlacementReport::Candidate> placement;
  };

  // A pipeline. Its host stages have spans, whose executable is -1 and whose run is the ItemOptions::id of the item.
  struct Pipeline {
    double begin_us = 0, end_us = 0;  // when it was made, and when it ended or the profile was taken
    PipelineStats stats;  // then
  };

  std::vector<Device> devices;  // Span::device is a place here
  // What the program left open, as in Measurement::open; of a profile that does not say so, nothing.
  std::optional<std::vector<std::string>> open;
  std::vector<Graph> graphs;  // in the order in which they were compiled
  std::vector<Pipeline> pipelines;  // in the order in which they were made; where all executables are recorded
  // Of these graphs, and the application's own, in microseconds since the runtime was made; of each trace in the order
  // in which they were added.
  std::vector<Span> spans;
  int64_t lost_spans = 0;  // older ones, which are no longer kept
  int64_t lost_graphs = 0;  // those with a million nodes together are kept, and all that still exist
  double length_us = 0;  // until the profile was taken, since the runtime was made

  // The profile as a JSON object with "format": "penstock profile" and "version". Times are in microseconds, sizes in
  // bytes. Each span is a row of numbers, whose meaning "columns" has; names and tracks are places in "texts".
  std::string Json() const;
  // The spans in the trace event format, for Perfetto and chrome://tracing. Other than Trace::ChromeJson it keeps the
  // lanes of a slot together and the iterations of loops apart, has arrows from launches to first nodes, from copies to
  // their readers, and from last nodes to the ends of runs, and counts the slots in use, their pinned memory, the
  // staged copies under way and the engines that are busy.
  std::string ChromeJson() const;
  // Writes Json to a file, as Trace::WriteChrome does.
  absl::Status Write(const std::string& path) const;
};

}  // namespace penstock
