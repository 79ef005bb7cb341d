// Full pipelines whose new items replace waiting ones (WhenFull::kDropWaiting): which item goes, and which never does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/asleep.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::drop_waiting_test {
namespace {

using testing::ElementsAre;

struct Count {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int64_t* sum) const { *sum += 1; }
};

// A host stage of one thread in front of a run in which `check_` is called. An item is its number.
class DropWaitingTest : public testing::Test {
 protected:
  using Check = std::function<absl::Status(int)>;

  Pipeline<int> Make(PipelineOptions options, int workers = 1) {
    Graph graph("check");
    const ParamHandle<int> number = graph.Param<int>("number");
    graph.Host("check", [this](int n) { return check_ ? check_(n) : absl::OkStatus(); }, number).Concurrency(8);
    Stages<int> stages;
    stages.Host("first", [this](int& n) { return first_ ? first_(n) : absl::OkStatus(); }, {.workers = workers});
    stages.Run("check", *runtime_.Compile(graph, {.slots = 2}),
               [number](Item<int>& item) { item.Set(number, item.value()); });
    options.when_full = kDropWaiting;
    auto made = Pipeline<int>::Create(std::move(stages), std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  // Stops it and takes out all that is left.
  static std::vector<int> Rest(Pipeline<int>& pipe) {
    EXPECT_OK(pipe.Drain());
    std::vector<int> rest;
    while (auto item = pipe.Pop()) rest.push_back(item.value());
    return rest;
  }

  Check first_, check_;
  Runtime runtime_ = HostRuntime(4);
};

// 0 has failed, 1 is in the second stage and 2 in the first, which are all older than what goes.
TEST_F(DropWaitingTest, TheOldestThatHasNotBegunGoes) {
  driver::Latch in_first, in_second;
  first_ = [&](int n) {
    if (n == 2) in_first.Arrive();
    return n == 0 ? absl::DataLossError("torn") : absl::OkStatus();
  };
  check_ = [&](int n) {
    if (n == 1) in_second.Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.window = 5, .order = kAsReady});
  for (int n = 0; n < 3; ++n) ASSERT_OK(pipe.TryPush(int{n}));
  ASSERT_TRUE(in_first.AwaitArrived());
  ASSERT_TRUE(in_second.AwaitArrived());
  for (int n = 3; n < 8; ++n) ASSERT_OK(pipe.TryPush(int{n}));  // the last three replace 3, 4 and 5
  EXPECT_EQ(pipe.stats().dropped, 3);
  in_first.Open();
  in_second.Open();
  const Item<int> failed = pipe.Pop();
  EXPECT_EQ(failed.value(), 0);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kDataLoss);
  std::vector<int> rest = Rest(pipe);
  std::ranges::sort(rest);
  EXPECT_THAT(rest, ElementsAre(1, 2, 6, 7));
}

