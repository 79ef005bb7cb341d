// How expressions (expr.h) become terms: the type that operands have in common, and operands as values of that type.
//
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "penstock/access.h"
#include "penstock/detail/formula.h"
#include "penstock/export.h"
#include "penstock/handle.h"

namespace penstock::expr {
template <class T>
class Value;
}

namespace penstock::detail {

template <class T, AccessMode M>
PENSTOCK_HIDDEN SharedTerm ReadTerm(const AccessOf<T, M>& access) {
  static_assert(!std::is_same_v<T, bool>, "penstock: elements of an expression are numbers; store uint8_t");
  Term term;
  term.operation = Operation::kRead;
  term.type = kScalarOf<T>;
  term.access = ErasedAccess::Of(access);
  return MakeTerm(std::move(term));
}
template <class T>
PENSTOCK_HIDDEN SharedTerm ParamTerm(const ParamHandle<T>& param) {
  Term term;
  term.operation = Operation::kParam;
  term.type = kScalarOf<T>;
  term.param = param.index();
  term.graph = param.graph();
  term.param_type = TypeOf<T>();
  return MakeTerm(std::move(term));
}
template <class T>
PENSTOCK_HIDDEN SharedTerm NumberTerm(T number) {
  Term term;
  term.type = kScalarOf<T>;
  std::memcpy(&term.number, &number, sizeof(T));
  return MakeTerm(std::move(term));
}
// `T`: the type of the value.
template <class T>
PENSTOCK_HIDDEN SharedTerm OperationTerm(Operation operation, SharedTerm a, SharedTerm b = {}, SharedTerm c = {}) {
  Term term;
  term.operation = operation;
  term.type = kScalarOf<T>;
  term.of = {std::move(a), std::move(b), std::move(c)};
  return MakeTerm(std::move(term));
}

// What an operand is: `kIsValue` if it has elements or a parameter, and the type of its values.
template <class A>
struct OperandOf {
  static constexpr bool kIs = std::is_arithmetic_v<A>, kIsValue = false;
  using type = A;
};
template <class T>
struct ValueOperand {
  static constexpr bool kIs = true, kIsValue = true;
  using type = T;
};
template <class T>
struct OperandOf<expr::Value<T>> : ValueOperand<T> {};
template <class T>
struct OperandOf<ParamHandle<T>> : ValueOperand<T> {};
template <class T>
struct OperandOf<AccessOf<T, AccessMode::kRead>> : ValueOperand<T> {};

// What C++ makes of a type in arithmetic.
template <class T>
using PromotedType = decltype(T() + T());

// The type that a number takes beside values of type T.
template <class T, class Number>
struct BesideType {
  static_assert(!std::is_integral_v<T> || !std::is_floating_point_v<Number>,
                "penstock: a number with a fraction stands beside integers; say ps::expr::Cast<float>(...) of these, "
                "or write an integer");
  static_assert(!std::is_integral_v<T> || sizeof(Number) < sizeof(int64_t) || std::is_signed_v<Number>,
                "penstock: an unsigned number of 64 bits stands beside integers, which are signed; write int64_t{n}");
  // int32_t holds what smaller types do, and int64_t what uint32_t does.
  static constexpr bool kFitsInt =
      sizeof(Number) < sizeof(int32_t) || (sizeof(Number) == sizeof(int32_t) && std::is_signed_v<Number>);
  using Integer = std::conditional_t<kFitsInt, int32_t, int64_t>;
  using type = std::conditional_t<std::is_floating_point_v<T>, T, std::common_type_t<T, Integer>>;
};

// The type that two operands have in common.
template <class A, class B>
struct Common {
  using OfA = typename OperandOf<A>::type;
  using OfB = typename OperandOf<B>::type;
  static constexpr bool kNumberA = !OperandOf<A>::kIsValue, kNumberB = !OperandOf<B>::kIsValue;
  static auto Find() {
    if constexpr (kNumberA && !kNumberB) return typename BesideType<OfB, OfA>::type();
    else if constexpr (kNumberB && !kNumberA) return typename BesideType<OfA, OfB>::type();
    else return std::common_type_t<OfA, OfB>();
  }
  using type = decltype(Find());
};
template <class A, class B>
using CommonType = typename Common<A, B>::type;

// An operand as a value of type T.
template <class T, class A>
PENSTOCK_HIDDEN SharedTerm As(const A& operand) {
  using U = typename OperandOf<A>::type;
  if constexpr (!OperandOf<A>::kIsValue) {
    return NumberTerm(static_cast<T>(operand));
  } else {
    SharedTerm term = expr::Value<U>(operand).term();
    if constexpr (std::is_same_v<T, U>) return term;
    else return OperationTerm<T>(Operation::kCast, std::move(term));
  }
}

// An operation on two operands, whose values become of one type: that of arithmetic, or the one that they have in
// common. A comparison gives a condition; its type is a parameter, since Value is complete only where this is called.
template <class A, class B>
PENSTOCK_HIDDEN auto Arithmetic(Operation operation, const A& a, const B& b) {
  using T = PromotedType<CommonType<A, B>>;
  return expr::Value<T>(OperationTerm<T>(operation, As<T>(a), As<T>(b)));
}
template <class A, class B>
PENSTOCK_HIDDEN auto InCommon(Operation operation, const A& a, const B& b) {
  using T = CommonType<A, B>;
  return expr::Value<T>(OperationTerm<T>(operation, As<T>(a), As<T>(b)));
}
template <class A, class B, class Condition = bool>
PENSTOCK_HIDDEN auto Comparison(Operation operation, const A& a, const B& b) {
  using T = CommonType<A, B>;
  return expr::Value<Condition>(OperationTerm<Condition>(operation, As<T>(a), As<T>(b)));
}
// An operation on one: on a value of the type of arithmetic, or on a float or double.
template <class T>
PENSTOCK_HIDDEN auto Promoted(Operation operation, const expr::Value<T>& x) {
  using P = PromotedType<T>;
  return expr::Value<P>(OperationTerm<P>(operation, As<P>(x)));
}
template <class T>
PENSTOCK_HIDDEN auto Function(Operation operation, const expr::Value<T>& x) {
  static_assert(std::is_floating_point_v<T>,
                "penstock: Sqrt, Exp, Log, Tanh, Sin and Cos take a float or a double; say ps::expr::Cast<float>(x) "
                "first");
  return expr::Value<T>(OperationTerm<T>(operation, x.term()));
}

}  // namespace penstock::detail
