// The library's own kernels: found in the embedded image once a process and never unloaded, because unloading waits for
// the device and a process may leave work behind that never ends.
//
// Threads: thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/copy_box.h"
#include "src/driver/cuda/kernels/gather.h"
#include "src/driver/cuda/kernels/pattern_fill.h"

namespace penstock::driver {

struct LibraryKernels {
  cudaKernel_t pattern_fill = nullptr;  // PatternFill
  cudaKernel_t gather = nullptr;  // Gather

  // Loads the image on the first call; tries again after a failure.
  static absl::StatusOr<LibraryKernels> Get();

  // Loads every kernel on the current device, so that no launch does.
  absl::Status Load() const;
};

// Loads a kernel on the current device without launching it, and lets it use all the shared memory a block of the
// device can have (`shared_limit` bytes). May wait for kernels that run, see cuda_driver.h.
cudaError_t LoadOnCurrentDevice(const void* kernel, int shared_limit);

// Queues a fill of more than 0 bytes that SizeOf (fill_box.h) has accepted.
cudaError_t LaunchPatternFill(cudaKernel_t kernel, const FillOp& op, cudaStream_t stream);

// Queues a batch of more than 0 bytes, whose size is `size`.
cudaError_t LaunchGather(cudaKernel_t kernel, const BatchOp& op, const BatchSize& size, cudaStream_t stream);

}  // namespace penstock::driver
