// Map: each element is what C++ computes for it, bit by bit where expr.h promises that, whatever is fused.
#include "penstock/map.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/state.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::map_test {
namespace {

using expr::Of;

class Maps : public GraphConformance {
 protected:
  std::vector<float> Floats(int64_t n) {
    std::vector<float> out;
    for (const int32_t v : Random(n)) out.push_back(static_cast<float>(v) / 4096.0f);
    return out;
  }
  // Without and with the check of host code.
  static std::vector<CompileOptions> Ways() {
    std::vector<CompileOptions> ways(2);
    ways[1].check_against_host = true;
    return ways;
  }
};

template <class T>
bool SameBits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b);
}
template <class T>
void ExpectSameBits(const std::vector<T>& got, const std::vector<T>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(SameBits(got[i], want[i])) << what << " " << i << ": " << +got[i];
}

// Numbers at which rules differ.
template <class T>
std::vector<T> Edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges{
      T{0}, T{1}, T{2}, T{3}, T{7}, T{100}, Limits::max(), static_cast<T>(Limits::max() - 1), Limits::lowest()};
  if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>) {
    edges.insert(edges.end(), {T{-1}, T{-3}, static_cast<T>(Limits::lowest() + 1)});
  }
  if constexpr (std::is_floating_point_v<T>) {
    edges.insert(edges.end(),
                 {T(-0.0), T(0.1), T(1e30), T(-1e30), T(254.7), T(255.5), T(-0.5), T(2147483648.0), T(-2147483904.0),
                  Limits::denorm_min(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
  }
  return edges;
}

// Each with each.
template <class T>
struct Pairs {
  Pairs() {
    for (const T x : Edges<T>()) {
      for (const T y : Edges<T>()) a.push_back(x), b.push_back(y);
    }
  }
  std::vector<T> a, b;
};

// Runs a Map of two inputs. `expression(x, y)` is its formula.
template <class R, class T, class E>
std::vector<R> ResultsOf(Runtime& runtime, const std::vector<T>& a, const std::vector<T>& b, E expression) {
  Graph g("values");
  const auto n = static_cast<int64_t>(a.size());
  auto x = g.Input<T>("x", n), y = g.Input<T>("y", n);
  auto z = g.Output<R>("z", n);
  Map(g, "z", Write(z), expression(Of(x), Of(y)));
  std::vector<R> got(a.size());
  auto exec = runtime.Compile(g);
  EXPECT_OK(exec.status());
  if (!exec.ok()) return got;
  auto run = exec->Launch(exec->bindings().Set(x, a).Set(y, b).Set(z, got));
  EXPECT_OK(run.status());
  if (run.ok()) {
    EXPECT_OK(run->Wait());
  }
  return got;
}
// Compares it with what C++ says of each pair.
template <class R, class T, class E, class F>
void ExpectValues(Runtime& runtime, const char* what, E expression, F says) {
  const Pairs<T> pairs;
  std::vector<R> want;
  for (size_t i = 0; i < pairs.a.size(); ++i) want.push_back(says(pairs.a[i], pairs.b[i]));
  ExpectSameBits(ResultsOf<R>(runtime, pairs.a, pairs.b, expression), want, what);
}

template <class T>
T Saturated(long double x) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(x)) return 0;
  if (x >= static_cast<long double>(Limits::max())) return Limits::max();
  if (x <= static_cast<long double>(Limits::min())) return Limits::min();
  return static_cast<T>(x);
}

