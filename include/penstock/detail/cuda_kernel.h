// Hands a kernel of the application to the library.
//
// A kernel's host stub means nothing to another copy of the CUDA runtime, and the library has its own static copy. So
// the handle is taken here, in the application's translation unit, by the application's copy; handles are the driver's
// and good for every copy and device.
#pragma once

#include <cuda_runtime_api.h>

namespace penstock::detail {

// The cudaKernel_t of a __global__ function, loaded on the calling thread's current device so that its first launch
// does not: that would wait for every kernel that runs there. Loading itself may wait for them. On failure null, and
// *error is the cudaError_t. The last error is left clear.
//
// Threads: thread-safe. Internal linkage on purpose: each shared object asks its own copy of the runtime.
[[maybe_unused]] static const void* LoadCudaKernel(const void* stub, int* error) {
  cudaKernel_t kernel = nullptr;
  cudaError_t code = cudaGetKernel(&kernel, stub);
  // After the other call, which knows a stub from anything else; this one takes a stranger for a handle.
  cudaFuncAttributes attributes;
  if (code == cudaSuccess) code = cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel));
  if (code != cudaSuccess) (void)cudaGetLastError();
  *error = static_cast<int>(code);
  return code == cudaSuccess ? static_cast<const void*>(kernel) : nullptr;
}

}  // namespace penstock::detail
