// View under PENSTOCK_CHECKED_VIEWS: it checks each index on host devices, and has the same memory in front as the
// View of view.h, since the library writes that.
//
// An index outside ends the callable by an exception. Code for GPUs checks nothing. The namespace makes it another type
// than the View of view.h, so that files which pass Views to each other and disagree do not link.
//
// Threads: as View.
#pragma once

#include <cstdint>

#include "penstock/detail/host_device.h"
#include "penstock/detail/refuse_index.h"

#if defined(PENSTOCK_CHECKED_VIEWS)
namespace penstock {
inline namespace checked_views {

template <class T>
struct View {
  T* data;
  int64_t depth, height, width;  // elements; 1 for the dimensions a lower rank lacks
  int64_t pitch;  // elements from one row to the next; more than `width` in a box of a wider buffer
  int64_t slice;  // elements from one slice to the next
  const char* buffer = nullptr;  // the name of the accessed buffer; the library sets it

  PENSTOCK_HOST_DEVICE operator T*() const { return data; }  // NOLINT: implicit
  // The element at these indices, the slowest first. With fewer indices than dimensions, the first one counts elements
  // or rows from the View's corner on, as in the unchecked View.
  PENSTOCK_HOST_DEVICE T& operator()(int64_t x) const {
#if !defined(__CUDA_ARCH__)
    if (!HasElement(x)) Refuse({1, {x}});
#endif
    return data[x];
  }
  PENSTOCK_HOST_DEVICE T& operator()(int64_t y, int64_t x) const {
#if !defined(__CUDA_ARCH__)
    if (!HasRow(y) || !detail::IsInside(x, width)) Refuse({2, {y, x}});
#endif
    return data[y * pitch + x];
  }
  PENSTOCK_HOST_DEVICE T& operator()(int64_t z, int64_t y, int64_t x) const {
#if !defined(__CUDA_ARCH__)
    const bool inside = detail::IsInside(z, depth) && detail::IsInside(y, height) && detail::IsInside(x, width);
    if (!inside) Refuse({3, {z, y, x}});
#endif
    return data[z * slice + y * pitch + x];
  }

 private:
  // The rows of all slices count together, with the rows of the buffer that lie between those of a box.
  bool HasRow(int64_t y) const {
    const int64_t rows = depth > 1 && pitch > 0 ? slice / pitch : 0;  // of a slice of the whole buffer
    return rows <= 0 ? detail::IsInside(y, height) : y >= 0 && y / rows < depth && y % rows < height;
  }
  // So do the elements of all rows.
  bool HasElement(int64_t x) const {
    return pitch <= 0 ? detail::IsInside(x, width) : x >= 0 && HasRow(x / pitch) && x % pitch < width;
  }
  [[noreturn]] void Refuse(const detail::ViewIndex& index) const {
    detail::RefuseIndex(index, {buffer, depth, height, width});
  }
};

}  // namespace checked_views
}  // namespace penstock
#endif
