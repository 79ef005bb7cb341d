// The text of a formula's kernel: NVRTC takes every operation on every type, without a GPU. What the kernels compute is
// tests/conformance/graph/map_test.cc.
#include "graph/formula/cuda_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/jit/compiler.h"
#include "tests/support/environment.h"
#include "tests/support/nvrtc.h"
#include "tests/support/status.h"

namespace penstock::graph::cuda_text_test {
namespace {

using detail::Formula;
using detail::Operation;
using detail::ScalarType;
using testing::HasSubstr;
using testing::Not;

constexpr ScalarType kTypes[] = {ScalarType::kUint8, ScalarType::kInt32, ScalarType::kInt64, ScalarType::kFloat,
                                 ScalarType::kDouble};

int32_t Add(Formula& formula, Operation operation, ScalarType type, int32_t a, int32_t b = -1, int32_t c = -1) {
  formula.steps.push_back({.operation = operation, .type = type, .a = a, .b = b, .c = c, .number = 3});
  return static_cast<int32_t>(formula.steps.size()) - 1;
}

// Everything that a type can do, with an access and a parameter of it.
Formula AllOf(ScalarType type) {
  Formula formula;
  formula.accesses = {type, type};
  formula.params = {type};
  const bool is_float = type >= ScalarType::kFloat, is_byte = type == ScalarType::kUint8;
  int32_t x = Add(formula, Operation::kRead, type, 1);
  const int32_t y = Add(formula, Operation::kParam, type, 0);
  x = Add(formula, Operation::kMax, type, x, Add(formula, Operation::kNumber, type, -1));
  for (const Operation operation : {Operation::kAdd, Operation::kSubtract, Operation::kMultiply, Operation::kDivide}) {
    if (!is_byte) x = Add(formula, operation, type, x, y);
  }
  if (!is_byte) x = Add(formula, Operation::kAbs, type, Add(formula, Operation::kNegate, type, x));
  x = Add(formula, Operation::kMin, type, x, y);
  for (const Operation operation :
       {Operation::kSqrt, Operation::kExp, Operation::kLog, Operation::kTanh, Operation::kSin, Operation::kCos}) {
    if (is_float) x = Add(formula, operation, type, x);
  }
  if (is_float) x = Add(formula, Operation::kPow, type, x, y);
  int32_t condition = Add(formula, Operation::kLess, ScalarType::kBool, x, y);
  for (const Operation operation : {Operation::kLessEqual, Operation::kEqual, Operation::kNotEqual}) {
    const int32_t other =
        Add(formula, Operation::kNot, ScalarType::kBool, Add(formula, operation, ScalarType::kBool, x, y));
    condition = Add(formula, Operation::kAnd, ScalarType::kBool, condition, other);
    condition = Add(formula, Operation::kOr, ScalarType::kBool, condition, other);
  }
  x = Add(formula, Operation::kSelect, type, condition, x, Add(formula, Operation::kCast, type, condition));
  for (const ScalarType other : kTypes) {
    x = Add(formula, Operation::kCast, type, Add(formula, Operation::kCast, other, x));
  }
  formula.written = {x};
  return formula;
}

TEST(CudaText, CompilesEveryOperationOnEveryType) {
  PENSTOCK_SKIP_WITHOUT_NVRTC();
  const EnvironmentScope no_cache("PENSTOCK_JIT_CACHE", "off");
  std::vector<std::shared_ptr<const Source::Parts>> sources;
  std::vector<jit::WantedKernel> wanted;
  for (const ScalarType type : kTypes) {
    sources.push_back(SourceOf(AllOf(type)));
    wanted.push_back({sources.back().get(), "sm_90"});
  }
  wanted.push_back({sources[0].get(), "sm_75"});  // where kernels do not await their predecessors themselves
  const auto results = jit::CompileSources(wanted, {});
  ASSERT_OK(results.status());
  for (const auto& result : *results) EXPECT_OK(result.status());
}

TEST(CudaText, HasVectorsOf16BytesAndFewerElementsForLongFormulas) {
  const auto text = [](ScalarType type, int steps) {
    Formula formula;
    formula.accesses = {type, type};
    int32_t x = Add(formula, Operation::kRead, type, 1);
    for (int i = 1; i < steps; ++i) x = Add(formula, Operation::kMin, type, x, x);
    formula.written = {x};
    return SourceOf(formula)->text;
  };
  EXPECT_THAT(text(ScalarType::kFloat, 2), HasSubstr("#define kVector 4\n"));
  EXPECT_THAT(text(ScalarType::kDouble, 2), HasSubstr("#define kVector 2\n"));
  EXPECT_THAT(text(ScalarType::kUint8, 2), HasSubstr("#define kVector 16\n"));
  EXPECT_THAT(text(ScalarType::kUint8, 2), HasSubstr("2 * threads"));
  EXPECT_THAT(text(ScalarType::kUint8, 64), HasSubstr("#define kVector 8\n"));
  EXPECT_THAT(text(ScalarType::kUint8, 64), Not(HasSubstr("2 * threads")));
}

TEST(CudaText, IsToBeCompiledWithoutFusedOrInexactArithmetic) {
  const auto source = SourceOf(AllOf(ScalarType::kFloat));
  EXPECT_THAT(source->options.options,
              testing::IsSupersetOf({"-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"}));
}

}  // namespace
}  // namespace penstock::graph::cuda_text_test
