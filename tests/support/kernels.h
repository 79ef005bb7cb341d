// The functors that most graphs of the tests are made of.
//
// Some programs have sources of both compilers. What either makes of a functor has another name, so that no node of a
// source that nvcc compiled gets code that it did not.
#pragma once

#include <cstdint>

#include "penstock/view.h"

namespace penstock {
#if defined(__CUDACC__)
inline namespace compiled_by_nvcc {
#else
inline namespace compiled_for_the_host {
#endif

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] += 1; }
};
struct AddValue {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x, int32_t value) const { x[i] += value; }
};
template <class T = int32_t>
struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const T* x, T* sum) const { sum[i] += x[i]; }
};
struct PlusOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* y) const { y[i] = x[i] + 1; }
};
struct Twice {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* y) const { y[i] = 2 * x[i]; }
};
template <class T = int32_t>
struct CopyOut {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const T* from, T* to) const { to[i] = from[i]; }
};

}  // inline namespace
}  // namespace penstock
