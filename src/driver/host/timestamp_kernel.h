// How a host device records the time (timestamp.h): the kernel's host fallback.
//
// Threads: runs on a thread of the device.
#pragma once

#include "absl/status/status.h"

namespace penstock::driver::host {

// A KernelOp::call. The one argument is a TimestampArgs; there is no callable.
absl::Status Stamp(void* callable, void* const* argv);

}  // namespace penstock::driver::host
