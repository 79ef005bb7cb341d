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
    if (turn.number < 0) return runs;
    trial.Ended(turn.number, turn.mode == Mode::kStream ? stream_us(runs) : graph_us(runs));
  }
  return runs;
}
auto Always(double us) {
  return [us](int) { return us; };
}
Mode OtherThan(Mode mode) { return mode == Mode::kStream ? Mode::kGraph : Mode::kStream; }
constexpr int kBlock = 2 + ModeTrial::kCounted;  // with one slot

class ModeTrialTest : public testing::TestWithParam<Mode> {  // the likely mode
 protected:
  Mode likely() const { return GetParam(); }
};

TEST_P(ModeTrialTest, TheFasterModeIsKept) {
  for (const bool graphs : {false, true}) {
    ModeTrial trial(likely(), 1);
    EXPECT_EQ(Play(trial, Always(graphs ? 20 : 10), Always(graphs ? 19 : 11)), 4 * kBlock);
    EXPECT_EQ(trial.result().mode, graphs ? Mode::kGraph : Mode::kStream);
    EXPECT_EQ(trial.result().stream_us, graphs ? 20 : 10);
    EXPECT_EQ(trial.result().graph_us, graphs ? 19 : 11);
    EXPECT_EQ(trial.result().stream_runs, 2 * ModeTrial::kCounted);
    EXPECT_EQ(trial.result().graph_runs, 2 * ModeTrial::kCounted);
  }
}

TEST_P(ModeTrialTest, ALikelyModeThatIsClearlyFasterNeedsOneBlockOfEach) {
  const bool stream = likely() == Mode::kStream;
  ModeTrial trial(likely(), 1);
  EXPECT_EQ(Play(trial, Always(stream ? 10 : 13), Always(stream ? 13 : 10)), 2 * kBlock);
  EXPECT_EQ(trial.result().mode, likely());
}

TEST_P(ModeTrialTest, ALikelyModeThatIsFarSlowerIsTriedTwice) {
  const bool stream = likely() == Mode::kStream;
  ModeTrial trial(likely(), 1);
  EXPECT_EQ(Play(trial, Always(stream ? 41 : 10), Always(stream ? 10 : 41)), 2 * kBlock + 2);
  EXPECT_EQ(trial.result().mode, OtherThan(likely()));
}

TEST_P(ModeTrialTest, ASlowMomentDecidesNothing) {
  for (const int block : {0, 2, 3}) {  // in block 1 the other mode looks far slower, and the likely one is kept
    for (const Mode faster : {Mode::kStream, Mode::kGraph}) {
      ModeTrial trial(likely(), 1);
      const auto us = [&](Mode mode) {
        return [=](int run) { return run / kBlock == block ? 1000.0 : mode == faster ? 10.0 : 11.0; };
      };
      Play(trial, us(Mode::kStream), us(Mode::kGraph));
      EXPECT_EQ(trial.result().mode, faster) << "block " << block;
    }
  }
}

TEST_P(ModeTrialTest, TwoFarSlowerRunsOfTheOtherModeEndIt) {
  ModeTrial trial(likely(), 1);
  const bool stream = likely() == Mode::kStream;
  EXPECT_EQ(Play(trial, Always(stream ? 10 : 41), Always(stream ? 41 : 10)), kBlock + 2);
  EXPECT_EQ(trial.result().mode, likely());
}

TEST_P(ModeTrialTest, TheTimeThatTheOtherModeLosesIsBounded) {
  ModeTrial trial(likely(), 1);  // each run of the other mode loses less than a tenth of what may be lost
  const double likely_us = 10 * ModeTrial::kMostLossUs, other_us = likely_us + ModeTrial::kMostLossUs / 4 + 1;
  const bool stream = likely() == Mode::kStream;
  EXPECT_EQ(Play(trial, Always(stream ? likely_us : other_us), Always(stream ? other_us : likely_us)), kBlock + 4);
  EXPECT_EQ(trial.result().mode, likely());
}

TEST_P(ModeTrialTest, AFewSlowRunsAreNoReason) {
  ModeTrial trial(likely(), 1);
  Play(trial, Always(10), [](int run) { return run % 4 == 0 ? 1000 : 8; });
  EXPECT_EQ(trial.result().mode, Mode::kGraph);
}

