// How the callable of a Launch node is called: to submit to a stream, or to be captured.
//
// Threads:  the owner of the slot's run. The callable's gate has been entered, and its device is current.
// Errors:   the callable's own; an exception becomes Internal.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

// `call` (Program::calls) submits to the stream of `objects`, which are those of its lane; on a host device its host
// fallback does.
absl::Status CallLaunch(const CompiledGraph& graph, Slot& slot, LaunchObjects& objects, int32_t call);

// What it submits, as a graph, and how often it was called for that: again where it had an object made
// (LaunchContext::Get). The capture has ended, whatever is returned: else the callable's failure, or what has broken
// the capture.
struct CapturedLaunch {
  driver::Graph graph;
  int64_t calls = 0;
};
absl::StatusOr<CapturedLaunch> CaptureLaunch(const CompiledGraph& graph, Slot& slot, LaunchObjects& objects,
                                             int32_t call);

}  // namespace penstock::runtime
