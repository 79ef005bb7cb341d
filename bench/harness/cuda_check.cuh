// CUDA calls of the raw halves: checked, and told whether there is a device to call at all.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "harness.h"

namespace bench {

inline void Check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // the next call answers for itself
  Fail(std::string(what) + ": " + cudaGetErrorString(code));
}

// Why nothing can be measured here; empty where there is a device.
inline std::string WhyNoDevice() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();
    return cudaGetErrorString(code);
  }
  return count == 0 ? "no CUDA device is visible" : "";
}

// The driver's own call of that name, in the form it had in that release of CUDA.
template <class Function>
Function DriverCall(const char* name, unsigned int version) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult answer;
  Check(cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &answer), name);
  if (entry == nullptr) Fail(std::string("the driver has no ") + name);
  return reinterpret_cast<Function>(entry);
}

// Makes it the calling thread's device.
inline int Choose(int device) {
  Check(cudaSetDevice(device), "choosing a device");
  return device;
}

inline cudaStream_t MakeStream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

inline cudaEvent_t MakeEvent() {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  return event;
}

template <class T>
T* MakeDeviceMemory(size_t count) {
  void* memory = nullptr;
  Check(cudaMalloc(&memory, count * sizeof(T)), "allocating device memory");
  return static_cast<T*>(memory);
}

}  // namespace bench