TEST_P(ModeTrialTest, ModesAlternateInBlocksOfWhichTheFirstRunsDoNotCount) {
  for (const int slots : {1, 3}) {
    ModeTrial trial(likely(), slots);
    const int block = 2 * slots + ModeTrial::kCounted;
    for (int run = 0; run < 4 * block; ++run) {
      const int64_t before = trial.result().stream_runs + trial.result().graph_runs;
      const ModeTrial::Turn turn = trial.Next();
      EXPECT_EQ(turn.mode, run / block % 2 == 0 ? likely() : OtherThan(likely())) << "run " << run;
      EXPECT_EQ(turn.number, run);
      trial.Ended(turn.number, 1);
      const int64_t counted = trial.result().stream_runs + trial.result().graph_runs - before;
      EXPECT_EQ(counted, run % block >= 2 * slots ? 1 : 0) << "run " << run;
      EXPECT_EQ(trial.result().mode, Mode::kAuto);
    }
    trial.Next();
    EXPECT_TRUE(trial.decided());
  }
}

TEST_P(ModeTrialTest, NothingChangesOnceItIsDecided) {
  ModeTrial trial(likely(), 1);
  const auto runs = Play(trial, Always(10), Always(9));
  ASSERT_EQ(trial.result().mode, Mode::kGraph);
  for (int i = 0; i < 100; ++i) {
    const ModeTrial::Turn turn = trial.Next();
    EXPECT_EQ(turn.mode, Mode::kGraph);
    EXPECT_EQ(turn.number, -1);
    trial.Ended(runs - 1, 100000);  // one that was under way
  }
  EXPECT_EQ(trial.result().graph_us, 9);
  EXPECT_EQ(trial.Decide(), Mode::kGraph);
}

TEST_P(ModeTrialTest, DecideTakesWhatIsKnown) {
  ModeTrial none(likely(), 1);
  EXPECT_EQ(none.Decide(), likely());
  EXPECT_EQ(none.Next().mode, likely());
  EXPECT_EQ(none.Next().number, -1);

  ModeTrial some(likely(), 1);  // all of the likely mode's block, and one counted run of the other's
  const bool stream = likely() == Mode::kStream;
  EXPECT_EQ(Play(some, Always(stream ? 10 : 9), Always(stream ? 9 : 10), kBlock + 3), kBlock + 3);
  EXPECT_FALSE(some.decided());
  EXPECT_EQ(some.Decide(), OtherThan(likely()));
}

TEST_P(ModeTrialTest, RunsThatFailAreNotWaitedForWithoutEnd) {
  ModeTrial none(likely(), 1);
  for (int run = 0; run < ModeTrial::kMostBlocks * kBlock; ++run) none.Next();
  EXPECT_FALSE(none.decided());
  none.Next();
  EXPECT_EQ(none.result().mode, likely()) << "nothing is known";

  ModeTrial few(likely(), 1);  // every fourth succeeds
  for (int run = 0; !few.decided(); ++run) {
    const ModeTrial::Turn turn = few.Next();
    if (run % 4 == 0) few.Ended(turn.number, turn.mode == Mode::kStream ? 10 : 9);
  }
  EXPECT_EQ(few.result().mode, Mode::kGraph);
  EXPECT_GE(few.result().stream_runs, ModeTrial::kCounted);
}

