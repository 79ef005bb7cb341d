// The cores that polling threads keep busy (RuntimeOptions::polling_cores).
//
// Threads: stateless.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

namespace penstock::runtime {

// The name of the source of the list, for messages: the option or the variable.
const char* PollingCoresSource();

// PENSTOCK_POLLING_CORES if set, otherwise the option. InvalidArgument if it is no list of numbers or has a core twice.
absl::StatusOr<std::vector<int>> PollingCoresOf(std::vector<int> option);

}  // namespace penstock::runtime
