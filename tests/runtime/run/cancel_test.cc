// Run::Cancel at every point of a run's life, on host devices.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "tests/support/held_graph.h"
#include "tests/support/kernels.h"

namespace penstock::cancel_test {
namespace {

using std::chrono::milliseconds;

std::string Cancelled(const std::string& graph, int left, int all) {
  return "graph '" + graph + "': cancelled; " + std::to_string(left) + " of " + std::to_string(all) +
         " nodes had not been submitted; what its outputs hold is not known; launch it again to get them";
}

#define EXPECT_CANCELLED(status, graph, left, all)          \
  do {                                                      \
    const absl::Status s = (status);                        \
    EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s; \
    EXPECT_EQ(Text(s), Cancelled(graph, left, all));        \
  } while (false)

class CancelTest : public testing::Test {
 protected:
  penstock::Run Launch(Executable& exec) {
    memory_.push_back(std::make_unique<std::vector<int32_t>>(4));
    Bindings io = exec.bindings();
    return *exec.Launch(io.Set(held_.x, *memory_.back()));
  }
  Executable Compile(int slots = 1) { return *runtime_.Compile(held_.graph, {.slots = slots}); }

  std::vector<std::unique_ptr<std::vector<int32_t>>> memory_;
  HeldGraph held_;
  Runtime runtime_ = HostRuntime();
};

TEST_F(CancelTest, AfterTheEndItLeavesTheNextRunOfTheSlotAlone) {
  Executable exec = Compile();
  const penstock::Run first = Launch(exec);
  held_.latch.Open();
  ASSERT_OK(first.Wait());
  held_.latch.Shut();
  const penstock::Run second = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived(2));
  first.Cancel();
  held_.latch.Open();
  EXPECT_OK(second.Wait());
  EXPECT_EQ(held_.after.load(), 2);
}

TEST_F(CancelTest, InAHostNodeItEndsWhenTheNodeDoesAndNothingFollows) {
  Executable exec = Compile();
  const penstock::Run run = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  run.Cancel();
  EXPECT_FALSE(run.done());
  EXPECT_EQ(run.status().code(), absl::StatusCode::kUnavailable);
  held_.latch.Open();
  EXPECT_CANCELLED(run.Wait(), "held", 1, 2);
  EXPECT_EQ(held_.after.load(), 0);
}

TEST_F(CancelTest, TheSlotServesTheNextRun) {
  Executable exec = Compile();
  const penstock::Run run = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  run.Cancel();
  held_.latch.Open();
  const penstock::Run next = Launch(exec);  // waits for the only slot
  ASSERT_OK(next.Wait());
  EXPECT_EQ((*memory_[1])[0], 1);
  EXPECT_EQ(run.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(CancelTest, WaitingForTheGateOfAHostNodeItEndsAtOnce) {
  Executable exec = Compile(2);
  const penstock::Run first = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  const penstock::Run second = Launch(exec);  // "hold" runs once at a time over all slots
  second.Cancel();
  EXPECT_CANCELLED(second.Wait(), "held", 2, 2);
  EXPECT_FALSE(first.done());
  held_.latch.Open();
  ASSERT_OK(first.Wait());
  EXPECT_EQ(held_.after.load(), 1);
}

TEST_F(CancelTest, WaitingForAWorkerItsNodesAreSkipped) {
  runtime_ = HostRuntime(/*workers=*/1);
  Executable exec = Compile();
  const penstock::Run first = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());  // the only worker is taken
  HeldGraph other;
  Executable other_exec = *runtime_.Compile(other.graph);
  std::vector<int32_t> memory(4);
  Bindings io = other_exec.bindings();
  const penstock::Run second = *other_exec.Launch(io.Set(other.x, memory));
  second.Cancel();
  held_.latch.Open();
  EXPECT_CANCELLED(second.Wait(), "held", 2, 2);
  EXPECT_EQ(other.latch.arrived(), 0);
  ASSERT_OK(first.Wait());
}

// A host fallback holds the device: what is queued behind it is skipped, what it does itself is drained.
struct HeldDevice {
  Graph graph{"device"};
  BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4);
  driver::Latch latch;
  std::atomic<int> calls{0}, later{0};
  explicit HeldDevice(bool with_host_node) {
    graph.Launch(
             "hold", [](LaunchContext&, int32_t*) {}, ReadWrite(x))
        .HostFallback([this](int32_t* v) {
          ++calls;
          latch.Arrive();
          ++v[0];
        });
    graph.Launch("queued", [](LaunchContext&, int32_t*) {}, ReadWrite(x)).HostFallback([this](int32_t*) { ++later; });
    if (with_host_node) graph.Host("host", [this](std::span<int32_t>) { ++later; }, ReadWrite(x));
  }
};

TEST_F(CancelTest, InAKernelWhatIsQueuedIsSkippedAndWhatRunsIsDrained) {
  HeldDevice device(true);
  Executable exec = *runtime_.Compile(device.graph, {.slots = 1});
  std::vector<int32_t> memory(4);
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(device.x, memory));
  ASSERT_TRUE(device.latch.AwaitArrived());
  run.Cancel();
  EXPECT_FALSE(run.done());
  device.latch.Open();
  const absl::Status ended = run.Wait();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled);
  // The worker that submits may not have come to the second kernel yet.
  EXPECT_TRUE(Text(ended) == Cancelled("device", 1, 3) || Text(ended) == Cancelled("device", 2, 3)) << ended;
  EXPECT_EQ(device.later.load(), 0);
}

