// Pipelines whose items have slots from beginning to end, deadlines, and States: what is filled and read in place, who
// waits for whom, what comes back when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/cpu_time.h"
#include "tests/support/kernels.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::slot_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const int32_t* x, int64_t* sum) const { *sum += *x; }
};
struct CopyOut {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const int64_t* from, int64_t* to) const { *to = *from; }
};

constexpr int64_t kN = 100;

// y = 2 x, both in the slot.
class PipelineSlotTest : public testing::Test {
 protected:
  void SetUp() override {
    x_ = graph_.Input<int32_t>("x", kN, kSlot);
    y_ = graph_.Output<int32_t>("y", kN, kSlot);
    graph_.Host("hold", [hold = hold_](std::span<const int32_t> x) { return (*hold)(x[0]); }, Read(x_)).Concurrency(8);
    graph_.ParallelFor("twice", kN, Twice{}, Read(x_), Write(y_));
  }

  Pipeline<> Make(PipelineOptions options = {}) {
    auto made = Pipeline<>::Create(runtime_, graph_, std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  void Fill(Item<>& item, int32_t value) const {
    const std::span<int32_t> x = item.span(x_);
    ASSERT_EQ(x.size(), static_cast<size_t>(kN));
    std::fill(x.begin(), x.end(), value);
  }
  void Send(Pipeline<>& pipe, int32_t value, Key key = {}, ItemOptions options = {}) const {
    auto item = pipe.Acquire(key);
    ASSERT_OK(item.status());
    Fill(*item, value);
    options.id = static_cast<uint64_t>(value);
    ASSERT_OK(item->Submit(options));
  }
  void ExpectRight(const Item<>& item) const {
    EXPECT_OK(item.status());
    const std::span<int32_t> y = item.span(y_);
    EXPECT_EQ(std::vector<int32_t>(y.begin(), y.end()), std::vector<int32_t>(kN, 2 * static_cast<int32_t>(item.id())));
  }

  Runtime runtime_ = HostRuntime(4, "host:2");
  Graph graph_{"slots"};
  BufferHandle<int32_t> x_, y_;
  // Shared with the graph: a run that has been abandoned may still be in it when the test ends.
  std::shared_ptr<std::function<absl::Status(int32_t)>> hold_ =
      std::make_shared<std::function<absl::Status(int32_t)>>([](int32_t) { return absl::OkStatus(); });
};

TEST_F(PipelineSlotTest, ItemsAreFilledAndReadInPlaceOnEveryDevice) {
  auto pipe = Make({.slots_per_device = 2, .window = 10});
  std::array<int, 2> on{};
  for (int32_t round = 0; round < 20; ++round) {
    for (int32_t i = 0; i < 4; ++i) Send(pipe, round * 4 + i);
    EXPECT_EQ(pipe.TryAcquire().status().code(), absl::StatusCode::kResourceExhausted);  // places are left, slots none
    for (int32_t i = 0; i < 4; ++i) {
      const Item<> item = pipe.Pop();
      EXPECT_EQ(item.id(), static_cast<uint64_t>(round * 4 + i));
      ExpectRight(item);
      ++on.at(static_cast<size_t>(item.device()));
    }
  }
  EXPECT_THAT(on, ElementsAre(40, 40));
}

TEST_F(PipelineSlotTest, AnItemThatIsNotSubmittedGivesItsPlaceAndSlotBack) {
  auto pipe = Make({.slots_per_device = 1, .window = 2});
  for (int i = 0; i < 5; ++i) {
    auto a = pipe.TryAcquire(), b = pipe.TryAcquire();
    ASSERT_OK(a.status());
    ASSERT_OK(b.status());
    EXPECT_NE(a->span(x_).data(), b->span(x_).data());
    EXPECT_FALSE(pipe.TryAcquire().ok());
  }
  EXPECT_EQ(pipe.stats().accepted, 0);
}

TEST_F(PipelineSlotTest, DropOldestTakesTheSlotOfTheOldestResult) {
  auto pipe = Make({.slots_per_device = 1, .window = 8, .when_full = kDropOldest});
  for (int32_t i = 0; i < 2; ++i) Send(pipe, i);
  while (pipe.stats().ready < 2) std::this_thread::yield();
  for (int32_t i = 2; i < 6; ++i) {
    auto item = pipe.TryAcquire();
    ASSERT_OK(item.status());
    Fill(*item, i);
    ASSERT_OK(item->Submit({.id = static_cast<uint64_t>(i)}));
    while (pipe.stats().ready < 2) std::this_thread::yield();
  }
  EXPECT_EQ(pipe.stats().dropped, 4);
  ASSERT_OK(pipe.Drain());
  for (const uint64_t id : {4, 5}) {
    const Item<> item = pipe.Pop();
    EXPECT_EQ(item.id(), id);
    ExpectRight(item);
  }
  EXPECT_FALSE(pipe.Pop());
}

TEST_F(PipelineSlotTest, ItemsOutliveTheirPipelineAndSubmitSaysThatItIsGone) {
  Item<> filled, result;
  {
    auto pipe = Make();
    filled = *pipe.Acquire();
    Send(pipe, 7);
    result = pipe.Pop();
  }
  ExpectRight(result);
  Fill(filled, 3);
  const absl::Status late = filled.Submit();
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(late), HasSubstr("nothing more comes in"));
  EXPECT_TRUE(filled);
  const absl::Status twice = result.Submit();
  EXPECT_EQ(twice.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(twice), HasSubstr("Submit of an item that was popped"));
}

// Deadlines

TEST_F(PipelineSlotTest, AnItemThatWaitsEndsAtItsDeadline) {
  driver::Latch latch;
  *hold_ = [&](int32_t x) {
    if (x == 1) latch.Arrive();
    return absl::OkStatus();
  };
  Runtime runtime = HostRuntime();
  Graph graph("one");
  auto x = graph.InOut<int32_t>("x", 1);
  graph.Host("hold", [&](std::span<int32_t> v) { return (*hold_)(v[0]); }, ReadWrite(x));
  Stages<std::vector<int32_t>> stages;
  stages.Run("one", *runtime.Compile(graph, {.slots = 1}),
             [&](Item<std::vector<int32_t>>& item) { item.Set(x, item.value()); });
  auto pipe = *Pipeline<std::vector<int32_t>>::Create(std::move(stages), {.window = 3, .order = kAsReady});
  ASSERT_OK(pipe.Push({1}));
  ASSERT_TRUE(latch.AwaitArrived());
  ASSERT_OK(pipe.Push({2}, {}, {.id = 2, .deadline = 1ms}));
  ASSERT_OK(pipe.Push({3}, {}, {.id = 3}));
  const auto item = pipe.Pop();  // nobody else moves the pipeline on
  EXPECT_EQ(item.id(), 2u);
  EXPECT_EQ(item.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(item.status()), HasSubstr("while it waited for pipeline stage 'one' ("));
  latch.Open();
  EXPECT_OK(pipe.Drain());
  EXPECT_OK(pipe.Pop().status());
  EXPECT_OK(pipe.Pop().status());
}

// The run is abandoned; its memory, and the item's place with it, come back when its work has ended.
TEST_F(PipelineSlotTest, AnAbandonedRunKeepsItsItemsPlaceUntilItsWorkHasEnded) {
  auto latch = std::make_shared<driver::Latch>();
  *hold_ = [latch](int32_t x) {
    if (x == 1) latch->Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.slots_per_device = 2, .window = 1});
  Send(pipe, 1, {}, {.deadline = 500ms});  // by then it runs
  {
    const Item<> item = pipe.Pop();
    EXPECT_EQ(item.status().code(), absl::StatusCode::kDeadlineExceeded) << item.status();
  }
  EXPECT_EQ(pipe.TryAcquire().status().code(), absl::StatusCode::kResourceExhausted);
  latch->Open();
  Send(pipe, 2);
  ExpectRight(pipe.Pop());
}

