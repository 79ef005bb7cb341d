// How a run ended, in words: which node failed and where it was declared, what a cancelled run had not begun, which
// memory an abandoned run still needs.
//
// Threads: DescribeEnd by the owner of the run, once it has drained. DescribeAbandoned by any thread: it reads only
// what
//          stays as it is while the run is in flight.
#pragma once

#include "absl/status/status.h"
#include "src/runtime/run/run_slot.h"

namespace penstock::runtime {

// OK, or the first failure of the run.
absl::Status DescribeEnd(const RunSlot& slot);
// For a run that ends for its user before it has drained.
absl::Status DescribeAbandoned(const RunSlot& slot, const absl::Status& why);

}  // namespace penstock::runtime
