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
  absl::StatusOr<driver::PointerInfo> Inspect(driver::Driver& driver, const void* data, size_t bytes);
  // Whether the driver says the same of all it was asked for since Forget. It sees no change of memory by itself, so
  // whoever relies on it later asks this first. Memory that was not pinned is not asked for again: host threads can
  // copy it whatever it has become. False, too, of memory that lies in several allocations.
  bool StillTrue(driver::Driver& driver) const;
  void Forget() { known_.clear(), whole_ = true; }

 private:
  std::vector<driver::PointerInfo> known_;
  bool whole_ = true;  // all that was not pageable is among them
};

}  // namespace penstock::runtime
