// What a host device does to ask the host (hostcall_slot.h): the kernel's host fallback.
//
// Threads:  a thread of the device's compute engine, which waits meanwhile; the others go on.
#pragma once

#include "absl/status/status.h"

namespace penstock::driver::host {

// KernelOp::call. The one argument is an HostcallArgs; there is no callable.
absl::Status Ask(void* callable, void* const* argv);

}  // namespace penstock::driver::host
