// Counts what this process allocates and locks. Linked into a program of its own, which it changes: it replaces
// operator new and, where no sanitizer has done so, pthread_mutex_lock.
//
// Threads: counters of the calling thread, and of all threads together.
#pragma once

#include <cstdint>

namespace penstock {

struct CountedCalls {
  int64_t allocations = 0, locks = 0;
  friend bool operator==(const CountedCalls&, const CountedCalls&) = default;
  CountedCalls operator-(const CountedCalls& other) const {
    return {allocations - other.allocations, locks - other.locks};
  }
};

CountedCalls CallsOfThisThread();
CountedCalls CallsOfAllThreads();
// False under a sanitizer: `locks` stays 0.
bool LocksAreCounted();

}  // namespace penstock
