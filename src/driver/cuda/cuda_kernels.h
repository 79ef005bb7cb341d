// The library's own kernels, found in the embedded image once per process and never unloaded: unloading waits for the
// device, and a process may exit with work that never ends.
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
  cudaKernel_t ask = nullptr;  // HostcallArgs
  cudaKernel_t stamp = nullptr;  // TimestampArgs
  cudaKernel_t decide = nullptr;  // DecideArgs
  cudaKernel_t look = nullptr;  // LookArgs

  // Loads the image on the first call; tries again after a failure.
  static absl::StatusOr<LibraryKernels> Get();

  // Loads every kernel on the current device, so that no launch does. Returns whether they await their predecessors
  // there (penstock/detail/programmatic.h): either all do, or none.
  absl::StatusOr<bool> Load() const;
};

// Loads a kernel on the current device without launching it, and lets it use all the shared memory that the
// device allows a block (`shared_limit` bytes). May wait for running kernels, see cuda_driver.h. `found` receives
// its attributes.
cudaError_t LoadOnCurrentDevice(const void* kernel, int shared_limit, cudaFuncAttributes& found);

// The argument and shape of a library kernel.
template <class Args>
struct LibraryLaunch {
  Args args;
  dim3 grid, block;
};
// For a fill of more than 0 bytes that SizeOf (fill_box.h) has accepted; uses as few dimensions as possible.
LibraryLaunch<PatternFill> LaunchOf(const FillOp& whole);
// For a batch of more than 0 bytes with this `size`.
LibraryLaunch<Gather> LaunchOf(const BatchOp& op, const BatchSize& size);

template <class Args>
cudaError_t Submit(cudaKernel_t kernel, LibraryLaunch<Args> launch, cudaStream_t stream) {
  void* args[] = {&launch.args};
  return cudaLaunchKernel(static_cast<const void*>(kernel), launch.grid, launch.block, args, 0, stream);
}

}  // namespace penstock::driver
