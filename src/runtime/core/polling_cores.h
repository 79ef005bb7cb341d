// Which cores are kept busy looking (RuntimeOptions::polling_cores).
//
// Threads: stateless.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

namespace penstock::runtime {

// Which of the two gives them, for messages.
const char* PollingCoresSource();

// The option, or PENSTOCK_POLLING_CORES in its place. InvalidArgument: no list of numbers, or a core twice.
absl::StatusOr<std::vector<int>> PollingCoresOf(std::vector<int> option);

}  // namespace penstock::runtime
