// What a launch of something compiled costs: nothing is allocated and no lock is taken for each node.
//
// Counted on a driver that does nothing, so that only the runtime's own work is seen. What a run allocates whatever its
// size is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/runtime/graph_exec/counted_calls.h"
#include "tests/support/null_driver.h"
#include "tests/support/status.h"

namespace penstock::replay_cost_test {
namespace {

constexpr int kWarmUps = 5, kRuns = 20;

struct Step {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<float> x, float a) const { x(i) += a; }
};
void StepKernel(float*, float, int32_t) {}

class ReplayCost : public testing::Test {
 protected:
  void SetUp() override { Open(0); }
  void Open(int submission_threads) {
    runtime_.reset();
    runtime::DriverHook hook;
    hook.wrap = [this](std::unique_ptr<driver::Driver>) {
      auto null = std::make_unique<runtime::NullDriver>();
      driver_ = null.get();
      return null;
    };
    const runtime::ScopedDriverHook scope(hook);
    auto made = Runtime::Create(
        {.devices = "host", .workers = 1, .host_device_threads = 1, .submission_threads = submission_threads});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }

  // The least that any of a number of runs of `graph` cost, once it has run a few times.
  CountedCalls Measure(const Graph& graph, BufferHandle<float> x, ParamHandle<float> a, ParamHandle<int32_t> n,
                       bool all_threads, Mode mode, Lowering constructs = Lowering::kAuto) {
    auto exec = runtime_->Compile(graph, {.slots = 1, .mode = mode, .constructs = constructs});
    EXPECT_EQ(exec.status(), absl::OkStatus());
    if (!exec.ok()) return {};
    auto memory = std::make_shared<std::vector<float>>(64);
    Bindings io = exec->bindings();
    io.Set(x, std::span<float>(memory->data(), 64), memory);
    CountedCalls least{INT64_MAX, INT64_MAX};
    for (int r = 0; r < kWarmUps + kRuns; ++r) {
      const CountedCalls before = all_threads ? CallsOfAllThreads() : CallsOfThisThread();
      auto run = exec->Launch(io.Set(a, static_cast<float>(r)).Set(n, r % 64));
      if (!run.ok() || !run->Wait().ok()) {
        ADD_FAILURE() << "run " << r << ": " << (run.ok() ? run->Wait() : run.status());
        return {};
      }
      const CountedCalls cost = (all_threads ? CallsOfAllThreads() : CallsOfThisThread()) - before;
      if (r < kWarmUps) continue;
      least = {std::min(least.allocations, cost.allocations), std::min(least.locks, cost.locks)};
    }
    return least;
  }

  // `declare` adds node i. Gives the costs with 10 and with 1000 nodes.
  template <class F>
  std::pair<CountedCalls, CountedCalls> Compare(F declare, bool all_threads = false, Mode mode = Mode::kStream) {
    CountedCalls cost[2];
    const int sizes[2] = {10, 1000};
    for (int s = 0; s < 2; ++s) {
      Graph graph("g");
      const auto a = graph.Param<float>("a");
      const auto n = graph.Param<int32_t>("n", AtMost(64));
      const auto x = graph.InOut<float>("x", 64, kPinned);
      for (int i = 0; i < sizes[s]; ++i) declare(graph, "n" + std::to_string(i), i, x, a, n);
      cost[s] = Measure(graph, x, a, n, all_threads, mode);
      std::cout << sizes[s] << " nodes: " << cost[s].allocations << " allocations, "
                << (LocksAreCounted() ? std::to_string(cost[s].locks) : "(not counted)") << " locks a run\n";
    }
    return {cost[0], cost[1]};
  }

