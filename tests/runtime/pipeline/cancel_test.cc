// Cancel and what is under way: runs in flight, whoever owns their feed, and items that find no slot.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "penstock/pipeline.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::cancel_test {
namespace {

using std::chrono::minutes;

// A graph whose only node is called for one run at a time, and stays inside until the latch opens. Somebody else's run
// is inside, so those of the pipeline end by being cancelled, or not at all.
class PipelineCancelTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    graph_.Host("gate", [this] {
      calls_.fetch_add(1);
      latch_.Arrive();
    });
  }
  void TearDown() override { latch_.Open(); }

  penstock::Run EnterTheGate(Executable& executable) {
    penstock::Run run = *executable.Launch(executable.bindings());
    EXPECT_TRUE(latch_.AwaitArrived());
    return run;
  }
  static Pipeline<> Make(Executable executable, int window, std::function<void(Item<>&)> set = [](Item<>&) {}) {
    Stages<> stages;
    stages.Run("gate", std::move(executable), std::move(set));
    return *Pipeline<>::Create(std::move(stages), {.window = window, .order = kAsReady});
  }
  static void ExpectCancelled(Pipeline<>& pipe, int items) {
    for (int i = 0; i < items; ++i) {
      const Item<> item = pipe.Pop(minutes(1));
      EXPECT_TRUE(item);
      EXPECT_EQ(item.status().code(), absl::StatusCode::kCancelled) << item.status();
    }
    EXPECT_EQ(pipe.Pop(minutes(1)).status().code(), absl::StatusCode::kOutOfRange);
  }

  driver::Latch latch_;
  std::atomic<int> calls_{0};
  Runtime runtime_ = HostRuntimeThatRings(GetParam());
  Graph graph_{"gate"};
};

// Whether devices ring an event count; CUDA's do not.
INSTANTIATE_TEST_SUITE_P(Rings, PipelineCancelTest, testing::Bool());

TEST_P(PipelineCancelTest, RunsInFlightAreCancelled) {
  Executable executable = *runtime_.Compile(graph_, {.slots = 4});
  penstock::Run other = EnterTheGate(executable);
  auto pipe = Make(executable, 3);
  for (int i = 0; i < 3; ++i) ASSERT_OK(pipe.TryPush({}));
  while (executable.launches() < 4) {  // whoever does that
    std::this_thread::yield();
  }
  pipe.Cancel();
  ExpectCancelled(pipe, 3);
  latch_.Open();
  EXPECT_OK(other.Wait());
  EXPECT_EQ(calls_.load(), 1);
}

// Who owns the feed is inside a set function: it hears of it from the note that Cancel leaves.
TEST_P(PipelineCancelTest, RunsInFlightAreCancelledWhileAnotherOwnsTheFeed) {
  Executable executable = *runtime_.Compile(graph_, {.slots = 4});
  penstock::Run other = EnterTheGate(executable);
  driver::Latch set;
  auto pipe = Make(executable, 2, [&](Item<>& item) {
    if (item.id() == 2) set.Arrive();
  });
  ASSERT_OK(pipe.TryPush({}, {}, {.id = 1}));
  std::jthread pusher([&] { EXPECT_OK(pipe.TryPush({}, {}, {.id = 2})); });
  EXPECT_TRUE(set.AwaitArrived());
  pipe.Cancel();
  set.Open();
  pusher.join();
  ExpectCancelled(pipe, 2);
  latch_.Open();
  EXPECT_OK(other.Wait());
  EXPECT_EQ(calls_.load(), 1);
}

// Destroying it does the same.
TEST_P(PipelineCancelTest, DestroyedItDoesNotWaitForWhatItsRunsWaitFor) {
  Executable executable = *runtime_.Compile(graph_, {.slots = 2});
  penstock::Run other = EnterTheGate(executable);
  {
    auto pipe = Make(executable, 1);
    ASSERT_OK(pipe.TryPush({}));
  }
  latch_.Open();
  EXPECT_OK(other.Wait());
  EXPECT_EQ(calls_.load(), 1);
}

// The only slot is somebody else's, so the item is begun and put back again and again, by two threads; wherever it is
// when all is cancelled, it ends.
TEST_P(PipelineCancelTest, AnItemThatFindsNoSlotEnds) {
  Executable executable = *runtime_.Compile(graph_, {.slots = 1});
  const Lease taken = *executable.TryAcquire();
  for (int round = 0; round < 300; ++round) {
    auto pipe = Make(executable, 1);
    ASSERT_OK(pipe.TryPush({}));
    std::atomic<int> tries{0};
    std::jthread pusher([&] {
      while (pipe.TryPush({}).code() == absl::StatusCode::kResourceExhausted) tries.fetch_add(1);
    });
    while (tries.load() < 10) std::this_thread::yield();
    pipe.Cancel();
    ExpectCancelled(pipe, 1);
    if (HasFailure()) break;
  }
  EXPECT_EQ(calls_.load(), 0);
}

}  // namespace
}  // namespace penstock::cancel_test
