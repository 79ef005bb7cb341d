// How a Histogram counts: a kernel whose blocks count in shared memory, and a loop for hosts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "penstock/detail/counted.h"
#include "penstock/detail/host_device.h"
#include "penstock/export.h"
#include "penstock/node.h"
#include "penstock/view.h"

namespace penstock::detail {

PENSTOCK_HIDDEN inline constexpr int kHistogramThreads = 512;
// In a block's shared memory: 16 KiB of them, so that four blocks fit.
PENSTOCK_HIDDEN inline constexpr int kHistogramBins = 4096;

// The grid for so many elements at most: a block for 16384 of them, and four for each multiprocessor of an H100 or
// H200, since each further one would add up its bins too.
inline KernelShape ShapeOfHistogram(int64_t most) {
  constexpr int64_t kOfBlock = 16384, kMostBlocks = int64_t{4} * 132;
  const int64_t blocks = std::clamp((most + kOfBlock - 1) / kOfBlock, int64_t{1}, kMostBlocks);
  return {false, Dim(0), {Dim(blocks), Dim(1), Dim(1)}, {kHistogramThreads, 1, 1}, 0};
}

// The first elements, as many as the count says, if there is one.
template <class T, class... N>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline View<const T> FirstOf(View<const T> from, const View<const N>&... count) {
  ((from.width = CountWithin(count(0), from.width)), ...);
  return from;
}

template <class T, class C, class F, class... N>
PENSTOCK_HIDDEN void CountBinsOnHost(View<const T> from, View<C> counts, const F& bin, const View<const N>&... count) {
  from = FirstOf(from, count...);
  for (int64_t z = 0; z < from.depth; ++z) {
    for (int64_t y = 0; y < from.height; ++y) {
      const T* const row = from.data + z * from.slice + y * from.pitch;
      for (int64_t x = 0; x < from.width; ++x) {
        const auto at = static_cast<int64_t>(bin(row[x]));
        if (at >= 0 && at < counts.width) ++counts.data[at];
      }
    }
  }
}

#if defined(__CUDACC__)
// Counts elements in the block's shared memory, or in the result if there are too many bins for that.
template <bool kInBlock, class C, class F>
class BinCounter {
 public:
  PENSTOCK_HIDDEN __device__ __forceinline__ BinCounter(unsigned (&shared)[kHistogramBins], const View<C>& counts,
                                                        const F& bin)
      : shared_(shared),
        counts_(counts),
        bin_(bin),
        few_(static_cast<unsigned>(counts.width < kMost ? counts.width : kMost)) {}

  template <class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ void Count(const T& element) const {
    const auto at = bin_(element);
    if constexpr (sizeof(at) > 4 || (sizeof(at) == 4 && std::is_unsigned_v<decltype(at)>)) {
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(counts_.width)) return;
    } else {
      if (static_cast<unsigned>(at) >= few_) return;  // a negative number is a great one
    }
    if constexpr (kInBlock) atomicAdd(&shared_[static_cast<unsigned>(at)], 1u);
    else Add(static_cast<int64_t>(at), 1);
  }
  // Before and after all elements of the block, by all of its threads.
  PENSTOCK_HIDDEN __device__ __forceinline__ void Begin() const {
    if constexpr (kInBlock) {
      for (int i = static_cast<int>(threadIdx.x); i < counts_.width; i += kHistogramThreads) shared_[i] = 0;
      __syncthreads();
    }
  }
  PENSTOCK_HIDDEN __device__ __forceinline__ void End() const {
    if constexpr (kInBlock) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < counts_.width; i += kHistogramThreads) {
        if (shared_[i] > 0) Add(i, shared_[i]);
      }
    }
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 31;

  PENSTOCK_HIDDEN __device__ void Add(int64_t at, unsigned count) const {
    using Word = std::conditional_t<sizeof(C) == 8, unsigned long long, unsigned>;
    atomicAdd(reinterpret_cast<Word*>(counts_.data + at), static_cast<Word>(count));
  }

  unsigned (&shared_)[kHistogramBins];
  const View<C>& counts_;
  const F& bin_;
  const unsigned few_;  // the bins, for signed numbers of at most 4 bytes, and shorter ones
};

// Elements that lie side by side. Each thread has several loads under way; small elements are loaded 16 bytes at a
// time.
template <class T, class Counter>
PENSTOCK_HIDDEN __device__ __forceinline__ void CountLine(const T* from, int64_t n, const Counter& counter) {
  constexpr bool kInWords = sizeof(T) <= 4 && 16 % sizeof(T) == 0 && std::is_default_constructible_v<T>;
  constexpr int kAtOnce = 8, kInWord = kInWords ? 16 / sizeof(T) : 1;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kHistogramThreads;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kHistogramThreads + threadIdx.x;
  int64_t begin = 0;
  if constexpr (kInWord > 1) {
    constexpr int kWords = 4;
    if (reinterpret_cast<uintptr_t>(from) % 16 == 0) {
      const int64_t words = n / kInWord;
      const uint4* const word = reinterpret_cast<const uint4*>(from);
      for (int64_t i = thread; i < words; i += kWords * step) {
        uint4 loaded[kWords];
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
          if (i + k * step < words) loaded[k] = word[i + k * step];
        }
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
          if (i + k * step >= words) break;
          T elements[kInWord];
          memcpy(elements, &loaded[k], sizeof(uint4));
#pragma unroll
          for (int e = 0; e < kInWord; ++e) counter.Count(elements[e]);
        }
      }
      begin = words * kInWord;
    }
  }
  int64_t i = begin + thread;
  if constexpr (sizeof(T) > 2 && sizeof(T) <= 16 && std::is_default_constructible_v<T>) {
    for (; i + (kAtOnce - 1) * step < n; i += kAtOnce * step) {
      T loaded[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) loaded[k] = from[i + k * step];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) counter.Count(loaded[k]);
    }
  }
  for (; i < n; i += step) counter.Count(from[i]);
}
// All elements of a View.
template <class T, class Counter>
PENSTOCK_HIDDEN __device__ __forceinline__ void CountAll(const View<const T>& from, const Counter& counter) {
  counter.Begin();
  const int64_t rows = from.depth * from.height;
  if (rows == 1 || (from.pitch == from.width && from.slice == from.height * from.pitch)) {
    CountLine(from.data, rows * from.width, counter);
  } else {
    const int64_t n = rows * from.width, step = static_cast<int64_t>(gridDim.x) * kHistogramThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kHistogramThreads + threadIdx.x; i < n; i += step) {
      const int64_t row = i / from.width;
      counter.Count(from(row / from.height, row % from.height, i % from.width));
    }
  }
  counter.End();
}
#define PENSTOCK_KERNEL __global__ void __launch_bounds__(kHistogramThreads, 4)
#else
#define PENSTOCK_KERNEL inline void
#endif

// The kernel. Where nvcc does not compile it, it is only a name for the node.
template <bool kNvcc, class T, class C, class F, class... N>
PENSTOCK_HIDDEN PENSTOCK_KERNEL CountBins([[maybe_unused]] View<const T> from, [[maybe_unused]] View<C> counts,
                                          [[maybe_unused]] F bin, [[maybe_unused]] View<const N>... count) {
#if defined(__CUDACC__)
  __shared__ unsigned shared[kHistogramBins];
  const View<const T> first = FirstOf(from, count...);
  if (counts.width <= kHistogramBins) CountAll(first, BinCounter<true, C, F>(shared, counts, bin));
  else CountAll(first, BinCounter<false, C, F>(shared, counts, bin));
#endif
}
#undef PENSTOCK_KERNEL

}  // namespace penstock::detail
