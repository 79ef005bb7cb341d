// What the CUDA driver knows about an address, and for which range that holds.
//
// Threads:   a free function without state. Needs no current context.
// Errors:    see cuda_status.h.
#pragma once

#include "absl/status/statusor.h"
#include "src/driver/cuda/driver_api.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// `device` is CUDA's ordinal. Managed memory counts as pageable: the host reads and writes it, which is always correct.
absl::StatusOr<PointerInfo> InspectPointer(const DriverApi& api, const void* memory);

}  // namespace penstock::driver
