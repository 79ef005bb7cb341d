// ParallelFor over a CountOf: indices below what the device counts, and no others, whatever the count is.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::count_of_test {
namespace {

constexpr int64_t kMost = 3000;

struct AddAt {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> x, View<int32_t> y, int32_t by) const {
    y(i) = y(i) + x(i) * by;
  }
};
template <class C>
struct Half {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<C> count) const { count(0) = count(0) / 2; }
};
struct Twice {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> x, View<int32_t> y) const {
    y(i) = static_cast<int32_t>(2U * static_cast<uint32_t>(x(i)));
  }
};
struct IsMore {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> count) const { return count(0) > 0; }
};

class Counts : public GraphConformance {
 protected:
  // y[i] += by * x[i] for the indices below the count, which a node computes as half of what is given.
  template <class C>
  void StopAt(C twice, int64_t expected) {
    Graph g("counted");
    auto n = g.Param<int64_t>("n", AtMost(kMost));
    auto by = g.Param<int32_t>("by");
    auto given = g.Input<C>("given", 3);
    auto count = g.Buffer<C>("count", 3);
    auto x = g.Input<int32_t>("x", n);
    auto y = g.InOut<int32_t>("y", n);
    g.Copy("set", given, count);
    g.ParallelFor("half", 1, Half<C>{}, ReadWrite(count, Slice({1}, {1})));
    g.ParallelFor("add", CountOf(Read(count, Slice({1}, {1})), n), AddAt{}, Read(x), ReadWrite(y), by);
    auto exec = runtime_->Compile(g);
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (const int64_t most : {kMost, int64_t{0}, int64_t{700}}) {
      const std::vector<int32_t> hx = Random(most);
      std::vector<int32_t> hy = Random(most), want = hy;
      const std::vector<C> counts{7, twice, 9};
      const int64_t below = std::min(expected, most);
      for (int64_t i = 0; i < below; ++i) want[static_cast<size_t>(i)] += 3 * hx[static_cast<size_t>(i)];
      io.Set(n, most).Set(by, 3).Set(given, counts).Set(x, hx);
      auto run = exec->Launch(io.Set(y, hy));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(hy, want) << below << " of " << most;
    }
  }
};

TEST_P(Counts, EndTheIndicesOfANode) {
  for (const int32_t count : {0, 1, 31, 255, 256, 257, 2999, 3000}) StopAt<int32_t>(2 * count, count);
}
TEST_P(Counts, OutsideTheirRangeCountAsItsEnds) {
  StopAt<int64_t>(-10, 0);
  StopAt<int64_t>(std::numeric_limits<int64_t>::min(), 0);
  StopAt<int64_t>(std::numeric_limits<int64_t>::max(), kMost);
  StopAt<uint64_t>(std::numeric_limits<uint64_t>::max(), kMost);
  StopAt<int8_t>(-2, 0);
  StopAt<uint8_t>(254, 127);
  StopAt<uint16_t>(65535, kMost);
  StopAt<int32_t>(7000, kMost);
}

TEST_P(Counts, ChangeInALoopAndComeFromStates) {
  auto state = runtime_->MakeState<int32_t>("count", 1);
  ASSERT_OK(state.status());
  ASSERT_OK(state->Set(std::vector<int32_t>{1000}));
  Graph g("loop");
  auto x = g.Input<int32_t>("x", kMost);
  auto y = g.InOut<int32_t>("y", kMost);
  g.While("while", When(IsMore{}, Read(*state)), {.max = 40}, [&](Graph& body) {
    body.ParallelFor("add", CountOf(Read(*state), kMost), AddAt{}, Read(x), ReadWrite(y), 1);
    body.ParallelFor("half", 1, Half<int32_t>{}, ReadWrite(*state));
  });
  const std::vector<int32_t> hx = Random(kMost);
  std::vector<int32_t> hy = Random(kMost), want = hy;
  for (size_t count = 1000; count > 0; count /= 2) {
    for (size_t i = 0; i < count; ++i) want[i] += hx[i];
  }
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  EXPECT_EQ(hy, want);
}

