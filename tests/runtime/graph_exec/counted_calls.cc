#include "tests/runtime/graph_exec/counted_calls.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PENSTOCK_TEST_SANITIZED 1
#endif
#endif

namespace penstock {
namespace {

thread_local CountedCalls mine;
std::atomic<int64_t> all_allocations{0}, all_locks{0};

void* CountedNew(size_t bytes, size_t align) {
  ++mine.allocations;
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  const size_t whole = (bytes + align - 1) / align * align;
  void* memory = align <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(align, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

CountedCalls CallsOfThisThread() { return mine; }
CountedCalls CallsOfAllThreads() {
  return {all_allocations.load(std::memory_order_relaxed), all_locks.load(std::memory_order_relaxed)};
}

#if defined(PENSTOCK_TEST_SANITIZED)
bool LocksAreCounted() { return false; }
#else
bool LocksAreCounted() { return true; }
int CountedLock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++mine.locks;
  all_locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}
#endif

}  // namespace penstock

#if !defined(PENSTOCK_TEST_SANITIZED)
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept { return penstock::CountedLock(mutex); }
#endif

void* operator new(size_t bytes) { return penstock::CountedNew(bytes, 1); }
void* operator new[](size_t bytes) { return penstock::CountedNew(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t align) {
  return penstock::CountedNew(bytes, static_cast<size_t>(align));
}
void* operator new[](size_t bytes, std::align_val_t align) {
  return penstock::CountedNew(bytes, static_cast<size_t>(align));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