TEST_F(CancelTest, WhileDrainingItStillEndsCancelled) {
  HeldDevice device(false);
  Executable exec = *runtime_.Compile(device.graph, {.slots = 1});
  auto memory = *runtime_.MakeHostBuffer<int32_t>(4);
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(device.x, memory));  // pinned: all of it is submitted at once
  ASSERT_TRUE(device.latch.AwaitArrived());
  run.Cancel();
  device.latch.Open();
  EXPECT_CANCELLED(run.Wait(), "device", 0, 2);
  EXPECT_EQ(device.later.load(), 0);
}

TEST_F(CancelTest, WaitingForATwinOfAnotherRunItsOwnIsNeverCalled) {
  HeldDevice device(false);
  Executable exec = *runtime_.Compile(device.graph, {.slots = 2});
  auto a = *runtime_.MakeHostBuffer<int32_t>(4), b = *runtime_.MakeHostBuffer<int32_t>(4);
  Bindings io = exec.bindings();
  const penstock::Run first = *exec.Launch(io.Set(device.x, a));
  ASSERT_TRUE(device.latch.AwaitArrived());
  const penstock::Run second = *exec.Launch(io.Set(device.x, b));
  second.Cancel();
  device.latch.Open();
  EXPECT_CANCELLED(second.Wait(), "device", 0, 2);
  ASSERT_OK(first.Wait());
  EXPECT_EQ(device.calls.load(), 1);
}

TEST_F(CancelTest, AfterTheEndItChangesNothing) {
  held_.latch.Open();
  Executable exec = Compile();
  const penstock::Run run = Launch(exec);
  ASSERT_OK(run.Wait());
  run.Cancel();
  EXPECT_OK(run.status());
  penstock::Run().Cancel();  // no execution: nothing to cancel
}

// The second run's "fail" begins only when the first run's has been recorded: one callable runs once at a time.
TEST_F(CancelTest, TheFirstFailureWins) {
  runtime_ = HostRuntime(/*workers=*/4);
  Graph g("fails");
  auto x = g.InOut<int32_t>("x", 4), y = g.InOut<int32_t>("y", 4);
  driver::Latch failing, holding;
  std::atomic<int> calls{0};
  g.Host("hold", [&](std::span<int32_t>) { holding.Arrive(); }, ReadWrite(y)).Concurrency(2);
  g.Host(
      "fail",
      [&](std::span<int32_t>) {
        if (++calls == 2) {
          failing.Arrive();
        } else {
          EXPECT_TRUE(holding.AwaitArrived());
        }
        return absl::DataLossError("bad header");
      },
      ReadWrite(x));
  Executable exec = *runtime_.Compile(g);
  std::vector<int32_t> m[4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  Bindings io = exec.bindings();
  const penstock::Run first = *exec.Launch(io.Set(x, m[0]).Set(y, m[1]));
  const penstock::Run second = *exec.Launch(io.Set(x, m[2]).Set(y, m[3]));
  ASSERT_TRUE(failing.AwaitArrived());
  first.Cancel();
  second.Cancel();
  failing.Open();
  holding.Open();
  EXPECT_EQ(first.Wait().code(), absl::StatusCode::kDataLoss) << first.status();
  EXPECT_EQ(second.Wait().code(), absl::StatusCode::kCancelled) << second.status();
}

TEST_F(CancelTest, ACallableThatReturnsCancelledIsAFailureOfItsNode) {
  Graph g("own");
  auto x = g.InOut<int32_t>("x", 4);
  const Name name = "stop";
  const int line = __LINE__ - 1;
  g.Host(name, [](std::span<int32_t>) { return absl::CancelledError("enough"); }, ReadWrite(x));
  Executable exec = *runtime_.Compile(g);
  std::vector<int32_t> hx(4);
  Bindings io = exec.bindings();
  const absl::Status status = exec.Launch(io.Set(x, hx))->Wait();
  EXPECT_EQ(Text(status), "graph 'own' node 'stop' (cancel_test.cc:" + std::to_string(line) + ") on host: enough");
}

TEST_F(CancelTest, FromAHostNodeOfTheSameRun) {
  Graph g("self");
  auto x = g.InOut<int32_t>("x", 4);
  std::promise<penstock::Run> mine;
  std::atomic<int> after{0};
  g.Host("stop", [run = mine.get_future().share()](std::span<int32_t>) { run.get().Cancel(); }, ReadWrite(x));
  g.Host("after", [&](std::span<int32_t>) { ++after; }, ReadWrite(x));
  Executable exec = *runtime_.Compile(g);
  std::vector<int32_t> hx(4);
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(x, hx));
  mine.set_value(run);
  EXPECT_CANCELLED(run.Wait(), "self", 1, 2);
  EXPECT_EQ(after.load(), 0);
}

