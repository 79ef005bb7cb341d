// Pipelines that submission threads help: the same results, orders and ends as without any, and help that is there and
// goes again.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/support/status.h"

namespace penstock::submission_threads_test {
namespace {

constexpr int64_t kElements = 64;
constexpr std::chrono::seconds kLong{20};

struct Triple {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int64_t* x) const { x[i] *= 3; }
};

struct Work {
  int64_t number = 0;
  std::array<int64_t, kElements> data{};
};

bool IsFeeder() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::string(name).starts_with("ps-submit");
}

// A launch that takes as long as many nodes submitted one by one do.
void TakeLong() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  while (std::chrono::steady_clock::now() < until) {
  }
}

// Threads come and wait until so many are there, which then go together; one that has waited for long goes alone.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}
  void Attend() {
    std::unique_lock lock(mu_);
    const int mine = held_;
    if (++inside_ == threads_) {
      inside_ = 0;
      ++held_;
      return change_.notify_all();
    }
    const bool met = change_.wait_for(lock, std::chrono::milliseconds(50), [&] { return held_ != mine; });
    if (!met) --inside_;
  }
  // How often all have met.
  int held() {
    const std::lock_guard lock(mu_);
    return held_;
  }

 private:
  const int threads_;
  std::mutex mu_;
  std::condition_variable change_;
  int inside_ = 0, held_ = 0;
};

