// What the CUDA driver knows of an address, and how far that holds.
//
// Threads: a free function without state. Needs no current context.
// Errors:  see cuda_status.h.
#pragma once

#include "absl/status/statusor.h"
#include "src/driver/cuda/driver_api.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// `device` is CUDA's ordinal. Managed memory counts as pageable: it is read and written by the host, which is always
// right.
absl::StatusOr<PointerInfo> InspectPointer(const DriverApi& api, const void* memory);

}  // namespace penstock::driver
