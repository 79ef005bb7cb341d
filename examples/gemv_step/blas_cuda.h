// cuBLAS for the callables of Launch nodes: a handle, made by ps::LaunchContext::Get once a device, lane and slot.
//
// Ownership: the handle and the memory it works in are the object's, so that nobody else's calls use them, and graphs
//            that were captured with it find them where they were.
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
  return absl::InternalError(std::string(what) + " failed; " + cublasGetStatusString(code) + " (" +
                             cublasGetStatusName(code) + ")");
}

class Cublas {
 public:
  // Setting the stream takes the workspace away, so that comes behind it. With one of its own cuBLAS allocates nothing
  // later, in a capture or out of it.
  explicit Cublas(const ps::LaunchContext& launch) : Cublas() {
    Match(cublasSetStream(handle_, ps::CudaStream(launch)), "cublasSetStream");
    Match(ps::ToStatus(cudaMalloc(&workspace_, kWorkspaceBytes), "allocating cuBLAS's workspace"));
    Match(cublasSetWorkspace(handle_, workspace_, kWorkspaceBytes), "cublasSetWorkspace");
    Match(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
  }
  ~Cublas() {
    (void)cublasDestroy(handle_);
    (void)cudaFree(workspace_);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  operator cublasHandle_t() const { return handle_; }

 private:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for Hopper

  Cublas() { Match(cublasCreate(&handle_), "cublasCreate"); }
  static void Match(cublasStatus_t code, const char* what) { Match(ToStatus(code, what)); }
  static void Match(const absl::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};
