// The rates of copies between devices.
//
// Threads: free function.
// Errors:  ResourceExhausted: the memory does not fit. DataLoss: a copy has brought something else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/ps.h"
#include "src/cli/measure/timing.h"

namespace penstock::cli::measure {

// GB/s of copies of so many bytes from the first index's device to the second's, one after the other; 0 within one
// device. `step` is told each pair before it is measured.
absl::StatusOr<std::vector<std::vector<double>>> PeerRates(Runtime& runtime, int64_t bytes, const Effort& effort,
                                                           const std::function<void(const std::string&)>& step);

}  // namespace penstock::cli::measure