template <class T>
void ExpectArithmeticOfFloats(Runtime& runtime) {
  ExpectValues<T, T>(runtime, "+", [](auto x, auto y) { return x + y; }, [](T x, T y) { return x + y; });
  ExpectValues<T, T>(runtime, "-", [](auto x, auto y) { return x - y; }, [](T x, T y) { return x - y; });
  ExpectValues<T, T>(runtime, "*", [](auto x, auto y) { return x * y; }, [](T x, T y) { return x * y; });
  ExpectValues<T, T>(runtime, "/", [](auto x, auto y) { return x / y; }, [](T x, T y) { return x / y; });
  ExpectValues<T, T>(runtime, "negate", [](auto x, auto) { return -x; }, [](T x, T) { return -x; });
  ExpectValues<T, T>(runtime, "abs", [](auto x, auto) { return expr::Abs(x); }, [](T x, T) { return std::fabs(x); });
  ExpectValues<T, T>(runtime, "sqrt", [](auto x, auto) { return expr::Sqrt(x); }, [](T x, T) { return std::sqrt(x); });
  ExpectValues<T, T>(
      runtime, "min", [](auto x, auto y) { return expr::Min(x, y); }, [](T x, T y) { return x < y ? x : y; });
  ExpectValues<T, T>(
      runtime, "max", [](auto x, auto y) { return expr::Max(x, y); }, [](T x, T y) { return x > y ? x : y; });
  // Two roundings, where a fused multiply-add has one.
  ExpectValues<T, T>(
      runtime, "axpy", [](auto x, auto y) { return T(0.1) * x + y; },
      [](T x, T y) {
        const volatile T product = T(0.1) * x;
        return product + y;
      });
}

TEST_P(Maps, ComputeFloatsBitByBit) {
  ExpectArithmeticOfFloats<float>(*runtime_);
  ExpectArithmeticOfFloats<double>(*runtime_);
}

template <class T>
void ExpectArithmeticOfIntegers(Runtime& runtime) {
  using U = std::make_unsigned_t<T>;
  const auto wrap = [](auto f) {
    return [f](T x, T y) { return static_cast<T>(f(static_cast<U>(x), static_cast<U>(y))); };
  };
  ExpectValues<T, T>(runtime, "+", [](auto x, auto y) { return x + y; }, wrap([](U x, U y) { return x + y; }));
  ExpectValues<T, T>(runtime, "-", [](auto x, auto y) { return x - y; }, wrap([](U x, U y) { return x - y; }));
  ExpectValues<T, T>(runtime, "*", [](auto x, auto y) { return x * y; }, wrap([](U x, U y) { return x * y; }));
  ExpectValues<T, T>(runtime, "negate", [](auto x, auto) { return -x; }, wrap([](U x, U) { return U{0} - x; }));
  ExpectValues<T, T>(
      runtime, "/", [](auto x, auto y) { return x / y; },
      [&](T x, T y) { return y == 0    ? T{0}
                             : y == -1 ? static_cast<T>(U{0} - static_cast<U>(x))
                                       : x / y; });
  ExpectValues<T, T>(
      runtime, "abs", [](auto x, auto) { return expr::Abs(x); },
      [](T x, T) { return x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x; });
  ExpectValues<T, T>(
      runtime, "clamp", [](auto x, auto) { return expr::Clamp(x, -2, 50); },
      [](T x, T) { return x < -2   ? T{-2}
                          : x > 50 ? T{50}
                                   : x; });
}

TEST_P(Maps, ComputeIntegersThatWrap) {
  ExpectArithmeticOfIntegers<int32_t>(*runtime_);
  ExpectArithmeticOfIntegers<int64_t>(*runtime_);
  // Bytes are numbers of 32 bits in arithmetic.
  ExpectValues<int32_t, uint8_t>(
      *runtime_, "bytes", [](auto x, auto y) { return x * y - 300; },
      [](uint8_t x, uint8_t y) { return int32_t{x} * int32_t{y} - 300; });
  ExpectValues<uint8_t, uint8_t>(
      *runtime_, "byte", [](auto x, auto y) { return expr::Min(x, y); },
      [](uint8_t x, uint8_t y) { return x < y ? x : y; });
}

