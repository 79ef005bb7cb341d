// RunFormula: a formula on the host, a block of elements at a time: each step is a loop over the block, whose results
// stay in the first cache. This file is compiled without fused multiply-adds and without inexact mathematics, whatever
// the rest is compiled with, so that results have the bits that they have on a GPU.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "penstock/detail/arguments.h"
#include "penstock/detail/formula.h"

namespace penstock::graph {
namespace {

using detail::Formula;
using detail::FormulaStep;
using detail::Operation;
using detail::ScalarType;

constexpr size_t kScratchBytes = 32768;
constexpr int64_t kMostBlock = 512;

// f(T()) for the type.
template <class F>
void WithType(ScalarType type, F f) {
  switch (type) {
    case ScalarType::kBool: return f(false);
    case ScalarType::kUint8: return f(uint8_t{});
    case ScalarType::kInt32: return f(int32_t{});
    case ScalarType::kInt64: return f(int64_t{});
    case ScalarType::kFloat: return f(float{});
    case ScalarType::kDouble: return f(double{});
  }
}
size_t ScalarBytes(ScalarType type) {
  size_t bytes = 0;
  WithType(type, [&](auto zero) { bytes = sizeof(zero); });
  return bytes;
}

// Of integers the result wraps.
template <class T>
auto Unsigned(T x) {
  if constexpr (std::is_same_v<T, int64_t>) return static_cast<uint64_t>(x);
  else return static_cast<uint32_t>(x);
}
template <class T>
T Quotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(0 - Unsigned(a));
    }
    return static_cast<T>(a / b);
  }
}
// 2 to the power of the digits is a float, which the greatest integer need not be.
template <class U, class T>
U Truncated(T x) {
  constexpr U kHalf = std::numeric_limits<U>::max() / 2 + 1;
  constexpr T kPast = static_cast<T>(kHalf) * 2;
  constexpr T kLeast = static_cast<T>(std::numeric_limits<U>::min());
  if (x >= kPast) return std::numeric_limits<U>::max();
  if (x < kLeast) return std::numeric_limits<U>::min();
  return x >= kLeast ? static_cast<U>(x) : U{0};  // 0 for NaN
}
template <class U, class T>
U Casted(T x) {
  if constexpr (std::is_same_v<U, bool>) return x != T{};
  else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U>) return Truncated<U>(x);
  else return static_cast<U>(x);
}

// The steps of one call, over a block at a time.
class Evaluation {
 public:
  Evaluation(const Formula& formula, void* const* argv) : f_(formula), argv_(argv) {
    const auto slots = static_cast<int64_t>(
        std::count_if(f_.steps.begin(), f_.steps.end(), [&](const FormulaStep& step) { return !IsInPlace(step); }));
    block_ = std::clamp(static_cast<int64_t>(kScratchBytes / sizeof(double)) / std::max(slots, int64_t{1}), int64_t{1},
                        kMostBlock);
    size_t at = 0;
    for (size_t s = 0; s < f_.steps.size(); ++s) {
      if (IsInPlace(f_.steps[s])) continue;
      values_[s] = scratch_ + at;
      at += static_cast<size_t>(block_) * sizeof(double);
      FillIfConstant(s);
    }
  }

  // Elements [first, end) of row y of slice z.
  void Row(int64_t z, int64_t y, int64_t first, int64_t end) {
    for (int64_t x = first; x < end; x += block_) {
      const int64_t n = std::min(block_, end - x);
      for (size_t s = 0; s < f_.steps.size(); ++s) {
        const FormulaStep& step = f_.steps[s];
        if (step.operation == Operation::kRead)
          Read(step, values_[s], Address(static_cast<size_t>(step.a), z, y, x), n);
        else if (step.operation > Operation::kNumber) Compute(step, values_[s], n);
      }
      for (size_t w = 0; w < f_.written.size(); ++w) {
        std::memcpy(Address(w, z, y, x), values_[static_cast<size_t>(f_.written[w])],
                    static_cast<size_t>(n) * ScalarBytes(f_.accesses[w]));
      }
    }
  }

