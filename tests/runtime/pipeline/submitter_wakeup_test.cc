// Who waits in a pipeline asleep is woken when there is something to see, and sleeps while there is not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "penstock/pipeline.h"
#include "tests/support/asleep.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::submitter_wakeup_test {
namespace {

struct Arrive {
  driver::Latch* latch;
  PENSTOCK_HOST_DEVICE void operator()(int64_t) const { latch->Arrive(); }
};

// Whether devices ring an event count; CUDA's do not.
class PipelineWakeupTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Rings, PipelineWakeupTest, ::testing::Bool());

// A consumer sleeps in Pop, since nothing is in flight. Nobody but the first run that comes to be in flight tells it to
// look: who has pushed goes away while that runs, and the runtime's threads leave looking to who waits.
TEST_P(PipelineWakeupTest, AConsumerThatSleepsLooksOnceARunIsInFlight) {
  driver::Latch latch;
  Runtime runtime = HostRuntimeThatRings(GetParam());
  Graph graph("hold");
  graph.ParallelFor("hold", 1, Arrive{&latch});
  Stages<> stages;
  stages.Run("hold", *runtime.Compile(graph, {.slots = 1}));
  auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 2});
  for (int round = 1; round <= 3; ++round) {
    std::promise<pid_t> thread;
    std::jthread consumer([&] {
      thread.set_value(gettid());
      EXPECT_OK(pipe.Pop(std::chrono::minutes(1)).status());
    });
    EXPECT_TRUE(test_support::FallsAsleep(thread.get_future().get()));
    ASSERT_OK(pipe.TryPush({}));
    EXPECT_TRUE(latch.AwaitArrived(round));
    latch.Open();
    consumer.join();
    latch.Shut();
  }
}

// Who has slept since before there was a deadline wakes at it. Nobody else moves the pipeline on.
TEST_P(PipelineWakeupTest, AConsumerThatSleepsWakesAtADeadlineThatCameLater) {
  driver::Latch latch;
  Runtime runtime = HostRuntimeThatRings(GetParam());
  Graph graph("nothing");
  graph.Host("nothing", [] {});
  Stages<int> stages;
  stages.Host("hold", [&](int&) { latch.Arrive(); });
  stages.Run("nothing", *runtime.Compile(graph));
  auto pipe = *Pipeline<int>::Create(std::move(stages), {.window = 2, .order = kAsReady});
  ASSERT_OK(pipe.Push(1));
  ASSERT_TRUE(latch.AwaitArrived());
  std::promise<pid_t> thread;
  std::jthread consumer([&] {
    thread.set_value(gettid());
    const auto item = pipe.Pop(std::chrono::minutes(1));
    EXPECT_TRUE(item) << "none ended: " << item.status();
    EXPECT_EQ(item.status().code(), absl::StatusCode::kDeadlineExceeded);
  });
  EXPECT_TRUE(test_support::FallsAsleep(thread.get_future().get()));
  ASSERT_OK(pipe.TryPush(2, {}, {.deadline = std::chrono::milliseconds(1)}));
  consumer.join();
  latch.Open();
  EXPECT_OK(pipe.Pop().status());
}

// An item that is in a stage when another's deadline passes still ends at its own, behind that stage.
TEST_P(PipelineWakeupTest, AnItemEndsAtItsDeadlineThoughItWasInAStageWhenAnothersPassed) {
  driver::Latch first, second;
  Runtime runtime = HostRuntimeThatRings(GetParam());
  Graph graph("nothing");
  graph.Host("nothing", [] {});
  Stages<int> stages;
  stages.Host("first", [&](int& n) {
    if (n == 2) first.Arrive();
  });
  stages.Host("second", [&](int& n) {
    if (n == 1) second.Arrive();
  });
  stages.Run("nothing", *runtime.Compile(graph));
  auto pipe = *Pipeline<int>::Create(std::move(stages), {.window = 4, .order = kAsReady});
  ASSERT_OK(pipe.Push(1));
  ASSERT_TRUE(second.AwaitArrived());
  ASSERT_OK(pipe.Push(2, {}, {.deadline = std::chrono::milliseconds(300)}));
  ASSERT_TRUE(first.AwaitArrived());
  ASSERT_OK(pipe.Push(3, {}, {.deadline = std::chrono::milliseconds(1)}));
  for (const int n : {3, 2}) {
    const auto item = pipe.Pop(std::chrono::minutes(1));
    ASSERT_TRUE(item) << "none ended: " << item.status();
    EXPECT_EQ(item.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(item.value(), n);
    first.Open();
  }
  second.Open();
  EXPECT_OK(pipe.Pop().status());
}

// Somebody else has the only slot of the second stage. Who waits for a place sleeps, though one of the first stage is
// free all the time, and goes on when the other comes back.
TEST_P(PipelineWakeupTest, WhoWaitsForASlotOfEachStageSleepsWhileOneHasNone) {
  Runtime runtime = HostRuntimeThatRings(GetParam());
  Graph first("first"), second("second");
  const auto x = first.InOut<int32_t>("x", 1, kSlot), y = second.InOut<int32_t>("y", 1, kSlot);
  first.Fill("fill x", x, 1);
  second.Fill("fill y", y, 2);
  Executable one = *runtime.Compile(first, {.slots = 1}), other = *runtime.Compile(second, {.slots = 1});
  Stages<> stages;
  stages.Run("first", one).Run("second", other);
  auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 4});
  auto taken = std::make_unique<Lease>(*other.TryAcquire());
  EXPECT_EQ(pipe.TryAcquire().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_OK(one.TryAcquire().status());  // it has given back what it had taken
  std::promise<pid_t> thread;
  std::jthread producer([&] {
    thread.set_value(gettid());
    auto item = pipe.Acquire({}, std::chrono::minutes(2));
    ASSERT_OK(item.status());
    EXPECT_OK(item->Submit());
  });
  EXPECT_TRUE(test_support::FallsAsleep(thread.get_future().get()));
  EXPECT_EQ(pipe.stats().accepted, 0);
  taken.reset();
  producer.join();
  const Item<> item = pipe.Pop();
  ASSERT_OK(item.status());
  EXPECT_EQ(item.span(x)[0], 1);
  EXPECT_EQ(item.span(y)[0], 2);
}

}  // namespace
}  // namespace penstock::submitter_wakeup_test
