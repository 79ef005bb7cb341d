// Reduce and TransformReduce over a CountOf: what a Reduce of just that many elements gives. And sums in another type
// than that of the elements.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/select.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/reduce_oracle.h"

namespace penstock::conformance::counted_reduce_test {
namespace {

using reduce_oracle::AnyOf;
using reduce_oracle::Expected;
using reduce_oracle::Same;

constexpr int64_t kLongLeaves = int64_t{2048} * 2048 + 1;

// Marks what it is called for, and returns a product.
struct Marked {
  PENSTOCK_HOST_DEVICE float operator()(int64_t i, View<const float> x, View<int32_t> calls, float by) const {
    calls(i) = calls(i) + 1;
    return x(i) * by;
  }
};
struct IsBelow {
  int32_t bound;
  PENSTOCK_HOST_DEVICE bool operator()(int32_t x) const { return x < bound; }
};
// x -> scale * x + shift, modulo 2^32. To compose is associative and not commutative.
struct Affine {
  uint32_t scale, shift, maps;
};
struct Compose {
  PENSTOCK_HOST_DEVICE Affine operator()(const Affine& a, const Affine& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift, a.maps + b.maps};
  }
};
struct AffineAt {
  PENSTOCK_HOST_DEVICE Affine operator()(int64_t i, const int32_t* x) const {
    return {static_cast<uint32_t>(x[i]) * 2 + 1, static_cast<uint32_t>(i), 1};
  }
};

class CountedReduces : public GraphConformance {};

TEST_P(CountedReduces, HaveTheBitsOfAReduceOfThatMany) {
  for (const int64_t most : {int64_t{1500}, int64_t{9000}}) {
    Graph g("counted");
    auto n = g.Param<int64_t>("n", AtMost(most));
    auto count = g.Input<int32_t>("count", 2);
    auto x = g.Input<float>("x", n);
    auto sums = g.Output<float>("sums", 2);
    const auto of = CountOf(Read(count, Slice({1}, {1})), n);
    g.Reduce("sum", of, Read(x), Write(sums, Slice({0}, {1})));
    g.Reduce("most", of, Read(x), Write(sums, Slice({1}, {1})), Max(), -7);
    auto exec = runtime_->Compile(g, {.slots = 2});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t there : {most, most / 2}) {
      for (const int32_t counted : {0, -5, 1, 2, 33, 2047, 2048, 2049, 4097, 8999, 20'000}) {
        const std::vector<float> hx = AnyOf<float>(rng_, there);
        const std::vector<float> first(hx.begin(), hx.begin() + std::clamp<int64_t>(counted, 0, there));
        const std::vector<int32_t> counts{77, counted};
        std::vector<float> got(2, -1.F);
        auto run = exec->Launch(io.Set(n, there).Set(count, counts).Set(x, hx).Set(sums, got));
        ASSERT_OK(run.status());
        ASSERT_OK(run->Wait());
        EXPECT_TRUE(Same(got[0], Expected(first, std::plus<float>(), 0.F))) << counted << " of " << there;
        EXPECT_EQ(got[1], first.empty() ? -7 : *std::max_element(first.begin(), first.end())) << counted;
      }
    }
  }
}

TEST_P(CountedReduces, CallTheFunctorForTheIndicesBelowTheCount) {
  Graph g("calls");
  auto count = g.Input<uint64_t>("count", 1);
  auto by = g.Param<float>("by");
  auto x = g.Input<float>("x", 5000);
  auto calls = g.InOut<int32_t>("calls", 5000);
  auto sum = g.Output<float>("sum", 1);
  auto ints = g.Input<int32_t>("ints", 5000);
  auto map = g.Output<Affine>("map", 1);
  const auto of = CountOf(count, 5000);
  g.TransformReduce("sum", of, Marked{}, Plus(), 0, Read(x), ReadWrite(calls), by, Write(sum));
  g.TransformReduce("map", of, AffineAt{}, Compose{}, Affine{1, 0, 0}, Read(ints), Write(map));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const uint64_t counted : {uint64_t{0}, uint64_t{100}, uint64_t{4097}, std::numeric_limits<uint64_t>::max()}) {
    const auto there = static_cast<size_t>(std::min<uint64_t>(counted, 5000));
    const std::vector<float> hx = AnyOf<float>(rng_, 5000);
    const std::vector<int32_t> hints = Random(5000);
    std::vector<float> products;
    for (size_t i = 0; i < there; ++i) products.push_back(hx[i] * 0.3F);
    std::vector<int32_t> got_calls(5000, 5), want_calls(5000, 5);
    std::fill_n(want_calls.begin(), there, 6);
    float got = -1;
    Affine got_map{}, want_map{1, 0, 0};
    for (size_t i = 0; i < there; ++i) {
      want_map = Compose{}(want_map, AffineAt{}(static_cast<int64_t>(i), hints.data()));
    }
    const std::vector<uint64_t> hcount{counted};
    io.Set(count, hcount).Set(by, 0.3F).Set(x, hx).Set(calls, got_calls).Set(sum, std::span(&got, 1));
    auto run = exec->Launch(io.Set(ints, hints).Set(map, std::span(&got_map, 1)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_TRUE(Same(got, Expected(products, std::plus<float>(), 0.F))) << counted;
    EXPECT_EQ(got_calls, want_calls) << counted;
    EXPECT_TRUE(Same(got_map, want_map)) << counted;
  }
}

// What a Select has kept and counted is summed up, in a loop too, without the host.
TEST_P(CountedReduces, FollowASelectAndStandInLoops) {
  auto total = runtime_->MakeState<int64_t>("total", 1);
  ASSERT_OK(total.status());
  ASSERT_OK(total->Set(std::vector<int64_t>{0}));
  Graph g("chain");
  auto x = g.Input<int32_t>("x", 10'000);
  auto kept = g.Buffer<int32_t>("kept", 10'000);
  auto count = g.Buffer<int32_t>("count", 1);
  Select(g, "keep", Read(x), Write(kept), Write(count), IsBelow{-100'000});
  g.Repeat("twice", 2, [&](Graph& body) { body.Reduce("total", CountOf(count, 10'000), Read(kept), Write(*total)); });
  const std::vector<int32_t> hx = Random(10'000);
  int64_t want = 0;
  for (const int32_t v : hx) want += IsBelow{-100'000}(v) ? v : 0;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }));
  std::vector<int64_t> got(1);
  ASSERT_OK(total->Read(got));
  EXPECT_EQ(got[0], want);
}

TEST_P(CountedReduces, WithShorterLeavesThanTheMaximum) {
  if (GetParam().ring || GetParam().checked) GTEST_SKIP() << "the other targets do the same arithmetic";
  Graph g("levels");
  auto count = g.Input<int64_t>("count", 1);
  auto x = g.Input<float>("x", kLongLeaves);
  auto sum = g.Output<float>("sum", 1);
  g.Reduce("sum", CountOf(count, kLongLeaves), Read(x), Write(sum));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::vector<float> hx = AnyOf<float>(rng_, kLongLeaves);
  for (const int64_t counted : {kLongLeaves, kLongLeaves - 1, int64_t{5000}, int64_t{17}}) {
    const std::vector<int64_t> hcount{counted};
    float got = -1;
    auto run = exec->Launch(io.Set(count, hcount).Set(x, hx).Set(sum, std::span(&got, 1)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_TRUE(Same(got, Expected({hx.begin(), hx.begin() + counted}, std::plus<float>(), 0.F))) << counted;
  }
}

TEST_P(CountedReduces, AreFoundWhenDeclaredAgainAndCheckedAgainstHostCode) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (const int32_t counted : {5000, 100, 0}) {
    const std::vector<float> hx = AnyOf<float>(rng_, 5000);
    const std::vector<int32_t> hcount{counted};
    for (GraphCache* const cache : {&found, &checked}) {
      std::vector<float> got(1, -1.F);
      absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
        auto x = g.Input<float>("x", 5000), sum = g.Output<float>("sum", 1);
        auto count = g.Input<int32_t>("count", 1);
        g.Reduce("sum", CountOf(count, 5000), Read(x), Write(sum), Plus(), static_cast<float>(counted));
        io.Set(x, hx).Set(count, hcount).Set(sum, got);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      const float none = static_cast<float>(counted);
      EXPECT_TRUE(Same(got[0], Expected({hx.begin(), hx.begin() + counted}, std::plus<float>(), none))) << counted;
    }
  }
  EXPECT_EQ(found.counts().compiled, 1);
}

// Each element is converted before anything is added: sums of int32_t would overflow, and sums of halves end at 65504.
TEST_P(CountedReduces, AndOthersSumUpInTheTypeOfTheResult) {
  constexpr int64_t kN = 5000;
  Graph g("types");
  auto x = g.Input<int32_t>("x", kN);
  auto bytes = g.Input<uint8_t>("bytes", {50, 100});
  auto floats = g.Input<float>("floats", kN);
  auto count = g.Input<int32_t>("count", 1);
  auto sums = g.Output<int64_t>("sums", 3);
  auto precise = g.Output<double>("precise", 1);
  g.Reduce("all", Read(x), Write(sums, Slice({0}, {1})));
  g.Reduce("some", CountOf(count, kN), Read(x), Write(sums, Slice({1}, {1})));
  g.Reduce("bytes", Read(bytes, Slice({1, 2}, {48, 97})), Write(sums, Slice({2}, {1})));
  g.Reduce("precise", Read(floats), Write(precise));
  std::vector<int32_t> hx(kN), hcount{4000};
  std::vector<uint8_t> hbytes(kN);
  std::vector<int64_t> got(3), want(3);
  for (int64_t i = 0; i < kN; ++i) {
    hx[i] = std::numeric_limits<int32_t>::max() - static_cast<int32_t>(rng_() % 1000);
    hbytes[i] = static_cast<uint8_t>(rng_());
    want[0] += hx[i];
    want[1] += i < 4000 ? hx[i] : 0;
    const int64_t row = i / 100, column = i % 100;
    want[2] += row >= 1 && row < 49 && column >= 2 && column < 99 ? hbytes[i] : 0;
  }
  const std::vector<float> hfloats = AnyOf<float>(rng_, kN);
  double got_precise = -1;
  ASSERT_OK(RunOnce(g, [&](Bindings& io) {
    io.Set(x, hx).Set(bytes, hbytes).Set(floats, hfloats).Set(count, hcount).Set(sums, got);
    io.Set(precise, std::span(&got_precise, 1));
  }));
  EXPECT_EQ(got, want);
  const std::vector<double> doubles(hfloats.begin(), hfloats.end());
  EXPECT_TRUE(Same(got_precise, Expected(doubles, std::plus<double>(), 0.0)));
}

INSTANTIATE_TEST_SUITE_P(Host, CountedReduces, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, CountedReduces, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::counted_reduce_test
