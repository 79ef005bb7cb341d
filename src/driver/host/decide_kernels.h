// How a host device decides about a loop and looks at the host's word (loop_kernels.h): the kernels' host fallbacks.
//
// Threads: run on threads of the device.
#pragma once

#include "absl/status/status.h"

namespace penstock::driver::host {

// Each is a KernelOp::call, whose one argument is a DecideArgs or a LookArgs; there is no callable.
absl::Status DecideLoop(void* callable, void* const* argv);
absl::Status LookAtStop(void* callable, void* const* argv);

}  // namespace penstock::driver::host
