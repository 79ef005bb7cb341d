// Cusolver: a handle of cuSOLVER's dense routines for the callables of Launch nodes, by LaunchContext::Get.
//
//   PS_ASSIGN_OR_RETURN(ps::Cusolver* solver, launch.Get<ps::Cusolver>());
//   return ps::ToStatus(cusolverDnSpotrf(solver->handle(), CUBLAS_FILL_MODE_LOWER, n, a, n, work, count, info),
//   "potrf");
//
// One handle a device, lane and slot, with the node's stream. cuSOLVER's calls take their workspace as an argument: a
// Buffer with ps::Scratch, or a CudaWorkspace (cuda_workspace.h, where the example asks for the size). They read alpha
// and the like on the host.
//
// Needs CUDA's and cuSOLVER's headers; the application links cuSOLVER (CUDA::cusolver). The library itself does not use
// it.
//
// Threads: as LaunchContext.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cusolverDn.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/cuda.h"
#include "penstock/cuda_workspace.h"
#include "penstock/export.h"
#include "penstock/launch_context.h"
#include "penstock/status_macros.h"

namespace penstock {

// Returns OK for success, else `what` with the number of the error, for which cuSOLVER has no words. Codes:
// InvalidArgument for a wrong argument, ResourceExhausted for memory, FailedPrecondition for what this device or this
// handle cannot do, Internal for faults. That a matrix is singular is told by the routine's `info`, not here.
PENSTOCK_HIDDEN inline absl::Status ToStatus(cusolverStatus_t code, std::string_view what = "a call of cuSOLVER") {
  if (code == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = std::string(what) + " failed: cusolverStatus_t " + std::to_string(static_cast<int>(code)) +
                           " (cusolver_common.h)";
  switch (code) {
    case CUSOLVER_STATUS_INVALID_VALUE:
    case CUSOLVER_STATUS_INVALID_WORKSPACE: return absl::InvalidArgumentError(text);
    case CUSOLVER_STATUS_ALLOC_FAILED: return absl::ResourceExhaustedError(text);
    case CUSOLVER_STATUS_NOT_INITIALIZED:
    case CUSOLVER_STATUS_ARCH_MISMATCH:
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
    case CUSOLVER_STATUS_NOT_SUPPORTED: return absl::FailedPreconditionError(text);
    default: return absl::InternalError(text);
  }
}

class Cusolver {
 public:
  // The factory that LaunchContext::Get calls.
  PENSTOCK_HIDDEN static absl::StatusOr<std::unique_ptr<Cusolver>> Make(const LaunchContext& launch) {
    const detail::CaptureScope uncaptured;
    std::unique_ptr<Cusolver> made(new Cusolver);
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cusolverDnCreate(&made->handle_), "cusolverDnCreate"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cusolverDnSetStream(made->handle_, CudaStream(launch)), "cusolverDnSetStream"));
    return made;
  }
  PENSTOCK_HIDDEN ~Cusolver() {
    const detail::CaptureScope uncaptured;
    if (handle_ != nullptr) (void)cusolverDnDestroy(handle_);
  }
  Cusolver(const Cusolver&) = delete;
  Cusolver& operator=(const Cusolver&) = delete;

  // For cuSOLVER's calls. It stays the object's: neither destroy it nor give it another stream.
  cusolverDnHandle_t handle() const { return handle_; }

 private:
  PENSTOCK_HIDDEN Cusolver() = default;

  cusolverDnHandle_t handle_ = nullptr;
};

}  // namespace penstock
