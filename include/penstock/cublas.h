// Cublas: a cuBLAS handle for the callables of Launch nodes, by LaunchContext::Get.
//
//   absl::Status Gemv(ps::LaunchContext& launch, const float* alpha, const float* a, const float* x, float* y) {
//     PS_ASSIGN_OR_RETURN(ps::Cublas* blas, launch.Get<ps::Cublas>());
//     return ps::ToStatus(cublasSgemv(blas->handle(), ..., alpha, a, ..., launch.Zero<float>(), y, 1), "cublasSgemv");
//   }
//   graph.Launch("gemv", Gemv, ps::OnDevice(alpha), ps::Read(a), ps::Read(x), ps::Write(y));
//
// One handle a device, lane and slot, with the node's stream and a workspace of its own. So cuBLAS allocates nothing in
// a capture, and captured graphs find their memory where it was. Whatever a callable sets on the handle, others find.
//
// Needs CUDA's and cuBLAS's headers; the application links cuBLAS (CUDA::cublas). The library itself does not use it.
//
// Threads: as LaunchContext.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cublas_v2.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/cuda.h"
#include "penstock/cuda_workspace.h"
#include "penstock/export.h"
#include "penstock/launch_context.h"
#include "penstock/status_macros.h"

namespace penstock {

// Returns OK for success, else `what` with cuBLAS's words for the error. Codes: InvalidArgument for a wrong argument,
// ResourceExhausted for memory, FailedPrecondition for what this device or this handle cannot do, Internal for faults.
PENSTOCK_HIDDEN inline absl::Status ToStatus(cublasStatus_t code, std::string_view what = "a call of cuBLAS") {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = std::string(what) + " failed: " + cublasGetStatusString(code) + " (cublasStatus_t " +
                           std::to_string(static_cast<int>(code)) + ")";
  switch (code) {
    case CUBLAS_STATUS_INVALID_VALUE: return absl::InvalidArgumentError(text);
    case CUBLAS_STATUS_ALLOC_FAILED: return absl::ResourceExhaustedError(text);
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED: return absl::FailedPreconditionError(text);
    default: return absl::InternalError(text);
  }
}

// What a handle is made with: Get<Cublas>(CublasOptions{...}). Each set of options has a handle of its own.
struct CublasOptions {
  size_t workspace_bytes = size_t{32} << 20;  // what NVIDIA advises for Hopper
  // Where calls read alpha and beta: in device memory, so that a captured graph takes new values (ps::OnDevice).
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_DEVICE;
  friend bool operator==(const CublasOptions&, const CublasOptions&) = default;
};

class Cublas {
 public:
  // The factory that LaunchContext::Get calls. cublasSetStream takes the workspace away, so it comes first.
  PENSTOCK_HIDDEN static absl::StatusOr<std::unique_ptr<Cublas>> Make(const LaunchContext& launch,
                                                                      const CublasOptions& options = {}) {
    const detail::CaptureScope uncaptured;
    PENSTOCK_ASSIGN_OR_RETURN(auto workspace, CudaWorkspace::Make(launch, options.workspace_bytes));
    std::unique_ptr<Cublas> made(new Cublas(std::move(workspace)));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cublasCreate(&made->handle_), "cublasCreate"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cublasSetStream(made->handle_, CudaStream(launch)), "cublasSetStream"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(
        cublasSetWorkspace(made->handle_, made->workspace_->data(), made->workspace_->bytes()), "cublasSetWorkspace"));
    PENSTOCK_RETURN_IF_ERROR(
        ToStatus(cublasSetPointerMode(made->handle_, options.pointer_mode), "cublasSetPointerMode"));
    return made;
  }
  PENSTOCK_HIDDEN ~Cublas() {
    const detail::CaptureScope uncaptured;
    if (handle_ != nullptr) (void)cublasDestroy(handle_);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // For cuBLAS's calls. It stays the object's: neither destroy it nor give it another stream or workspace.
  cublasHandle_t handle() const { return handle_; }

 private:
  PENSTOCK_HIDDEN explicit Cublas(std::unique_ptr<CudaWorkspace> workspace) : workspace_(std::move(workspace)) {}

  const std::unique_ptr<CudaWorkspace> workspace_;  // goes after the handle
  cublasHandle_t handle_ = nullptr;
};

}  // namespace penstock
