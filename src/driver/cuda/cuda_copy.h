// Copies boxes of bytes with the CUDA call that fits their shape.
//
// Threads: free functions without state.
#pragma once

#include <cuda_runtime_api.h>

#include "src/driver/driver.h"

namespace penstock::driver {

// Queues a copy; an empty one does nothing. `dst_ordinal` and `src_ordinal` are the devices of a peer copy. If the
// slices are not a whole number of rows apart, a failure may leave the first slices queued.
cudaError_t SubmitCopy(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal);

// A copy in CUDA's terms; of a peer copy, one by addresses alone, as graphs have it. Not for copies whose slices are
// not a whole number of rows apart.
cudaMemcpyKind KindOf(CopyKind kind);
cudaMemcpy3DParms BoxOf(const CopyOp& op);

}  // namespace penstock::driver
