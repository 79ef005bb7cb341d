// Calls the callable of a Launch node, so that it submits to a stream or is captured.
//
// Threads: the owner of the slot's run. The callable's gate has been entered, and its device is current.
// Errors:  the callable's own; an exception becomes Internal.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"
#include "src/runtime/calls/launch_objects.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {

// Has `call` (Program::calls) submit to the stream of `objects`, which are its lane's; on a host device its host
// fallback submits instead.
absl::Status CallLaunch(const CompiledGraph& graph, Slot& slot, LaunchObjects& objects, int32_t call);

// The graph of what `call` submits, and how often it was called for that: again after each capture in which it had an
// object made (LaunchContext::Get). The capture has ended in any case; on failure the Status is the callable's, or says
// what broke the capture.
struct CapturedLaunch {
  driver::Graph graph;
  int64_t calls = 0;
};
absl::StatusOr<CapturedLaunch> CaptureLaunch(const CompiledGraph& graph, Slot& slot, LaunchObjects& objects,
                                             int32_t call);

}  // namespace penstock::runtime
