// CompileOptions::max_submitted: whose turn it is, and what runs that end before their turn have asked of the driver.
#include "src/runtime/run/submission_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "src/runtime/program/program.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::submission_turns_test {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Ok() { return absl::OkStatus(); }

// The model is one list, of which those in front have or may have their turn; in order, the first of those that wait,
// once the last one to take its turn has submitted its work.
TEST(SubmissionTurns, RandomMovesAgreeWithAList) {
  using InOrder = runtime::SubmissionTurns::InOrder;
  constexpr int kSlots = 6;
  const std::array<runtime::Schedule, kSlots> schedules;
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int limit = 1 + static_cast<int>(seed % 4);
    runtime::SubmissionTurns turns;
    const bool in_order = seed % 3 == 0;
    turns.Set(limit, kSlots, in_order ? InOrder::kYes : InOrder::kNo);
    std::vector<int> waiting, inside;
    int submitting = -1, last = -1;  // if in order
    const auto has = [](const std::vector<int>& list, int slot) {
      return std::find(list.begin(), list.end(), slot) != list.end();
    };
    for (int move = 0; move < 300 && !HasFailure(); ++move) {
      const int slot = static_cast<int>(random() % kSlots);
      const bool waits = has(waiting, slot), is_inside = has(inside, slot);
      if (!waits && !is_inside) {
        const bool fails = random() % 5 == 0;
        EXPECT_EQ(turns.Join(slot, [&] { return fails ? absl::InternalError("") : Ok(); }).ok(), !fails);
        if (!fails) waiting.push_back(slot);
      } else if (waits && random() % 4 != 0) {
        size_t at = inside.size();
        for (const int w : waiting) {
          if (w == slot) break;
          ++at;
        }
        const bool first = waiting.front() == slot && submitting < 0;
        const bool may = at < static_cast<size_t>(limit) && (first || !in_order);
        const auto previous = turns.Take(slot);
        ASSERT_EQ(previous.has_value(), may);
        if (!may) continue;
        ASSERT_EQ(previous->schedule, last < 0 ? nullptr : &schedules[last]);
        if (in_order) submitting = slot;
        if (in_order && random() % 4 != 0) {  // otherwise it could not be made to wait
          turns.Begin(slot, {.slot = nullptr, .schedule = &schedules[slot]});
          last = slot;
        }
        std::erase(waiting, slot);
        inside.push_back(slot);
      } else if (is_inside && submitting == slot && random() % 4 != 0) {
        ASSERT_EQ(turns.Submitted(slot), !waiting.empty());
        submitting = -1;
      } else {
        turns.Leave(slot, is_inside);
        if (submitting == slot) submitting = -1;
        if (last == slot) last = -1;
        std::erase(waiting, slot);
        std::erase(inside, slot);
      }
    }
  }
}

// Counts the calls that have a device do something.
class WorkDriver : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  absl::Status Copy(driver::Stream stream, const driver::CopyOp& op) override {
    ++work;
    return ForwardingDriver::Copy(stream, op);
  }
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    ++work;
    return ForwardingDriver::Launch(stream, op);
  }
  absl::Status LaunchGraph(driver::GraphExec exec, driver::Stream stream) override {
    ++work;
    return ForwardingDriver::LaunchGraph(exec, stream);
  }
  std::atomic<int64_t> work{0};
};

struct Fill {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int64_t number, int64_t* x) const { x[i] = number; }
};
struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int64_t* x, int64_t* sum) const { sum[i] += x[i]; }
};

struct Param {
  Mode mode;
  bool rings;  // whether the driver notifies of completion
};
void PrintTo(const Param& param, std::ostream* out) {
  *out << (param.mode == Mode::kGraph ? "graph" : "stream") << (param.rings ? " rings" : "");
}

