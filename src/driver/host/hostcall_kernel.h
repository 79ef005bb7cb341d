// How a host device makes a hostcall (hostcall_slot.h): the kernel's host fallback.
//
// Threads: runs on a thread of the device, which waits meanwhile; the others go on.
#pragma once

#include "absl/status/status.h"

namespace penstock::driver::host {

// A KernelOp::call. The one argument is a HostcallArgs; there is no callable.
absl::Status Ask(void* callable, void* const* argv);

}  // namespace penstock::driver::host
