// Predicates for Select: whether an element compares with a number as they say.
//
//   ps::Select(graph, "late", ps::Read(times), ps::Write(late), ps::Write(count), ps::GreaterThan(0.5f));
//
// They are functors of one type for each type of number, so that the library has the kernels for them where nvcc
// compiles nothing (docs/howto/algorithms.md). The number has the elements' type, which is checked when the call is
// compiled: LessThan(0.f) for floats. A NaN compares as in C++.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <type_traits>

#include "penstock/detail/host_device.h"
#include "penstock/export.h"

namespace penstock {

// Which comparison with the number holds.
enum class Comparison : uint8_t { kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kEqual, kNotEqual };

// The predicate; made by the functions below.
template <class T>
struct Compared {
  static_assert(std::is_arithmetic_v<T>, "penstock: elements are compared with a number");
  Comparison how;
  T with;

  // Whether `x`, of the number's type, compares so.
  template <class X>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE bool operator()(X x) const {
    static_assert(std::is_same_v<X, T>,
                  "penstock: the number of a comparison has the type of the elements; for floats write LessThan(0.f)");
    switch (how) {
      case Comparison::kLess: return x < with;
      case Comparison::kLessOrEqual: return x <= with;
      case Comparison::kGreater: return x > with;
      case Comparison::kGreaterOrEqual: return x >= with;
      case Comparison::kEqual: return x == with;
      case Comparison::kNotEqual: break;
    }
    return x != with;
  }
};

// Holds of elements below the number.
template <class T>
PENSTOCK_HIDDEN constexpr Compared<T> LessThan(T number) {
  return {Comparison::kLess, number};
}
// Holds of elements below the number, and equal to it.
template <class T>
PENSTOCK_HIDDEN constexpr Compared<T> LessOrEqual(T number) {
  return {Comparison::kLessOrEqual, number};
}
// Holds of elements above the number.
template <class T>
PENSTOCK_HIDDEN constexpr Compared<T> GreaterThan(T number) {
  return {Comparison::kGreater, number};
}
// Holds of elements above the number, and equal to it.
template <class T>
PENSTOCK_HIDDEN constexpr Compared<T> GreaterOrEqual(T number) {
  return {Comparison::kGreaterOrEqual, number};
}
// Holds of elements equal to the number.
template <class T>
PENSTOCK_HIDDEN constexpr Compared<T> EqualTo(T number) {
  return {Comparison::kEqual, number};
}
// Holds of elements that are not equal to the number: also of NaN.
template <class T>
PENSTOCK_HIDDEN constexpr Compared<T> NotEqualTo(T number) {
  return {Comparison::kNotEqual, number};
}

}  // namespace penstock
