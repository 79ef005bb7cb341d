// What kind of memory a user has given.
//
// Threads: pure function of what the driver says.
// Errors:  the driver's.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

// Of `bytes` at `data`, at least one. Pinned where both ends are: then nothing needs to be staged. Device memory where
// it begins in some, with `device` -1 where it does not end in the same device's.
absl::StatusOr<driver::PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes);

}  // namespace penstock::runtime
