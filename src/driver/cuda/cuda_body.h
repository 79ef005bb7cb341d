// What CUDA allows in a body of a conditional node, found out from a graph's nodes. CUDA itself says so only when the
// graph is instantiated, and then neither which node nor why.
//
// Threads:   a free function without state. Call it with the graph's device current.
// Errors:    FailedPrecondition names the kind of node that is not allowed; CUDA's own, by cuda_status.h.
#pragma once

#include "absl/status/status.h"
#include "src/driver/cuda/driver_api.h"

namespace penstock::driver {

// Checks that a graph may be a child in a body, with the children nested in it.
absl::Status CheckMayBeInABody(const DriverApi& api, cudaGraph_t child);

}  // namespace penstock::driver
