// Words of pinned memory by which a kernel and the host talk while the kernel runs, and the time as it sees it.
//
// Threads: thread-safe. What was written before StoreWord is visible to who reads its value with LoadWord.
#pragma once

#include <chrono>
#include <cstdint>

#include "penstock/view.h"

namespace penstock {

PENSTOCK_HOST_DEVICE inline int32_t LoadWord(const int32_t* word) {
#if defined(__CUDA_ARCH__)
  return *static_cast<const volatile int32_t*>(word);
#else
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

PENSTOCK_HOST_DEVICE inline void StoreWord(int32_t* word, int32_t value) {
#if defined(__CUDA_ARCH__)
  __threadfence_system();
  *static_cast<volatile int32_t*>(word) = value;
#else
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

PENSTOCK_HOST_DEVICE inline int64_t Nanoseconds() {
#if defined(__CUDA_ARCH__)
  int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

}  // namespace penstock