// A kernel, a host node that notes the run's number and is held if that is 0, and a kernel that adds to a State.
class MaxSubmittedTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    const runtime::ScopedDriverHook hook({.host_options =
                                              [](driver::host::HostDriverOptions& host) {
                                                if (!GetParam().rings) host.event_count = nullptr;
                                              },
                                          .wrap =
                                              [this](std::unique_ptr<driver::Driver> host) {
                                                auto made = std::make_unique<WorkDriver>(std::move(host));
                                                driver_ = made.get();
                                                return made;
                                              }});
    runtime_.emplace(HostRuntime(4));
    sum_.emplace(*runtime_->MakeState<int64_t>("sum", 1));
    number_ = graph_.Param<int64_t>("number");
    const auto x = graph_.Buffer<int64_t>("x", 1);
    graph_.ParallelFor("first", 1, Fill{}, number_, Write(x));
    graph_
        .Host(
            "note",
            [this](int64_t number, std::span<const int64_t>) {
              {
                base::MutexLock lock(mu_);
                noted_.push_back(number);
              }
              if (number == 0) latch_.Arrive();
            },
            number_, Read(x))
        .Concurrency(8);
    graph_.ParallelFor("add", 1, Add{}, Read(x), ReadWrite(*sum_));
  }
  Executable Compile(int max_submitted) {
    return *runtime_->Compile(graph_, {.slots = 6, .max_submitted = max_submitted, .mode = GetParam().mode});
  }
  penstock::Run Launch(Executable& exec, int64_t number, Deadline deadline = {}) {
    return *exec.Launch(exec.bindings().Set(number_, number), deadline);
  }
  std::vector<int64_t> noted() {
    base::MutexLock lock(mu_);
    return noted_;
  }

  driver::Latch latch_;
  base::Mutex mu_;
  std::vector<int64_t> noted_ ABSL_GUARDED_BY(mu_);
  WorkDriver* driver_ = nullptr;
  std::optional<Runtime> runtime_;
  std::optional<State<int64_t>> sum_;
  Graph graph_{"turns"};
  ParamHandle<int64_t> number_;
};
INSTANTIATE_TEST_SUITE_P(Modes, MaxSubmittedTest,
                         testing::Values(Param{Mode::kStream, true}, Param{Mode::kStream, false},
                                         Param{Mode::kGraph, true}, Param{Mode::kGraph, false}));

TEST_P(MaxSubmittedTest, WhatEndsBeforeItsTurnIsNeverSubmitted) {
  Executable exec = Compile(1);
  ASSERT_OK(Launch(exec, 1).Wait());
  const int64_t before = driver_->work.load();
  ASSERT_OK(Launch(exec, 2).Wait());
  const int64_t each = driver_->work.load() - before;
  ASSERT_GT(each, 0);
  const penstock::Run held = Launch(exec, 0);
  ASSERT_TRUE(latch_.AwaitArrived());
  const int64_t during = driver_->work.load();
  const penstock::Run late = Launch(exec, 3, milliseconds(1)), cancelled = Launch(exec, 4), last = Launch(exec, 5);
  cancelled.Cancel();
  const absl::Status abandoned = late.Wait();
  EXPECT_EQ(abandoned.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(abandoned),
              HasSubstr("it waited for its turn after other runs (CompileOptions::in_order, max_submitted)"));
  EXPECT_EQ(cancelled.Wait(std::chrono::minutes(1)).code(), absl::StatusCode::kCancelled)
      << "it waits for no run in front";
  EXPECT_FALSE(held.done());
  EXPECT_EQ(driver_->work.load(), during);
  latch_.Open();
  EXPECT_OK(last.Wait());
  EXPECT_OK(held.Wait());
  EXPECT_EQ(driver_->work.load(), before + 3 * each);
  EXPECT_THAT(noted(), ElementsAre(1, 2, 0, 5));
  std::vector<int64_t> sum(1);
  EXPECT_OK(sum_->Read(sum)) << "the State is poisoned";
  EXPECT_EQ(sum[0], 1 + 2 + 5);
}

