// What a ParallelFor over a CountOf runs: the user's functor for the indices below a count that the node reads.
//
// Host devices and kernels stop at the count. Where another loop calls the functor for each index of the maximum, as in
// a resident region, each call compares.
//
// Threads: as the functor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/arguments.h"
#include "penstock/detail/host_device.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

// A count as a number of elements, of which there are at most `max`.
template <class C>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline int64_t CountWithin(C count, int64_t max) {
  if constexpr (std::is_unsigned_v<C>) return count < static_cast<uint64_t>(max) ? static_cast<int64_t>(count) : max;
  else return count < 0 ? 0 : count < max ? static_cast<int64_t>(count) : max;
}

// Whether F stops at a count: it is called by OnHost and OnDevice, in place of once for each index.
template <class F>
inline constexpr bool kIsCounted = false;

template <class F, class C>
struct Counted {
  F f;

  template <class... Stored>
    requires std::is_invocable_v<const F&, int64_t, const Stored&...>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const C> count, const Stored&... args) const {
    if (i < CountWithin(count(0), INT64_MAX)) f(i, args...);
  }
  template <class... Stored>
  PENSTOCK_HIDDEN void OnHost(int64_t first, int64_t end, View<const C> count, const Stored&... args) const {
    for (end = CountWithin(count(0), end); first < end; ++first) f(first, args...);
  }
#if defined(__CUDACC__)
  template <class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, View<const C> count,
                                                           const Stored&... args) const {
    const int64_t end = CountWithin(count(0), range.width), step = static_cast<int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; x < end; x += step) f(x, args...);
  }
#endif
};
template <class F, class C>
inline constexpr bool kIsCounted<Counted<F, C>> = true;
template <class F, class C>
inline constexpr bool kOwnsData<Counted<F, C>> = kOwnsData<F>;

}  // namespace penstock::detail
