// AllocatedBytes: how many bytes of device memory a driver has given out, for a platform that does not say how many a
// block has when it is freed.
//
// Threads: thread-safe.
// Locks:   mu_, a leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "src/base/mutex.h"

namespace penstock::driver {

class AllocatedBytes {
 public:
  void Add(const void* memory, size_t bytes) {
    base::MutexLock lock(mu_);
    sizes_[memory] = bytes;
    all_ += static_cast<int64_t>(bytes);
  }
  void Remove(const void* memory) {
    base::MutexLock lock(mu_);
    const auto block = sizes_.find(memory);
    if (block == sizes_.end()) return;
    all_ -= static_cast<int64_t>(block->second);
    sizes_.erase(block);
  }
  int64_t get() const {
    base::MutexLock lock(mu_);
    return all_;
  }

 private:
  mutable base::Mutex mu_;
  std::unordered_map<const void*, size_t> sizes_ ABSL_GUARDED_BY(mu_);
  int64_t all_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::driver
