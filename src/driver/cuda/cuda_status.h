// Converts a cudaError_t to a Status, in this one place.
//
// Errors:    the class determines the code, see penstock/detail/cuda_error.h. Every failure carries the fault payload
//            of base::WithFault; failures that cost the process its devices are marked fatal and remembered here.
// Threads:   thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/base/optimization.h"
#include "absl/status/status.h"

namespace penstock::driver {

// The Status of a failed call. `what` is a phrase like "recording an event". Clears the thread's last error.
absl::Status StatusOfFailure(cudaError_t code, std::string_view what);

inline absl::Status ToStatus(cudaError_t code, std::string_view what) {
  if (ABSL_PREDICT_TRUE(code == cudaSuccess)) return absl::OkStatus();
  return StatusOfFailure(code, what);
}

// For calls that CUDA refuses as invalid though only a state is wrong: turns InvalidArgument into FailedPrecondition.
absl::Status ToRefusal(cudaError_t code, std::string_view what);

// For calls whose failure changes nothing, as in destructors: clears the last error, and remembers a fatal one.
void Forget(cudaError_t code);

// Whether a fatal fault was seen. Every CUDA call of this process fails from then on, so releases are skipped.
bool CudaIsLost();

}  // namespace penstock::driver
