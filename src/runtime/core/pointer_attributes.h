// What kind of memory a user has given.
//
// Threads: InspectAll is a pure function of what the driver says; a MemoryKinds is single-threaded.
// Errors:  the driver's.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

// Of `bytes` at `data`, at least one. Pinned where both ends are: then nothing needs to be staged. Device memory where
// it begins in some, with `device` -1 where it does not end in the same device's. Looks at the end only where the
// beginning does not tell.
absl::StatusOr<driver::PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes);

// The same for much memory at once, which often lies in few allocations: it asks once for each of the last few.
class MemoryKinds {
 public:
  // `held`: as long as anybody relies on it the memory stays what it is.
  absl::StatusOr<driver::PointerInfo> Inspect(driver::Driver& driver, const void* data, size_t bytes,
                                              bool held = false);
  // Whether the driver says the same of all it was asked for since Forget: it sees no change of memory by itself, so
  // whoever relies on it later asks this first. Memory that is held is not asked for again, nor what was not pinned:
  // host threads can copy that whether or not it is pinned by now.
  bool StillTrue(driver::Driver& driver) const;
  void Forget() { known_.clear(); }

 private:
  struct Known {
    const void* data;
    size_t bytes;
    driver::PointerInfo info;
    bool in_one;  // allocation, so `info` is true of all of that
    bool held;
  };
  std::vector<Known> known_;  // in the order of asking; an allocation may be among them more than once
};

}  // namespace penstock::runtime
