// For programs that call CUDA themselves: the stream of a Launch node, their events, and CUDA errors as Status.
//
//   graph.Launch("gemm", [](ps::Foreign& foreign, const float* a, float* c) -> absl::Status {
//     return ps::ToStatus(cudaMemcpyAsync(c, a, kBytes, cudaMemcpyDefault, ps::CudaStream(foreign)), "copying a to c");
//   }, ps::Read(a), ps::Write(c));
//
// Needs the CUDA headers and links the application's own copy of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "penstock/bindings.h"
#include "penstock/detail/cuda_error.h"
#include "penstock/foreign.h"

namespace penstock {

// The stream to submit to. Its device is current. Null on host devices.
inline cudaStream_t CudaStream(const Foreign& foreign) { return static_cast<cudaStream_t>(foreign.native_stream()); }

// For Bindings::After: what the application has submitted to a stream before it recorded the event there.
inline NativeEvent Native(cudaEvent_t event) { return {event}; }

// OK for cudaSuccess. Otherwise `what` with the error's words, and the last error is cleared. Codes: InvalidArgument
// for a wrong argument, ResourceExhausted for memory, FailedPrecondition for what this device or image cannot do,
// Internal and DataLoss for faults; a fault that ends all CUDA work of the process is known to the runtime by a
// payload.
inline absl::Status ToStatus(cudaError_t code, std::string_view what = "a CUDA call") {
  if (code == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  const std::string text = detail::TextOfCudaError(code, what);
  absl::Status status(detail::StatusCodeOfCudaError(code), text);
  // The form of base::WithFault. Not Cord's constructor for strings: g++ and clang give it different symbols.
  const std::string fault =
      "cuda=" + std::to_string(static_cast<int>(code)) + " fatal=" + (detail::IsFatalCudaError(code) ? "1" : "0");
  status.SetPayload("penstock.dev/fault", absl::Cord(fault.c_str()));
  return status;
}

}  // namespace penstock
