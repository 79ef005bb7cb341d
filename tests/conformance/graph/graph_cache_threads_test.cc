// A GraphCache that many threads launch on: each run has the values of its own step, no graph is compiled twice, and no
// thread waits for what another declares.
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"
#include "tests/support/latch.h"

namespace penstock::conformance::graph_cache_threads_test {
namespace {

constexpr int kThreads = 4;

struct Scale {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* x, int32_t* y) const { y[i] = x[i] * by; }
};

class CacheThreads : public GraphConformance {
 protected:
  // A step of `n` elements whose values are all its own: y = (x * by + add) + 1, noted by a host node.
  struct Step {
    Step(int64_t n, std::mt19937& random)
        : x(static_cast<size_t>(n), static_cast<int32_t>(random() % 1000)),
          y(static_cast<size_t>(n), -1),
          by(static_cast<int32_t>(random() % 100)),
          add(static_cast<int32_t>(random() % 100)) {}
    void operator()(Graph& g, Bindings& io) {
      const auto n = static_cast<int64_t>(x.size());
      const auto scope = g.Scope("step");
      auto in = g.Input<int32_t>("x", n);
      auto out = g.Output<int32_t>("y", n);
      auto p = g.Param<int32_t>("p");
      g.ParallelFor("scale", n, Scale{by}, Read(in), Write(out));
      g.ParallelFor("add", n, AddValue{}, ReadWrite(out), p);
      g.Host("note", [this](std::span<int32_t> v) { noted = ++v[0]; }, ReadWrite(out));
      io.Set(in, x).Set(out, y).Set(p, add);
    }
    void ExpectRight() const {
      const int32_t expected = x[0] * by + add;
      EXPECT_EQ(noted, expected + 1);
      EXPECT_EQ(y[0], expected + 1);
      for (size_t i = 1; i < y.size(); ++i) ASSERT_EQ(y[i], expected) << i;
    }
    std::vector<int32_t> x, y;
    int32_t by, add, noted = 0;
  };
  static void RunStep(GraphCache& cache, Step& step) {
    auto run = cache.Launch(step);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    step.ExpectRight();
  }
  // Each thread runs steps whose sizes `size_of` gives, beginning at the same time.
  template <class SizeOf>
  static void RunAll(GraphCache& cache, int each, SizeOf size_of) {
    std::barrier<> begin(kThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<uint32_t>(t));
        begin.arrive_and_wait();
        for (int n = 0; n < each && !HasFailure(); ++n) {
          Step step(size_of(t, n), random);
          RunStep(cache, step);
        }
      });
    }
  }
  GraphCache Made(int limit, int slots) { return GraphCache(*runtime_, {limit, {.slots = slots}}); }
};

TEST_P(CacheThreads, OneGraphIsCompiledOnceAndEachRunHasItsOwnValues) {
  constexpr int kEach = 20;
  GraphCache cache = Made(8, 2);
  RunAll(cache, kEach, [](int, int) { return 100; });
  EXPECT_EQ(cache.counts().compiled, 1);
  EXPECT_EQ(cache.counts().found, kThreads * kEach - 1);
}

TEST_P(CacheThreads, SeveralGraphsAreCompiledOnceEach) {
  constexpr int kEach = 24;
  GraphCache cache = Made(8, 2);
  RunAll(cache, kEach, [](int t, int n) { return 50 + (t + n) % 3; });
  EXPECT_EQ(cache.counts().compiled, 3);
  EXPECT_EQ(cache.counts().found, kThreads * kEach - 3);
  EXPECT_EQ(cache.counts().evicted, 0);
}

// What one thread has compiled others evict, while it launches that.
TEST_P(CacheThreads, MoreGraphsThanTheLimitTakeTurns) {
  constexpr int kEach = 6;
  GraphCache cache = Made(1, 1);
  RunAll(cache, kEach, [](int t, int n) { return 50 + (t + n) % 3; });
  const GraphCacheCounts counts = cache.counts();
  EXPECT_EQ(counts.found + counts.compiled, kThreads * kEach);
  EXPECT_EQ(counts.compiled - counts.evicted, 1);
}

// One thread is in its function with the only other graph, new or known; the test launches on.
TEST_P(CacheThreads, NoneWaitsForAnothersDeclaration) {
  GraphCache cache = Made(8, 2);
  std::mt19937 random(1);
  for (const bool known : {false, true}) {
    SCOPED_TRACE(known ? "known" : "new");
    driver::Latch inside;
    std::jthread slow([&] {
      std::mt19937 other(2);
      Step step(70, other);
      auto run = cache.Launch([&](Graph& g, Bindings& io) {
        inside.Arrive();
        step(g, io);
      });
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      step.ExpectRight();
    });
    EXPECT_TRUE(inside.AwaitArrived());
    for (const int64_t n : {70, 80, 70, 80}) {
      Step step(n, random);
      RunStep(cache, step);
    }
    inside.Open();
  }
  EXPECT_EQ(cache.counts().compiled, 2);
}

TEST_P(CacheThreads, OneThatWaitsForAnothersCompilationGivesUpAtItsDeadline) {
  GraphCache cache = Made(1, 1);
  driver::Latch inside;
  std::mt19937 random(1);
  const auto held = [&](Graph& g) { g.Host("held", [&] { inside.Arrive(); }); };
  auto run = cache.Launch(held);
  ASSERT_OK(run.status());
  ASSERT_TRUE(inside.AwaitArrived());
  std::jthread waits([&] {  // has the turn to compile, and waits for room
    Step step(60, random);
    RunStep(cache, step);
  });
  std::mt19937 other(2);
  Step step(70, other);
  // Which of the two waits comes first does not matter: nothing is started before there is room.
  const absl::Status late = cache.Launch(step, std::chrono::milliseconds(5)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  inside.Open();
  EXPECT_OK(run->Wait());
  waits.join();
  RunStep(cache, step);
}

INSTANTIATE_TEST_SUITE_P(Host, CacheThreads, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, CacheThreads, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::graph_cache_threads_test