template <class T>
void ExpectCasts(Runtime& runtime) {
  const auto to = [](auto zero) { return [=](auto x, auto) { return expr::Cast<decltype(zero)>(x); }; };
  const auto says = [](auto zero) {
    using R = decltype(zero);
    return [](T x, T) {
      if constexpr (std::is_floating_point_v<T> && std::is_integral_v<R>) return Saturated<R>(x);
      else return static_cast<R>(x);
    };
  };
  if constexpr (!std::is_same_v<T, uint8_t>) ExpectValues<uint8_t, T>(runtime, "uint8", to(uint8_t{}), says(uint8_t{}));
  ExpectValues<int32_t, T>(runtime, "int32", to(int32_t{}), says(int32_t{}));
  ExpectValues<int64_t, T>(runtime, "int64", to(int64_t{}), says(int64_t{}));
  ExpectValues<float, T>(runtime, "float", to(float{}), says(float{}));
  ExpectValues<double, T>(runtime, "double", to(double{}), says(double{}));
}

TEST_P(Maps, CastAsTheHeaderSays) {
  ExpectCasts<uint8_t>(*runtime_);
  ExpectCasts<int32_t>(*runtime_);
  ExpectCasts<int64_t>(*runtime_);
  ExpectCasts<float>(*runtime_);
  ExpectCasts<double>(*runtime_);
}

template <class T>
void ExpectComparisons(Runtime& runtime) {
  const auto number = [](auto condition) { return expr::Cast<int32_t>(condition); };
  ExpectValues<int32_t, T>(runtime, "<", [&](auto x, auto y) { return number(x < y); }, [](T x, T y) { return x < y; });
  ExpectValues<int32_t, T>(runtime, ">", [&](auto x, auto y) { return number(x > y); }, [](T x, T y) { return x > y; });
  ExpectValues<int32_t, T>(
      runtime, "<=", [&](auto x, auto y) { return number(x <= y); }, [](T x, T y) { return x <= y; });
  ExpectValues<int32_t, T>(
      runtime, ">=", [&](auto x, auto y) { return number(x >= y); }, [](T x, T y) { return x >= y; });
  ExpectValues<int32_t, T>(
      runtime, "==", [&](auto x, auto y) { return number(x == y); }, [](T x, T y) { return x == y; });
  ExpectValues<int32_t, T>(
      runtime, "!=", [&](auto x, auto y) { return number(x != y); }, [](T x, T y) { return x != y; });
  ExpectValues<T, T>(
      runtime, "select", [](auto x, auto y) { return expr::Select((x < y && !(y == 7)) || x == 2, x, 5); },
      [](T x, T y) { return (x < y && !(y == T{7})) || x == T{2} ? x : T{5}; });
}

TEST_P(Maps, CompareAndSelect) {
  ExpectComparisons<int32_t>(*runtime_);
  ExpectComparisons<int64_t>(*runtime_);
  ExpectComparisons<float>(*runtime_);
  ExpectComparisons<double>(*runtime_);
}

TEST_P(Maps, ComputeFunctionsToAFewUnitsInTheLastPlace) {
  std::vector<float> x = Floats(3000), y = Floats(3000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::fabs(x[i]) / 16 + 1e-3f, y[i] /= 64;
  const auto expect = [&](const char* what, auto expression, auto says) {
    const std::vector<float> got = ResultsOf<float>(*runtime_, x, y, expression);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = says(static_cast<double>(x[i]), static_cast<double>(y[i]));
      ASSERT_NEAR(got[i], want, 4 * std::numeric_limits<float>::epsilon() * std::fabs(want) + 1e-37) << what << x[i];
    }
  };
  expect("exp", [](auto a, auto b) { return expr::Exp(b) + 0 * a; }, [](double, double b) { return std::exp(b); });
  expect("log", [](auto a, auto b) { return expr::Log(a) + 0 * b; }, [](double a, double) { return std::log(a); });
  expect("tanh", [](auto, auto b) { return expr::Tanh(b); }, [](double, double b) { return std::tanh(b); });
  expect("sin", [](auto, auto b) { return expr::Sin(b); }, [](double, double b) { return std::sin(b); });
  expect("cos", [](auto, auto b) { return expr::Cos(b); }, [](double, double b) { return std::cos(b); });
  expect("pow", [](auto a, auto b) { return expr::Pow(a, b); }, [](double a, double b) { return std::pow(a, b); });
}

