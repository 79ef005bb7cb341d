// Block: what the functor of a Task (Graph::Task in graph.h) gets first: the threads that compute it, with memory that
// they share.
//
//   struct Transpose {
//     PS_HOST_DEVICE void operator()(const ps::Block& block, ps::View<const float> from, ps::View<float> to) const {
//       float* const tile = block.Shared<float>(32 * 33);
//       block.Each(32 * 32, [&](int64_t i) { tile[i / 32 * 33 + i % 32] = from(i / 32, i % 32); });
//       block.Sync();
//       block.Each(32 * 32, [&](int64_t i) { to(i / 32, i % 32) = tile[i % 32 * 33 + i / 32]; });
//     }
//   };
//   graph.Task("transpose", {.shared_bytes = 32 * 33 * sizeof(float)}, Transpose{}, ps::Read(a), ps::Write(b));
//
// Phases  are what lies between two calls of Sync. Each(n, f) calls f(i) once for each i from 0 to below n, in any
//         order and perhaps at once, so within a phase no call may read what another one writes, in the same Each or in
//         another. After Sync everything sees what was written before it.
// Between the calls of Each and Sync every thread executes the functor's code, so that must do the same in all of them:
//         it may read arguments and what was written in earlier phases, and write variables of its own. It writes no
//         memory that others see, which is for Each. All threads call Sync equally often, and none does inside Each.
// Devices A CUDA device has a block of so many threads as the options say; in a resident region it is one warp
//         (docs/explanation/resident.md). On a host device one thread calls f for one index after the other, and Sync
//         does nothing, so a forgotten Sync is not noticed there. Results must not depend on the number of threads.
//
// Threads: a plain value, of one call of the functor.
// Errors:  on host devices, shared memory that was not declared fails the run, and the error names the node.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

namespace penstock {

// Options of Graph::Task.
struct TaskOptions {
  uint32_t threads = 256;  // of its block on a CUDA device, 1 to 1024
  uint32_t shared_bytes = 0;  // of the memory that Block::Shared returns; a device has a limit, 227 KiB on an H100
};

namespace detail {
// The memory of a Task on a host device: the calling thread's own, allocated once and aligned to 16 bytes.
PENSTOCK_EXPORT std::byte* TaskMemory(int64_t bytes);
// For elements that do not lie in the memory that was declared. Throws, through the user's callable.
[[noreturn]] PENSTOCK_EXPORT void RefuseShared(int64_t count, int64_t bytes_each, int64_t from_byte,
                                               int64_t declared_bytes);
}  // namespace detail

class Block {
 public:
  // For the library: thread `index` of `size`. These are of one warp, or all of a block.
  PENSTOCK_HOST_DEVICE Block(std::byte* shared, int64_t shared_bytes, uint32_t index = 0, uint32_t size = 1,
                             bool is_warp = false)
      : shared_(shared), shared_bytes_(shared_bytes), index_(index), size_(size), is_warp_(is_warp) {}

  // Calls f(i) for each i from 0 to below n.
  template <class F>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Each(int64_t n, const F& f) const {
#if defined(__CUDA_ARCH__)
    for (int64_t i = index_; i < n; i += size_) f(i);
#else
    for (int64_t i = 0; i < n; ++i) f(i);
#endif
  }
  // Ends a phase: waits for all threads, each of which then sees what any of them has written.
  PENSTOCK_HOST_DEVICE void Sync() const {
#if defined(__CUDA_ARCH__)
    if (is_warp_) __syncwarp();
    else __syncthreads();
#endif
  }

  // `count` elements of the declared memory, from byte `from_byte` on, which is a multiple of T's alignment. It holds
  // anything when the task begins. Calls with the same `from_byte` return the same memory.
  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE T* Shared([[maybe_unused]] int64_t count, int64_t from_byte = 0) const {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16,
                  "penstock: shared memory is for trivially copyable types, aligned to at most 16 bytes");
#if !defined(__CUDA_ARCH__)
    constexpr int64_t kSize = sizeof(T), kAlign = alignof(T);
    const bool is_inside = count >= 0 && from_byte >= 0 && from_byte <= shared_bytes_ &&
                           count <= (shared_bytes_ - from_byte) / kSize && from_byte % kAlign == 0;
    if (!is_inside) detail::RefuseShared(count, kSize, from_byte, shared_bytes_);
#endif
    return reinterpret_cast<T*>(shared_ + from_byte);
  }

  // The calling thread's number and how many there are, for loops that Each does not fit; 0 and 1 on a host device.
  PENSTOCK_HOST_DEVICE int64_t Index() const { return index_; }
  PENSTOCK_HOST_DEVICE int64_t Size() const { return size_; }

 private:
  std::byte* shared_;
  int64_t shared_bytes_;
  uint32_t index_, size_;
  [[maybe_unused]] bool is_warp_;
};

}  // namespace penstock
