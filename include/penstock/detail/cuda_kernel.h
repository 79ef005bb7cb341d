// Hands a kernel of the application to the library.
//
// The library has its own static copy of the CUDA runtime, to which a kernel's host stub means nothing. So the
// application's copy looks up the handle here, in the application's translation unit; handles belong to the driver and
// are valid for every copy and device.
#pragma once

#include <cuda_runtime_api.h>

namespace penstock::detail {

// Returns the cudaKernel_t of a __global__ function, loaded on the calling thread's current device, since loading it at
// the first launch would wait for every kernel running there. Loading itself may wait for them too. On failure returns
// null and sets *error to the cudaError_t. Leaves CUDA's last error clear.
//
// Threads: thread-safe. Internal linkage on purpose: each shared object uses its own copy of the runtime.
[[maybe_unused]] static const void* LoadCudaKernel(const void* stub, int* error) {
  cudaKernel_t kernel = nullptr;
  cudaError_t code = cudaGetKernel(&kernel, stub);
  // Comes second: cudaGetKernel rejects pointers that are not stubs, while this call would take one for a handle.
  cudaFuncAttributes attributes;
  if (code == cudaSuccess) code = cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel));
  if (code != cudaSuccess) (void)cudaGetLastError();
  *error = static_cast<int>(code);
  return code == cudaSuccess ? static_cast<const void*>(kernel) : nullptr;
}

}  // namespace penstock::detail
