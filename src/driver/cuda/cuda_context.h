// Which device a thread uses, by the driver's stack of contexts.
//
// cudaSetDevice would do, but it cannot be undone for a thread that has no context yet (setting device 0 back would
// create one there), nor for one that uses a context of its own. A push and a pop leave every thread as it was, and are
// no dearer.
//
// Threads: thread-safe; the stack is the calling thread's.
#pragma once

#include "absl/status/statusor.h"
#include "src/driver/cuda/driver_api.h"

namespace penstock::driver {

// The runtime API's context of a device, created if there is none yet. Makes nothing current. The runtime API holds it
// until the process ends.
absl::StatusOr<CUcontext> PrimaryContext(const DriverApi& api, int ordinal);

// Makes `context` the thread's current one. Returns whether there is something to leave.
inline bool EnterContext(const DriverApi& api, CUcontext context) {
  CUcontext current = nullptr;
  if (api.context_get_current(&current) == CUDA_SUCCESS && current == context) return false;
  return api.context_push(context) == CUDA_SUCCESS;
}

inline void LeaveContext(const DriverApi& api) {
  CUcontext popped = nullptr;
  (void)api.context_pop(&popped);
}

// Makes a context current for a scope.
class ContextScope {
 public:
  ContextScope(const DriverApi& api, CUcontext context) : api_(api), entered_(EnterContext(api, context)) {}
  ~ContextScope() {
    if (entered_) LeaveContext(api_);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const DriverApi& api_;
  const bool entered_;
};

// For a scope, calls of this thread break no capture that somebody else has begun: an application's global one is
// broken by any thread that allocates, frees or queries meanwhile.
class CaptureScope {
 public:
  explicit CaptureScope(const DriverApi& api) : api_(api) { (void)api_.exchange_capture_mode(&mode_); }
  ~CaptureScope() { (void)api_.exchange_capture_mode(&mode_); }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace penstock::driver
