// Which mode Mode::kAuto keeps: by the figures alone, and by runs of host devices on which either mode is made slow.
#include "src/runtime/executable/mode_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/mode_scope.h"

namespace penstock::runtime::mode_trial_test {
namespace {

// Makes runs take as long as told, each ended before the next one begins, until it is decided; at most `most`.
template <class StreamUs, class GraphUs>
int Play(ModeTrial& trial, StreamUs stream_us, GraphUs graph_us, int most = 1000) {
  int runs = 0;
  for (; runs < most; ++runs) {
    const ModeTrial::Turn turn = trial.Next();
    if (trial.decided()) return runs;
    if (turn.number >= 0) trial.Ended(turn.number, turn.mode == Mode::kStream ? stream_us(runs) : graph_us(runs));
  }
  return runs;
}
auto Always(double us) {
  return [us](int) { return us; };
}

TEST(ModeTrialTest, TheFasterModeIsKept) {
  for (const bool graphs : {false, true}) {
    ModeTrial trial(1);
    EXPECT_EQ(Play(trial, Always(graphs ? 20 : 10), Always(graphs ? 19 : 11)), 4 * (2 + ModeTrial::kCounted));
    EXPECT_EQ(trial.result().mode, graphs ? Mode::kGraph : Mode::kStream);
    EXPECT_EQ(trial.result().stream_us, graphs ? 20 : 10);
    EXPECT_EQ(trial.result().graph_us, graphs ? 19 : 11);
    EXPECT_EQ(trial.result().stream_runs, 2 * ModeTrial::kCounted);
    EXPECT_EQ(trial.result().graph_runs, 2 * ModeTrial::kCounted);
  }
}

TEST(ModeTrialTest, AFewSlowRunsAreNoReason) {
  ModeTrial trial(1);
  Play(trial, Always(10), [](int run) { return run % 4 == 0 ? 1000 : 8; });
  EXPECT_EQ(trial.result().mode, Mode::kGraph);
}

TEST(ModeTrialTest, ModesAlternateInBlocksOfWhichTheFirstRunsDoNotCount) {
  for (const int slots : {1, 3}) {
    ModeTrial trial(slots);
    const int block = 2 * slots + ModeTrial::kCounted;
    for (int run = 0; run < 4 * block; ++run) {
      const ModeTrial::Turn turn = trial.Next();
      EXPECT_EQ(turn.mode, run / block % 2 == 0 ? Mode::kStream : Mode::kGraph) << "run " << run;
      EXPECT_EQ(turn.number >= 0, run % block >= 2 * slots) << "run " << run;
      if (turn.number >= 0) trial.Ended(turn.number, 1);
      EXPECT_EQ(trial.result().mode, Mode::kAuto);
    }
    trial.Next();
    EXPECT_TRUE(trial.decided());
  }
}

TEST(ModeTrialTest, NothingChangesOnceItIsDecided) {
  ModeTrial trial(1);
  int64_t late = -1;
  const auto runs = Play(trial, Always(10), Always(5));
  ASSERT_EQ(trial.result().mode, Mode::kGraph);
  for (int i = 0; i < 100; ++i) {
    const ModeTrial::Turn turn = trial.Next();
    EXPECT_EQ(turn.mode, Mode::kGraph);
    EXPECT_EQ(turn.number, late);
    trial.Ended(runs - 1, 100000);  // one that was under way
  }
  EXPECT_EQ(trial.result().graph_us, 5);
}

TEST(ModeTrialTest, RunsThatFailAreNotWaitedForWithoutEnd) {
  const int block = 2 + ModeTrial::kCounted;
  ModeTrial none(1);
  for (int run = 0; run < ModeTrial::kMostBlocks * block; ++run) none.Next();
  EXPECT_FALSE(none.decided());
  none.Next();
  EXPECT_EQ(none.result().mode, Mode::kStream) << "nothing is known";

  ModeTrial few(1);  // every fourth succeeds
  for (int run = 0; !few.decided(); ++run) {
    const ModeTrial::Turn turn = few.Next();
    if (turn.number >= 0 && run % 4 == 0) few.Ended(turn.number, turn.mode == Mode::kStream ? 10 : 5);
  }
  EXPECT_EQ(few.result().mode, Mode::kGraph);
  EXPECT_GE(few.result().stream_runs, ModeTrial::kCounted);
}

TEST(ModeTrialTest, ThreadsMayLaunchAndEndAtOnce) {
  ModeTrial trial(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&trial] {
      while (!trial.decided()) {
        const ModeTrial::Turn turn = trial.Next();
        if (turn.number >= 0) trial.Ended(turn.number, turn.mode == Mode::kStream ? 10 : 20);
        trial.result();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trial.result().mode, Mode::kStream);
}

// A host driver on which kernels and graphs are submitted as slowly as a test says.
struct Costs {
  std::chrono::milliseconds kernel{0}, graph{0};
  absl::Status instantiate;
  std::atomic<int> execs{0};
};
class CostlyDriver : public driver::ForwardingDriver {
 public:
  CostlyDriver(std::unique_ptr<driver::Driver> behind, std::shared_ptr<Costs> costs)
      : ForwardingDriver(std::move(behind)), costs_(std::move(costs)) {}
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    std::this_thread::sleep_for(costs_->kernel);
    return ForwardingDriver::Launch(stream, op);
  }
  absl::Status LaunchGraph(driver::GraphExec exec, driver::Stream stream) override {
    std::this_thread::sleep_for(costs_->graph);
    return ForwardingDriver::LaunchGraph(exec, stream);
  }
  absl::StatusOr<driver::GraphExec> Instantiate(driver::Graph graph) override {
    if (!costs_->instantiate.ok()) return costs_->instantiate;
    ++costs_->execs;
    return ForwardingDriver::Instantiate(graph);
  }
  void DestroyExec(driver::GraphExec exec) override {
    --costs_->execs;
    ForwardingDriver::DestroyExec(exec);
  }

 private:
  const std::shared_ptr<Costs> costs_;
};

struct AddValue {
  void operator()(int64_t i, int32_t* x, int32_t value) const { x[i] += value; }
};

class AutoModeTest : public testing::Test {
 protected:
  AutoModeTest() : mode_("auto") {
    const ScopedDriverHook hook(
        {.wrap = [this](std::unique_ptr<driver::Driver> made) -> std::unique_ptr<driver::Driver> {
          return std::make_unique<CostlyDriver>(std::move(made), costs_);
        }});
    runtime_.emplace(*Runtime::Create({.devices = "host", .log_level = LogLevel::kOff}));
    x_ = graph_.InOut<int32_t>("x", 10, kPinned);
    value_ = graph_.Param<int32_t>("value");
    for (int i = 0; i < 3; ++i) graph_.ParallelFor("add" + std::to_string(i), 10, AddValue{}, ReadWrite(x_), value_);
  }

