// DeviceBlock: device memory that is counted: of DeviceBuffers, and of what a pipeline hands from run to run.
//
// Ownership: the last holder frees it, as RuntimeCore::FreeDevice does; keeps the runtime's core.
// Threads:   thread-safe.
// Errors:    ResourceExhausted with the numbers.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {

// Points at the memory; null for no bytes. `device`: an index of the runtime's list.
absl::StatusOr<std::shared_ptr<void>> AllocateDeviceBlock(const std::shared_ptr<RuntimeCore>& core, int device,
                                                          size_t bytes);

}  // namespace penstock::runtime
