// TimestampArgs: for a kernel of one thread that records when it ran.
//
// The time is the device's clock in nanoseconds, with an unknown epoch, and never 0. The difference of two timestamps
// of one device is the time between them.
//
// Ownership: the timestamp lies in pinned memory of the code that launches the kernel.
// Ordering:  comes after the kernel's predecessors and before its successors. A thread that has seen the kernel's work
//            complete may read the timestamp.
#pragma once

#include <cstdint>

namespace penstock::driver {

// The kernel's argument.
struct TimestampArgs {
  uint64_t* at = nullptr;
};

}  // namespace penstock::driver