// Its slot goes to the next one then, though nobody takes it out.
TEST_F(PipelineSlotTest, AnAbandonedRunsSlotGoesToTheNextWhenItsWorkHasEnded) {
  auto latch = std::make_shared<driver::Latch>();
  Graph graph("one");
  const auto x = graph.Param<int32_t>("x");
  graph.Host(
      "hold",
      [latch](int32_t v) {
        if (v == 1) latch->Arrive();
      },
      x);
  Stages<int32_t> stages;
  stages.Run("one", *runtime_.Compile(graph, {.slots = 1}), [&](Item<int32_t>& item) { item.Set(x, item.value()); });
  auto pipe = *Pipeline<int32_t>::Create(std::move(stages), {.window = 2});
  ASSERT_OK(pipe.Push(1, {}, {.deadline = 500ms}));  // by then it runs
  ASSERT_TRUE(latch->AwaitArrived());
  ASSERT_OK(pipe.Push(2));
  while (pipe.stats().ready < 1) std::this_thread::yield();
  latch->Open();
  ASSERT_OK(pipe.Drain(std::chrono::minutes(1)));
  EXPECT_EQ(pipe.Pop().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_OK(pipe.Pop().status());
}

// Nor is it tried again while its work goes on.
TEST_F(PipelineSlotTest, AnItemWhoseRunIsAbandonedIsNotTriedAgain) {
  auto latch = std::make_shared<driver::Latch>();  // longer than the runtime
  *hold_ = [latch](int32_t) {
    latch->Arrive();
    return absl::OkStatus();
  };
  auto pipe = Make({.slots_per_device = 1, .window = 2, .retries = 1});
  Send(pipe, 1);
  ASSERT_TRUE(latch->AwaitArrived());
  EXPECT_EQ(runtime_.Shutdown(1ms).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(pipe.Pop().status().ok());
  EXPECT_EQ(pipe.stats().retries, 0);
  latch->Open();
}

// What an item's value holds stays for an abandoned run, also where the item goes after its pipeline.
TEST_F(PipelineSlotTest, AnAbandonedRunKeepsItsItemsValueThoughThePipelineGoesFirst) {
  auto latch = std::make_shared<driver::Latch>();
  auto wrote = std::make_shared<std::latch>(1);
  Runtime runtime = HostRuntime();
  Graph graph("late");
  auto y = graph.Output<int32_t>("y", 1);
  graph.Host(
      "write",
      [latch, wrote](std::span<int32_t> out) {
        latch->Arrive();
        out[0] = 7;
        wrote->count_down();
      },
      Write(y));
  Stages<std::array<int32_t, 1>> stages;
  stages.Run("late", *runtime.Compile(graph, {.slots = 1}),
             [&](Item<std::array<int32_t, 1>>& item) { item.Set(y, std::span(item.value())); });
  std::optional pipe = *Pipeline<std::array<int32_t, 1>>::Create(std::move(stages));
  ASSERT_OK(pipe->Push({0}, {}, {.deadline = 500ms}));  // by then it runs
  auto item = pipe->Pop();
  EXPECT_EQ(item.status().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(latch->AwaitArrived());
  pipe.reset();
  item = {};
  latch->Open();
  wrote->wait();
}

// A slot that is refused for good ends the stream with the reason.
TEST_F(PipelineSlotTest, ASourceHearsOfARuntimeThatHasBeenShutDown) {
  auto pipe = Make({.slots_per_device = 1, .window = 2});
  int pulled = 0;
  const absl::Status ended = pipe.Run(
      [&]() -> std::optional<NoValue> {
        if (++pulled > 5) ADD_FAILURE() << "it goes on";
        std::jthread([&] { EXPECT_OK(runtime_.Shutdown()); }).join();
        return NoValue();
      },
      [](Item<>& item) { EXPECT_FALSE(item.status().ok()); });
  EXPECT_EQ(ended.code(), absl::StatusCode::kFailedPrecondition) << ended;
}

// States

class PipelineStateTest : public testing::Test {
 protected:
  void SetUp() override {
    x_ = graph_.Input<int32_t>("x", 1);
    out_ = graph_.Output<int64_t>("out", 1);
    graph_.Host(
        "check", [this](std::span<const int32_t> x) { return check_ ? check_(x[0]) : absl::OkStatus(); }, Read(x_));
    graph_.ParallelFor("add", 1, AddTo{}, Read(x_), ReadWrite(sum_));
    const NodeRef again = graph_.Host(
        "check again",
        [this](std::span<const int64_t> sum) { return check_again_ ? check_again_(sum[0]) : absl::OkStatus(); },
        Read(sum_));
    // The last touch: so runs behind one that the check fails cannot have ended before.
    graph_.ParallelFor("copy", 1, CopyOut{}, Read(sum_), Write(out_)).After(again);
  }
  struct Number {
    std::vector<int32_t> x{0};
    std::vector<int64_t> out{-1};
  };
  Pipeline<Number> Make(PipelineOptions options) {
    Stages<Number> stages;
    stages.Run("sum", *runtime_.Compile(graph_, {.slots = 3}),
               [this](Item<Number>& item) { item.Set(x_, item->x).Set(out_, item->out); });
    auto made = Pipeline<Number>::Create(std::move(stages), std::move(options));
    EXPECT_OK(made.status());
    return *std::move(made);
  }

  Runtime runtime_ = HostRuntime(4);
  State<int64_t> sum_ = *runtime_.MakeState<int64_t>("sum", 1);
  Graph graph_{"sum"};
  BufferHandle<int32_t> x_;
  BufferHandle<int64_t> out_;
  std::function<absl::Status(int32_t)> check_;
  std::function<absl::Status(int64_t)> check_again_;
};

TEST_F(PipelineStateTest, APoisonedStateEndsThePipeline) {
  check_again_ = [](int64_t sum) { return sum == 6 ? absl::DataLossError("too much") : absl::OkStatus(); };
  auto pipe = Make({.window = 20});
  for (int32_t n = 1; n <= 2; ++n) {
    ASSERT_OK(pipe.Push({{n}}));
    EXPECT_OK(pipe.Pop().status());
  }
  int32_t in = 2;
  while (in < 20 && pipe.Push({{in + 1}}).ok()) ++in;
  std::vector<absl::Status> statuses;
  while (auto item = pipe.Pop(std::chrono::seconds(60))) statuses.push_back(item.status());
  ASSERT_EQ(static_cast<int32_t>(statuses.size()), in - 2);
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDataLoss);
  for (const absl::Status& status : statuses) EXPECT_FALSE(status.ok());
  EXPECT_THAT(Text(pipe.status()), HasSubstr("'sum'"));
  EXPECT_THAT(Text(pipe.status()), HasSubstr("PipelineOptions::reset"));
}

// With no run in flight the user's function sets the State, and the stream goes on.
TEST_F(PipelineStateTest, ThePoisonedStateIsResetByTheUserAndTheStreamGoesOn) {
  std::atomic<int> resets{0};
  check_again_ = [](int64_t sum) { return sum == 6 ? absl::DataLossError("too much") : absl::OkStatus(); };
  auto pipe = Make({.window = 40, .reset = [&](Key) {
                      resets.fetch_add(1);
                      return sum_.Set(std::vector<int64_t>{1000});
                    }});
  for (int32_t n = 1; n <= 3; ++n) ASSERT_OK(pipe.Push({{n}}));
  std::vector<absl::Status> first;
  for (int i = 0; i < 3; ++i) first.push_back(pipe.Pop().status());
  EXPECT_EQ(first[2].code(), absl::StatusCode::kDataLoss);
  for (int32_t n = 1; n <= 10; ++n) ASSERT_OK(pipe.Push({{n}}));
  int64_t sum = 1000;
  for (int32_t n = 1; n <= 10; ++n) {
    const auto item = pipe.Pop();
    EXPECT_OK(item.status());
    EXPECT_EQ(item->out[0], sum += n);
  }
  EXPECT_EQ(resets.load(), 1);
  EXPECT_OK(pipe.status());
}

TEST_F(PipelineStateTest, AResetThatFailsEndsThePipeline) {
  check_again_ = [](int64_t) { return absl::DataLossError("never right"); };
  auto pipe = Make({.window = 4, .reset = [](Key) { return absl::UnavailableError("no idea"); }});
  ASSERT_OK(pipe.Push({{1}}));
  EXPECT_EQ(pipe.Pop().status().code(), absl::StatusCode::kDataLoss);
  while (pipe.status().ok()) std::this_thread::yield();
  EXPECT_THAT(Text(pipe.status()), HasSubstr("no idea"));
}

// A retry comes after the reset.
TEST_F(PipelineStateTest, ARetryComesAfterTheReset) {
  std::atomic<bool> fails{true};
  check_again_ = [&](int64_t) { return fails.exchange(false) ? absl::DataLossError("once") : absl::OkStatus(); };
  auto pipe = Make({.window = 4, .retries = 1, .reset = [&](Key) { return sum_.Reset(); }});
  ASSERT_OK(pipe.Push({{5}}));
  const auto item = pipe.Pop();
  EXPECT_OK(item.status());
  EXPECT_EQ(item->out[0], 5);
}

// Three are in flight when the first one poisons the State: they come again in their order.
TEST_F(PipelineStateTest, RetriesOfSeveralComeInTheirOrder) {
  driver::Latch latch;
  std::atomic<bool> fails{true};
  check_again_ = [&](int64_t) {
    if (!fails.exchange(false)) return absl::OkStatus();
    latch.Arrive();
    return absl::DataLossError("once");
  };
  auto pipe = Make({.window = 8, .retries = 1, .reset = [&](Key) { return sum_.Reset(); }});
  for (int32_t x = 1; x <= 3; ++x) ASSERT_OK(pipe.Push({{x}}));
  while (pipe.stats().stages[0].working < 3) std::this_thread::yield();
  for (int32_t x = 4; x <= 5; ++x) ASSERT_OK(pipe.Push({{x}}));
  latch.Open();
  for (int32_t x = 1; x <= 5; ++x) {
    const auto item = pipe.Pop();
    EXPECT_OK(item.status());
    EXPECT_EQ(item->out[0], x * (x + 1) / 2);
  }
  EXPECT_EQ(pipe.stats().retries, 3);
}

// At rest

TEST_F(PipelineSlotTest, ProgressIsToldWhileThePipelineLives) {
  std::latch told(3);
  std::atomic<int> times{0};
  auto pipe = Make({.progress =
                        [&](const PipelineStats& stats) {
                          EXPECT_EQ(stats.stages.size(), 2u);
                          if (times.fetch_add(1) < 3) told.count_down();
                        },
                    .progress_every = 1ms});
  Send(pipe, 1);
  told.wait();
  ExpectRight(pipe.Pop());
}

TEST_F(PipelineSlotTest, StatsNameTheBusiestStage) {
  Stages<> stages;
  stages.Host("slow", [](Item<>&) { UseCpu(0.002); });
  stages.Run("slots", *runtime_.Compile(graph_, {.slots = 3}));
  auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 3});
  for (int32_t i = 0; i < 10; ++i) {
    Send(pipe, i);
    ExpectRight(pipe.Pop());
  }
  const PipelineStats stats = pipe.stats();
  ASSERT_EQ(stats.bottleneck, 0);
  EXPECT_EQ(stats.stages[0].name, "slow");
  EXPECT_EQ(stats.stages[0].done, 10);
  EXPECT_EQ(stats.stages[1].done, 10);
  EXPECT_GT(stats.stages[0].busy, stats.stages[1].busy);
  EXPECT_LE(stats.stages[0].busy, 1.0);
  EXPECT_THAT(Print(stats), HasSubstr("<- bottleneck"));
}

