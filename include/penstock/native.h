// NativeEvent and NativeStream: events and streams of the platform that belong to the application. Native (cuda.h)
// makes them of a cudaEvent_t and a cudaStream_t.
//
// Ownership: none; the application keeps the object for as long as the call that takes it says.
// Threads:   plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

namespace penstock {

// An event of the platform, a cudaEvent_t.
struct NativeEvent {
  void* handle = nullptr;
};

// A stream of the platform, a cudaStream_t.
struct NativeStream {
  void* handle = nullptr;
};

}  // namespace penstock
