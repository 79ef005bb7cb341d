// Stamp: a kernel of one thread that writes down when it ran.
//
// The time is that of the device's clock in nanoseconds, from when on nobody knows; never 0. What is between two stamps
// of one device took their difference.
//
// Ownership: the place is in pinned memory of whoever launches the kernel.
// Ordering:  behind what the kernel comes behind, and before what comes behind it. Who has seen its work complete may
//            read the place.
#pragma once

#include <cstdint>

namespace penstock::driver {

// The kernel's argument.
struct TimestampArgs {
  uint64_t* at = nullptr;
};

}  // namespace penstock::driver
