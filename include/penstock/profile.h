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
// compiled with, as long as that exists, or else one of the runtime's. Besides what a trace has otherwise, there is a
// span of each launch, of each wait for a free slot, and of each run from its launch to its end.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/device.h"
#include "penstock/export.h"
#include "penstock/submission_report.h"
#include "penstock/trace.h"

namespace penstock {

struct PENSTOCK_EXPORT Profile {
  // The version of the format that Json writes. A change that old readers would misread counts it up.
  static constexpr int kVersion = 1;

  // What nodes of a plan use one after the other: a stream, unless the plan is submitted as graphs.
  struct Lane {
    int device = 0;  // index in `devices`
    std::string kind;  // "upload", "download" or "compute"
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
  };
  // An executable on one of its devices, or a condition or body of a construct that the host drives.
  struct Graph {
    int64_t executable = -1;  // as in Span::executable
    std::string name;  // of the graph
    int slots = 0;  // on this device
    int64_t slot_device_bytes = 0, slot_pinned_bytes = 0;  // of the memory of one slot
    std::vector<Lane> lanes;  // Node::lane is a place here
    std::vector<Node> nodes;  // Span::node is a place here
    int64_t launches = 0;  // so far
    SubmissionReport report;  // how it was submitted so far
  };

  std::vector<Device> devices;  // Span::device is a place here
  std::vector<Graph> graphs;  // in the order in which they were compiled
  // Of these graphs, and the application's own, in microseconds since the runtime was made; of each trace in the order
  // in which they were added.
  std::vector<Span> spans;
  int64_t lost_spans = 0;  // older ones, which are no longer kept
  int64_t lost_graphs = 0;  // those with a million nodes together are kept, and all that still exist
  double length_us = 0;  // until the profile was taken, since the runtime was made

  // The profile as a JSON object with "format": "penstock profile" and "version". Times are in microseconds, sizes in
  // bytes. Each span is a row of numbers, whose meaning "columns" has; names and tracks are places in "texts".
  std::string Json() const;
  // The spans in the trace event format, as Trace::ChromeJson.
  std::string ChromeJson() const;
  // Writes Json to a file, as Trace::WriteChrome does.
  absl::Status Write(const std::string& path) const;
};

}  // namespace penstock
