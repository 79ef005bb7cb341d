// The driver interface (src/driver/driver.h) on CUDA devices: a thin adapter of the CUDA runtime API.
//
// The static runtime also starts without an NVIDIA driver; CudaDeviceCount and CreateCudaDriver then report why there
// is no device. The driver changes nothing process-wide: it uses no default stream, device-wide synchronization or
// reset, and leaves the calling thread's current device as it was.
//
// Ownership: no object outlives its Driver except the contexts, which belong to the runtime API, and the
//            library's kernels.
// Ordering:  LoadKernel waits for a kernel that runs on the device if nothing of the new kernel's file (its module) was
//            loaded there before. Otherwise it does not wait, but the new kernel's first launch runs only after the
//            running one. So kernels are loaded before anything that others may wait for is launched.
// Errors:    Unavailable and NotFound if there is no usable device; see cuda_status.h for the rest.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// The number of CUDA devices that this process sees, at least 1. Otherwise Unavailable (no usable driver) or NotFound
// (a driver without devices), with the reason.
absl::StatusOr<int> CudaDeviceCount();

struct CudaDriverOptions {
  // The devices, by CUDA's ordinals; the driver numbers them in this order. Empty: all.
  std::vector<int> ordinals;
  // If not null, is called before each device is opened, with its name, and how many are open already and of how many.
  // Unless it returns OK, that is what CreateCudaDriver returns.
  std::function<absl::Status(const std::string& name, size_t done, size_t total)> before_device{};
};

// Opens the devices with their contexts, and loads the library's kernels; takes a fraction of a second per device.
absl::StatusOr<std::unique_ptr<Driver>> CreateCudaDriver(const CudaDriverOptions& options);

}  // namespace penstock::driver
