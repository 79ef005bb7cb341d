// cuBLAS for the callables of Launch nodes: a handle and its workspace, made by ps::LaunchContext::Get once a device,
// lane and slot.
//
// Ownership: the handle and the workspace are the object's and go with the slot.
// Threads:   as the stream: one at a time.
// Errors:    the constructor throws, which fails the node.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "penstock/cuda.h"
#include "penstock/ps.h"

inline absl::Status ToStatus(cublasStatus_t code, const char* what) {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(std::string(what) + " failed: " + cublasGetStatusString(code));
}

class Blas {
 public:
  // The workspace comes last: setting the stream takes it away. With it cuBLAS allocates nothing in later calls.
  explicit Blas(const ps::LaunchContext& launch) : Blas() {
    Match(ToStatus(cublasSetStream(handle_, ps::CudaStream(launch)), "cublasSetStream"));
    Match(ps::ToStatus(cudaMalloc(&workspace_, kWorkspaceBytes), "allocating cuBLAS's workspace"));
    Match(ToStatus(cublasSetWorkspace(handle_, workspace_, kWorkspaceBytes), "cublasSetWorkspace"));
  }
  ~Blas() {
    (void)cublasDestroy(handle_);
    (void)cudaFree(workspace_);
  }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  cublasHandle_t handle() const { return handle_; }

 private:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for Hopper

  // Once this constructor has returned, the destructor runs even if the other one throws.
  Blas() { Match(ToStatus(cublasCreate(&handle_), "cublasCreate")); }
  static void Match(const absl::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};
