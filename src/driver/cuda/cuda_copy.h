// Copies of boxes of bytes, by the CUDA call that fits their shape.
//
// Threads: free functions without state.
#pragma once

#include <cuda_runtime_api.h>

#include "src/driver/driver.h"

namespace penstock::driver {

// Queues a copy; an empty one is nothing. `dst_ordinal` and `src_ordinal` are those of a peer copy's devices. Of a copy
// whose slices are no whole number of rows apart, a failure may leave the first slices queued.
cudaError_t SubmitCopy(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal);

// A copy in CUDA's words. Not of a peer copy, nor of one whose slices lie no whole number of rows apart.
cudaMemcpyKind KindOf(CopyKind kind);
cudaMemcpy3DParms BoxOf(const CopyOp& op);

}  // namespace penstock::driver