  Executable Compiled(int slots = 1) {
    absl::StatusOr<Executable> exec = runtime_->Compile(graph_, {.slots = slots});
    EXPECT_TRUE(exec.ok()) << exec.status();
    return *exec;
  }
  // So many runs, one behind the other; each is right.
  void Run(Executable& exec, int runs) {
    HostBuffer<int32_t> memory = *runtime_->MakeHostBuffer<int32_t>(10);
    Bindings io = exec.bindings();
    io.Set(x_, memory);
    for (int run = 0; run < runs; ++run) {
      std::fill(memory.begin(), memory.end(), run);
      absl::StatusOr<penstock::Run> started = exec.Launch(io.Set(value_, run % 7));
      ASSERT_TRUE(started.ok()) << started.status();
      ASSERT_EQ(started->Wait(), absl::OkStatus());
      for (const int32_t x : memory) ASSERT_EQ(x, run + 3 * (run % 7));
    }
  }
  static constexpr int kTrial = 4 * (2 + ModeTrial::kCounted);

  const ModeScope mode_;
  const std::shared_ptr<Costs> costs_ = std::make_shared<Costs>();
  std::optional<Runtime> runtime_;
  Graph graph_{"auto"};
  BufferHandle<int32_t> x_;
  ParamHandle<int32_t> value_;
};

TEST_F(AutoModeTest, WhereGraphsAreSlowStreamsAreKeptAndGraphsGivenBack) {
  costs_->graph = std::chrono::milliseconds(20);
  Executable exec = Compiled();
  EXPECT_EQ(costs_->execs, 1);
  Run(exec, kTrial);
  EXPECT_EQ(exec.submission_report().mode, Mode::kAuto) << exec.submission_report().Text();
  const int64_t launched = exec.submission_report().graph_launches;
  EXPECT_EQ(launched, kTrial / 2);
  Run(exec, 5);
  EXPECT_EQ(exec.submission_report().mode, Mode::kStream) << exec.submission_report().Text();
  EXPECT_EQ(exec.submission_report().graph_launches, launched);
  EXPECT_GT(exec.submission_report().graph_us, exec.submission_report().stream_us);
  EXPECT_NE(exec.submission_report().Text().find("us in stream mode and"), std::string::npos)
      << exec.submission_report().Text();
  EXPECT_EQ(costs_->execs, 0);
}

TEST_F(AutoModeTest, WhereCallsAreSlowGraphsAreKept) {
  costs_->kernel = std::chrono::milliseconds(7);
  Executable exec = Compiled(2);
  Run(exec, 4 * (4 + ModeTrial::kCounted));
  const int64_t launched = exec.submission_report().graph_launches;
  Run(exec, 5);
  EXPECT_EQ(exec.submission_report().mode, Mode::kGraph) << exec.submission_report().Text();
  EXPECT_EQ(exec.submission_report().graph_launches, launched + 5);
  EXPECT_EQ(costs_->execs, 2);
}

TEST_F(AutoModeTest, GraphsThatCannotBeMadeAreNoneAndTheLedgerSaysWhy) {
  costs_->instantiate = absl::UnavailableError("no room for graphs");
  Executable exec = Compiled();
  EXPECT_EQ(exec.submission_report().mode, Mode::kStream);
  EXPECT_NE(exec.submission_report().Text().find("no room for graphs"), std::string::npos)
      << exec.submission_report().Text();
  Run(exec, 3);
  const ModeScope graph("graph");
  EXPECT_EQ(runtime_->Compile(graph_).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace penstock::runtime::mode_trial_test
