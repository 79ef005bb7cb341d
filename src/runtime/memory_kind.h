// What kind of memory a user has given.
//
// Threads: InspectAll is a pure function of what the driver says; a MemoryKinds is single-threaded.
// Errors:  the driver's.
#pragma once

#include <array>
#include <cstddef>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

// Of `bytes` at `data`, at least one. Pinned where both ends are: then nothing needs to be staged. Device memory where
// it begins in some, with `device` -1 where it does not end in the same device's. Looks at the end only where the
// beginning does not tell.
absl::StatusOr<driver::PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes);

// The same for much memory at once, which often lies in few allocations: it asks once for each of the last few. It does
// not see memory change, so nobody may have one for longer than a call in which memory has to stay.
class MemoryKinds {
 public:
  explicit MemoryKinds(driver::Driver& driver) : driver_(driver) {}
  absl::StatusOr<driver::PointerInfo> Inspect(const void* data, size_t bytes);

 private:
  driver::Driver& driver_;
  std::array<driver::PointerInfo, 4> known_{};
  size_t oldest_ = 0;
};

}  // namespace penstock::runtime
