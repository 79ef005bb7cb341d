// Copies of boxes of bytes, by the CUDA call that fits their shape.
//
// Threads: free functions without state.
#pragma once

#include <cuda_runtime_api.h>

#include "src/driver/driver.h"

namespace penstock::driver {

// The same copy with as few dimensions as its pitches allow: dense rows become one row, a stack of single rows becomes
// a plane. Pure.
CopyOp Collapse(CopyOp op);

// Queues a copy; an empty one is nothing. `dst_ordinal` and `src_ordinal` are those of a peer copy's devices. Of a copy
// whose slices are no whole number of rows apart, a failure may leave the first slices queued.
cudaError_t SubmitCopy(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal);

}  // namespace penstock::driver