TEST_F(DropWaitingTest, WhatHasEndedStaysAndANewItemIsRefused) {
  auto pipe = Make({.window = 2});
  for (int n = 0; n < 2; ++n) ASSERT_OK(pipe.TryPush(int{n}));
  while (pipe.stats().ready < 2) std::this_thread::yield();
  EXPECT_EQ(pipe.TryPush(2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pipe.Push(2, {}, {}, std::chrono::milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(pipe.stats().dropped, 0);
  EXPECT_EQ(pipe.Pop().value(), 0);
  EXPECT_OK(pipe.TryPush(2));
  EXPECT_THAT(Rest(pipe), ElementsAre(1, 2));
}

// The first stage stays busy, so nothing but the second producer's item lets the first producer go on.
TEST_F(DropWaitingTest, AProducerThatWaitsReplacesWhatAnotherSubmits) {
  driver::Latch in_first;
  first_ = [&](int n) {
    if (n == 0) in_first.Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.window = 2});
  ASSERT_OK(pipe.TryPush(0));
  ASSERT_TRUE(in_first.AwaitArrived());
  auto other = pipe.Acquire();
  ASSERT_OK(other.status());
  std::promise<pid_t> thread;
  std::jthread producer([&] {
    thread.set_value(gettid());
    EXPECT_OK(pipe.Push(2, {}, {}, std::chrono::minutes(1)));
  });
  EXPECT_TRUE(test_support::FallsAsleep(thread.get_future().get()));
  other->value() = 1;
  ASSERT_OK(other->Submit());
  producer.join();
  EXPECT_EQ(pipe.stats().dropped, 1);
  in_first.Open();
  EXPECT_THAT(Rest(pipe), ElementsAre(0, 2));
}

// The stage is halted until its State has been reset, so 0 waits in front of the first stage for its second try.
TEST_F(DropWaitingTest, WhatIsTriedAgainStays) {
  driver::Latch in_reset;
  std::atomic<bool> fails{true};
  State<int64_t> sum = *runtime_.MakeState<int64_t>("sum", 1);
  Graph graph("sum");
  graph.ParallelFor("count", 1, Count{}, ReadWrite(sum));
  graph.Host(
      "check",
      [&](std::span<const int64_t>) { return fails.exchange(false) ? absl::DataLossError("once") : absl::OkStatus(); },
      Read(sum));
  Stages<int> stages;
  stages.Run("sum", *runtime_.Compile(graph, {.slots = 1}), [](Item<int>&) {});
  auto pipe = *Pipeline<int>::Create(std::move(stages),
                                     {.window = 2, .when_full = kDropWaiting, .retries = 1, .reset = [&](Key) {
                                        in_reset.Arrive();
                                        return sum.Reset();
                                      }});
  ASSERT_OK(pipe.TryPush(0));
  ASSERT_TRUE(in_reset.AwaitArrived());
  while (pipe.stats().stages[0].waiting < 1) std::this_thread::yield();
  ASSERT_OK(pipe.TryPush(1));
  ASSERT_OK(pipe.TryPush(2));
  EXPECT_EQ(pipe.stats().dropped, 1);
  in_reset.Open();
  EXPECT_THAT(Rest(pipe), ElementsAre(0, 2));
}

// Window slots are left but no slot of the executable, which waiting items hold too.
TEST_F(DropWaitingTest, TheSlotOfTheOldestThatHasNotBegunGoesToTheNewItem) {
  driver::Latch in_first;
  Graph graph("slot");
  const auto x = graph.InOut<int>("x", 1, kSlot);
  graph.Host("add", [](std::span<int> v) { ++v[0]; }, ReadWrite(x));
  Stages<> stages;
  stages.Host("first", [&](Item<>& item) {
    if (item.id() == 0) in_first.Arrive();
  });
  stages.Run("slot", *runtime_.Compile(graph, {.slots = 2}), [](Item<>&) {});
  auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 8, .when_full = kDropWaiting});
  for (int n = 0; n < 4; ++n) {
    auto item = pipe.TryAcquire();
    ASSERT_OK(item.status());
    item->span(x)[0] = 10 * n;
    ASSERT_OK(item->Submit({.id = static_cast<uint64_t>(n)}));
    ASSERT_TRUE(n > 0 || in_first.AwaitArrived());
  }
  EXPECT_EQ(pipe.stats().dropped, 2);
  in_first.Open();
  ASSERT_OK(pipe.Drain());
  for (const int n : {0, 3}) {
    const Item<> item = pipe.Pop();
    EXPECT_EQ(item.id(), static_cast<uint64_t>(n));
    EXPECT_EQ(item.span(x)[0], 10 * n + 1);
  }
  EXPECT_FALSE(pipe.Pop());
}

// Whatever the orders, windows and threads: an item comes out, with its own status, if it has begun, and is counted as
// dropped if it has not.
TEST_F(DropWaitingTest, WhatHasBegunComesOutOnceAndTheRestIsCounted) {
  constexpr int kProducers = 2, kEach = 300, kItems = kProducers * kEach;
  for (const Order order : {kInOrder, kAsReady, kPerKey}) {
    for (const int window : {1, 3, 9}) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " window " << window);
      std::array<std::atomic<int>, kItems> begun{}, seen{};
      first_ = [&](int n) {
        begun.at(static_cast<size_t>(n)).fetch_add(1);
        return n % 7 == 0 ? absl::DataLossError("torn") : absl::OkStatus();
      };
      check_ = [](int n) { return n % 5 == 0 ? absl::InternalError("bad") : absl::OkStatus(); };
      auto pipe = Make({.window = window, .order = order}, /*workers=*/2);
      std::atomic<int> accepted{0}, producing{kProducers};
      {
        std::vector<std::jthread> threads;
        for (int p = 0; p < kProducers; ++p) {
          threads.emplace_back([&, p] {
            for (int n = p * kEach; n < (p + 1) * kEach; ++n) {
              const bool waits = n % 2 == 0;
              const Key key(static_cast<uint64_t>(n % 3));
              const absl::Status pushed = waits ? pipe.Push(int{n}, key) : pipe.TryPush(int{n}, key);
              if (pushed.ok()) accepted.fetch_add(1);
              EXPECT_TRUE(pushed.ok() || !waits) << pushed;
            }
            if (--producing == 0) pipe.Stop();
          });
        }
        threads.emplace_back([&] {
          while (auto item = pipe.Pop()) {
            const int n = item.value();
            seen.at(static_cast<size_t>(n)).fetch_add(1);
            const absl::StatusCode expected = n % 7 == 0   ? absl::StatusCode::kDataLoss
                                              : n % 5 == 0 ? absl::StatusCode::kInternal
                                                           : absl::StatusCode::kOk;
            EXPECT_EQ(item.status().code(), expected) << n;
          }
        });
      }
      int popped = 0;
      for (size_t n = 0; n < kItems; ++n) {
        EXPECT_EQ(seen[n].load(), begun[n].load()) << n;
        EXPECT_LE(seen[n].load(), 1) << n;
        popped += seen[n].load();
      }
      const PipelineStats stats = pipe.stats();
      EXPECT_EQ(stats.accepted, accepted.load());
      EXPECT_EQ(stats.delivered, popped);
      EXPECT_EQ(stats.dropped, accepted.load() - popped);
    }
  }
}

}  // namespace
}  // namespace penstock::drop_waiting_test
