// Pipelines over real executables on host devices: results, order, bounds, errors, ends. Where an item may be, and what
// comes out when, is in item_book_test.cc.
#include "penstock/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::pipeline_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMost = 2000;  // elements of an item

struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int64_t amount, int32_t* x) const {
    x[i] += static_cast<int32_t>(amount);
  }
};

// An item with its memory inside: sizes differ from item to item.
struct Work {
  explicit Work(int64_t n) : number(n), data(static_cast<size_t>(1 + n * 37 % kMost), static_cast<int32_t>(n)) {}
  Work(Work&&) = default;  // moves only
  Work& operator=(Work&&) = default;

  int64_t number;
  std::vector<int32_t> data;
};

// A runtime with one executable a device, all of one graph: x[i] += amount, and a host node that calls `look`.
class PipelineTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { Make(devices(), /*slots=*/2); }

  int devices() const { return std::abs(GetParam()); }

  void Make(int devices, int slots) {
    executable_ = Executable();
    runtime_ = std::make_unique<Runtime>(HostRuntimeThatRings(GetParam() > 0, 4, "host:" + std::to_string(devices)));
    Graph graph("line");
    size_ = graph.Param<int64_t>("size", AtMost(kMost));
    amount_ = graph.Param<int64_t>("amount");
    x_ = graph.InOut<int32_t>("x", size_);
    graph.ParallelFor("add", size_, Add{}, amount_, ReadWrite(x_));
    if (look_) {
      graph.Host(
               "look", [this](int64_t amount, std::span<const int32_t>) { return look_(amount); }, amount_, Read(x_))
          .Concurrency(8);
    }
    auto executable = runtime_->Compile(graph, {.slots = slots, .devices = runtime_->all_devices()});
    ASSERT_OK(executable.status());
    executable_ = *std::move(executable);
  }

  void Bind(Item<Work>& item) {
    item.Set(size_, static_cast<int64_t>(item->data.size())).Set(amount_, item->number + 1).Set(x_, item->data);
  }
  // The one Run of most tests.
  Stages<Work> Line() {
    Stages<Work> stages;
    stages.Run("line", executable_, [this](Item<Work>& item) { Bind(item); });
    return stages;
  }
  // It behind a host stage that keeps the first item.
  Stages<Work> LineBehind(std::latch& first_may_go) {
    Stages<Work> stages;
    stages.Host("hold",
                [&](Work& work) {
                  if (work.number == 0) first_may_go.wait();
                },
                {.workers = 2});
    stages.Run("line", executable_, [this](Item<Work>& item) { Bind(item); });
    return stages;
  }
  static Pipeline<Work> Make(Stages<Work> stages, PipelineOptions options = {}) {
    auto made = Pipeline<Work>::Create(std::move(stages), std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  // A source of `items` numbered items.
  std::function<std::optional<Work>()> Source(int64_t items) {
    return [this, items]() -> std::optional<Work> {
      const int64_t n = pulled_.load();
      if (n == items) return std::nullopt;
      pulled_.fetch_add(1);
      return Work(n);
    };
  }
  // A sink that wants them in order, and right where they are OK.
  std::function<void(Item<Work>&)> Sink() {
    return [this](Item<Work>& item) {
      EXPECT_EQ(item->number, static_cast<int64_t>(statuses_.size()));
      statuses_.push_back(item.status());
      if (item.status().ok()) ExpectRight(item);
    };
  }
  static void ExpectRight(const Item<Work>& item) {
    const std::vector<int32_t> expected(item->data.size(), static_cast<int32_t>(2 * item->number + 1));
    EXPECT_EQ(item->data, expected) << item->number;
  }
  void ExpectAllOk(size_t items) const {
    EXPECT_EQ(statuses_.size(), items);
    for (const absl::Status& status : statuses_) EXPECT_OK(status);
  }

  std::function<absl::Status(int64_t amount)> look_;
  std::unique_ptr<Runtime> runtime_;
  Executable executable_;
  ParamHandle<int64_t> size_, amount_;
  BufferHandle<int32_t> x_;
  std::atomic<int64_t> pulled_{0};
  std::vector<absl::Status> statuses_;
};

// So many devices; -2: two that ring no event count, as CUDA's, so that who waits has to look.
INSTANTIATE_TEST_SUITE_P(Devices, PipelineTest, testing::Values(1, 4, -2));

TEST_P(PipelineTest, EveryItemIsComputedOnceAndComesOutInOrder) {
  std::atomic<int> before{0}, after{0};
  Stages<Work> stages;
  stages.Host("before", [&](Work&) { before.fetch_add(1); }, {.workers = 3});
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  stages.Host("after",
              [&](Item<Work>& item) {
                after.fetch_add(1);
                ExpectRight(item);  // the run's outputs are there
                EXPECT_GE(item.device(), 0);
                return absl::OkStatus();
              },
              {.workers = 3});
  auto pipe = Make(std::move(stages));
  ASSERT_OK(pipe.Run(Source(200), Sink()));
  ExpectAllOk(200);
  EXPECT_EQ(before.load(), 200);
  EXPECT_EQ(after.load(), 200);
  EXPECT_EQ(executable_.launches(), 200);
  const PipelineStats stats = pipe.stats();
  EXPECT_EQ(stats.accepted, 200);
  EXPECT_EQ(stats.delivered, 200);
  EXPECT_EQ(stats.inside, 0);
  EXPECT_EQ(stats.stages.size(), 2u + executable_.devices().size());
}

TEST_P(PipelineTest, OneItemEmptySourceAndOneOfEverything) {
  Make(1, 1);
  for (const int64_t items : {0, 1, 40}) {
    pulled_ = 0;
    statuses_.clear();
    ASSERT_OK(Make(Line(), {.window = 1}).Run(Source(items), Sink()));
    ExpectAllOk(static_cast<size_t>(items));
  }
}

TEST_P(PipelineTest, SourceAndSinkAreCalledOnTheCallersThread) {
  auto pipe = Make(Line());
  const auto caller = std::this_thread::get_id();
  const auto source = Source(5);
  const auto sink = Sink();
  ASSERT_OK(pipe.Run(
      [&] {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        return source();
      },
      [&](Item<Work>& item) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        sink(item);
      }));
  ExpectAllOk(5);
}

