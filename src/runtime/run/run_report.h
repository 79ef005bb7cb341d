// Describes how a run ended: which node failed and where it was declared, what a cancelled run had not begun, which
// memory an abandoned run still needs.
//
// Threads: the owner of the run calls DescribeEnd, once the run has drained. Any thread may call DescribeAbandoned: it
//          reads only what stays constant while the run is in flight.
#pragma once

#include "absl/status/status.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

// OK, or the first failure of the run.
absl::Status DescribeEnd(const RunSlot& slot);
// For a run that ends for its user before it has drained.
absl::Status DescribeAbandoned(const RunSlot& slot, const absl::Status& why);

}  // namespace penstock::runtime
