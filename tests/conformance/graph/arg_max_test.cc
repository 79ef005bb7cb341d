// ArgMin and ArgMax: where std::min_element and std::max_element find them, on every driver.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "penstock/arg_max.h"
#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::arg_max_test {
namespace {

constexpr int64_t kMost = 100'003;

template <class T>
int64_t Least(const std::vector<T>& of) {
  return of.empty() ? -1 : std::min_element(of.begin(), of.end()) - of.begin();
}
template <class T>
int64_t Greatest(const std::vector<T>& of) {
  return of.empty() ? -1 : std::max_element(of.begin(), of.end()) - of.begin();  // the first of the greatest
}

class Args : public GraphConformance {
 protected:
  // Many are equal.
  template <class T>
  std::vector<T> FewValues(int64_t n) {
    std::vector<T> values(static_cast<size_t>(n));
    for (T& v : values) v = static_cast<T>(rng_() % 100);
    return values;
  }
  std::vector<int64_t> Extents() const {
    std::vector<int64_t> extents{0, 1, 2, 31, 33, 1000, 2047, 2048, 2049, 4097};
    if (!GetParam().ring && !GetParam().checked) extents.push_back(kMost);
    return extents;
  }
  template <class T>
  void AreThoseOfTheStandardLibrary() {
    Graph g("args");
    auto n = g.Param<int64_t>("n", AtMost(kMost));
    auto x = g.Input<T>("x", n);
    auto best = g.Output<Indexed<T>>("best", 2);
    ArgMin(g, "first", Read(x), Write(best, Slice({0}, {1})));
    ArgMax(g, "last", Read(x), Write(best, Slice({1}, {1})));
    auto exec = runtime_->Compile(g);
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t count : Extents()) {
      const std::vector<T> hx = FewValues<T>(count);
      std::vector<Indexed<T>> got(2, Indexed<T>(T(5), 7));
      auto run = exec->Launch(io.Set(n, count).Set(x, hx).Set(best, got));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(got[0].index(), Least(hx)) << count;
      EXPECT_EQ(got[1].index(), Greatest(hx)) << count;
      if (count == 0) {
        EXPECT_EQ(got[0].value, Min::Identity<T>());
        EXPECT_EQ(got[1].value, Max::Identity<T>());
      } else {
        EXPECT_EQ(got[0].value, hx[Least(hx)]) << count;
        EXPECT_EQ(got[1].value, hx[Greatest(hx)]) << count;
      }
    }
  }
};

// CompiledAlgorithms.FindExtremes tries other types.
TEST_P(Args, OfNumbersAreThoseOfTheStandardLibrary) {
  AreThoseOfTheStandardLibrary<float>();
  AreThoseOfTheStandardLibrary<int16_t>();
}

// The elements of a box are counted row by row.
TEST_P(Args, OfBoxesCountTheElementsOfTheBox) {
  Graph g("boxes");
  auto x = g.Input<int32_t>("x", Pitched({20, 31, 70}, 72));
  auto found = g.Output<int64_t>("found", 3);
  auto small = g.Output<int32_t>("small", 3);
  auto flat = g.Buffer<int32_t>("flat", {20, 31, 70});
  g.Copy("copy", Read(x), Write(flat));
  const Box inner = Slice({1, 2, 3}, {18, 25, 60});
  ArgMax(g, "all", Read(x), Write(found, Slice({0}, {1})));
  ArgMin(g, "inner", Read(x, inner), Write(found, Slice({1}, {1})));
  ArgMin(g, "flat", Read(flat), Write(found, Slice({2}, {1})));
  ArgMax(g, "small", Read(flat), Write(small, Slice({1}, {1})));
  const std::vector<int32_t> values = Random(20 * 31 * 72);
  std::vector<int32_t> all, of_inner;
  for (int64_t i = 0; i < 20 * 31 * 72; ++i) {
    const int64_t z = i / (31 * 72), y = i / 72 % 31, c = i % 72;
    if (c < 70) all.push_back(values[i]);
    if (z >= 1 && z < 19 && y >= 2 && y < 27 && c >= 3 && c < 63) of_inner.push_back(values[i]);
  }
  std::vector<int64_t> got(3);
  std::vector<int32_t> got_small(3);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(found, got).Set(small, got_small); }));
  EXPECT_EQ(got, (std::vector<int64_t>{Greatest(all), Least(of_inner), Least(all)}));
  EXPECT_EQ(got_small[1], Greatest(all));
}

TEST_P(Args, FindTheFirstNaNAndTheFirstOfZeros) {
  Graph g("nan");
  auto x = g.Input<float>("x", 3000);
  auto least = g.Output<Indexed<float>>("least", 1), greatest = g.Output<Indexed<float>>("greatest", 1);
  ArgMin(g, "least", Read(x), Write(least));
  ArgMax(g, "greatest", Read(x), Write(greatest));
  for (const size_t at : {0, 1, 31, 32, 2047, 2048, 2998}) {
    std::vector<float> values(3000, 4.F);
    for (size_t i = at; i < values.size(); i += 1 + at) values[i] = std::numeric_limits<float>::quiet_NaN();
    values[(at + 1) % 3000] = -std::numeric_limits<float>::infinity();
    values[(at + 7) % 3000] = std::numeric_limits<float>::infinity();
    std::vector<Indexed<float>> low(1), high(1);
    ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, values).Set(least, low).Set(greatest, high); }));
    const auto first =
        std::find_if(values.begin(), values.end(), [](float v) { return std::isnan(v); }) - values.begin();
    EXPECT_TRUE(low[0].index() == first && std::isnan(low[0].value)) << at;
    EXPECT_TRUE(high[0].index() == first && std::isnan(high[0].value)) << at;
  }
  std::vector<float> zeros(3000, 0.F);
  for (size_t i = 0; i < zeros.size(); i += 2) zeros[i] = -0.F;
  std::vector<Indexed<float>> low(1), high(1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, zeros).Set(least, low).Set(greatest, high); }));
  EXPECT_TRUE(low[0].index() == 0 && high[0].index() == 0);
}

TEST_P(Args, OfTheFirstElementsThatTheDeviceCounts) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (const int32_t counted : {0, -1, 1, 2048, 2049, 4999, 9000}) {
    const std::vector<double> hx = FewValues<double>(5000);
    const std::vector<double> first(hx.begin(), hx.begin() + std::clamp(counted, 0, 5000));
    const std::vector<int32_t> hcount{counted};
    for (GraphCache* const cache : {&found, &checked}) {
      std::vector<int64_t> got(2, 5);
      absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
        auto x = g.Input<double>("x", 5000);
        auto count = g.Input<int32_t>("count", 1);
        auto at = g.Output<int64_t>("at", 2);
        ArgMin(g, "least", CountOf(count, 5000), Read(x), Write(at, Slice({0}, {1})));
        ArgMax(g, "greatest", CountOf(count, 5000), Read(x), Write(at, Slice({1}, {1})));
        io.Set(x, hx).Set(count, hcount).Set(at, got);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(got, (std::vector<int64_t>{Least(first), Greatest(first)})) << counted;
    }
  }
  EXPECT_EQ(found.counts().compiled, 1);
}

INSTANTIATE_TEST_SUITE_P(Host, Args, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Args, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::arg_max_test
