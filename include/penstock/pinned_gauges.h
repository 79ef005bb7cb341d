// PinnedGauges: how much pinned memory a runtime has and uses. See Runtime::pinned_memory.
#pragma once

#include <cstdint>

namespace penstock {

// Bytes, but for the last two. Of a runtime with several drivers (CUDA and host devices) the sums of theirs.
struct PinnedGauges {
  int64_t in_use = 0;    // by host buffers, slots, copies of States
  int64_t peak = 0;      // the most that was ever in use
  int64_t reserved = 0;  // pinned, in use or free
  int64_t budget = 0;    // that `reserved` stays within
  int64_t slabs = 0;     // pieces that the memory was pinned in
  int64_t waits = 0;     // allocations that waited: for memory to be pinned, or to come back
};

}  // namespace penstock
