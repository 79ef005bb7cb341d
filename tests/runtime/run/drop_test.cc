// Dropping everything a run needs, in every order, while it is in flight: nothing crashes, hangs or leaks, and the run
// does all its work.
//
// Six things are dropped: the run's handle, the executable, the graph, the bindings, the pinned buffer bound to it and
// the runtime. The runtime's destructor waits for the run, so it is destroyed by a thread of its own, and the run is
// let go only when every other thing has been dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "penstock/graph.h"
#include "tests/support/held_graph.h"
#include "tests/support/kernels.h"
#include "tests/support/sanitized.h"

namespace penstock::drop_test {
namespace {

enum Thing { kRun, kExecutable, kGraph, kBindings, kBuffer, kRuntime, kThings };
constexpr const char* kNames[kThings] = {"run", "executable", "graph", "bindings", "buffer", "runtime"};

// What outlives everything: a callable's state, and what it saw.
struct Outside {
  driver::Latch latch;
  std::atomic<int> sum{0};
};

struct Inside {
  std::optional<Runtime> runtime = HostRuntime(/*workers=*/1);
  std::optional<Graph> graph = Graph("dropped");
  std::optional<Executable> executable;
  std::optional<Bindings> bindings;
  std::optional<HostBuffer<int32_t>> buffer;
  std::optional<penstock::Run> run;

  explicit Inside(std::shared_ptr<Outside> outside, bool cancel) {
    auto x = graph->InOut<int32_t>("x", 4);
    graph->ParallelFor("add", 4, AddOne{}, ReadWrite(x));
    graph->Host("hold", [outside](std::span<int32_t>) { outside->latch.Arrive(); }, ReadWrite(x));
    graph->ParallelFor("again", 4, AddOne{}, ReadWrite(x));
    graph->Host(
        "see",
        [outside](std::span<const int32_t> v) {
          for (const int32_t e : v) outside->sum += e;
        },
        Read(x));
    executable = *runtime->Compile(*graph);
    buffer = *runtime->MakeHostBuffer<int32_t>(4);
    std::fill(buffer->begin(), buffer->end(), 40);
    bindings = executable->bindings();
    run = *executable->Launch(bindings->Set(x, *buffer));
    EXPECT_TRUE(outside->latch.AwaitArrived());
    if (cancel) run->Cancel();
  }

  void Drop(int thing) {
    switch (thing) {
      case kRun: return run.reset();
      case kExecutable: return executable.reset();
      case kGraph: return graph.reset();
      case kBindings: return bindings.reset();
      case kBuffer: return buffer.reset();
      default: break;
    }
  }
};

enum class Life { kRunning, kCancelled, kReleased };  // of the run: released first, it ends while things are dropped

void DropAll(const std::array<int, kThings>& order, Life life) {
  auto outside = std::make_shared<Outside>();
  Inside inside(outside, life == Life::kCancelled);
  std::thread destroyer;
  if (life == Life::kReleased) outside->latch.Open();
  for (const int thing : order) {
    if (thing != kRuntime) {
      inside.Drop(thing);
      continue;
    }
    std::promise<void> begun;
    destroyer = std::thread([&] {
      begun.set_value();
      inside.runtime.reset();
    });
    begun.get_future().wait();
  }
  outside->latch.Open();
  destroyer.join();
  EXPECT_EQ(outside->sum.load(), life == Life::kCancelled ? 0 : 4 * 42);
  EXPECT_EQ(outside.use_count(), 1) << "the callables are still there";
}

std::string Text(const std::array<int, kThings>& order) {
  std::string text;
  for (const int thing : order) text += std::string(kNames[thing]) + " ";
  return text;
}

// Every `step`-th order; PENSTOCK_ALL_ORDERS=1: every one.
void DropInOrders(Life life, int step) {
  if (kSanitized) step *= 3;
  if (std::getenv("PENSTOCK_ALL_ORDERS") != nullptr) step = 1;
  std::array<int, kThings> order = {kRun, kExecutable, kGraph, kBindings, kBuffer, kRuntime};
  int round = 0;
  do {
    if (round++ % step == 0) DropAll(order, life);
    ASSERT_FALSE(testing::Test::HasFailure()) << Text(order);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(round, 720);
}

TEST(DropTest, InManyOrdersWithWorkInFlight) { DropInOrders(Life::kRunning, 7); }
TEST(DropTest, InManyOrdersWhenCancelled) { DropInOrders(Life::kCancelled, 31); }
TEST(DropTest, InManyOrdersWhileTheRunEnds) { DropInOrders(Life::kReleased, 31); }

// A callback may be the last to hold anything.
TEST(DropTest, TheLastHandlesMayGoInACallbackOfTheRun) {
  for (int i = 0; i < 10; ++i) {
    auto outside = std::make_shared<Outside>();
    std::promise<void> done;
    Runtime runtime = HostRuntime();
    {
      Inside inside(outside, false);
      runtime = *std::move(inside.runtime);
      auto executable = std::make_shared<Executable>(*inside.executable);
      auto run = std::make_shared<penstock::Run>(*inside.run);
      inside.run->OnDone([executable, run, &done](const absl::Status&) mutable {
        executable.reset();
        run.reset();
        done.set_value();
      });
    }
    outside->latch.Open();
    done.get_future().wait();
    ASSERT_OK(runtime.Shutdown());
    EXPECT_EQ(outside.use_count(), 1);
  }
}

// Nothing for a worker to do, and nobody who waits: the last handle hands the run over.
TEST(DropTest, ARunThatNobodyHoldsStillEnds) {
  Runtime runtime = HostRuntime();
  driver::Latch latch;
  Graph g("alone");
  auto x = g.InOut<int32_t>("x", 4, kPinned);
  g.Launch("hold", [](LaunchContext&, int32_t*) {}, ReadWrite(x)).HostFallback([&](int32_t*) { latch.Arrive(); });
  Executable executable = *runtime.Compile(g, {.slots = 1});
  HostBuffer<int32_t> memory = *runtime.MakeHostBuffer<int32_t>(4);
  auto kept = std::make_shared<int>(1);
  {
    Bindings io = executable.bindings();
    const penstock::Run run =
        *executable.Launch(io.Set(x, std::span<int32_t>(memory.data(), 4), std::shared_ptr<const void>(kept)));
    ASSERT_TRUE(latch.AwaitArrived());
  }
  latch.Open();
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (kept.use_count() > 1 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(kept.use_count(), 1) << "the run has not ended";
}

}  // namespace
}  // namespace penstock::drop_test
