// CudaWorkspace: device memory that a library works in, for LaunchContext::Get.
//
//   graph.Launch("potrf", [](ps::LaunchContext& launch, float* a, int* info) -> absl::Status {
//     PS_ASSIGN_OR_RETURN(ps::Cusolver* solver, launch.Get<ps::Cusolver>());  // penstock/cusolver.h
//     int count = 0;
//     PS_RETURN_IF_ERROR(ps::ToStatus(cusolverDnSpotrf_bufferSize(solver->handle(), ..., &count), "potrf's
//     workspace")); PS_ASSIGN_OR_RETURN(ps::CudaWorkspace* work, launch.Get<ps::CudaWorkspace>(count * sizeof(float)));
//     return ps::ToStatus(cusolverDnSpotrf(..., static_cast<float*>(work->data()), count, info), "potrf");
//   }, ps::ReadWrite(a), ps::Write(info));
//
// One block a device, lane, slot and size, allocated by the first call that asks for it and kept for the executable's
// life. Executable::memory() does not know of it: where the size is known when the graph is declared, a Buffer with
// ps::Scratch is better.
//
// Threads: as LaunchContext.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/cuda.h"
#include "penstock/export.h"
#include "penstock/launch_context.h"

namespace penstock {

class CudaWorkspace {
 public:
  // The factory that LaunchContext::Get calls. Of 0 bytes there is no block, and data() is null.
  PENSTOCK_HIDDEN static absl::StatusOr<std::unique_ptr<CudaWorkspace>> Make(const LaunchContext&, size_t bytes) {
    const detail::CaptureScope uncaptured;
    std::unique_ptr<CudaWorkspace> workspace(new CudaWorkspace(bytes));
    if (bytes == 0) return workspace;
    const cudaError_t code = cudaMalloc(&workspace->data_, bytes);
    if (code != cudaSuccess) return ToStatus(code, "allocating a workspace of " + std::to_string(bytes) + " bytes");
    return workspace;
  }
  PENSTOCK_HIDDEN ~CudaWorkspace() {
    const detail::CaptureScope uncaptured;
    if (data_ != nullptr) (void)cudaFree(data_);
  }
  CudaWorkspace(const CudaWorkspace&) = delete;
  CudaWorkspace& operator=(const CudaWorkspace&) = delete;

  // The block, in device memory.
  void* data() const { return data_; }
  // Its size.
  size_t bytes() const { return bytes_; }

 private:
  PENSTOCK_HIDDEN explicit CudaWorkspace(size_t bytes) : bytes_(bytes) {}

  void* data_ = nullptr;
  size_t bytes_;
};

}  // namespace penstock