// So many submission threads a device, on four.
class PipelineFeedersTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { Make(4); }

  void Make(int devices) {
    executable_ = Executable();
    auto made = Runtime::Create({.devices = "host:" + std::to_string(devices),
                                 .workers = 2,
                                 .host_device_threads = 1,
                                 .submission_threads = GetParam()});
    ASSERT_OK(made.status());
    runtime_ = std::make_unique<Runtime>(*std::move(made));
    graph_ = std::make_unique<Graph>("triple");
    x_ = graph_->InOut<int64_t>("x", kElements);
    graph_->ParallelFor("triple", kElements, Triple{}, ReadWrite(x_));
    Compile();
  }
  // With slots of its own.
  void Compile() {
    auto executable = runtime_->Compile(*graph_, {.slots = 1, .devices = runtime_->all_devices()});
    ASSERT_OK(executable.status());
    executable_ = *std::move(executable);
  }
  // A Run that notes which submission threads begin items, between two host stages.
  Stages<Work> Line() {
    Stages<Work> stages;
    stages.Host("fill", [](Work& work) { work.data.fill(work.number); }, {.workers = 2});
    AddRun(stages);
    stages.Host("add", [](Work& work) { work.data[0] += 1; }, {.workers = 2});
    return stages;
  }
  void AddRun(Stages<Work>& stages) { AddRun(stages, launch_); }
  void AddRun(Stages<Work>& stages, std::function<void()> launch) {
    stages.Run("triple", executable_, [this, launch = std::move(launch)](Item<Work>& item) {
      if (IsFeeder()) by_feeders_.fetch_add(1), begun_by_feeder_.release();
      if (launch) launch();
      item.Set(x_, item->data);
    });
  }
  static Pipeline<Work> Make(Stages<Work> stages, PipelineOptions options) {
    auto made = Pipeline<Work>::Create(std::move(stages), std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  static void ExpectRight(const Item<Work>& item) {
    EXPECT_EQ(item->data[0], 3 * item->number + 1);
    for (size_t i = 1; i < item->data.size(); ++i) ASSERT_EQ(item->data[i], 3 * item->number) << item->number;
  }
  // Pushes items that nobody takes out, so that no thread waits in a call and two items share each slot, until a
  // submission thread has begun one. There are enough items for it to be given a core meanwhile.
  bool IsHelped() {
    const auto until = std::chrono::steady_clock::now() + kLong;
    int window = 32;
    while (std::chrono::steady_clock::now() < until) {
      Stages<Work> stages;
      AddRun(stages);
      auto pipe = Make(std::move(stages), {.window = window});
      for (int64_t n = 0; n < window; ++n) EXPECT_OK(pipe.TryPush(Work{n}));
      if (begun_by_feeder_.try_acquire_for(std::chrono::milliseconds(window / 16))) return true;
      window = std::min(2 * window, 2048);
    }
    return false;
  }

  void BringEveryItem(Order order);
  void CancelOrDestroy();
  bool KeepFeedersInside(Pipeline<Work>& pipe, std::atomic<int>& inside);

  std::function<void()> launch_;  // called in each launch, if it is set
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Graph> graph_;
  Executable executable_;
  BufferHandle<int64_t> x_;
  std::atomic<int> by_feeders_{0};
  std::counting_semaphore<> begun_by_feeder_{0};
};
INSTANTIATE_TEST_SUITE_P(SubmissionThreads, PipelineFeedersTest, testing::Values(0, 1, 3));

void PipelineFeedersTest::BringEveryItem(Order order) {
  constexpr int64_t kItems = 600, kKeys = 5;
  auto pipe = Make(Line(), {.window = 24, .order = order});
  std::jthread producer([&] {
    for (int64_t n = 0; n < kItems; ++n) {
      EXPECT_OK(pipe.Push(Work{n}, Key(static_cast<uint64_t>(n % kKeys))));
      if (n % 97 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(8));  // nothing is in flight meanwhile
    }
    pipe.Stop();
  });
  std::vector<int> seen(kItems);
  int64_t last = -1;
  std::map<int64_t, int64_t> last_of_key;
  while (Item<Work> item = pipe.Pop()) {
    EXPECT_OK(item.status());
    ExpectRight(item);
    ++seen.at(static_cast<size_t>(item->number));
    if (order == Order::kInOrder) {
      EXPECT_EQ(item->number, last + 1);
    }
    last = item->number;
    auto [of_key, first] = last_of_key.try_emplace(item->number % kKeys, -1);
    if (order == Order::kPerKey) {
      EXPECT_LT(of_key->second, item->number);
    }
    of_key->second = item->number;
  }
  EXPECT_EQ(seen, std::vector<int>(kItems, 1));
}

TEST_P(PipelineFeedersTest, EveryItemComesOutOnceInItsOrder) {
  for (const Order order : {Order::kInOrder, Order::kPerKey, Order::kAsReady}) BringEveryItem(order);
  if (GetParam() == 0) {
    EXPECT_EQ(by_feeders_.load(), 0);
  }
}

TEST_P(PipelineFeedersTest, SoItDoesWhereLaunchesTakeLong) {
  launch_ = TakeLong;
  for (const Order order : {Order::kInOrder, Order::kPerKey, Order::kAsReady}) BringEveryItem(order);
  EXPECT_EQ(by_feeders_.load() > 0, GetParam() > 0);
}

void PipelineFeedersTest::CancelOrDestroy() {
  std::minstd_rand random(7);
  for (int round = 0; round < 150; ++round) {
    auto pipe = std::make_optional(Make(Line(), {.window = 16, .order = round % 2 == 0 ? Order::kInOrder : kAsReady}));
    std::vector<int> seen(16);
    int64_t pushed = 0;
    for (; pushed < 16; ++pushed) EXPECT_OK(pipe->TryPush(Work{pushed}));
    for (uint32_t i = random() % 2000; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
    for (uint32_t i = random() % 12; i > 0; --i) ++seen.at(static_cast<size_t>(pipe->Pop()->number));
    if (round % 3 == 0) {
      pipe.reset();
      continue;
    }
    pipe->Cancel();
    while (Item<Work> item = pipe->Pop()) {
      ++seen.at(static_cast<size_t>(item->number));
      if (!item.status().ok()) {
        EXPECT_EQ(item.status().code(), absl::StatusCode::kCancelled);
      } else {
        ExpectRight(item);
      }
    }
    EXPECT_EQ(seen, std::vector<int>(16, 1));
  }
}

TEST_P(PipelineFeedersTest, MayBeCancelledOrDestroyedAtAnyMoment) { CancelOrDestroy(); }

TEST_P(PipelineFeedersTest, SoTheyMayWhereLaunchesTakeLong) {
  launch_ = TakeLong;
  CancelOrDestroy();
}

// One thread pulls; four launch. The first few items find out that launches take long.
TEST_P(PipelineFeedersTest, PulledItemsAreLaunchedOnAllDevicesAtOnce) {
  if (GetParam() == 0) GTEST_SKIP() << "there are none";
  Meeting meeting(4);
  Stages<Work> stages;
  AddRun(stages, [&] { meeting.Attend(); });
  auto pipe = Make(std::move(stages), {.window = 16});
  int64_t next = 0, last = -1;
  const auto source = [&] { return next < 100 ? std::optional(Work{next++}) : std::nullopt; };
  EXPECT_OK(pipe.Run(source, [&](Item<Work>& item) { EXPECT_EQ(item->number, ++last); }));
  EXPECT_EQ(last, 99);
  EXPECT_GT(meeting.held(), 6) << "of 25";
}

// One thread pushes and takes out; four launch.
TEST_P(PipelineFeedersTest, PushedItemsAreLaunchedOnAllDevicesAtOnce) {
  if (GetParam() == 0) GTEST_SKIP() << "there are none";
  Meeting meeting(4);
  Stages<Work> stages;
  AddRun(stages, [&] { meeting.Attend(); });
  auto pipe = Make(std::move(stages), {.window = 16});
  for (int64_t n = 0; n < 100 + 16; ++n) {
    if (n >= 16) {
      EXPECT_EQ(pipe.Pop()->number, n - 16);
    }
    if (n < 100) {
      EXPECT_OK(pipe.TryPush(Work{n}));
    }
  }
  EXPECT_GT(meeting.held(), 6) << "of 25";
}

// Of a pipeline with launches that stay inside where a submission thread is at them: until so many are.
bool PipelineFeedersTest::KeepFeedersInside(Pipeline<Work>& pipe, std::atomic<int>& inside) {
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (inside.load() < 4 && std::chrono::steady_clock::now() < until) {
    (void)pipe.TryPush(Work{});
    (void)pipe.Pop(std::chrono::seconds(0));
  }
  return inside.load() == 4;
}

TEST_P(PipelineFeedersTest, WhatIsLeftToFeedersThatDoNotComeOthersLaunch) {
  if (GetParam() != 1) GTEST_SKIP() << "one that is held up is all there are";
  std::atomic<int> inside{0};
  std::atomic<bool> leave{false};
  Stages<Work> holds, goes_on;
  AddRun(holds, [&] {
    if (!IsFeeder()) return TakeLong();
    inside.fetch_add(1);
    leave.wait(false);
  });
  auto held_up = Make(std::move(holds), {.window = 32, .order = Order::kAsReady});
  const bool all = KeepFeedersInside(held_up, inside);
  Compile();
  AddRun(goes_on, TakeLong);
  auto pipe = Make(std::move(goes_on), {.window = 16});
  int64_t out = 0;
  const auto until = std::chrono::steady_clock::now() + kLong;
  for (int64_t n = 0; all && n < 300 && !HasFailure(); ++n) {
    EXPECT_OK(pipe.TryPush(Work{n}));
    if (n < 15) continue;
    if (n < 200) {  // who waits launches; then nobody waits
      out += pipe.Pop(until) ? 1 : 0;
      continue;
    }
    while (pipe.stats().ready == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    out += pipe.Pop(std::chrono::seconds(0)) ? 1 : 0;
  }
  EXPECT_TRUE(all);
  EXPECT_EQ(out, 300 - 15);
  leave.store(true);
  leave.notify_all();
}

TEST_P(PipelineFeedersTest, FeedersBeginItemsWhereNobodyWaits) {
  if (GetParam() == 0) GTEST_SKIP() << "there are none";
  Make(1);
  EXPECT_TRUE(IsHelped());
}

// SubmissionThreads have places for sixteen: those with nothing in flight give theirs back.
TEST_P(PipelineFeedersTest, PipelinesAtRestAreNotHelped) {
  if (GetParam() == 0) GTEST_SKIP() << "there are none";
  Make(1);
  std::vector<Pipeline<Work>> at_rest;
  for (int i = 0; i < 40; ++i) {
    at_rest.push_back(Make(Line(), {.window = 8}));
    for (int64_t n = 0; n < 8; ++n) EXPECT_OK(at_rest.back().TryPush(Work{n}));
    while (at_rest.back().stats().ready < 8) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(IsHelped());
}

// The submission threads end before the pipelines do.
TEST_P(PipelineFeedersTest, OutliveTheirRuntime) {
  auto pipe = Make(Line(), {.window = 8});
  for (int64_t n = 0; n < 8; ++n) EXPECT_OK(pipe.TryPush(Work{n}));
  ASSERT_OK(pipe.Drain());
  ASSERT_OK(runtime_->Shutdown());
  runtime_.reset();
  for (int64_t n = 0; n < 8; ++n) ExpectRight(pipe.Pop());
}

}  // namespace
}  // namespace penstock::submission_threads_test