TEST_P(ModeTrialTest, ThreadsMayLaunchAndEndAtOnce) {
  ModeTrial trial(likely(), 4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&trial] {
      while (!trial.decided()) {
        const ModeTrial::Turn turn = trial.Next();
        trial.Ended(turn.number, turn.mode == Mode::kStream ? 10 : 20);
        trial.result();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trial.result().mode, Mode::kStream);
}

INSTANTIATE_TEST_SUITE_P(Likely, ModeTrialTest, testing::Values(Mode::kStream, Mode::kGraph),
                         [](const auto& likely) { return likely.param == Mode::kStream ? "stream" : "graph"; });

// A host driver on which kernels and graphs are submitted as slowly as a test says.
struct Costs {
  std::chrono::milliseconds kernel{0}, graph{0};
  absl::Status instantiate;
  std::atomic<int> execs{0};
  std::atomic<int> streams{0};  // made so far
};
class CostlyDriver : public driver::ForwardingDriver {
 public:
  CostlyDriver(std::unique_ptr<driver::Driver> behind, std::shared_ptr<Costs> costs)
      : ForwardingDriver(std::move(behind)), costs_(std::move(costs)) {}
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    std::this_thread::sleep_for(costs_->kernel);
    return ForwardingDriver::Launch(stream, op);
  }
  absl::StatusOr<driver::Stream> CreateStream(int device, int priority) override {
    ++costs_->streams;
    return ForwardingDriver::CreateStream(device, priority);
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

  const ModeScope mode_;
  const std::shared_ptr<Costs> costs_ = std::make_shared<Costs>();
  std::optional<Runtime> runtime_;
  Graph graph_{"auto"};
  BufferHandle<int32_t> x_;
  ParamHandle<int32_t> value_;
};

// Graphs are likely: three kernels are more calls than a graph.
TEST_F(AutoModeTest, WhereGraphsAreSlowStreamsAreKeptAndGraphsGivenBack) {
  costs_->graph = std::chrono::milliseconds(20);
  Executable exec = Compiled();
  EXPECT_EQ(costs_->execs, 1);
  Run(exec, 2 * kBlock);
  EXPECT_EQ(exec.submission_report().mode, Mode::kAuto) << exec.submission_report().Text();
  const int64_t launched = exec.submission_report().graph_launches;
  EXPECT_EQ(launched, kBlock);
  Run(exec, 5);
  EXPECT_EQ(exec.submission_report().mode, Mode::kStream) << exec.submission_report().Text();
  EXPECT_EQ(exec.submission_report().graph_launches, launched + 2) << "they were tried once more";
  EXPECT_GT(exec.submission_report().graph_us, exec.submission_report().stream_us);
  EXPECT_NE(exec.submission_report().Text().find("us in stream mode and"), std::string::npos)
      << exec.submission_report().Text();
  EXPECT_EQ(costs_->execs, 0);
}

TEST_F(AutoModeTest, WhereCallsAreSlowGraphsAreKept) {
  costs_->kernel = std::chrono::milliseconds(30);
  Executable exec = Compiled(2);
  const int block = 4 + ModeTrial::kCounted;
  Run(exec, block + 2);
  EXPECT_EQ(exec.submission_report().mode, Mode::kGraph) << exec.submission_report().Text();
  EXPECT_EQ(exec.submission_report().graph_launches, block);
  Run(exec, 5);
  EXPECT_EQ(exec.submission_report().graph_launches, block + 5);
  EXPECT_EQ(costs_->execs, 2);
}

TEST_F(AutoModeTest, DecideEndsTheTrial) {
  Executable exec = Compiled();
  EXPECT_EQ(exec.Decide(), Mode::kGraph) << "nothing has run, and three kernels are more calls than a graph";
  Run(exec, 3 * kBlock);
  EXPECT_EQ(exec.submission_report().graph_launches, 3 * kBlock) << exec.submission_report().Text();
  EXPECT_EQ(Executable().Decide(), Mode::kStream);
}

TEST_F(AutoModeTest, StreamsAreLikelyWhereGraphsSaveNoCalls) {
  Graph one("one");
  BufferHandle<int32_t> x = one.InOut<int32_t>("x", 10, kDevice);
  one.Fill("zero", x, 0);
  absl::StatusOr<Executable> exec = runtime_->Compile(one);
  ASSERT_TRUE(exec.ok()) << exec.status();
  EXPECT_EQ(exec->Decide(), Mode::kStream);
}

TEST_F(AutoModeTest, GraphsHaveNoStreamsOfStreamMode) {
  Graph wide("wide");
  for (int i = 0; i < 4; ++i) {
    wide.ParallelFor("zero" + std::to_string(i), 10, AddValue{},
                     ReadWrite(wide.InOut<int32_t>("x" + std::to_string(i), 10, kDevice)), 1);
  }
  const auto streams_in = [&](const char* name) {
    const ModeScope mode(name);
    const int before = costs_->streams;
    EXPECT_TRUE(runtime_->Compile(wide, {.slots = 1}).ok());
    return costs_->streams - before;
  };
  EXPECT_EQ(streams_in("stream"), 4);
  EXPECT_EQ(streams_in("graph"), 1);
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
