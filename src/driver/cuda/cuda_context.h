// Selects a thread's device through the driver's stack of contexts.
//
// cudaSetDevice cannot be undone for a thread that has no context yet (setting device 0 back would create one there),
// nor for a thread with a context of its own. A push and a pop leave every thread as it was, and cost no more.
//
// Threads: thread-safe; the stack is the calling thread's.
#pragma once

#include "absl/status/statusor.h"
#include "src/driver/cuda/driver_api.h"

namespace penstock::driver {

// The runtime API's context of a device, created if there is none yet. Makes nothing current. The runtime API keeps it
// until the process ends.
absl::StatusOr<CUcontext> PrimaryContext(const DriverApi& api, int ordinal);

// Makes `context` the thread's current one. Returns whether LeaveContext must follow.
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

// While in scope, calls of this thread break no capture begun elsewhere: any thread that allocates, frees or queries
// would otherwise break an application's global one.
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