double ShareOf(const std::vector<BusyShare>& shares, const std::string& name) {
  for (const BusyShare& share : shares) {
    if (share.name == name) return share.busy;
  }
  return -1;
}

TEST_F(PipelineSlotTest, StatsTellWhatEnginesHaveDoneSinceItWasMade) {
  const auto trace = Trace::Create();
  constexpr double kAges = 1e15;  // microseconds
  trace->Add({"before", "t", SpanKind::kDownload, 0, kAges, -1, 0});
  Stages<> stages;
  stages.Run("slots", *runtime_.Compile(graph_, {.slots = 3, .trace = trace}));
  auto pipe = *Pipeline<>::Create(std::move(stages));
  EXPECT_THAT(pipe.stats().engines, testing::IsEmpty());
  trace->Add({"meanwhile", "t", SpanKind::kDownload, kAges, 2 * kAges, -1, 0});
  trace->Add({"of a device there is not", "t", SpanKind::kUpload, 0, kAges, -1, 7});
  Send(pipe, 1);
  ASSERT_OK(pipe.Pop().status());
  const PipelineStats stats = pipe.stats();
  EXPECT_EQ(stats.engines.size(), 3u);
  EXPECT_EQ(ShareOf(stats.engines, "host:0 download"), 1.0);
  for (const char* name : {"host:0 upload", "host:0 kernels"}) {
    EXPECT_GT(ShareOf(stats.engines, name), 0) << name;
    EXPECT_LT(ShareOf(stats.engines, name), 1) << name;
  }
  EXPECT_THAT(Print(stats), HasSubstr("host:0 download          100.0 % busy"));
}

