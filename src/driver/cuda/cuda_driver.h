// The driver interface (src/driver/driver.h) on CUDA devices: a thin adapter of the CUDA runtime API.
//
// The static runtime starts where no NVIDIA driver is installed; then CudaDeviceCount and CreateCudaDriver say why
// there is no device. Nothing process-wide is changed: no default stream, no device-wide synchronization, no reset, and
// the calling thread's current device stays as it was.
//
// Ownership: no object here outlives its Driver but the contexts, which are the runtime API's own, and the library's
//            kernels.
// Ordering:  LoadKernel while a kernel runs on the device: it waits for that one's end if nothing of the new kernel's
//            file (its module) was loaded there before; otherwise it does not, but the new kernel's first launch runs
//            only after it. So kernels are loaded before anything is launched that others may wait for.
// Errors:    Unavailable and NotFound where there is no device to be had; see cuda_status.h for the rest.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// How many CUDA devices this process sees, at least 1. Otherwise Unavailable (no usable driver) or NotFound (a driver
// without devices) with the reason.
absl::StatusOr<int> CudaDeviceCount();

struct CudaDriverOptions {
  // Which devices, by CUDA's ordinals; the driver numbers them in this order. Empty: all.
  std::vector<int> ordinals;
};

// Opens the devices, with their contexts and the library's kernels loaded: takes a fraction of a second a device.
absl::StatusOr<std::unique_ptr<Driver>> CreateCudaDriver(const CudaDriverOptions& options);

}  // namespace penstock::driver