TEST_P(MaxSubmittedTest, RunsBeginInTheOrderOfTheirLaunches) {
  Executable exec = Compile(1);
  std::vector<penstock::Run> runs;
  for (int64_t n = 0; n < 5; ++n) runs.push_back(Launch(exec, n));
  ASSERT_TRUE(latch_.AwaitArrived());
  EXPECT_THAT(noted(), ElementsAre(0));
  latch_.Open();
  EXPECT_OK(runs.back().Wait(std::chrono::minutes(1)))
      << "the runs in front must advance without a caller that waits for them";
  EXPECT_THAT(noted(), ElementsAre(0, 1, 2, 3, 4));
  for (const penstock::Run& run : runs) EXPECT_OK(run.Wait());
}

TEST_P(MaxSubmittedTest, SoManyBeginAtOnce) {
  Executable exec = Compile(2);
  const penstock::Run first = Launch(exec, 0), second = Launch(exec, 0), third = Launch(exec, 1);
  ASSERT_TRUE(latch_.AwaitArrived(2));
  EXPECT_THAT(noted(), ElementsAre(0, 0));
  latch_.Open();
  EXPECT_OK(third.Wait(std::chrono::minutes(1)));
  EXPECT_OK(first.Wait());
  EXPECT_OK(second.Wait());
}

struct HoldKernel {
  driver::Latch* latch;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int64_t* x) const {
    latch->Arrive();
    *x = 1;
  }
};

// Such a run needs no thread of its own once it is submitted.
TEST_P(MaxSubmittedTest, ARunInFrontIsSeenToEndThoughNobodyWaitsForIt) {
  Graph graph("device only");
  graph.ParallelFor("hold", 1, HoldKernel{&latch_}, Write(graph.Buffer<int64_t>("x", 1)));
  Executable exec = *runtime_->Compile(graph, {.slots = 2, .max_submitted = 1, .mode = GetParam().mode});
  const auto first = exec.Launch(exec.bindings());
  ASSERT_OK(first.status());
  ASSERT_TRUE(latch_.AwaitArrived());
  const auto second = exec.Launch(exec.bindings());
  ASSERT_OK(second.status());
  latch_.Open();
  EXPECT_OK(second->Wait(std::chrono::minutes(1)));
}

// Two executables with one State, which others write and read too: turns and the State never wait for each other.
TEST_P(MaxSubmittedTest, TurnsAndStatesDoNotWaitInACircle) {
  Graph reads("reads");
  const auto out = reads.Output<int64_t>("out", 1);
  reads.Copy("out", Read(*sum_), Write(out));
  Executable adds = Compile(1);
  Executable looks = *runtime_->Compile(reads, {.slots = 3, .max_submitted = 1, .mode = GetParam().mode});
  constexpr int kThreads = 4, kEach = 40;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::vector<int64_t> value(1);
        for (int n = 0; n < kEach; ++n) {
          const bool adds_first = (n + t) % 2 == 0;
          std::vector<penstock::Run> runs;
          if (adds_first) runs.push_back(Launch(adds, 1));
          runs.push_back(*looks.Launch(looks.bindings().Set(out, value)));
          if (!adds_first) runs.push_back(Launch(adds, 1));
          for (const penstock::Run& run : runs) EXPECT_OK(run.Wait(std::chrono::minutes(1)));
        }
      });
    }
  }
  std::vector<int64_t> sum(1);
  EXPECT_OK(sum_->Read(sum));
  EXPECT_EQ(sum[0], kThreads * kEach);
}

TEST(MaxSubmitted, IsNotNegative) {
  Runtime runtime = HostRuntime();
  Graph graph("g");
  const absl::Status refused = runtime.Compile(graph, {.max_submitted = -1}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), HasSubstr("CompileOptions::max_submitted is -1; give 0, for all slots"));
}

}  // namespace
}  // namespace penstock::submission_turns_test
