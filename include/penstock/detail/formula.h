// Formula: what a Map computes for each element, with its types erased. Expressions (expr.h) are terms, which a Map
// flattens into a list of operations; from the same list come the host's loops and the text of the device's kernel.
//
// Ownership: terms are shared and immutable, and keep their operands. A node keeps its formula.
// Threads:   thread-safe: nothing changes either.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/access.h"
#include "penstock/detail/model.h"
#include "penstock/detail/type_of.h"
#include "penstock/export.h"

namespace penstock::detail {

// Types of values. kBool is that of conditions, and of no element.
enum class ScalarType : uint8_t { kBool, kUint8, kInt32, kInt64, kFloat, kDouble };

template <class T>
inline constexpr bool kIsScalar = false;
template <class T>
inline constexpr ScalarType kScalarOf = ScalarType::kBool;
template <>
inline constexpr bool kIsScalar<bool> = true;
template <>
inline constexpr bool kIsScalar<uint8_t> = true;
template <>
inline constexpr bool kIsScalar<int32_t> = true;
template <>
inline constexpr bool kIsScalar<int64_t> = true;
template <>
inline constexpr bool kIsScalar<float> = true;
template <>
inline constexpr bool kIsScalar<double> = true;
template <>
inline constexpr ScalarType kScalarOf<uint8_t> = ScalarType::kUint8;
template <>
inline constexpr ScalarType kScalarOf<int32_t> = ScalarType::kInt32;
template <>
inline constexpr ScalarType kScalarOf<int64_t> = ScalarType::kInt64;
template <>
inline constexpr ScalarType kScalarOf<float> = ScalarType::kFloat;
template <>
inline constexpr ScalarType kScalarOf<double> = ScalarType::kDouble;

// What an operation does. The first three have no operands, and the comparisons give a kBool.
enum class Operation : uint8_t {
  kRead,  // an element of an access
  kParam,  // the value of a parameter
  kNumber,  // a constant
  kCast,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kNegate,
  kAbs,
  kMin,
  kMax,
  kSqrt,
  kExp,
  kLog,
  kTanh,
  kSin,
  kCos,
  kPow,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kNot,
  kSelect  // the second operand where the first, a kBool, holds, else the third
};

// The most operations of a formula, and the most that stand one in another.
inline constexpr int kMostOperations = 1024, kMostDepth = 512;

// An access without its type.
struct ErasedAccess {
  int32_t buffer = -1;
  uint32_t graph = 0;
  Box box{};
  std::shared_ptr<const StateRecord> state{};
  bool unordered = false, uncopied = false;
  TypeInfo type{};

  template <class T, AccessMode M>
  PENSTOCK_HIDDEN static ErasedAccess Of(const AccessOf<T, M>& access) {
    return {access.buffer.index(), access.buffer.graph(), access.box, access.state,
            access.unordered,      access.uncopied,       TypeOf<T>()};
  }
  bool operator==(const ErasedAccess& other) const {
    return buffer == other.buffer && graph == other.graph && state == other.state && unordered == other.unordered &&
           uncopied == other.uncopied && box == other.box;
  }
};

// A node of an expression.
struct Term {
  Operation operation = Operation::kNumber;
  ScalarType type = ScalarType::kFloat;  // of its value
  int depth = 1;  // of the terms in it; more than kMostDepth: it is without its operands, and a Map refuses it
  std::array<std::shared_ptr<const Term>, 3> of{};  // the operands; null where there are fewer
  uint64_t number = 0;  // kNumber: the bytes of the value, the rest 0
  int32_t param = -1;  // kParam: its index
  uint32_t graph = 0;  // kParam: of its graph
  TypeInfo param_type{};  // kParam
  ErasedAccess access{};  // kRead
};
using SharedTerm = std::shared_ptr<const Term>;

// Makes a term. One that would be too deep has no operands.
PENSTOCK_EXPORT SharedTerm MakeTerm(Term term);

// One step of a formula. Operands are indices of earlier steps; -1: there is none.
struct FormulaStep {
  Operation operation = Operation::kNumber;
  ScalarType type = ScalarType::kFloat;  // of its value
  int32_t a = -1, b = -1, c = -1;  // operands; of a kRead or a kParam, `a` is an index of the accesses or parameters
  uint64_t number = 0;
  friend bool operator==(const FormulaStep&, const FormulaStep&) = default;
};

// The accesses of its node are what it writes, then what it only reads; each has a View among the arguments, in this
// order, and its parameters follow.
struct PENSTOCK_EXPORT Formula {
  int rank = 1;  // of the node's extent
  std::vector<FormulaStep> steps;
  std::vector<ScalarType> accesses;  // types of the elements
  std::vector<ScalarType> params;
  std::vector<int32_t> written;  // of each access that is written, the step whose value goes there
  std::string where{};  // of a fused one: the lines of all its Maps but the last, and the file of that one

  // How many of the accesses are written, those that come first.
  int outputs() const { return static_cast<int>(written.size()); }
  // Whether it reads the elements of an access, and what it does with them.
  bool Reads(size_t access) const {
    return std::any_of(steps.begin(), steps.end(), [&](const FormulaStep& step) {
      return step.operation == Operation::kRead && step.a == static_cast<int32_t>(access);
    });
  }
  AccessMode ModeOf(size_t access) const {
    return access >= written.size() ? AccessMode::kRead : Reads(access) ? AccessMode::kReadWrite : AccessMode::kWrite;
  }
  // Whether both compute the same.
  bool Equals(const Formula& other) const {
    return rank == other.rank && steps == other.steps && accesses == other.accesses && params == other.params &&
           written == other.written;
  }
};

// A formula with the accesses and parameters that it names.
struct FlatMap {
  struct Param {
    int32_t index;
    uint32_t graph;
    TypeInfo type;
  };
  Formula formula;
  std::vector<ErasedAccess> accesses;
  std::vector<Param> params;
  Extent extent;
};

// Runs rows [first, end) of a Map on the host: NodeCode::range. Arguments: the Range, the address of the Formula, a
// View for each access, each parameter.
PENSTOCK_EXPORT void RunFormula(void* const* argv, int64_t first, int64_t end);

}  // namespace penstock::detail
