// Classifies errors of the CUDA runtime: their class, Status code and text.
//
// The library's driver (src/driver/cuda/cuda_status.h) and users' own calls (ToStatus in penstock/cuda.h) share this
// table. The lists of codes follow the CUDA 13.0 headers: an error is fatal if they say that the process must be
// terminated and relaunched.
//
// Threads: free functions without state.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "penstock/export.h"

namespace penstock::detail {

enum class CudaErrorClass : uint8_t {
  kFatal,  // the process has lost all its CUDA devices for good
  kHardware,  // the device is broken; treated as kFatal
  kShutdown,  // the driver or the context is going away: process exit
  kAbsent,  // no usable driver or device
  kMemory,  // device memory, pinned memory or address space is used up
  kArgument,  // the request itself is wrong
  kState,  // the request is right, but not for this device, image or state
  kExpected,  // an answer rather than an error: not ready, peer access already on or off
  kCapture,  // a stream capture was broken
  kUpdate,  // a graph update was refused
  kOther
};

inline CudaErrorClass ClassOfCudaError(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case 226:
    case 700:
    case 702:
    case 710:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
    case 721:
    case 810:
    case 911: return CudaErrorClass::kFatal;
    case 214:
    case 220:
    case 999: return CudaErrorClass::kHardware;
    case 4:
    case 709: return CudaErrorClass::kShutdown;
    case 34:
    case 35:
    case 46:
    case 100:
    case 101:
    case 802:
    case 803:
    case 804: return CudaErrorClass::kAbsent;
    case 2: return CudaErrorClass::kMemory;
    case 1:
    case 9:
    case 12:
    case 400:
    case 701:
    case 720: return CudaErrorClass::kArgument;
    case 3:
    case 98:
    case 200:
    case 201:
    case 209:
    case 218:
    case 222:
    case 712:
    case 713:
    case 800:
    case 801: return CudaErrorClass::kState;
    case 600:
    case 704:
    case 705: return CudaErrorClass::kExpected;
    case 910: return CudaErrorClass::kUpdate;
    default: return code >= 900 && code <= 908 ? CudaErrorClass::kCapture : CudaErrorClass::kOther;
  }
}

// Whether no CUDA call on any device of this process will succeed again.
inline bool IsFatalCudaError(cudaError_t code) {
  const CudaErrorClass kind = ClassOfCudaError(code);
  return kind == CudaErrorClass::kFatal || kind == CudaErrorClass::kHardware;
}

inline absl::StatusCode StatusCodeOfCudaError(cudaError_t code) {
  switch (ClassOfCudaError(code)) {
    case CudaErrorClass::kHardware:
      return code == cudaErrorECCUncorrectable ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable;
    case CudaErrorClass::kShutdown: return absl::StatusCode::kUnavailable;
    case CudaErrorClass::kAbsent:
      return code == cudaErrorNoDevice || code == cudaErrorInvalidDevice ? absl::StatusCode::kNotFound
                                                                         : absl::StatusCode::kUnavailable;
    case CudaErrorClass::kMemory: return absl::StatusCode::kResourceExhausted;
    case CudaErrorClass::kArgument: return absl::StatusCode::kInvalidArgument;
    case CudaErrorClass::kState:
    case CudaErrorClass::kExpected:
    case CudaErrorClass::kCapture:
    case CudaErrorClass::kUpdate: return absl::StatusCode::kFailedPrecondition;
    default: return absl::StatusCode::kInternal;
  }
}

// Advice for the reader; empty if there is none in general.
inline const char* AdviceOnCudaError(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case 3: return "CUDA cannot be used in a forked child; fork before the first CUDA call, or exec after fork";
    case 35: return "no NVIDIA driver is installed, or one too old: install release 580 or newer, or use host devices";
    case 100: return "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use host devices";
    case 98:
    case 200:
    case 209:
    case 218:
    case 222: return "compile the kernel for this device's architecture (CMAKE_CUDA_ARCHITECTURES)";
    case 701: return "ask for fewer threads a block or less shared memory, or limit its registers";
    default: break;
  }
  switch (ClassOfCudaError(code)) {
    case CudaErrorClass::kFatal:
      return "an earlier kernel or copy broke the device, and the process has lost its CUDA devices; find it with "
             "compute-sanitizer and restart the process";
    case CudaErrorClass::kHardware: return "the device or its driver failed; see dmesg and nvidia-smi, then restart";
    case CudaErrorClass::kMemory: return "use smaller buffers or fewer slots, or free memory that others hold";
    case CudaErrorClass::kCapture: return "something illegal was called while a stream was capturing";
    default: return "";
  }
}

// Used instead of std::to_string, which g++ turns into a unique symbol: see export.h.
PENSTOCK_HIDDEN inline std::string DigitsOf(cudaError_t code) {
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%d", static_cast<int>(code));
  return digits;
}

// "copying 4 bytes to cuda:0 failed; invalid argument (cudaErrorInvalidValue, 1); what to do". `what` is a phrase such
// as "copying 4 bytes to cuda:0".
PENSTOCK_HIDDEN inline std::string TextOfCudaError(cudaError_t code, std::string_view what) {
  std::string text(what);
  text += " failed; ";
  text += cudaGetErrorString(code);
  text += " (";
  text += cudaGetErrorName(code);
  text += ", ";
  text += DigitsOf(code);
  text += ")";
  if (const char* advice = AdviceOnCudaError(code); *advice != '\0') {
    text += "; ";
    text += advice;
  }
  return text;
}

}  // namespace penstock::detail
