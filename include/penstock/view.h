// View: how a functor sees a buffer or a box of it: a pointer to the first element, and the shape in this run.
//
// A View is passed by value into kernels, so it is a plain struct that both compilers lay out alike. It converts to T*,
// so a functor over one dimension may take a plain pointer.
//
// In a program compiled with the macro PENSTOCK_CHECKED_VIEWS, each index is checked on host devices
// (detail/checked_view.h): one outside the View fails the run, and the error names the node, the buffer and the index.
// Define it for all files of a program or for none: files that pass Views to each other and disagree do not link. The
// library needs no other build.
//
// Threads: a plain value; the node's declared accesses determine who may touch the elements and when.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>

#include "penstock/detail/host_device.h"

#if defined(PENSTOCK_CHECKED_VIEWS)
#include "penstock/detail/checked_view.h"
#else

namespace penstock {

template <class T>
struct View {
  T* data;
  int64_t depth, height, width;  // elements; 1 for the dimensions a lower rank lacks
  int64_t pitch;  // elements from one row to the next; more than `width` in a box of a wider buffer
  int64_t slice;  // elements from one slice to the next

  PENSTOCK_HOST_DEVICE operator T*() const { return data; }  // NOLINT: implicit
  // The element at these indices, the slowest first. Bounds are checked only under PENSTOCK_CHECKED_VIEWS.
  PENSTOCK_HOST_DEVICE T& operator()(int64_t x) const { return data[x]; }
  PENSTOCK_HOST_DEVICE T& operator()(int64_t y, int64_t x) const { return data[y * pitch + x]; }
  PENSTOCK_HOST_DEVICE T& operator()(int64_t z, int64_t y, int64_t x) const { return data[z * slice + y * pitch + x]; }
};

}  // namespace penstock

#endif
