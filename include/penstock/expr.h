// Expressions: formulas of elements, which a Map (map.h) computes. The program needs no nvcc for them: the same
// expression becomes loops on host devices and, while Compile runs, a kernel for CUDA devices (source.h).
//
//   const auto x = ps::expr::Of(a), y = ps::expr::Of(b);
//   ps::Map(graph, "axpy", ps::Write(t), 2.0f * x + y);
//   ps::Map(graph, "relu", ps::Write(z), ps::expr::Max(ps::expr::Of(t), 0.0f));
//
// Types     bool (of conditions), uint8_t, int32_t, int64_t, float and double. Values of two types become one as in
// C++:
//           uint8_t is an int32_t in arithmetic, int32_t and float make a float. A plain number takes the type of what
//           stands beside it, so 2.0 * x is a float for floats; one with a fraction beside integers does not compile.
//           What else shall be converted says Cast.
// Values    + - * / and Sqrt of float and double are rounded once each, by IEEE 754, and never fused into a
//           multiply-add: host devices and GPUs give the same bits. So do comparisons, Min, Max, Clamp, Select, Abs,
//           Cast and all of integers. Exp, Log, Tanh, Sin, Cos and Pow are the libraries' of host and CUDA, which
//           differ by a few units in the last place.
//           Integers wrap. Their division by 0 gives 0. A Cast of a float to an integer cuts off the fraction and gives
//           the nearest number that the type has, and 0 for NaN. Min and Max give the second operand if one is NaN.
//
// Ownership: a Value is copyable and shares its parts. What is named twice is computed once.
// Threads:   thread-safe: nothing changes a Value.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/detail/make_term.h"
#include "penstock/export.h"
#include "penstock/handle.h"
#include "penstock/state.h"

namespace penstock::expr {

// A value for each element, of type T.
template <class T>
class Value {
 public:
  static_assert(detail::kIsScalar<T>,
                "penstock: expressions are of bool, uint8_t, int32_t, int64_t, float and double; Alias a buffer of "
                "another type, or write a functor for ps::Transform");
  using value_type = T;

  // The elements that are read, as ps::Read(x) names them.
  PENSTOCK_HIDDEN Value(const AccessOf<T, AccessMode::kRead>& access)  // NOLINT: implicit
      : term_(detail::ReadTerm(access)) {}
  // The value of a parameter, the same for all elements.
  PENSTOCK_HIDDEN Value(const ParamHandle<T>& param)  // NOLINT: implicit
      : term_(detail::ParamTerm(param)) {}
  // For the library.
  PENSTOCK_HIDDEN explicit Value(detail::SharedTerm term) : term_(std::move(term)) {}
  // For the library: what it consists of.
  PENSTOCK_HIDDEN const detail::SharedTerm& term() const { return term_; }

