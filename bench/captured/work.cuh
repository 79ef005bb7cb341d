// The step that captured.cu replays: y = max(alpha * A * x + b, 0), its data, cuBLAS's handle, and the check.
//
// Threads: single-threaded.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {

constexpr int kN = 512;

inline void Check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS) Fail(std::string(what) + ": " + cublasGetStatusString(code));
}

inline cublasStatus_t Gemv(cublasHandle_t handle, const float* alpha, const float* a, const float* x, const float* zero,
                           float* y) {
  return cublasSgemv(handle, CUBLAS_OP_T, kN, kN, alpha, a, kN, x, 1, zero, y, 1);
}

// By hand: a handle with memory of its own to work in, for one stream. Setting the stream takes the workspace away.
class Cublas {
 public:
  Cublas(cudaStream_t stream, cublasPointerMode_t mode) : workspace_(MakeDeviceMemory<char>(kWorkspaceBytes)) {
    Check(cublasCreate(&handle_), "cublasCreate");
    Check(cublasSetStream(handle_, stream), "cublasSetStream");
    Check(cublasSetWorkspace(handle_, workspace_, kWorkspaceBytes), "cublasSetWorkspace");
    Check(cublasSetPointerMode(handle_, mode), "cublasSetPointerMode");
  }
  ~Cublas() {
    (void)cublasDestroy(handle_);
    (void)cudaFree(workspace_);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  cublasHandle_t handle() const { return handle_; }

 private:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;
  char* workspace_;
  cublasHandle_t handle_ = nullptr;
};

__global__ void Relu(int n, const float* b, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = fmaxf(y[i] + b[i], 0.f);
}

// The data on the host. A and b stay; each run has another x, and a new alpha where it asks for one.
class Step {
 public:
  explicit Step(ps::Runtime& runtime)
      : a(size_t{kN} * kN),
        b(kN),
        x(Must(runtime.MakeHostBuffer<float>(kN))),
        y(Must(runtime.MakeHostBuffer<float>(kN))) {
    const auto small = [this] { return Small(); };
    std::generate(a.begin(), a.end(), small);
    std::generate(b.begin(), b.end(), small);
    std::generate(x.begin(), x.end(), small);
  }

  static float SameAlpha() { return 2; }
  // Never the one before, and never the one that stays.
  float NextAlpha() { return alpha_ = alpha_ < 40 ? alpha_ + 1 : 3; }
  void Draw() {
    const auto small = [this] { return Small(); };
    std::generate(x.begin(), x.end(), small);
    std::fill(y.begin(), y.end(), -1.f);
  }
  void CheckResult(float alpha) const {
    for (int row = 0; row < kN; ++row) {
      double sum = b[static_cast<size_t>(row)];
      for (int i = kN - 1; i >= 0; --i) sum += double{alpha} * x[i] * a[static_cast<size_t>(row * kN + i)];
      if (y[row] != static_cast<float>(std::max(sum, 0.0))) Fail("y[" + std::to_string(row) + "] is wrong");
    }
  }

  std::vector<float> a, b;
  ps::HostBuffer<float> x, y;

 private:
  float Small() { return static_cast<float>(static_cast<int>(random_() % 9) - 4); }
  std::mt19937 random_{20272};
  float alpha_ = 3;
};

}  // namespace bench