TEST_F(CancelTest, FromOnDoneOfItselfAndOfAnotherRun) {
  Executable exec = Compile(2);
  const penstock::Run first = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  const penstock::Run second = Launch(exec);
  std::promise<absl::Status> ended;
  second.OnDone([&, second](const absl::Status& status) {
    second.Cancel();  // has ended: nothing
    first.Cancel();
    ended.set_value(status);
  });
  second.Cancel();
  EXPECT_CANCELLED(ended.get_future().get(), "held", 2, 2);
  EXPECT_CANCELLED(second.status(), "held", 2, 2);
  held_.latch.Open();
  EXPECT_CANCELLED(first.Wait(), "held", 1, 2);
}

TEST_F(CancelTest, WakesAWaiter) {
  Executable exec = Compile(2);
  const penstock::Run first = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  const penstock::Run second = Launch(exec);
  std::promise<void> waiting;
  auto waiter = std::async(std::launch::async, [&] {
    waiting.set_value();
    return second.Wait();
  });
  waiting.get_future().wait();
  for (int i = 0; i < 3; ++i) second.Cancel();
  EXPECT_CANCELLED(waiter.get(), "held", 2, 2);
  held_.latch.Open();
  ASSERT_OK(first.Wait());
}

TEST_F(CancelTest, ADroppedRunMayBeCancelledByTheLastHandle) {
  Executable exec = Compile();
  {
    penstock::Run run = Launch(exec);
    ASSERT_TRUE(held_.latch.AwaitArrived());
    run.Cancel();
  }
  held_.latch.Open();
  ASSERT_OK(Launch(exec).Wait());
  EXPECT_EQ(held_.after.load(), 1);
}

TEST_F(CancelTest, ACancelledRunThatIsAbandonedSaysBoth) {
  Executable exec = Compile();
  const penstock::Run run = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  run.Cancel();
  EXPECT_EQ(runtime_.Shutdown(milliseconds(0)).code(), absl::StatusCode::kDeadlineExceeded);
  const absl::Status status = run.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Text(status),
            "graph 'held': the runtime was shut down before the run's work had drained; it is abandoned and its slot "
            "comes back when the work ends; until then the memory bound to 'x' must stay valid; it had been cancelled "
            "before");
  run.Cancel();
  EXPECT_EQ(run.status(), status);
  held_.latch.Open();
  ASSERT_OK(runtime_.Shutdown());
}

// Cancelling, waiting, dropping and completing race; every run ends one way or the other and the numbers add up.
TEST_F(CancelTest, RacesWithCompletionAndDroppedHandles) {
  Graph g("race");
  auto x = g.InOut<int32_t>("x", 64);
  g.ParallelFor("first", 64, AddOne{}, ReadWrite(x));
  g.Host("middle", [](std::span<int32_t> v) { ++v[0]; }, ReadWrite(x)).Concurrency(4);
  g.ParallelFor("last", 64, AddOne{}, ReadWrite(x));
  Executable exec = *runtime_.Compile(g, {.slots = 3});
  constexpr int kThreads = 3, kRuns = 60;
  std::atomic<int> wrong{0}, called{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(20261121u + static_cast<unsigned>(t));
      Bindings io = exec.bindings();
      for (int i = 0; i < kRuns; ++i) {
        auto memory = std::make_shared<std::vector<int32_t>>(64, i);
        penstock::Run run = *exec.Launch(io.Set(x, *memory, memory));
        run.OnDone([&](const absl::Status&) { ++called; });
        std::thread other;
        const unsigned way = rng() % 4;
        if (way == 1) run.Cancel();
        if (way == 2) other = std::thread([copy = run] { copy.Cancel(); });
        for (unsigned spin = rng() % 50; spin > 0; --spin) std::this_thread::yield();
        if (way == 3) {
          run.Cancel();
          run = penstock::Run();  // dropped in flight
        } else {
          const absl::Status status = run.Wait();
          const bool done = status.ok() && (*memory)[0] == i + 3 && (*memory)[63] == i + 2;
          if (!done && (way == 0 || status.code() != absl::StatusCode::kCancelled)) ++wrong;
        }
        if (other.joinable()) other.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  ASSERT_OK(runtime_.Shutdown());
  EXPECT_EQ(called.load(), kThreads * kRuns);
}

}  // namespace
}  // namespace penstock::cancel_test