 private:
  detail::SharedTerm term_;
};

// The elements of a buffer or a State, or of a box of it, as values.
template <class B>
PENSTOCK_HIDDEN auto Of(const B& from, const Box& box) {
  return Value(Read(from, box));
}
// The same of all elements, of what a ps::Read names, and of a parameter.
template <class A>
PENSTOCK_HIDDEN auto Of(const A& from) {
  if constexpr (detail::OperandOf<A>::kIsValue) return Value(from);
  else return Value(Read(from, Box()));
}

// What an operand may be: a Value, a Read, a parameter, or a number.
template <class A>
concept Operand = detail::OperandOf<A>::kIs;
// Operands of which one is not a number.
template <class... A>
concept Operands = (Operand<A> && ...) && (detail::OperandOf<A>::kIsValue || ...);

// Arithmetic: the types become one as in C++.
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator+(const A& a, const B& b) {
  return detail::Arithmetic(detail::Operation::kAdd, a, b);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator-(const A& a, const B& b) {
  return detail::Arithmetic(detail::Operation::kSubtract, a, b);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator*(const A& a, const B& b) {
  return detail::Arithmetic(detail::Operation::kMultiply, a, b);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator/(const A& a, const B& b) {
  return detail::Arithmetic(detail::Operation::kDivide, a, b);
}
template <class T>
PENSTOCK_HIDDEN auto operator-(const Value<T>& x) {
  return detail::Promoted(detail::Operation::kNegate, x);
}

// Comparisons: conditions for Select. NaN is unequal to all, and neither less nor more.
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator<(const A& a, const B& b) {
  return detail::Comparison(detail::Operation::kLess, a, b);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator>(const A& a, const B& b) {
  return detail::Comparison(detail::Operation::kLess, b, a);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator<=(const A& a, const B& b) {
  return detail::Comparison(detail::Operation::kLessEqual, a, b);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator>=(const A& a, const B& b) {
  return detail::Comparison(detail::Operation::kLessEqual, b, a);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator==(const A& a, const B& b) {
  return detail::Comparison(detail::Operation::kEqual, a, b);
}
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto operator!=(const A& a, const B& b) {
  return detail::Comparison(detail::Operation::kNotEqual, a, b);
}
// Of conditions; both sides are computed.
PENSTOCK_HIDDEN inline Value<bool> operator&&(const Value<bool>& a, const Value<bool>& b) {
  return detail::InCommon(detail::Operation::kAnd, a, b);
}
PENSTOCK_HIDDEN inline Value<bool> operator||(const Value<bool>& a, const Value<bool>& b) {
  return detail::InCommon(detail::Operation::kOr, a, b);
}
PENSTOCK_HIDDEN inline Value<bool> operator!(const Value<bool>& a) {
  return Value<bool>(detail::OperationTerm<bool>(detail::Operation::kNot, a.term()));
}

// `a` where the condition holds, else `b`.
template <class A, class B>
  requires(Operand<A> && Operand<B>)
PENSTOCK_HIDDEN auto Select(const Value<bool>& condition, const A& a, const B& b) {
  using T = detail::CommonType<A, B>;
  return Value<T>(
      detail::OperationTerm<T>(detail::Operation::kSelect, condition.term(), detail::As<T>(a), detail::As<T>(b)));
}
// a < b ? a : b.
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto Min(const A& a, const B& b) {
  return detail::InCommon(detail::Operation::kMin, a, b);
}
// a > b ? a : b.
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto Max(const A& a, const B& b) {
  return detail::InCommon(detail::Operation::kMax, a, b);
}
// Min(Max(x, low), high).
template <class T, class A, class B>
PENSTOCK_HIDDEN auto Clamp(const Value<T>& x, const A& low, const B& high) {
  return Min(Max(x, low), high);
}
// The value without its sign; of the least integer itself.
template <class T>
PENSTOCK_HIDDEN auto Abs(const Value<T>& x) {
  return detail::Promoted(detail::Operation::kAbs, x);
}
// The value as another type.
template <class U, class T>
PENSTOCK_HIDDEN Value<U> Cast(const Value<T>& x) {
  return Value<U>(detail::As<U>(x));
}

// Functions of floats and doubles: the square root, e to the power of x, the natural logarithm, the hyperbolic tangent,
// and sine and cosine of an angle in radians.
template <class T>
PENSTOCK_HIDDEN Value<T> Sqrt(const Value<T>& x) {
  return detail::Function(detail::Operation::kSqrt, x);
}
template <class T>
PENSTOCK_HIDDEN Value<T> Exp(const Value<T>& x) {
  return detail::Function(detail::Operation::kExp, x);
}
template <class T>
PENSTOCK_HIDDEN Value<T> Log(const Value<T>& x) {
  return detail::Function(detail::Operation::kLog, x);
}
template <class T>
PENSTOCK_HIDDEN Value<T> Tanh(const Value<T>& x) {
  return detail::Function(detail::Operation::kTanh, x);
}
template <class T>
PENSTOCK_HIDDEN Value<T> Sin(const Value<T>& x) {
  return detail::Function(detail::Operation::kSin, x);
}
template <class T>
PENSTOCK_HIDDEN Value<T> Cos(const Value<T>& x) {
  return detail::Function(detail::Operation::kCos, x);
}
// x to the power of y, which are floats or doubles.
template <class A, class B>
  requires Operands<A, B>
PENSTOCK_HIDDEN auto Pow(const A& x, const B& y) {
  using T = detail::CommonType<A, B>;
  static_assert(std::is_floating_point_v<T>,
                "penstock: Pow takes floats or doubles; say ps::expr::Cast<float>(x) first");
  return detail::InCommon(detail::Operation::kPow, x, y);
}

}  // namespace penstock::expr