TEST_F(PipelineSlotTest, StatsTellWhatThreadsHaveUsedSinceItWasMade) {
  Stages<> stages;
  stages.Host("burn", [](Item<>&) { UseCpu(0.005); });
  stages.Host("rest", [](Item<>&) {});
  stages.Run("slots", *runtime_.Compile(graph_, {.slots = 3}));
  auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 3});
  for (int32_t i = 0; i < 10; ++i) {
    Send(pipe, i);
    ExpectRight(pipe.Pop());
  }
  const PipelineStats stats = pipe.stats();
  EXPECT_THAT(stats.engines, testing::IsEmpty()) << "without a trace";
  const double burn = ShareOf(stats.threads, "ps-burn"), rest = ShareOf(stats.threads, "ps-rest");
  EXPECT_GT(burn, 0);
  EXPECT_LE(burn, 1);
  EXPECT_GE(rest, 0);
  EXPECT_LT(rest, burn);
  EXPECT_GE(ShareOf(stats.threads, "ps-completion"), 0);
  EXPECT_THAT(Print(stats), HasSubstr("% of a processor"));
}

// What threads had done before is not the pipeline's.
TEST_F(PipelineSlotTest, StatsLeaveOutWhatThreadsHaveUsedBefore) {
  Graph graph("before");
  graph.Host("burn", [] { UseCpu(0.2); });
  Executable before = *runtime_.Compile(graph);
  ASSERT_OK(before.Launch(before.bindings())->Wait());
  auto pipe = Make();
  std::this_thread::sleep_for(20ms);
  int workers = 0;
  for (const BusyShare& share : pipe.stats().threads) {
    if (share.name.rfind("ps-worker", 0) != 0) continue;
    ++workers;
    EXPECT_LT(share.busy, 0.5) << share.name;
  }
  EXPECT_GE(workers, 4);
}

}  // namespace
}  // namespace penstock::slot_test
