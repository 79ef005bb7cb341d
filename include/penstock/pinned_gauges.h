// PinnedGauges: how much pinned memory a runtime has and uses. Runtime::pinned_memory returns it.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>

namespace penstock {

// In bytes, except the last two. Sums over the runtime's drivers if it has several (CUDA and host devices).
struct PinnedGauges {
  int64_t in_use = 0;    // by host buffers, slots, copies of States
  int64_t peak = 0;      // the most that was ever in use
  int64_t reserved = 0;  // pinned, in use or free
  int64_t budget = 0;    // the limit for `reserved`
  int64_t slabs = 0;     // pieces in which memory was pinned
  int64_t waits = 0;     // allocations that waited for memory to be pinned or returned
};

}  // namespace penstock
