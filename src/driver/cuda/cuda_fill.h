// Fills boxes with the CUDA call that fits them, or with the library's own kernel.
//
// Threads: free functions without state.
#pragma once

#include <cuda_runtime_api.h>

#include "src/driver/cuda/cuda_kernels.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// Queues a fill of more than 0 bytes that SizeOf (fill_box.h) has accepted.
cudaError_t SubmitFill(const LibraryKernels& kernels, const FillOp& op, cudaStream_t stream);

}  // namespace penstock::driver