 private:
  // Whether the values are used where they are in memory. What is written as well is copied first: it may also be what
  // another access is set to.
  bool IsInPlace(const FormulaStep& step) const {
    return step.operation == Operation::kRead && static_cast<size_t>(step.a) >= f_.written.size();
  }
  void Read(const FormulaStep& step, std::byte*& values, std::byte* from, int64_t n) const {
    if (IsInPlace(step)) values = from;
    else std::memcpy(values, from, static_cast<size_t>(n) * ScalarBytes(step.type));
  }
  // All Views have one layout.
  std::byte* Address(size_t access, int64_t z, int64_t y, int64_t x) const {
    const auto& view = *static_cast<const View<std::byte>*>(argv_[access + 2]);
    const auto bytes = static_cast<int64_t>(ScalarBytes(f_.accesses[access]));
    return view.data + (z * view.slice + y * view.pitch + x) * bytes;
  }
  void FillIfConstant(size_t s) {
    const FormulaStep& step = f_.steps[s];
    if (step.operation != Operation::kNumber && step.operation != Operation::kParam) return;
    const void* const from = step.operation == Operation::kNumber
                                 ? static_cast<const void*>(&step.number)
                                 : argv_[2 + f_.accesses.size() + static_cast<size_t>(step.a)];
    WithType(step.type, [&](auto zero) {
      using T = decltype(zero);
      T value;
      std::memcpy(&value, from, sizeof(T));
      std::fill_n(reinterpret_cast<T*>(values_[s]), block_, value);
    });
  }

  template <class T>
  const T* In(int32_t step) const {
    return reinterpret_cast<const T*>(values_[static_cast<size_t>(step)]);
  }
  template <class T, class U, class F>
  void Each(std::byte* to, const U* a, int64_t n, F f) const {
    T* const out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
  }
  template <class T, class U, class F>
  void Each(std::byte* to, const U* a, const U* b, int64_t n, F f) const {
    T* const out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  }