// Graphs then have the other instance of the code.
TEST_P(Counts, GoWithParametersThatComeByReference) {
  constexpr int kNodes = 20;
  Graph g("by reference");
  auto count = g.Input<int32_t>("count", 1, kPinned);
  auto x = g.Input<int32_t>("x", 600, kPinned);
  auto y = g.InOut<int32_t>("y", 600, kPinned);
  std::vector<ParamHandle<int32_t>> by;
  for (int i = 0; i < kNodes; ++i) {
    by.push_back(g.Param<int32_t>(Name("by", i)));
    g.ParallelFor(Name("add", i), CountOf(count, 600), AddAt{}, Read(x), ReadWrite(y), by.back());
  }
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  auto hcount = runtime_->MakeHostBuffer<int32_t>(1);
  auto hx = runtime_->MakeHostBuffer<int32_t>(600), hy = runtime_->MakeHostBuffer<int32_t>(600);
  ASSERT_TRUE(hcount.ok() && hx.ok() && hy.ok());
  Bindings io = exec->bindings();
  io.Set(count, *hcount).Set(x, *hx).Set(y, *hy);
  for (int32_t round = 0; round < 14; ++round) {
    const std::vector<int32_t> values = Random(600);
    std::vector<int32_t> want(600, round);
    (*hcount)[0] = 37 * round;
    std::copy(values.begin(), values.end(), hx->begin());
    std::fill(hy->begin(), hy->end(), round);
    for (int i = 0; i < kNodes; ++i) {
      io.Set(by[static_cast<size_t>(i)], (7 * round + i) % 50);
      for (size_t k = 0; k < std::min<size_t>(37 * round, 600); ++k) want[k] += values[k] * ((7 * round + i) % 50);
    }
    auto run = exec->Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    ASSERT_EQ(std::vector<int32_t>(hy->begin(), hy->end()), want) << round;
  }
  EXPECT_EQ(exec->submission_report().refreshes > 0, in_graphs() && !GetParam().resident);
}

TEST_P(Counts, AreFoundWhenDeclaredAgainAndCheckedAgainstHostCode) {
  GraphCache found(*runtime_), checked(*runtime_, {.compile = {.check_against_host = true}});
  for (int32_t round = 0; round < 3; ++round) {
    const std::vector<int32_t> hcount{100 * round}, hx = Random(500);
    std::vector<int32_t> want(500, 1);
    for (size_t i = 0; i < static_cast<size_t>(100 * round); ++i) want[i] += hx[i] * round;
    for (GraphCache* const cache : {&found, &checked}) {
      std::vector<int32_t> hy(500, 1);
      absl::StatusOr<penstock::Run> run = cache->Launch([&](Graph& g, Bindings& io) {
        auto count = g.Input<int32_t>("count", 1);
        auto x = g.Input<int32_t>("x", 500);
        auto y = g.InOut<int32_t>("y", 500);
        g.ParallelFor("add", CountOf(count, 500), AddAt{}, Read(x), ReadWrite(y), round);
        io.Set(count, hcount).Set(x, hx).Set(y, hy);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(hy, want);
    }
  }
  EXPECT_EQ(found.counts().compiled, 1);
}

// A node that says Write ends before the elements do, so what lies behind is neither stale nor compared.
TEST_P(Counts, KeepWhatLiesBehindThem) {
  for (const bool checked : {false, true}) {
    Graph g("tail");
    auto x = g.Input<int32_t>("x", 4000), count = g.Input<int32_t>("count", 1);
    auto y = g.Output<int32_t>("y", 4000);
    g.ParallelFor("use", CountOf(count, 4000), Twice{}, Read(x), Write(y));
    auto exec = runtime_->Compile(g, {.check_against_host = checked});
    ASSERT_OK(exec.status());
    const std::vector<int32_t> from = Random(4000), ten = {10};
    std::vector<int32_t> to(4000, 77), expected = to;
    for (size_t i = 0; i < 10; ++i) expected[i] = static_cast<int32_t>(2U * static_cast<uint32_t>(from[i]));
    Bindings io = exec->bindings();
    auto run = exec->Launch(io.Set(x, from).Set(count, ten).Set(y, to));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(to, expected) << checked;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Counts, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Counts, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::count_of_test
