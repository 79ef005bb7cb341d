// What the application of chapter 5 brings along: a kernel, two streams, an event and device memory. None of it knows
// Penstock, except that errors are a Status.
//
// Ownership: owns all of it, and waits for its streams before it frees anything.
// Threads:   single-threaded.
#pragma once

#include <cuda_runtime.h>

#include "penstock/cuda.h"
#include "penstock/ps.h"

// Adds `by` to each of `n` velocities.
__global__ void Push(int n, float by, float* velocity) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) velocity[i] += by;
}

// Copies `n` floats to the device or from it.
inline absl::Status Copy(const float* from, float* to, int n, cudaStream_t stream) {
  return ps::ToStatus(cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyDefault, stream), "copying");
}

struct Application {
  // Creates the streams, the event, and memory for `n` elements of each kind, with zeros in it.
  absl::Status Open(int n) {
    PS_RETURN_IF_ERROR(ps::ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"));
    PS_RETURN_IF_ERROR(ps::ToStatus(cudaStreamCreateWithFlags(&loader, cudaStreamNonBlocking), "creating a stream"));
    PS_RETURN_IF_ERROR(ps::ToStatus(cudaEventCreateWithFlags(&loaded, cudaEventDisableTiming), "creating an event"));
    for (float** memory : {&velocity, &wind, &position}) {
      PS_RETURN_IF_ERROR(ps::ToStatus(cudaMalloc(memory, n * sizeof(float)), "allocating"));
      PS_RETURN_IF_ERROR(ps::ToStatus(cudaMemsetAsync(*memory, 0, n * sizeof(float), stream), "clearing"));
    }
    return ps::ToStatus(cudaStreamSynchronize(stream), "clearing");
  }
  Application() = default;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  ~Application() {
    for (cudaStream_t own : {stream, loader}) (void)cudaStreamSynchronize(own), (void)cudaStreamDestroy(own);
    for (float* memory : {velocity, wind, position}) (void)cudaFree(memory);
    (void)cudaEventDestroy(loaded);
  }

  cudaStream_t stream = nullptr, loader = nullptr;
  cudaEvent_t loaded = nullptr;
  float *velocity = nullptr, *wind = nullptr, *position = nullptr;
};
