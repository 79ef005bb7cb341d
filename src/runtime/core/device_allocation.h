// DeviceBlock: counted device memory, for DeviceBuffers and for the memory that a pipeline passes from run to run.
//
// Ownership: the last holder frees it with RuntimeCore::FreeDevice; it keeps the runtime's core alive.
// Threads:   thread-safe.
// Errors:    ResourceExhausted, with the numbers.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {

// Returns a pointer to the memory, or null for zero bytes. `device` is an index in the runtime's list.
absl::StatusOr<std::shared_ptr<void>> AllocateDeviceBlock(const std::shared_ptr<RuntimeCore>& core, int device,
                                                          size_t bytes);

}  // namespace penstock::runtime