  void Compute(const FormulaStep& step, std::byte* to, int64_t n) const {
    const ScalarType type = f_.steps[static_cast<size_t>(step.a)].type;  // of the first operand
    switch (step.operation) {
      case Operation::kCast: return CastTo(step, type, to, n);
      case Operation::kLess:
      case Operation::kLessEqual:
      case Operation::kEqual:
      case Operation::kNotEqual: return WithType(type, [&](auto zero) { Compare<decltype(zero)>(step, to, n); });
      case Operation::kAnd:
        return Each<bool>(to, In<bool>(step.a), In<bool>(step.b), n, [](bool a, bool b) { return a && b; });
      case Operation::kOr:
        return Each<bool>(to, In<bool>(step.a), In<bool>(step.b), n, [](bool a, bool b) { return a || b; });
      case Operation::kNot: return Each<bool>(to, In<bool>(step.a), n, [](bool a) { return !a; });
      case Operation::kSelect: return WithType(step.type, [&](auto zero) { Select<decltype(zero)>(step, to, n); });
      default: break;
    }
    WithType(step.type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>) Arithmetic<T>(step, to, n);
      else Arithmetic<uint8_t>(step, to, n);  // Min and Max
      if constexpr (std::is_floating_point_v<T>) Function<T>(step, to, n);
    });
  }

  void CastTo(const FormulaStep& step, ScalarType from, std::byte* to, int64_t n) const {
    WithType(from, [&](auto from_zero) {
      using T = decltype(from_zero);
      WithType(step.type, [&](auto zero) {
        using U = decltype(zero);
        Each<U>(to, In<T>(step.a), n, [](T a) { return Casted<U>(a); });
      });
    });
  }
  template <class T>
  void Compare(const FormulaStep& step, std::byte* to, int64_t n) const {
    const T *a = In<T>(step.a), *b = In<T>(step.b);
    switch (step.operation) {
      case Operation::kLess: return Each<bool>(to, a, b, n, [](T x, T y) { return x < y; });
      case Operation::kLessEqual: return Each<bool>(to, a, b, n, [](T x, T y) { return x <= y; });
      case Operation::kEqual: return Each<bool>(to, a, b, n, [](T x, T y) { return x == y; });
      default: return Each<bool>(to, a, b, n, [](T x, T y) { return x != y; });
    }
  }
  template <class T>
  void Select(const FormulaStep& step, std::byte* to, int64_t n) const {
    const bool* const condition = In<bool>(step.a);
    const T *b = In<T>(step.b), *c = In<T>(step.c);
    T* const out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] ? b[i] : c[i];
  }

  template <class T>
  void Arithmetic(const FormulaStep& step, std::byte* to, int64_t n) const {
    const T *a = In<T>(step.a), *b = step.b >= 0 ? In<T>(step.b) : nullptr;
    constexpr bool kWraps = std::is_integral_v<T>;
    const auto bits = [](T x) {
      if constexpr (kWraps) return Unsigned(x);
      else return x;
    };
    switch (step.operation) {
      case Operation::kAdd: return Each<T>(to, a, b, n, [&](T x, T y) { return static_cast<T>(bits(x) + bits(y)); });
      case Operation::kSubtract:
        return Each<T>(to, a, b, n, [&](T x, T y) { return static_cast<T>(bits(x) - bits(y)); });
      case Operation::kMultiply:
        return Each<T>(to, a, b, n, [&](T x, T y) { return static_cast<T>(bits(x) * bits(y)); });
      case Operation::kDivide: return Each<T>(to, a, b, n, [](T x, T y) { return Quotient(x, y); });
      case Operation::kNegate:
        return Each<T>(to, a, n, [&](T x) {
          if constexpr (kWraps) return static_cast<T>(0 - bits(x));
          else return -x;
        });
      case Operation::kAbs:
        return Each<T>(to, a, n, [&](T x) {
          if constexpr (!kWraps) return std::fabs(x);
          else return x < T{0} ? static_cast<T>(0 - bits(x)) : x;
        });
      case Operation::kMin: return Each<T>(to, a, b, n, [](T x, T y) { return x < y ? x : y; });
      case Operation::kMax: return Each<T>(to, a, b, n, [](T x, T y) { return x > y ? x : y; });
      default: return;
    }
  }
  template <class T>
  void Function(const FormulaStep& step, std::byte* to, int64_t n) const {
    const T* const a = In<T>(step.a);
    switch (step.operation) {
      case Operation::kSqrt: return Each<T>(to, a, n, [](T x) { return std::sqrt(x); });
      case Operation::kExp: return Each<T>(to, a, n, [](T x) { return std::exp(x); });
      case Operation::kLog: return Each<T>(to, a, n, [](T x) { return std::log(x); });
      case Operation::kTanh: return Each<T>(to, a, n, [](T x) { return std::tanh(x); });
      case Operation::kSin: return Each<T>(to, a, n, [](T x) { return std::sin(x); });
      case Operation::kCos: return Each<T>(to, a, n, [](T x) { return std::cos(x); });
      case Operation::kPow: return Each<T>(to, a, In<T>(step.b), n, [](T x, T y) { return std::pow(x, y); });
      default: return;
    }
  }

  const Formula& f_;
  void* const* const argv_;
  int64_t block_ = 1;
  std::array<std::byte*, detail::kMostOperations> values_;  // of each step, for the elements of the block
  alignas(64) std::byte scratch_[kScratchBytes];
};

}  // namespace
}  // namespace penstock::graph

namespace penstock::detail {

void RunFormula(void* const* argv, int64_t first, int64_t end) {
  const Range& range = *static_cast<const Range*>(argv[0]);
  const Formula& formula = **static_cast<const Formula* const*>(argv[1]);
  if (first >= end) return;
  graph::Evaluation evaluation(formula, argv);
  if (formula.rank == 1) return evaluation.Row(0, 0, first, end);
  for (int64_t row = first; row < end; ++row) evaluation.Row(row / range.height, row % range.height, 0, range.width);
}

}  // namespace penstock::detail
