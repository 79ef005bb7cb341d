// The kind of memory that a user's pointer refers to.
//
// Threads: InspectAll is a pure function of the driver's answers; a MemoryKinds is single-threaded.
// Errors:  the driver's.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::runtime {

// Inspects `bytes` bytes at `data`, at least one. The memory is pinned if both its ends are: then nothing needs
// staging. It is device memory if it begins in some, with `device` -1 if it does not end in memory of the same device.
// Looks at the end only if the beginning does not decide.
absl::StatusOr<driver::PointerInfo> InspectAll(driver::Driver& driver, const void* data, size_t bytes);

// Inspects many ranges, which often lie in few allocations: it queries the driver once for each of the last few.
class MemoryKinds {
 public:
  // `held`: the memory stays as it is for as long as the caller relies on the answer.
  absl::StatusOr<driver::PointerInfo> Inspect(driver::Driver& driver, const void* data, size_t bytes,
                                              bool held = false);
  // Whether the driver still gives the same answers for everything inspected since Forget. Memory can change unnoticed,
  // so a caller that relies on an answer later checks this first. It does not query again for held memory, nor for
  // memory that was not pinned, since host threads can copy that even if it is pinned by now.
  bool StillTrue(driver::Driver& driver) const;
  void Forget() { known_.clear(); }

 private:
  struct Known {
    const void* data;
    size_t bytes;
    driver::PointerInfo info;
    bool in_one;  // whether `info` holds for all of it, since it is in one allocation
    bool held;
  };
  std::vector<Known> known_;  // in the order of inspection; may list an allocation more than once
};

}  // namespace penstock::runtime
