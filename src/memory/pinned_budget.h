// PinnedBudget: the bytes that the pinned pools of one runtime may reserve together.
//
// Threads: thread-safe. Its lock is taken under a pool's, and nothing under it.
#pragma once

#include <cstddef>

#include "src/base/mutex.h"

namespace penstock::memory {

inline constexpr size_t kPinnedAlignment = 256;  // divides all sizes below, except perhaps the budget's own

class PinnedBudget {
 public:
  explicit PinnedBudget(size_t bytes) : bytes_(bytes) {}

  // Takes `wanted` bytes, or all that are left if that is at least `least`. Returns how many; 0: none were taken.
  size_t Take(size_t least, size_t wanted) {
    base::MutexLock lock(mu_);
    const size_t left = (bytes_ - taken_) / kPinnedAlignment * kPinnedAlignment;
    const size_t got = wanted <= left ? wanted : least <= left ? left : 0;
    taken_ += got;
    return got;
  }
  void Give(size_t bytes) {
    base::MutexLock lock(mu_);
    taken_ -= bytes;
  }
  size_t bytes() const { return bytes_; }
  size_t taken() const {
    base::MutexLock lock(mu_);
    return taken_;
  }

 private:
  const size_t bytes_;
  mutable base::Mutex mu_;
  size_t taken_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::memory
