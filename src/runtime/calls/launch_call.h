// How the callable of a Launch node is called: to submit to a stream, or to be captured.
//
// Threads:  the owner of the slot's run. The callable's gate has been entered, and its device is current.
// Errors:   the callable's own; an exception becomes Internal.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

class ExecutableCore;
struct Slot;

// `call` (Program::calls) submits to the lane's stream; on a host device its host fallback does.
absl::Status CallLaunch(ExecutableCore& core, Slot& slot, int32_t call, int32_t lane);

// What it submits, as a graph. The capture has ended, whatever is returned: the callable's failure, or what has broken
// the capture. `calls` grows by how often it was called: again where it had an object made (LaunchContext::Get).
absl::StatusOr<driver::Graph> CaptureLaunch(ExecutableCore& core, Slot& slot, int32_t call, int32_t lane,
                                            int64_t& calls);

}  // namespace penstock::runtime
