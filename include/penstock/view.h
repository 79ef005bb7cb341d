// View: how a functor sees a buffer or a box of it: a pointer to the first element, and the shape in this run.
//
// A View is passed by value into kernels, so it is a plain struct that both compilers lay out alike. It converts to T*,
// so a functor over one dimension may take a plain pointer.
//
// Threads: a plain value; the node's declared accesses determine who may touch the elements and when.
#pragma once

#include <cstdint>

// Marks a function for the host and, if nvcc compiles it, for the device too.
#if defined(__CUDACC__)
#define PENSTOCK_HOST_DEVICE __host__ __device__
#else
#define PENSTOCK_HOST_DEVICE
#endif

namespace penstock {

template <class T>
struct View {
  T* data;
  int64_t depth, height, width;  // elements; 1 for the dimensions a lower rank lacks
  int64_t pitch;  // elements from one row to the next; more than `width` in a box of a wider buffer
  int64_t slice;  // elements from one slice to the next

  PENSTOCK_HOST_DEVICE operator T*() const { return data; }  // NOLINT: implicit
  // The element at these indices, the slowest first. Bounds are not checked.
  PENSTOCK_HOST_DEVICE T& operator()(int64_t x) const { return data[x]; }
  PENSTOCK_HOST_DEVICE T& operator()(int64_t y, int64_t x) const { return data[y * pitch + x]; }
  PENSTOCK_HOST_DEVICE T& operator()(int64_t z, int64_t y, int64_t x) const { return data[z * slice + y * pitch + x]; }
};

}  // namespace penstock
