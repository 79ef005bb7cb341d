// Stages of one pipeline whose States are poisoned: each is halted, and reset, for itself.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::reset_test {
namespace {

using std::chrono::minutes;

struct Count {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int64_t* sum) const { *sum += 1; }
};

// Two stages, each of which counts items in a State of its own, and then checks.
class PipelineResetTest : public testing::Test {
 protected:
  struct Counter {
    Counter(Runtime& runtime, const std::string& stage)
        : name(stage),
          count(*runtime.MakeState<int64_t>(name, 1)),
          graph(name),
          number(graph.Param<int32_t>("number")) {
      graph.ParallelFor("count", 1, Count{}, ReadWrite(count));
      graph.Host(
          "check", [this](int32_t n, std::span<const int64_t>) { return check ? check(n) : absl::OkStatus(); }, number,
          Read(count));
    }
    std::string name;
    State<int64_t> count;
    Graph graph;
    ParamHandle<int32_t> number;
    std::function<absl::Status(int32_t)> check;
  };

  Pipeline<int32_t> Make(std::function<absl::Status(Key)> reset) {
    Stages<int32_t> stages;
    for (Counter* counter : {&first_, &second_}) {
      stages.Run(counter->name, *runtime_.Compile(counter->graph, {.slots = 2}),
                 [counter](Item<int32_t>& item) { item.Set(counter->number, item.value()); });
    }
    return *Pipeline<int32_t>::Create(std::move(stages), {.window = 12, .order = kAsReady, .reset = std::move(reset)});
  }
  static int32_t PopFailed(Pipeline<int32_t>& pipe) {
    const Item<int32_t> item = pipe.Pop(minutes(1));
    EXPECT_EQ(item.status().code(), absl::StatusCode::kDataLoss) << item.status();
    return item ? item.value() : -1;
  }
  static void ExpectNextOk(Pipeline<int32_t>& pipe, int items) {
    for (int32_t n = 100; n < 100 + items; ++n) EXPECT_OK(pipe.Push(int32_t{n}));
    for (int i = 0; i < items; ++i) EXPECT_OK(pipe.Pop(minutes(1)).status());
  }
  static int64_t ValueOf(const State<int64_t>& state) {
    std::vector<int64_t> value(1);
    EXPECT_OK(state.Read(value));
    return value[0];
  }

  Runtime runtime_ = HostRuntime(4);
  Counter first_{runtime_, "first"}, second_{runtime_, "second"};
};

// The second stage is poisoned while the user resets the first: it stays halted, and is reset by a call of its own.
TEST_F(PipelineResetTest, AStageThatIsPoisonedDuringAResetGetsOneOfItsOwn) {
  driver::Latch in_second, in_reset;
  first_.check = [](int32_t n) { return n == 2 ? absl::DataLossError("first") : absl::OkStatus(); };
  second_.check = [&](int32_t n) {
    if (n != 1) return absl::OkStatus();
    in_second.Arrive();
    return absl::DataLossError("second");
  };
  std::atomic<int> resets{0};
  auto pipe = Make([&](Key) {
    if (resets.fetch_add(1) > 0) return second_.count.Reset();
    in_reset.Arrive();
    return first_.count.Reset();
  });
  ASSERT_OK(pipe.Push(1));
  EXPECT_TRUE(in_second.AwaitArrived());
  ASSERT_OK(pipe.Push(2));
  EXPECT_TRUE(in_reset.AwaitArrived());
  EXPECT_EQ(PopFailed(pipe), 2);
  in_second.Open();
  EXPECT_EQ(PopFailed(pipe), 1);  // so its stage is halted
  in_reset.Open();
  ExpectNextOk(pipe, 8);
  EXPECT_EQ(resets.load(), 2);
  EXPECT_OK(pipe.status());
  EXPECT_EQ(ValueOf(first_.count), 8);
  EXPECT_EQ(ValueOf(second_.count), 8);
}

// Both have failed before any reset: one call may set both States, and neither stage waits for more.
TEST_F(PipelineResetTest, StagesThatArePoisonedTogetherBothGoOn) {
  driver::Latch both;
  const auto fails = [&](int32_t bad) {
    return [&both, bad](int32_t n) {
      if (n != bad) return absl::OkStatus();
      both.Arrive();
      return absl::DataLossError("bad");
    };
  };
  first_.check = fails(2);
  second_.check = fails(1);
  auto pipe = Make([&](Key) {
    const absl::Status first = first_.count.Reset(), second = second_.count.Reset();
    return first.ok() ? second : first;
  });
  ASSERT_OK(pipe.Push(1));
  EXPECT_TRUE(both.AwaitArrived(1));
  ASSERT_OK(pipe.Push(2));
  EXPECT_TRUE(both.AwaitArrived(2));
  both.Open();
  const int32_t failed = PopFailed(pipe);
  EXPECT_EQ(failed + PopFailed(pipe), 3);
  ExpectNextOk(pipe, 8);
  EXPECT_OK(pipe.status());
}

}  // namespace
}  // namespace penstock::reset_test