  // The same of steps that are declared anew, each with other values.
  CountedCalls MeasureAgain(int nodes, bool all_threads, Mode mode, bool host) {
    std::vector<std::string> names;
    for (int i = 0; i < nodes; ++i) names.push_back("n" + std::to_string(i));
    GraphCache cache(*runtime_, {.compile = {.slots = 1, .mode = mode}});
    auto memory = std::make_shared<std::vector<float>>(64);
    CountedCalls least{INT64_MAX, INT64_MAX};
    for (int r = 0; r < kWarmUps + kRuns; ++r) {
      const auto value = static_cast<float>(r);
      const CountedCalls before = all_threads ? CallsOfAllThreads() : CallsOfThisThread();
      auto run = cache.Launch([&](Graph& g, Bindings& io) {
        const auto x = g.InOut<float>("x", 64, kPinned);
        const auto y = g.Buffer<float>("y", 64);
        const auto n = g.Param<int32_t>("n", AtMost(64));
        io.Set(x, std::span<float>(memory->data(), 64), memory).Set(n, r % 64);
        for (int i = 0; i < nodes; ++i) {
          const char* const name = names[static_cast<size_t>(i)].c_str();
          if (host) {
            g.Host(name, [value](std::span<float>, float) { (void)value; }, ReadWrite(x), value).Concurrency(2);
          } else if (i % 4 == 0) {
            g.Fill(name, Write(y, Slice(0, n)), value).Priority(1);
          } else if (i % 4 == 1) {
            g.Kernel(name, &StepKernel, Threads(n), ReadWrite(x), value, n)
                .HostFallback([value](float*, float, int32_t) { (void)value; });
          } else {
            g.ParallelFor(name, 64, Step{}, ReadWrite(i % 4 == 2 ? x : y), value);
          }
        }
      });
      if (!run.ok() || !run->Wait().ok()) {
        ADD_FAILURE() << "run " << r << ": " << run.status();
        return {};
      }
      const CountedCalls cost = (all_threads ? CallsOfAllThreads() : CallsOfThisThread()) - before;
      if (r < kWarmUps) continue;
      least = {std::min(least.allocations, cost.allocations), std::min(least.locks, cost.locks)};
    }
    EXPECT_EQ(cache.counts().found, kWarmUps + kRuns - 1);
    std::cout << nodes << " nodes declared again: " << least.allocations << " allocations, " << least.locks
              << " locks a run\n";
    return least;
  }

