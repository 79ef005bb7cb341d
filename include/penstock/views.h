// Views: how a functor sees accesses whose number is known only when the program runs (All in access.h): a list of
// Views.
//
//   struct Sum {
//     PENSTOCK_HOST_DEVICE void operator()(int64_t i, ps::Views<const float> parts, float* sum) const {
//       float all = 0;
//       for (const ps::View<const float>& part : parts) all += part(i);
//       sum[i] = all;
//     }
//   };
//
// The list lies among the node's arguments, in kernels too, so a Views is valid as long as its callable runs. Kernels
// take at most 4 KiB of arguments in all, a View has 48 bytes: a ParallelFor that nvcc compiles can have up to 84
// Views.
//
// Threads: plain values, as Views are.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstddef>
#include <cstdint>

#include "penstock/view.h"

namespace penstock {
#if defined(PENSTOCK_CHECKED_VIEWS)
inline namespace checked_views {
#endif

template <class T>
class Views {
 public:
  Views() = default;
  // For the library: `size` Views from `first` on.
  PENSTOCK_HOST_DEVICE Views(const View<T>* first, int64_t size) : first_(first), size_(size) {}
  // How many there are, and the one at `i`, in the order of the access list. Bounds are checked as those of a View are.
  PENSTOCK_HOST_DEVICE int64_t size() const { return size_; }
  PENSTOCK_HOST_DEVICE const View<T>& operator[](int64_t i) const {
#if defined(PENSTOCK_CHECKED_VIEWS) && !defined(__CUDA_ARCH__)
    if (!detail::IsInside(i, size_)) detail::RefuseView(i, size_);
#endif
    return first_[i];
  }
  PENSTOCK_HOST_DEVICE const View<T>* begin() const { return first_; }
  PENSTOCK_HOST_DEVICE const View<T>* end() const { return first_ + size_; }

 private:
  const View<T>* first_ = nullptr;
  int64_t size_ = 0;
};

// What a __global__ function takes for All: room for kMost Views, of which the first `count` are set. Declare it
// `const __grid_constant__`, so that no thread copies it:
//
//   __global__ void Sum(const __grid_constant__ ps::ViewTable<const float, 16> parts, float* sum, int n);
template <class T, size_t kMost>
struct ViewTable {
  static_assert(kMost > 0, "a table has room for at least one View");
  int64_t count;
  View<T> views[kMost];

  // How many there are, and the one at `i`, in the order of the access list. Bounds are checked as those of a View are.
  PENSTOCK_HOST_DEVICE int64_t size() const { return count; }
  PENSTOCK_HOST_DEVICE const View<T>& operator[](int64_t i) const { return Views<T>(*this)[i]; }
  PENSTOCK_HOST_DEVICE operator Views<T>() const { return {views, count}; }  // NOLINT: implicit
};

#if defined(PENSTOCK_CHECKED_VIEWS)
}  // namespace checked_views
#endif
}  // namespace penstock