// With nobody taking items out, exactly the window goes in: not one more, not one less.
TEST_P(PipelineTest, WithNobodyTakingOutExactlyTheWindowGoesIn) {
  for (const int window : {1, 3, 10, 50}) {
    Stages<Work> stages;
    stages.Host("before", [](Work&) {}, {.workers = 2});
    stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
    auto pipe = Make(std::move(stages), {.window = window});
    EXPECT_EQ(pipe.window(), window);
    int64_t number = 0;
    for (; number < window; ++number) ASSERT_OK(pipe.TryPush(Work(number)));
    Work one_more(number);
    EXPECT_EQ(pipe.TryPush(std::move(one_more)).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(one_more.data.size(), Work(number).data.size());  // it is still the caller's
    EXPECT_EQ(pipe.Push(std::move(one_more), {}, {}, std::chrono::milliseconds(1)).code(),
              absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(pipe.stats().refused, 1);
    EXPECT_EQ(pipe.Pop()->number, 0);  // and dropped: a place is free
    ASSERT_OK(pipe.Push(std::move(one_more)));
    ASSERT_OK(pipe.Drain());
    for (int64_t n = 1; n <= window; ++n) EXPECT_EQ(pipe.Pop()->number, n);
    EXPECT_EQ(pipe.Pop().status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(pipe.Pop().status().code(), absl::StatusCode::kOutOfRange);
  }
}

// A sink that is blocked holds the source back after exactly the window; nothing is lost when it goes on.
TEST_P(PipelineTest, APoppedItemKeepsItsPlaceUntilItIsDropped) {
  auto pipe = Make(Line(), {.window = 2});
  ASSERT_OK(pipe.TryPush(Work(0)));
  ASSERT_OK(pipe.TryPush(Work(1)));
  Item<Work> first = pipe.Pop(), second = pipe.Pop();
  EXPECT_TRUE(first && second);
  EXPECT_EQ(pipe.TryPush(Work(2)).code(), absl::StatusCode::kResourceExhausted);
  first = Item<Work>();
  ASSERT_OK(pipe.TryPush(Work(2)));
  EXPECT_EQ(second->number, 1);
  ExpectRight(second);
}

TEST_P(PipelineTest, PushWaitsUntilAPlaceIsFree) {
  auto pipe = Make(Line(), {.window = 1});
  ASSERT_OK(pipe.Push(Work(0)));
  std::latch about_to_push(1);
  std::jthread pusher([&] {
    about_to_push.count_down();
    EXPECT_OK(pipe.Push(Work(1)));
  });
  about_to_push.wait();
  EXPECT_EQ(pipe.Pop()->number, 0);
  EXPECT_EQ(pipe.Pop()->number, 1);
}

// Each executable's first run waits inside until all of them are running.
TEST_P(PipelineTest, AllExecutablesRunAtOnce) {
  std::latch all_running(devices());
  look_ = [&](int64_t amount) {
    if (amount <= devices()) all_running.arrive_and_wait();
    return absl::OkStatus();
  };
  Make(devices(), /*slots=*/1);
  ASSERT_OK(Make(Line()).Run(Source(20), Sink()));
  ExpectAllOk(20);
  for (const int d : executable_.devices()) EXPECT_GE(executable_.On(d)->launches(), 1);
}

TEST_P(PipelineTest, SeveralRunsAndHostStagesInAnyOrder) {
  Graph again("again");
  auto y = again.InOut<int32_t>("y", kMost);
  again.ParallelFor("once more", kMost, Add{}, int64_t{100}, ReadWrite(y));
  Executable second = *runtime_->Compile(again, {.slots = 3});
  std::atomic<int> seen{0};
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  stages.Host("grow", [&](Work& work) { work.data.resize(kMost, -1); }, {.workers = 2});
  stages.Run("again", second, [&](Item<Work>& item) { item.Set(y, item->data); });
  stages.Host("look", [&](Work&) { seen.fetch_add(1); });
  stages.Host("look again", [&](Work&) { seen.fetch_add(1); });
  int64_t next = 0;
  ASSERT_OK(Make(std::move(stages)).Run(Source(60), [&](Item<Work>& item) {
    EXPECT_OK(item.status());
    EXPECT_EQ(item->number, next++);
    EXPECT_EQ(item->data.front(), 2 * item->number + 1 + 100);
    const size_t had = Work(item->number).data.size();
    if (had < static_cast<size_t>(kMost)) {
      EXPECT_EQ(item->data.back(), 99);
    }
  }));
  EXPECT_EQ(next, 60);
  EXPECT_EQ(seen.load(), 120);
}

// Order

TEST_P(PipelineTest, AsReadyTheFastOvertakeTheSlow) {
  std::latch first_may_go(1);
  auto pipe = Make(LineBehind(first_may_go), {.window = 8, .order = kAsReady});
  for (int64_t n = 0; n < 8; ++n) ASSERT_OK(pipe.Push(Work(n)));
  std::vector<int64_t> got;
  for (int i = 0; i < 7; ++i) got.push_back(pipe.Pop()->number);
  first_may_go.count_down();
  EXPECT_EQ(pipe.Pop()->number, 0);
  std::sort(got.begin(), got.end());
  EXPECT_THAT(got, ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST_P(PipelineTest, InOrderTheFastWaitForTheSlow) {
  std::latch first_may_go(1), others_done(7);
  Stages<Work> stages = LineBehind(first_may_go);
  stages.Host("count", [&](Work& work) {
    if (work.number > 0) others_done.count_down();
  });
  auto pipe = Make(std::move(stages), {.window = 8});
  for (int64_t n = 0; n < 8; ++n) ASSERT_OK(pipe.Push(Work(n)));
  others_done.wait();
  EXPECT_EQ(pipe.Pop(std::chrono::milliseconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
  first_may_go.count_down();
  for (int64_t n = 0; n < 8; ++n) EXPECT_EQ(pipe.Pop()->number, n);
}

TEST_P(PipelineTest, PerKeyOnlyItemsOfTheKeyWait) {
  std::latch first_may_go(1);
  auto pipe = Make(LineBehind(first_may_go), {.window = 9, .order = kPerKey});
  for (int64_t n = 0; n < 9; ++n) {
    ASSERT_OK(pipe.Push(Work(n), Key(static_cast<uint64_t>(n % 3)), {.id = static_cast<uint64_t>(n)}));
  }
  std::map<uint64_t, std::vector<uint64_t>> got;
  const auto take = [&] {
    const Item<Work> item = pipe.Pop();
    EXPECT_EQ(item.id(), static_cast<uint64_t>(item->number));
    got[item.key().value].push_back(item.id());
  };
  for (int i = 0; i < 6; ++i) take();
  EXPECT_EQ(got.count(0), 0u);
  first_may_go.count_down();
  for (int i = 0; i < 3; ++i) take();
  EXPECT_THAT(got[0], ElementsAre(0, 3, 6));
  EXPECT_THAT(got[1], ElementsAre(1, 4, 7));
  EXPECT_THAT(got[2], ElementsAre(2, 5, 8));
}

// Full

TEST_P(PipelineTest, DropOldestTakesThePlaceOfTheOldestThatNobodyWorksOn) {
  std::latch entered(1), go_on(1);
  Stages<Work> stages;
  stages.Host("hold", [&](Work& work) {
    if (work.number != 0) return;
    entered.count_down();
    go_on.wait();
  });
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  auto pipe = Make(std::move(stages), {.window = 3, .when_full = kDropOldest});
  ASSERT_OK(pipe.TryPush(Work(0)));
  entered.wait();
  for (int64_t n = 1; n < 7; ++n) ASSERT_OK(pipe.TryPush(Work(n)));  // 1 to 4 are dropped; 0 is being worked on
  EXPECT_EQ(pipe.stats().dropped, 4);
  go_on.count_down();
  ASSERT_OK(pipe.Drain());
  std::vector<int64_t> got;
  while (auto item = pipe.Pop()) got.push_back(item->number);
  EXPECT_THAT(got, ElementsAre(0, 5, 6));
}

TEST_P(PipelineTest, DropOldestIsRefusedWhereAllAreBeingWorkedOn) {
  std::latch entered(2), go_on(1);
  Stages<Work> stages;
  stages.Host("hold", [&](Work&) { entered.count_down(), go_on.wait(); }, {.workers = 2});
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  auto pipe = Make(std::move(stages), {.window = 2, .when_full = kDropOldest});
  ASSERT_OK(pipe.TryPush(Work(0)));
  ASSERT_OK(pipe.TryPush(Work(1)));
  entered.wait();
  EXPECT_EQ(pipe.TryPush(Work(2)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pipe.stats().dropped, 0);
  go_on.count_down();
}

// Errors

TEST_P(PipelineTest, AFailedRunIsItsItemsStatus) {
  look_ = [](int64_t amount) { return amount == 4 ? absl::DataLossError("bad light") : absl::OkStatus(); };
  Make(devices(), 2);
  std::atomic<int> after{0};
  auto stages = Line();
  stages.Host("after", [&](Work& work) {
    EXPECT_NE(work.number, 3);
    after.fetch_add(1);
  });
  ASSERT_OK(Make(std::move(stages)).Run(Source(8), Sink()));
  ASSERT_EQ(statuses_.size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(statuses_[i].ok(), i != 3) << statuses_[i];
  EXPECT_EQ(statuses_[3].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(statuses_[3]), AllOf(HasSubstr("graph 'line' node 'look'"), HasSubstr("bad light")));
  EXPECT_EQ(after.load(), 7);
}

TEST_P(PipelineTest, AFailedStageNamesItselfAndKeepsTheCode) {
  std::atomic<int> set{0};
  Stages<Work> stages;
  stages.Host("decode", [](Work& work) {
    if (work.number == 1) throw std::runtime_error("boom");
    if (work.number == 2) throw 42;
    return work.number == 0 ? absl::DataLossError("torn") : absl::OkStatus();
  });
  stages.Run("line", executable_, [&](Item<Work>& item) {
    set.fetch_add(1);
    Bind(item);
  });
  ASSERT_OK(Make(std::move(stages)).Run(Source(4), Sink()));
  ASSERT_EQ(statuses_.size(), 4u);
  EXPECT_EQ(statuses_[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(statuses_[0]), AllOf(HasSubstr("pipeline stage 'decode' (pipeline_test.cc:"), HasSubstr("): torn")));
  EXPECT_THAT(Text(statuses_[1]), HasSubstr("threw: boom"));
  EXPECT_THAT(Text(statuses_[2]), HasSubstr("threw something that is no std::exception"));
  EXPECT_OK(statuses_[3]);
  EXPECT_EQ(set.load(), 1);  // of those that got so far
}

// What sets a run may fail, throw, or make a mistake: its own item fails; the next is not touched.
TEST_P(PipelineTest, AFailedSetFailsItsItemOnly) {
  Graph other("other");
  const auto launch = other.InOut<int32_t>("x", 10);
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) -> absl::Status {
    if (item->number == 1) return absl::AbortedError("no");
    if (item->number == 3) throw std::runtime_error("boom");
    if (item->number == 5) item.Set(launch, item->data);
    if (item->number == 7) item->data.resize(item->data.size() - 1);
    Bind(item);
    if (item->number == 7) item.Set(size_, static_cast<int64_t>(item->data.size() + 1));
    return absl::OkStatus();
  });
  ASSERT_OK(Make(std::move(stages)).Run(Source(9), Sink()));
  ASSERT_EQ(statuses_.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(statuses_[i].ok(), i % 2 == 0) << i << ": " << statuses_[i];
  EXPECT_EQ(statuses_[1].code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(statuses_[3]), HasSubstr("threw: boom"));
  EXPECT_EQ(statuses_[5].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(statuses_[7]), HasSubstr("buffer 'x'"));
}

// An item's places are used again: what the one before has set there is forgotten.
TEST_P(PipelineTest, WhatAnItemHasSetIsNotTheNextOnes) {
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) {
    if (item->number == 0) Bind(item);
  });
  ASSERT_OK(Make(std::move(stages), {.window = 1}).Run(Source(2), Sink()));
  ASSERT_EQ(statuses_.size(), 2u);
  EXPECT_OK(statuses_[0]);
  EXPECT_EQ(statuses_[1].code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(statuses_[1]), HasSubstr("param 'size'"));
}

TEST_P(PipelineTest, HasTellsWhatIsSetForAnItemsRuns) {
  Graph again("again"), other("other");
  const auto y = again.InOut<int32_t>("y", kMost), of_other = other.InOut<int32_t>("y", kMost);
  again.ParallelFor("once more", kMost, Add{}, int64_t{100}, ReadWrite(y));
  std::vector<float> floats(kMost);
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) {
    EXPECT_FALSE(item.Has(size_) || item.Has(amount_) || item.Has(x_) || item.Has(y));
    item.Set(x_, item->data);
    EXPECT_TRUE(item.Has(x_) && !item.Has(size_));
    item.Set(BufferHandle<float>(x_.graph(), x_.index()), floats);
    EXPECT_FALSE(item.Has(x_)) << "the run would be refused";
    Bind(item);
    EXPECT_TRUE(item.Has(size_) && item.Has(amount_) && item.Has(x_));
  });
  stages.Host("grow", [](Work& work) { work.data.resize(kMost); });
  stages.Run("again", *runtime_->Compile(again), [&](Item<Work>& item) {
    EXPECT_FALSE(item.Has(x_)) << "that run has ended";
    EXPECT_FALSE(item.Has(y) || item.Has(of_other));
    item.Set(y, item->data);
    EXPECT_TRUE(item.Has(y) && !item.Has(x_) && !item.Has(of_other));
  });
  auto pipe = Make(std::move(stages), {.window = 1});
  for (int64_t n = 0; n < 2; ++n) {
    ASSERT_OK(pipe.Push(Work(n)));
    const Item<Work> item = pipe.Pop();
    EXPECT_OK(item.status());
    EXPECT_FALSE(item.Has(x_) || item.Has(y));
  }
  EXPECT_FALSE(Item<Work>().Has(x_) || Item<Work>().Has(size_));
}

TEST_P(PipelineTest, NorIsWhatAFailedItemHasSet) {
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) {
    if (item->number == 0) Bind(item);
    return item->number == 0 ? absl::AbortedError("no") : absl::OkStatus();
  });
  ASSERT_OK(Make(std::move(stages), {.window = 1}).Run(Source(2), Sink()));
  ASSERT_EQ(statuses_.size(), 2u);
  EXPECT_EQ(statuses_[0].code(), absl::StatusCode::kAborted);
  EXPECT_EQ(statuses_[1].code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(PipelineTest, EachStageHasRetriesOfItsOwn) {
  std::map<std::string, int> calls;
  const auto fail_once = [&](const char* stage) {
    return ++calls[stage] % 2 == 1 ? absl::UnavailableError("once") : absl::OkStatus();
  };
  Stages<Work> stages;
  stages.Host("first", [&](Work&) { return fail_once("first"); });
  stages.Host("second", [&](Work&) { return fail_once("second"); });
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  ASSERT_OK(Make(std::move(stages), {.window = 1, .retries = 1}).Run(Source(3), Sink()));
  ExpectAllOk(3);
}

TEST_P(PipelineTest, RetriesAStageAsOftenAsAsked) {
  for (const int retries : {0, 1, 3}) {
    pulled_ = 0;
    statuses_.clear();
    std::map<int64_t, int> tries;
    Stages<Work> stages;
    stages.Host("flaky", [&](Work& work) {
      return ++tries[work.number] <= work.number ? absl::UnavailableError("try again") : absl::OkStatus();
    });
    stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
    auto pipe = Make(std::move(stages), {.window = 1, .retries = retries});  // all in one place
    ASSERT_OK(pipe.Run(Source(6), Sink()));
    for (int64_t n = 0; n < 6; ++n) {
      EXPECT_EQ(statuses_[static_cast<size_t>(n)].ok(), n <= retries) << n;
      EXPECT_EQ(tries[n], std::min<int64_t>(n, retries) + 1) << n;
    }
  }
}

TEST_P(PipelineTest, RetriesARun) {
  std::atomic<int> calls{0};
  look_ = [&](int64_t) { return calls.fetch_add(1) < 2 ? absl::UnavailableError("busy") : absl::OkStatus(); };
  Make(devices(), 1);
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) {
    std::fill(item->data.begin(), item->data.end(), static_cast<int32_t>(item->number));
    Bind(item);
  });
  auto pipe = Make(std::move(stages), {.retries = 2});
  ASSERT_OK(pipe.Push(Work(5)));
  const Item<Work> item = pipe.Pop();
  EXPECT_OK(item.status());
  ExpectRight(item);
  EXPECT_EQ(calls.load(), 3);
  EXPECT_EQ(pipe.stats().retries, 2);
}

TEST_P(PipelineTest, FailEndsThePipelineWithTheFirstFailureAndEveryItemComesOut) {
  Stages<Work> stages;
  stages.Host("check", [](Work& work) { return work.number == 3 ? absl::DataLossError("torn") : absl::OkStatus(); });
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  auto pipe = Make(std::move(stages), {.window = 20, .on_error = kFail});
  int64_t in = 0;
  while (in < 20 && pipe.Push(Work(in)).ok()) ++in;
  EXPECT_GE(in, 4);
  std::vector<absl::Status> statuses;
  while (auto item = pipe.Pop(std::chrono::seconds(60))) {
    EXPECT_EQ(item->number, static_cast<int64_t>(statuses.size()));
    statuses.push_back(item.status());
  }
  ASSERT_EQ(static_cast<int64_t>(statuses.size()), in);
  EXPECT_EQ(statuses[3].code(), absl::StatusCode::kDataLoss);
  for (size_t i = 4; i < statuses.size(); ++i) {
    EXPECT_EQ(statuses[i].code(), absl::StatusCode::kCancelled);
    EXPECT_THAT(Text(statuses[i]), HasSubstr("torn"));
  }
  EXPECT_EQ(pipe.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(pipe.Drain().code(), absl::StatusCode::kDataLoss);
  const absl::Status refused = pipe.TryPush(Work(0));
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(refused), HasSubstr("nothing more comes in"));
}

// The source gives its third item only when the pipeline has failed with an earlier one.
TEST_P(PipelineTest, AnItemThatTheSourceGivesWhileThePipelineFailsReachesTheSinkLast) {
  Stages<Work> stages;
  stages.Host("check", [](Work& work) { return work.number == 1 ? absl::DataLossError("torn") : absl::OkStatus(); });
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  auto pipe = Make(std::move(stages), {.window = 20, .on_error = kFail});
  int64_t given = 0;
  std::vector<std::pair<int64_t, absl::Status>> seen;
  const absl::Status ended = pipe.Run(
      [&]() -> std::optional<Work> {
        while (given == 2 && pipe.status().ok()) std::this_thread::yield();
        return Work(given++);
      },
      [&](Item<Work>& item) { seen.emplace_back(item->number, item.status()); });
  EXPECT_EQ(ended.code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(static_cast<int64_t>(seen.size()), given);
  ASSERT_GE(given, 2);
  for (int64_t i = 0; i < given; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)].first, i);
  EXPECT_EQ(seen.back().second.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(seen.back().second), HasSubstr("torn"));
}

TEST_P(PipelineTest, AnItemThatTheSourceGivesBesideAStopReachesTheSinkLastAndIsNoFailure) {
  auto pipe = Make(Line(), {.window = 20});
  int64_t given = 0;
  std::vector<std::pair<int64_t, absl::StatusCode>> seen;
  EXPECT_OK(pipe.Run(
      [&]() -> std::optional<Work> {
        if (given == 2) pipe.Stop();
        return Work(given++);
      },
      [&](Item<Work>& item) { seen.emplace_back(item->number, item.status().code()); }));
  using enum absl::StatusCode;
  EXPECT_THAT(seen, ElementsAre(std::pair(0, kOk), std::pair(1, kOk), std::pair(2, kFailedPrecondition)));
}

TEST_P(PipelineTest, AThrowingSourceEndsTheStreamAndIsReturned) {
  const auto source = Source(100);
  const absl::Status status = Make(Line()).Run(
      [&] {
        if (pulled_.load() == 7) throw std::runtime_error("dry");
        return source();
      },
      Sink());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(status), HasSubstr("source threw: dry"));
  ExpectAllOk(7);
}

TEST_P(PipelineTest, AThrowingSinkEndsTheStreamAndIsReturned) {
  const auto sink = Sink();
  auto pipe = Make(Line(), {.window = 10});
  const absl::Status status = pipe.Run(Source(100), [&](Item<Work>& item) {
    sink(item);
    if (item->number == 5) throw std::runtime_error("full");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(status), HasSubstr("sink threw: full"));
  ExpectAllOk(6);
  EXPECT_LE(pulled_.load(), 6 + 10);
  EXPECT_EQ(pipe.stats().inside, 0);
}

// Ends

TEST_P(PipelineTest, StopLetsWhatIsInsideEndAndRefusesMore) {
  auto pipe = Make(Line(), {.window = 10});
  for (int64_t n = 0; n < 5; ++n) ASSERT_OK(pipe.Push(Work(n)));
  pipe.Stop();
  EXPECT_EQ(pipe.Push(Work(5)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pipe.TryPush(Work(5)).code(), absl::StatusCode::kFailedPrecondition);
  for (int64_t n = 0; n < 5; ++n) {
    const Item<Work> item = pipe.Pop();
    EXPECT_OK(item.status());
    EXPECT_EQ(item->number, n);
  }
  EXPECT_EQ(pipe.Pop().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_OK(pipe.status());
}

TEST_P(PipelineTest, StopWhileFullEndsThoseWhoWaitForAPlace) {
  auto pipe = Make(Line(), {.window = 1});
  ASSERT_OK(pipe.Push(Work(0)));
  std::latch about_to_push(1);
  std::jthread pusher([&] {
    about_to_push.count_down();
    EXPECT_EQ(pipe.Push(Work(1)).code(), absl::StatusCode::kFailedPrecondition);
  });
  about_to_push.wait();
  pipe.Stop();
  pusher.join();
  EXPECT_EQ(pipe.Pop()->number, 0);
  EXPECT_FALSE(pipe.Pop());
}

TEST_P(PipelineTest, DrainWaitsUntilAllHaveEndedButNotUntilTheyArePopped) {
  std::latch go_on(1);
  Stages<Work> stages;
  stages.Host("hold", [&](Work&) { go_on.wait(); });
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  auto pipe = Make(std::move(stages), {.window = 4});
  for (int64_t n = 0; n < 4; ++n) ASSERT_OK(pipe.Push(Work(n)));
  const absl::Status late = pipe.Drain(std::chrono::milliseconds(1));
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(late), HasSubstr("4 items had not ended"));
  go_on.count_down();
  ASSERT_OK(pipe.Drain());
  EXPECT_EQ(pipe.stats().ready, 4);
  for (int64_t n = 0; n < 4; ++n) ExpectRight(pipe.Pop());
}

// Wherever items are, Cancel ends them: each comes out once, those that had not been through it all as Cancelled.
TEST_P(PipelineTest, CancelAtEveryPointOfAnItemsLife) {
  for (const char* at : {"waiting", "in a host stage", "set", "in a run", "behind the run", "ready"}) {
    SCOPED_TRACE(at);
    const std::string point = at;
    std::latch entered(1), go_on(1);
    const auto hold = [&](const char* here) {
      if (point != here) return;
      entered.count_down();
      go_on.wait();
    };
    look_ = [&](int64_t amount) {
      if (amount == 1) hold("in a run");
      return absl::OkStatus();
    };
    Make(devices(), 1);
    Stages<Work> stages;
    std::atomic<int> began{0};
    stages.Host("first", [&](Work& work) {
      began.fetch_add(1);
      if (work.number == 0) hold("in a host stage");
    });
    stages.Run("line", executable_, [&](Item<Work>& item) {
      if (item->number == 0) hold("set");
      Bind(item);
    });
    stages.Host("last", [&](Work& work) {
      if (work.number == 0) hold("behind the run");
    });
    auto pipe = Make(std::move(stages), {.window = 6});
    std::atomic<int> pushed{0};
    std::jthread pusher([&] {
      for (int64_t n = 0; n < 5; ++n) {
        const absl::Status status = pipe.Push(Work(n));
        if (status.ok()) {
          pushed.fetch_add(1);
        } else {  // item 0 may be set by another thread, and all be cancelled before the last is in
          EXPECT_EQ(point, "set") << status;
          EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
        }
      }
      if (point == "ready" || point == "waiting") entered.count_down();
    });
    if (point == "set") {
      entered.wait();
      pipe.Cancel();
      go_on.count_down();
      pusher.join();
    } else {
      pusher.join();
      entered.wait();
      if (point == "ready") {
        EXPECT_OK(pipe.Drain());
      }
      pipe.Cancel();
      go_on.count_down();
    }
    int64_t next = 0;
    while (auto item = pipe.Pop(std::chrono::seconds(60))) {
      EXPECT_EQ(item->number, next++);
      if (item.status().ok()) {
        ExpectRight(item);
      } else {
        EXPECT_EQ(item.status().code(), absl::StatusCode::kCancelled) << item.status();
      }
      if (point == "ready") {
        EXPECT_OK(item.status());
      }
    }
    EXPECT_EQ(next, pushed.load());
    if (point == "in a host stage") {
      EXPECT_EQ(began.load(), 1);  // those behind it have begun nothing
    }
    EXPECT_OK(pipe.status());
    EXPECT_EQ(pipe.TryPush(Work(9)).code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST_P(PipelineTest, DestroyedWithItemsEverywhereItEndsThem) {
  for (int round = 0; round < 20; ++round) {
    Stages<Work> stages;
    stages.Host("first", [&](Work&) { std::this_thread::yield(); }, {.workers = 2});
    stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
    auto pipe = Make(std::move(stages), {.window = 10});
    for (int64_t n = 0; n < round % 10; ++n) ASSERT_OK(pipe.Push(Work(n)));
    Item<Work> kept;
    if (round % 10 > 2) kept = pipe.Pop();
    {
      const auto gone = std::move(pipe);
    }
    if (kept) ExpectRight(kept);
  }
}

// Nothing of an item is held for it once its run is over: a keep-alive goes while the item is still inside.
TEST_P(PipelineTest, BindingsDoNotHoldAnItemsMemory) {
  std::weak_ptr<int> watch;
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) {
    auto keep_alive = std::make_shared<int>(0);
    watch = keep_alive;
    Bind(item);
    item.Set(x_, item->data, std::move(keep_alive));
  });
  auto pipe = Make(std::move(stages));
  ASSERT_OK(pipe.Push(Work(1)));
  const Item<Work> item = pipe.Pop();
  while (!watch.expired()) std::this_thread::yield();  // the run lets go just after it has told us its end
  ExpectRight(item);
}

// Others may use the executables meanwhile: then an item waits for its slot, and nothing is lost.
TEST(PipelineExecutable, IsThatOfTheStageOrGraphOfTheName) {
  Runtime runtime = HostRuntime();
  Graph a("a"), b("b");
  auto counts = a.KeyedState<int32_t>("counts", 1);
  a.Fill("fill", Write(counts), 7);
  b.Host("nothing", [] {});
  auto exec = runtime.Compile(b, {.slots = 5});
  ASSERT_OK(exec.status());
  Stages<> stages;
  stages.Host("read", [](Item<>&) {}).Run("run", *runtime.Compile(a)).Run("other", *exec);
  auto pipe = *Pipeline<>::Create(std::move(stages));
  EXPECT_EQ(pipe.executable("other")->slots(), 5);
  EXPECT_OK(pipe.executable("run")->StateOf(counts, Key(1)).status());
  for (const char* none : {"read", "a"}) {
    EXPECT_EQ(pipe.executable(none).status(),
              absl::NotFoundError(std::string("pipeline: no Run or Then is named '") + none +
                                  "'; use the name that it was added with, or that of the pipeline's graph"));
  }
  auto of_graph = *Pipeline<>::Create(runtime, a, {.slots_per_device = 4});
  EXPECT_EQ(of_graph.executable("a")->slots(), 4);
}

TEST_P(PipelineTest, SharesItsExecutablesWithOtherCallers) {
  std::atomic<bool> stop{false};
  std::jthread other([&] {
    std::vector<int32_t> data(100, 0);
    Executable first = *executable_.On(0);
    Bindings io = first.bindings();
    while (!stop.load()) {
      auto run = first.Launch(io.Set(size_, 100).Set(amount_, 1).Set(x_, data));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
    }
  });
  ASSERT_OK(Make(Line()).Run(Source(100), Sink()));
  stop = true;
  ExpectAllOk(100);
}

// Producers and consumers on threads of their own: each item once, in the order of each producer under its key.
TEST_P(PipelineTest, ManyProducersAndConsumers) {
  constexpr int kThreads = 3;
  constexpr int64_t kEach = 60;
  Stages<Work> stages;
  stages.Host("first", [](Work&) {}, {.workers = 3});
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  auto pipe = Make(std::move(stages), {.order = kPerKey});
  std::atomic<int> left{kThreads};
  std::array<std::array<std::atomic<int>, kEach>, kThreads> seen{};
  {
    std::vector<std::jthread> threads;
    for (uint64_t p = 0; p < kThreads; ++p) {
      threads.emplace_back([&, p] {
        for (uint64_t n = 0; n < kEach; ++n) EXPECT_OK(pipe.Push(Work(static_cast<int64_t>(n)), Key(p), {.id = n}));
        if (--left == 0) pipe.Stop();
      });
      threads.emplace_back([&] {
        while (auto item = pipe.Pop()) {
          EXPECT_OK(item.status());
          ExpectRight(item);
          seen[item.key().value][item.id()].fetch_add(1);
        }
      });
    }
  }
  for (const auto& of_key : seen) {
    for (const auto& times : of_key) EXPECT_EQ(times.load(), 1);
  }
}

// Bad use

TEST_P(PipelineTest, WhatWouldWaitForItselfIsRefusedInsideAndSaysSo) {
  std::vector<absl::Status> inside;
  Pipeline<Work>* self = nullptr;
  const auto try_all = [&] {
    inside.push_back(self->Push(Work(9)));
    inside.push_back(self->Pop().status());
    inside.push_back(self->Drain());
    inside.push_back(self->Run([]() -> std::optional<Work> { return std::nullopt; }, [](Item<Work>&) {}));
    inside.push_back(self->RunBatch([]() -> std::optional<Work> { return std::nullopt; }, [](Item<Work>&) {}));
  };
  Stages<Work> stages;
  stages.Host("stage", [&](Work&) { try_all(); });
  stages.Run("line", executable_, [&](Item<Work>& item) {
    try_all();
    Bind(item);
  });
  auto pipe = Make(std::move(stages));
  self = &pipe;
  ASSERT_OK(pipe.Run(
      [&]() -> std::optional<Work> {
        if (pulled_.fetch_add(1) > 0) return std::nullopt;
        try_all();
        return Work(0);
      },
      [&](Item<Work>& item) {
        EXPECT_OK(item.status());
        try_all();
      }));
  EXPECT_EQ(inside.size(), 4u * 5u);
  for (const absl::Status& status : inside) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Text(status), HasSubstr("inside a stage, source, sink or callback"));
  }
}

TEST_P(PipelineTest, AStageMayPushWithoutWaiting) {
  Pipeline<Work>* self = nullptr;
  Stages<Work> stages;
  stages.Run("line", executable_, [&](Item<Work>& item) { Bind(item); });
  stages.Host("more", [&](Work& work) {
    if (work.number < 5) {
      EXPECT_OK(self->TryPush(Work(work.number + 1)));
    }
  });
  auto pipe = Make(std::move(stages), {.window = 8});
  self = &pipe;
  ASSERT_OK(pipe.Push(Work(0)));
  for (int64_t n = 0; n <= 5; ++n) EXPECT_EQ(pipe.Pop()->number, n);
}

TEST_P(PipelineTest, BadStagesAndOptionsAreNamed) {
  const auto message = [&](Stages<Work> stages, PipelineOptions options = {}) {
    const absl::Status status = Pipeline<Work>::Create(std::move(stages), std::move(options)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Text(status);
  };
  const auto nothing = [](Item<Work>&) {};
  EXPECT_THAT(message({}), HasSubstr("no stage is a Run"));
  Stages<Work> host_only;
  host_only.Host("host", nothing);
  EXPECT_THAT(message(std::move(host_only)), HasSubstr("no stage is a Run"));
  Stages<Work> two;
  two.Host("none", nothing, {.workers = -1}).Host("many", nothing, {.workers = 1 << 20});
  EXPECT_THAT(message(std::move(two)), AllOf(HasSubstr("stage 'none' ("), HasSubstr("workers is -1"),
                                             HasSubstr("stage 'many' ("), HasSubstr("workers is 1048576")));
  Stages<Work> empty;
  empty.Run("line", Executable(), nothing);
  EXPECT_THAT(message(std::move(empty)), HasSubstr("executable was default-constructed"));
  Graph other("other");
  other.InOut<int32_t>("x", 1);
  auto elsewhere = Runtime::Create({.devices = "host"});
  Stages<Work> runtimes;
  runtimes.Run("line", executable_, nothing).Run("other", *elsewhere->Compile(other), nothing);
  EXPECT_THAT(message(std::move(runtimes)), HasSubstr("is of another runtime"));
  EXPECT_THAT(message(Line(), {.window = -1}), HasSubstr("window is -1"));
  EXPECT_THAT(message(Line(), {.retries = -1}), HasSubstr("retries is -1"));
  EXPECT_THAT(message(Line(), {.progress = [](const PipelineStats&) {}, .progress_every = {}}),
              HasSubstr("progress_every is 0"));
  Graph slots("slots");
  EXPECT_EQ(Pipeline<>::Create(*runtime_, slots, {.slots_per_device = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(PipelineTest, AMovedFromPipelineAndNoItemSayWhatTheyAre) {
  auto pipe = Make(Line());
  const auto other = std::move(pipe);
  EXPECT_THAT(Text(pipe.Push(Work(0))), HasSubstr("moved from"));  // NOLINT(bugprone-use-after-move)
  EXPECT_THAT(Text(pipe.Drain()), HasSubstr("moved from"));
  EXPECT_THAT(Text(pipe.RunBatch(Source(1), Sink())), HasSubstr("moved from"));
  EXPECT_THAT(Text(pipe.Pop().status()), HasSubstr("moved from"));
  Item<Work> none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.Submit().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(none.span(x_).empty());
  std::vector<int32_t> one(1);
  none.Set(x_, one).Set(amount_, 1);
}

}  // namespace
}  // namespace penstock::pipeline_test
