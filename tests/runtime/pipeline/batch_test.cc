// Batches (Pipeline::RunBatch): what the sink of each sees, what it leaves to others, and how a batch ends. The running
// sums in a State tell that items went through, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/asleep.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::batch_test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int64_t by, int64_t* sum) const { *sum += by; }
};
struct CopyOut {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const int64_t* from, int64_t* to) const { *to = *from; }
};

struct Number {
  int64_t n = 0;
  int64_t sum = -1;
};

// sum += n in a State, behind a host stage and in front of another.
class BatchTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const State<int64_t> sum = *runtime_.MakeState<int64_t>("sum", 1);
    Graph graph("sums");
    by_ = graph.Param<int64_t>("by");
    out_ = graph.Output<int64_t>("out", 1);
    graph.ParallelFor("add", 1, AddTo{}, by_, ReadWrite(sum));
    graph.ParallelFor("copy", 1, CopyOut{}, Read(sum), Write(out_));
    executable_ = *runtime_.Compile(graph, {.slots = 2});
  }

  Pipeline<Number> Make(PipelineOptions options = {}, int workers = 1) {
    Stages<Number> stages;
    stages.Host("first", [this](Number& number) { return first_ ? first_(number.n) : absl::OkStatus(); },
                {.workers = workers});
    stages.Run("sums", executable_, [this](Item<Number>& item) {
      if (set_) set_(item->n);
      item.Set(by_, item->n).Set(out_, item->sum);
    });
    stages.Host("last", [this](Number&) { ended_.fetch_add(1); });
    auto made = Pipeline<Number>::Create(std::move(stages), std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  // A source of the numbers from `begin` to `end`.
  static std::function<std::optional<Number>()> From(int64_t begin, int64_t end) {
    return [begin, end]() mutable -> std::optional<Number> {
      return begin == end ? std::nullopt : std::optional(Number{begin++});
    };
  }
  std::function<void(Item<Number>&)> See() {
    return [this](const Item<Number>& item) {
      seen_.push_back(item->n);
      codes_.push_back(item.status().code());
    };
  }
  std::vector<int64_t> Seen() { return std::exchange(seen_, {}); }

  std::function<absl::Status(int64_t)> first_;
  std::function<void(int64_t)> set_;
  std::atomic<int> ended_{0};  // items that have been in the last stage
  std::vector<int64_t> seen_;
  std::vector<absl::StatusCode> codes_;
  Runtime runtime_ = HostRuntimeThatRings(GetParam(), 4);
  Executable executable_;
  ParamHandle<int64_t> by_;
  BufferHandle<int64_t> out_;
};

// Whether devices ring an event count; CUDA's do not.
INSTANTIATE_TEST_SUITE_P(Rings, BatchTest, testing::Bool());

TEST_P(BatchTest, FollowEachOtherAndStatesKeepTheirContents) {
  int64_t next = 0, sum = 0;
  const auto check = [&](const Item<Number>& item) {
    EXPECT_OK(item.status());
    EXPECT_EQ(item->n, next++);
    EXPECT_EQ(item->sum, sum += item->n);
  };
  for (const int window : {1, 4}) {
    auto pipe = Make({.window = window}, 3);
    for (const int64_t size : {3, 0, 40, 1, 0, 17}) {
      const int64_t end = next + size;
      EXPECT_OK(pipe.RunBatch(From(next, end), check));
      EXPECT_EQ(next, end);
      EXPECT_EQ(pipe.stats().inside, 0);
    }
    ASSERT_OK(pipe.Push({next}));
    check(pipe.Pop());
    EXPECT_OK(pipe.RunBatch(From(next, next + 5), check));
    EXPECT_OK(pipe.Run(From(next, next + 5), check));
    EXPECT_EQ(pipe.stats().delivered, 3 + 40 + 1 + 17 + 1 + 5 + 5);
    const int64_t end = next;
    const absl::Status stopped = pipe.RunBatch(From(next, next + 5), check);
    EXPECT_EQ(stopped.code(), absl::StatusCode::kFailedPrecondition) << stopped;
    EXPECT_EQ(next, end);
  }
}

TEST_P(BatchTest, HaveTheKeysThatTheirValuesSay) {
  auto pipe = Make({.window = 6, .order = kPerKey}, 3);
  const auto key = [](const Number& number) { return Key(static_cast<uint64_t>(number.n % 3)); };
  std::vector<int64_t> next{0, 1, 2};
  for (const int64_t begin : {0, 60}) {
    EXPECT_OK(pipe.RunBatch(
        From(begin, begin + 60),
        [&](Item<Number>& item) {
          int64_t& of_key = next.at(static_cast<size_t>(item.key().value));
          EXPECT_EQ(item->n, of_key);
          of_key += 3;
        },
        key));
  }
  EXPECT_THAT(next, ElementsAre(120, 121, 122));
}

// Three threads have batches one after the other, and one pushes and pops: each sees its own and nothing else.
TEST_P(BatchTest, OfSeveralThreadsSeeTheirOwnItemsAndPopSeesTheOthers) {
  constexpr int64_t kThreads = 3, kBatches = 8, kItems = 20;
  for (const Order order : {kInOrder, kAsReady, kPerKey}) {
    auto pipe = Make({.window = 7, .order = order}, 3);
    const auto of_thread = [&](int64_t t) {
      for (int64_t b = 0; b < kBatches; ++b) {
        std::vector<int64_t> seen, expected;
        const int64_t begin = (t * kBatches + b) * kItems;
        for (int64_t n = begin; n < begin + kItems; ++n) expected.push_back(n);
        EXPECT_OK(pipe.RunBatch(
            From(begin, begin + kItems), [&](Item<Number>& item) { seen.push_back(item->n); },
            [&](const Number&) { return Key(static_cast<uint64_t>(t)); }));
        if (order == kAsReady) std::sort(seen.begin(), seen.end());
        EXPECT_EQ(seen, expected);
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int64_t t = 0; t < kThreads; ++t) threads.emplace_back(of_thread, t);
      for (int64_t n = 1; n <= 100; ++n) {
        EXPECT_OK(pipe.Push({-n}, Key(99)));
        EXPECT_EQ(pipe.Pop()->n, -n);
      }
    }
    EXPECT_EQ(pipe.stats().inside, 0);
  }
}

TEST_P(BatchTest, LeaveWhatOthersPushedToPopAndRun) {
  auto pipe = Make({.window = 4});
  for (const int64_t n : {100, 101, 102}) ASSERT_OK(pipe.Push({n}));
  EXPECT_OK(pipe.RunBatch(From(0, 6), See()));
  EXPECT_THAT(Seen(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(pipe.Pop()->n, 100);
  EXPECT_OK(pipe.Run(From(6, 8), See()));
  EXPECT_THAT(Seen(), ElementsAre(101, 102, 6, 7));
}

TEST_P(BatchTest, HaveWhatTheirSourceSinkAndStagesSubmit) {
  Pipeline<Number>* self = nullptr;
  first_ = [&](int64_t n) { return n == 1 ? self->TryPush({11}) : absl::OkStatus(); };
  set_ = [&](int64_t n) {  // any thread calls this: what 200 submits is in no batch
    if (n != 2 && n != 200) return;
    EXPECT_OK(self->TryPush({n + 10}));
  };
  auto pipe = Make({.window = 20, .order = kAsReady});
  self = &pipe;
  ASSERT_OK(pipe.Push({200}));
  EXPECT_OK(pipe.RunBatch(
      [&, source = From(0, 5)] {
        const auto next = source();
        EXPECT_OK(next ? absl::OkStatus() : pipe.TryPush({13}));
        return next;
      },
      [&](Item<Number>& item) {
        seen_.push_back(item->n);
        EXPECT_OK(item->n == 13 ? pipe.TryPush({14}) : absl::OkStatus());
      }));
  EXPECT_THAT(Seen(), UnorderedElementsAre(0, 1, 2, 3, 4, 11, 12, 13, 14));
  EXPECT_OK(pipe.Drain());
  while (auto item = pipe.Pop()) seen_.push_back(item->n);
  EXPECT_THAT(Seen(), UnorderedElementsAre(200, 210));
}

// A pipeline that runs inside the source of another one's batch: what its sink submits there is the source's doing, but
// its stages may be called on any thread.
TEST_P(BatchTest, HaveWhatASinkInsideTheirSourceSubmitsButNotWhatAStageThereDoes) {
  auto pipe = Make({.window = 20});
  Graph graph("nothing");
  graph.Host("nothing", [] {});
  Stages<Number> stages;
  stages.Run("nothing", *runtime_.Compile(graph),
             [&](Item<Number>& item) { EXPECT_OK(pipe.TryPush({item->n + 100})); });
  auto other = *Pipeline<Number>::Create(std::move(stages));
  const auto sink = [&](Item<Number>& item) { EXPECT_OK(pipe.TryPush({item->n + 200})); };
  EXPECT_OK(pipe.RunBatch(
      [&, source = From(0, 1)] {
        EXPECT_OK(other.RunBatch(From(0, 3), sink));
        return source();
      },
      See()));
  EXPECT_THAT(Seen(), UnorderedElementsAre(0, 200, 201, 202, 200, 201, 202));
  EXPECT_OK(pipe.Drain());
  while (auto item = pipe.Pop()) seen_.push_back(item->n);
  EXPECT_THAT(Seen(), UnorderedElementsAre(100, 101, 102, 100, 101, 102));
}

// Ends

TEST_P(BatchTest, AFailedItemCostsNothingElse) {
  first_ = [](int64_t n) { return n == 3 ? absl::DataLossError("torn") : absl::OkStatus(); };
  auto pipe = Make();
  EXPECT_OK(pipe.RunBatch(From(0, 5), See()));
  EXPECT_OK(pipe.RunBatch(From(5, 7), See()));
  EXPECT_THAT(Seen(), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  using enum absl::StatusCode;
  EXPECT_THAT(codes_, ElementsAre(kOk, kOk, kOk, kDataLoss, kOk, kOk, kOk));
}

TEST_P(BatchTest, OfAPipelineThatFailsShowAllItemsAndNoneFollows) {
  first_ = [](int64_t n) { return n == 3 ? absl::DataLossError("torn") : absl::OkStatus(); };
  auto pipe = Make({.window = 5, .on_error = kFail});
  int64_t given = 0;
  const auto source = [&]() -> std::optional<Number> { return Number{given++}; };
  EXPECT_EQ(pipe.RunBatch(source, See()).code(), absl::StatusCode::kDataLoss);
  const int64_t before = given;
  ASSERT_EQ(static_cast<int64_t>(seen_.size()), before);
  for (int64_t n = 0; n < before; ++n) EXPECT_EQ(seen_[static_cast<size_t>(n)], n);
  ASSERT_GT(before, 3);
  EXPECT_EQ(codes_[3], absl::StatusCode::kDataLoss);
  EXPECT_EQ(pipe.RunBatch(source, See()).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(given, before);
}

TEST_P(BatchTest, AThrowingSourceEndsItsBatchOnly) {
  auto pipe = Make({.window = 5});
  const absl::Status thrown = pipe.RunBatch(
      [source = From(0, 10)] {
        const auto next = source();
        if (next->n == 4) throw std::runtime_error("dry");
        return next;
      },
      See());
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(thrown), HasSubstr("source threw: dry"));
  EXPECT_OK(pipe.RunBatch(From(4, 8), See()));
  EXPECT_THAT(Seen(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(codes_, Each(absl::StatusCode::kOk));
}

TEST_P(BatchTest, AThrowingSinkSeesNoMoreAndItsItemsGoThrough) {
  auto pipe = Make({.window = 5});
  const auto sink = See();
  const absl::Status thrown = pipe.RunBatch(From(0, 100), [&](Item<Number>& item) {
    sink(item);
    if (item->n == 2) throw std::runtime_error("full");
  });
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Text(thrown), HasSubstr("sink threw: full"));
  EXPECT_THAT(Seen(), ElementsAre(0, 1, 2));
  const int64_t accepted = pipe.stats().accepted;
  EXPECT_LE(accepted, 3 + 5);
  EXPECT_EQ(ended_.load(), accepted);
  EXPECT_EQ(pipe.stats().inside, 0);
  int64_t sum = accepted * (accepted - 1) / 2;  // of what went through
  EXPECT_OK(pipe.RunBatch(From(7, 9), [&](Item<Number>& item) { EXPECT_EQ(item->sum, sum += item->n); }));
}

// The first stage has an item of another, so nothing but drops ends the batch.
TEST_P(BatchTest, EndsWhenTheLastOfItsItemsHasBeenDropped) {
  driver::Latch in_first;
  first_ = [&](int64_t n) {
    if (n == 0) in_first.Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.window = 3, .when_full = kDropOldest});
  ASSERT_OK(pipe.TryPush({0}));
  ASSERT_TRUE(in_first.AwaitArrived());
  std::promise<pid_t> thread;
  std::jthread batch([&] {
    thread.set_value(gettid());
    EXPECT_OK(pipe.RunBatch(From(1, 6), See()));
  });
  EXPECT_TRUE(test_support::FallsAsleep(thread.get_future().get()));
  EXPECT_EQ(pipe.stats().inside, 2);  // 5 waits; the others had to go, the last of them when the source was asked again
  for (const int64_t n : {10, 11}) EXPECT_OK(pipe.TryPush({n}));
  batch.join();
  EXPECT_EQ(pipe.stats().dropped, 5);
  in_first.Open();
  EXPECT_OK(pipe.Drain());
  EXPECT_THAT(Seen(), IsEmpty());
  while (auto item = pipe.Pop()) seen_.push_back(item->n);
  EXPECT_THAT(Seen(), ElementsAre(0, 10, 11));
}

TEST_P(BatchTest, IsCutShortByAStop) {
  auto pipe = Make({.window = 4});
  const absl::Status stopped = pipe.RunBatch(
      [&, source = From(0, 100)] {
        const auto next = source();
        if (next->n == 7) pipe.Stop();
        return next;
      },
      See());
  EXPECT_EQ(stopped.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(stopped), HasSubstr("before the source had no more"));
  EXPECT_THAT(Seen(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(codes_.back(), absl::StatusCode::kFailedPrecondition);  // it came too late
  codes_.pop_back();
  EXPECT_THAT(codes_, Each(absl::StatusCode::kOk));
}

TEST_P(BatchTest, IsWholeIfTheStopComesBehindItsSource) {
  auto pipe = Make({.window = 8});
  const auto sink = See();
  EXPECT_OK(pipe.RunBatch(From(0, 3), [&](Item<Number>& item) {
    sink(item);
    if (item->n == 2) pipe.Stop();
  }));
  EXPECT_THAT(Seen(), ElementsAre(0, 1, 2));
}

TEST_P(BatchTest, CancelEndsItsItemsWhichTheSinkSees) {
  driver::Latch in_first;
  first_ = [&](int64_t n) {
    if (n == 0) in_first.Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.window = 4});
  std::jthread other([&] {
    EXPECT_TRUE(in_first.AwaitArrived());
    pipe.Cancel();
    in_first.Open();
  });
  int64_t given = 0;
  const auto source = [&]() -> std::optional<Number> { return Number{given++}; };
  EXPECT_EQ(pipe.RunBatch(source, See()).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(static_cast<int64_t>(seen_.size()), given);
  for (int64_t n = 0; n < given; ++n) EXPECT_EQ(seen_[static_cast<size_t>(n)], n);
  EXPECT_EQ(codes_.front(), absl::StatusCode::kCancelled);
  EXPECT_THAT(codes_, Not(Contains(absl::StatusCode::kOk)));
}

TEST_P(BatchTest, GoesOnToItsEndWhereThePipelineIsDestroyedInside) {
  std::optional<Pipeline<Number>> pipe(Make({.window = 5}));
  int64_t given = 0;
  const auto source = [&]() -> std::optional<Number> { return Number{given++}; };
  const auto sink = See();
  const absl::Status ended = pipe->RunBatch(source, [&](Item<Number>& item) {
    sink(item);
    if (item->n == 3) pipe.reset();
  });
  EXPECT_EQ(ended.code(), absl::StatusCode::kFailedPrecondition) << ended;
  ASSERT_EQ(static_cast<int64_t>(seen_.size()), given);
  for (int64_t n = 0; n < given; ++n) EXPECT_EQ(seen_[static_cast<size_t>(n)], n);
}

// If the sink ends its thread, items remain in the pipeline; they then belong to no batch.
TEST_P(BatchTest, ItemsOfAThreadThatHasEndedGoToPop) {
  auto pipe = Make({.window = 5});
  std::thread([&] {
    (void)pipe.RunBatch(From(0, 100), [](Item<Number>& item) {
      if (item->n == 2) pthread_exit(nullptr);
    });
  }).join();
  EXPECT_OK(pipe.Drain());
  int64_t next = 3;
  while (auto item = pipe.Pop()) EXPECT_EQ(item->n, next++);
  EXPECT_EQ(next, pipe.stats().accepted);
}

TEST_P(BatchTest, IsRefusedWithoutASourceOrSink) {
  auto pipe = Make();
  const absl::Status none = pipe.RunBatch(nullptr, See());
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(none), HasSubstr("RunBatch: the source is null"));
  EXPECT_THAT(Text(pipe.RunBatch(From(0, 1), nullptr)), HasSubstr("RunBatch: the sink is null"));
  EXPECT_OK(pipe.RunBatch(From(0, 1), See()));
}

}  // namespace
}  // namespace penstock::batch_test