  std::optional<Runtime> runtime_;
  runtime::NullDriver* driver_ = nullptr;
};

using X = BufferHandle<float>;
using A = ParamHandle<float>;
using N = ParamHandle<int32_t>;

TEST_F(ReplayCost, OfAChainDoesNotGrowWithItsNodes) {
  const auto [small, large] = Compare(
      [](Graph& g, const std::string& name, int, X x, A a, N) { g.ParallelFor(name, 64, Step{}, ReadWrite(x), a); });
  EXPECT_EQ(small, large);
  EXPECT_GT(driver_->calls(), kRuns * 1000);
}

// But for the event count's lock, where submission threads sleep.
TEST_F(ReplayCost, OfWhatFeedersHelpWithDoesNotGrowWithItsNodes) {
  Open(2);
  const auto [small, large] = Compare([](Graph& g, const std::string& name, int i, X x, A a, N) {
    g.ParallelFor(name, 16, Step{}, ReadWrite(x, Slice({i % 4 * 16}, {16})), a);
  });
  EXPECT_EQ(small.allocations, large.allocations);
  EXPECT_LE(large.locks, small.locks + 2);
}

// Half of the nodes take the parameter that is another one in each run.
TEST_F(ReplayCost, OfGraphsDoesNotGrowWithTheirNodesThoughTheyAreSet) {
  const auto [small, large] = Compare(
      [](Graph& g, const std::string& name, int i, X x, A a, N n) {
        if (i % 2 == 0) g.ParallelFor(name, 64, Step{}, ReadWrite(x), a);
        else g.Fill(name, Write(x, Slice(0, n)), 1.f);
      },
      /*all_threads=*/false, Mode::kGraph);
  EXPECT_EQ(small, large);
  EXPECT_GT(driver_->calls(), kRuns * 500);
}

TEST_F(ReplayCost, OfKernelsWhoseGridIsAParameterDoesNotGrowWithTheirNumber) {
  const auto [small, large] = Compare([](Graph& g, const std::string& name, int, X x, A a, N n) {
    g.Kernel(name, &StepKernel, Threads(n), ReadWrite(x), a, n).HostFallback([](float*, float, int32_t) {});
  });
  EXPECT_EQ(small, large);
}

TEST_F(ReplayCost, OfLanesThatWaitForEachOtherDoesNotGrowWithTheirNodes) {
  std::optional<X> buffers[4];
  const auto [small, large] = Compare([&](Graph& g, const std::string& name, int i, X x, A a, N n) {
    if (i == 0) {
      for (int b = 0; b < 4; ++b) {
        buffers[b] = g.Buffer<float>("b" + std::to_string(b), n);
        g.Fill("fill" + std::to_string(b), *buffers[b], 1.f);
      }
    }
    const X from = *buffers[i % 4], to = *buffers[(i + 1) % 4];
    g.ParallelFor(name, n, [](int64_t, View<const float>, View<float>, float) {}, Read(from), ReadWrite(to), a);
    g.ParallelFor(name + "x", 64, Step{}, ReadWrite(i % 8 == 0 ? x : from), a);
  });
  EXPECT_EQ(small, large);
}

TEST_F(ReplayCost, OfCopiesBackAndForthAllocatesNothingANode) {
  const auto [small, large] = Compare(
      [](Graph& g, const std::string& name, int i, X x, A a, N) {
        if (i % 2 == 0) g.ParallelFor(name, 64, Step{}, ReadWrite(x), a);
        else g.Host(name, [](std::span<float>) {}, ReadWrite(x));
      },
      /*all_threads=*/true);
  EXPECT_EQ(small.allocations, large.allocations);
}

TEST_F(ReplayCost, OfHostNodesAllocatesNothingANode) {
  const auto [small, large] = Compare([](Graph& g, const std::string& name, int, X x, A a,
                                         N) { g.Host(name, [](std::span<float>, float) {}, ReadWrite(x), a); },
                                      /*all_threads=*/true);
  EXPECT_EQ(small.allocations, large.allocations);
}

// Each run has other values for the nodes in the body, and another number of iterations.
TEST_F(ReplayCost, OfConstructsDoesNotGrowWithTheNodesInThem) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    for (const Lowering lowering : {Lowering::kHost, Lowering::kDevice}) {
      CountedCalls cost[2];
      const int sizes[2] = {10, 1000};
      for (int s = 0; s < 2; ++s) {
        Graph graph("g");
        const auto a = graph.Param<float>("a");
        const auto n = graph.Param<int32_t>("n", AtMost(64));
        const auto x = graph.InOut<float>("x", 64, kPinned);
        graph.Repeat("loop", n, [&](Graph& body) {
          for (int i = 0; i < sizes[s]; ++i) {
            body.ParallelFor("n" + std::to_string(i), 64, Step{}, ReadWrite(x), a);
          }
        });
        const int64_t before = driver_->calls();
        cost[s] = Measure(graph, x, a, n, /*all_threads=*/true, mode, lowering);
        const bool sets = lowering == Lowering::kDevice || mode == Mode::kGraph;  // nodes of a graph, once a run
        EXPECT_GT(driver_->calls() - before, kRuns * sizes[s] * (sets ? 1 : 5));
        std::cout << sizes[s] << " nodes in a loop: " << cost[s].allocations << " allocations a run\n";
      }
      EXPECT_EQ(cost[0].allocations, cost[1].allocations);
    }
  }
}

TEST_F(ReplayCost, OfStepsDeclaredAgainDoesNotGrowWithTheirNodes) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    const CountedCalls small = MeasureAgain(10, /*all_threads=*/false, mode, /*host=*/false);
    const CountedCalls large = MeasureAgain(1000, /*all_threads=*/false, mode, /*host=*/false);
    EXPECT_EQ(small, large);
  }
}

TEST_F(ReplayCost, OfHostNodesDeclaredAgainAllocatesNothingANode) {
  const CountedCalls small = MeasureAgain(10, /*all_threads=*/true, Mode::kStream, /*host=*/true);
  const CountedCalls large = MeasureAgain(1000, /*all_threads=*/true, Mode::kStream, /*host=*/true);
  EXPECT_EQ(small.allocations, large.allocations);
}

}  // namespace
}  // namespace penstock::replay_cost_test