TEST_P(Maps, TakeParametersAndAnyNumberOfElements) {
  Graph g("each");
  auto n = g.Param<int64_t>("n", AtMost(5000));
  auto scale = g.Param<float>("scale");
  auto less = g.Param<double>("less");
  auto x = g.Input<float>("x", n);
  auto bytes = g.Input<uint8_t>("bytes", n);
  auto y = g.Output<double>("y", n);
  auto fill = g.Output<float>("fill", n);
  Map(g, "y", Write(y), scale * Of(x) + Of(bytes) - less);
  Map(g, "fill", Write(fill), scale);
  for (const CompileOptions& options : Ways()) {
    auto exec = runtime_->Compile(g, options);
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t count : {5000, 0, 1, 333}) {
      const std::vector<float> hx = Floats(count);
      std::vector<uint8_t> hb;
      for (const float v : hx) hb.push_back(static_cast<uint8_t>(static_cast<int>(v)));
      const auto s = static_cast<float>(count) / 3;
      std::vector<double> got(hx.size()), want;
      for (size_t i = 0; i < hx.size(); ++i) {
        const volatile float product = s * hx[i];
        const float sum = product + static_cast<float>(hb[i]);
        want.push_back(static_cast<double>(sum) - 0.25);
      }
      std::vector<float> filled(hx.size(), -1);
      io.Set(n, count).Set(scale, s).Set(less, 0.25).Set(x, hx).Set(bytes, hb).Set(fill, filled);
      auto run = exec->Launch(io.Set(y, got));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      ExpectSameBits(got, want, "y");
      EXPECT_EQ(filled, std::vector<float>(hx.size(), s));
    }
  }
}

TEST_P(Maps, TakeBoxesOfOneShapeAndWorkInPlace) {
  for (const int rank : {1, 2, 3}) {
    const int64_t d = rank == 3 ? 3 : 1, h = rank == 1 ? 1 : 21, w = 37;
    const int64_t left = rank == 1 ? 3 : 2, cut = 5, rows = rank == 1 ? 1 : h - 2, top = rank == 1 ? 0 : 1;
    Graph g("boxes");
    const Extent whole = rank == 1 ? Extent(w) : rank == 2 ? Extent(h, w) : Extent(d, h, w);
    auto x = g.InOut<int32_t>("x", whole);
    auto y = rank == 1   ? g.Input<int32_t>("y", w - cut)
             : rank == 2 ? g.Input<int32_t>("y", Pitched({rows, w - cut}, w))
                         : g.Input<int32_t>("y", Pitched({d, rows, w - cut}, w));
    const Box inner = rank == 1   ? Slice(left, w - cut)
                      : rank == 2 ? Slice({top, left}, {rows, w - cut})
                                  : Slice({0, top, left}, {d, rows, w - cut});
    Map(g, "twice", Write(x), 2 * Of(x));
    Map(g, "mix", Write(x, inner), Of(x, inner) - 3 * Of(y));
    std::vector<int32_t> hx = Random(d * h * w), want = hx;
    const std::vector<int32_t> hy = Random(d * rows * w);
    for (int32_t& v : want) v *= 2;
    for (int64_t z = 0; z < d; ++z) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < w - cut; ++c) {
          want[static_cast<size_t>((z * h + row + top) * w + c + left)] -=
              3 * hy[static_cast<size_t>((z * rows + row) * w + c)];
        }
      }
    }
    const auto bind = [&](Bindings& io) {
      io.Set(x, hx).Set(y, std::span(hy).first(static_cast<size_t>((d * rows - 1) * w + w - cut)));
    };
    ASSERT_OK(RunOnce(g, bind));
    EXPECT_EQ(hx, want) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Maps, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Maps, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::map_test
