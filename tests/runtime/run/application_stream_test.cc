// Runs on a stream of the application's own (Bindings::On): what comes before them and behind them, in every mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/device_buffer.h"
#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"
#include "tests/support/mode_scope.h"
#include "tests/support/native_driver.h"

namespace penstock::application_stream_test {
namespace {

using driver::NativeDriver;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What ran, in the order in which it ended.
struct Journal {
  std::mutex mu;
  std::vector<std::string> lines;
  void Add(std::string line) {
    const std::lock_guard lock(mu);
    lines.push_back(std::move(line));
  }
};

struct Log {
  Journal* journal;
  const char* line;
  void operator()(int64_t, int32_t* x) const {
    ++x[0];
    journal->Add(line);
  }
};

struct Count {
  void operator()(int64_t, int32_t* x) const { ++x[0]; }
};

// What the application submits to a stream: a function that is called there.
struct OfApplication {
  std::function<void()> f;
  driver::KernelOp op{.call = &Call, .callable = this};
  static absl::Status Call(void* self, void* const*) {
    static_cast<OfApplication*>(self)->f();
    return absl::OkStatus();
  }
};

class NativeStreamTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [this](auto behind) {
                                            auto native = std::make_unique<NativeDriver>(std::move(behind));
                                            driver_ = native.get();
                                            return driver::checked::CreateCheckedDriver(std::move(native), witness_);
                                          }});
    auto made = Runtime::Create({.devices = "host:2", .workers = 2, .host_device_threads = 3});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
    stream_ = *driver_->CreateStream(0, 0);
  }
  void TearDown() override {
    if (!runtime_.has_value()) return;
    driver_->DestroyStream(stream_);
    runtime_.reset();
    EXPECT_EQ(witness_->violations(), std::vector<std::string>());
  }
  NativeStream native() const { return {NativeDriver::HandleOf(stream_)}; }
  void Submit(OfApplication& work) { ASSERT_OK(driver_->Launch(stream_, work.op)); }
  Executable Compiled(const Graph& graph, bool in_order = false) {
    auto exec = runtime_->Compile(graph, {.slots = 2, .in_order = in_order, .mode = GetParam()});
    EXPECT_OK(exec.status());
    return *std::move(exec);
  }
  DeviceBuffer<int32_t> Zeros() {
    auto memory = runtime_->MakeDeviceBuffer<int32_t>(1);
    EXPECT_OK(memory.status());
    Graph fill("fill");
    auto x = fill.Output<int32_t>("x", 1, kDevice);
    fill.Fill("fill", x, 0);
    auto exec = runtime_->Compile(fill);
    EXPECT_OK(exec.status());
    Bindings io = exec->bindings();
    auto run = exec->Launch(io.Set(x, *memory));
    EXPECT_OK(run.status());
    EXPECT_OK(run->Wait(seconds(60)));
    return *std::move(memory);
  }
  // Waits until all that was submitted to the application's stream has ended.
  void Finish() {
    std::atomic<bool> ended = false;
    OfApplication last{[&] { ended = true; }};
    Submit(last);
    while (!ended) std::this_thread::yield();
  }

  const ModeScope options_{""};  // those of the test count
  const std::shared_ptr<driver::checked::CallRecorder> witness_ = std::make_shared<driver::checked::CallRecorder>();
  NativeDriver* driver_ = nullptr;
  std::optional<Runtime> runtime_;
  driver::Stream stream_;
  Journal journal_;
  driver::Latch abandoned_in_;  // goes behind the runtime: a run that is abandoned may still be in here
};

// Two kernels that nothing orders, so that the run has two lanes.
TEST_P(NativeStreamTest, OrdersARunBetweenWhatTheApplicationSubmits) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1, kDevice), y = g.InOut<int32_t>("y", 1, kDevice);
  g.ParallelFor("one", 1, Log{&journal_, "run"}, ReadWrite(x));
  g.ParallelFor("other", 1, Log{&journal_, "run"}, ReadWrite(y));
  const DeviceBuffer<int32_t> dx = Zeros(), dy = Zeros();
  constexpr int kRuns = 20;  // enough for kAuto to settle
  Executable exec;
  Bindings io;
  for (int i = 1; i <= 2 * kRuns; ++i) {
    if (i == 1 || i == kRuns) {
      exec = Compiled(g, /*in_order=*/i == kRuns);
      io = exec.bindings().Set(x, dx).Set(y, dy).On(native());
    }
    journal_.lines.clear();
    driver::Latch held;
    OfApplication before{[&] {
      held.Arrive();
      journal_.Add("before");
    }};
    OfApplication after{[&] { journal_.Add("after"); }};
    Submit(before);
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    Submit(after);
    held.AwaitArrived();
    if (i % kRuns < 3) std::this_thread::sleep_for(milliseconds(20));  // room for what does not wait
    held.Open();
    ASSERT_OK(run->Wait(seconds(60)));
    Finish();
    ASSERT_EQ(journal_.lines, (std::vector<std::string>{"before", "run", "run", "after"})) << i;
  }
}

TEST_P(NativeStreamTest, HoldsWhatComesAfterWhileTheRunIsHeld) {
  driver::Latch held;
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1);
  struct Hold {
    driver::Latch* held;
    void operator()(int64_t, int32_t* x) const {
      held->Arrive();
      ++x[0];
    }
  };
  g.ParallelFor("hold", 1, Hold{&held}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  auto memory = runtime_->MakeHostBuffer<int32_t>(1);
  ASSERT_OK(memory.status());
  (*memory)[0] = 0;
  auto run = exec.Launch(io.Set(x, *memory).On(native()));
  ASSERT_OK(run.status());
  std::atomic<bool> ran = false;
  OfApplication after{[&] { ran = true; }};
  Submit(after);
  held.AwaitArrived();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(ran);
  held.Open();
  ASSERT_OK(run->Wait(seconds(60)));
  Finish();
  EXPECT_TRUE(ran);
}

// A Host node keeps the last kernel from being submitted.
TEST_P(NativeStreamTest, LaunchReturnsWhenAllHasBeenSubmitted) {
  driver::Latch held;
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1);
  g.ParallelFor("first", 1, Log{&journal_, "first"}, ReadWrite(x));
  g.Host("hold", [&](std::span<int32_t>) { held.Arrive(); }, ReadWrite(x));
  g.ParallelFor("last", 1, Log{&journal_, "last"}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int32_t> memory(1);  // pageable, too
  io.Set(x, memory).On(native());
  std::atomic<bool> launched = false;
  absl::StatusOr<penstock::Run> run = absl::UnknownError("");
  std::thread application([&] {
    run = exec.Launch(io);
    launched = true;
    OfApplication after{[&] { journal_.Add("after"); }};
    Submit(after);
    Finish();
  });
  held.AwaitArrived();
  EXPECT_FALSE(launched);
  held.Open();
  application.join();
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));
  EXPECT_EQ(journal_.lines, (std::vector<std::string>{"first", "last", "after"}));
  EXPECT_EQ(memory[0], 2);
}

TEST_P(NativeStreamTest, WhatIsAbandonedBeforeAllWasSubmittedIsNotOrderedAndSaysSo) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4);
  g.Host("hold", [&](std::span<int32_t>) { abandoned_in_.Arrive(); }, ReadWrite(x));
  g.ParallelFor("last", 1, Log{&journal_, "last"}, ReadWrite(x));
  Executable late = Compiled(g);
  Bindings io = late.bindings();
  std::vector<int32_t> memory(4);
  const absl::Status status = late.Launch(io.Set(x, memory).On(native()), milliseconds(30)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  abandoned_in_.Open();
  Finish();
  EXPECT_EQ(journal_.lines, std::vector<std::string>());
}

// One that fails has drained when Launch returns, or else the stream waits for it.
TEST_P(NativeStreamTest, ARunThatFailsHoldsItsStreamUntilItsWorkHasEnded) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1);
  g.Host("fails", [](std::span<int32_t>) { return absl::DataLossError("lost"); }, ReadWrite(x));
  g.ParallelFor("last", 1, Log{&journal_, "last"}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int32_t> memory(1);
  auto run = exec.Launch(io.Set(x, memory).On(native()));
  ASSERT_OK(run.status());
  EXPECT_TRUE(run->done());
  EXPECT_EQ(run->Wait(seconds(60)).code(), absl::StatusCode::kDataLoss);
  Finish();
  EXPECT_EQ(journal_.lines, std::vector<std::string>());
}

// The run is under way, and whoever launched it counts on the order.
TEST_P(NativeStreamTest, WhereTheStreamCannotWaitTheHostDoes) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1, kDevice);
  g.ParallelFor("run", 1, Log{&journal_, "run"}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  const DeviceBuffer<int32_t> memory = Zeros();
  driver_->refuses_waits = true;
  auto run = exec.Launch(io.Set(x, memory).On(native()));
  ASSERT_OK(run.status());
  EXPECT_TRUE(run->done());
  EXPECT_EQ(journal_.lines, std::vector<std::string>{"run"});
  driver_->refuses_waits = false;
  EXPECT_OK(run->Wait(seconds(60)));
}

TEST_P(NativeStreamTest, IsRefusedWhereItCannotBe) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1);
  g.ParallelFor("run", 1, Log{&journal_, "run"}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int32_t> memory(1);
  io.Set(x, memory);
  const auto refusal = [&](NativeStream stream) {
    const absl::Status status = exec.Launch(io.On(stream)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Text(status);
  };
  int nothing = 0;
  EXPECT_EQ(refusal({&nothing}), "graph 'g': the stream given to On: of no device here");
  const driver::Stream elsewhere = *driver_->CreateStream(1, 0);
  EXPECT_EQ(refusal({NativeDriver::HandleOf(elsewhere)}),
            "graph 'g': the stream given to On: it is of host:1, where no node of the plan runs; give one of a device "
            "that has nodes");
  driver_->DestroyStream(elsewhere);
  EXPECT_EQ(exec.launches(), 0);
  // Nobody may wait inside a callback.
  std::optional<absl::Status> inside;
  auto run = exec.Launch(io.On(NativeStream()));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait(seconds(60)));
  std::atomic<bool> called = false;
  run->OnDone([&](const absl::Status&) {
    inside = exec.TryLaunch(io.On(native())).status();
    called = true;
  });
  while (!called) std::this_thread::yield();
  EXPECT_EQ(inside->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Text(*inside).find("launched inside a host node or callback"), std::string::npos) << *inside;
  // The slots have come back.
  for (int i = 0; i < 3; ++i) {
    run = exec.Launch(io.On(native()));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
  }
  EXPECT_EQ(memory[0], 4);
}

// There may be no work on a device before a Host node, nor behind it.
TEST_P(NativeStreamTest, OrdersHostNodesToo) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1), y = g.InOut<int32_t>("y", 1);
  g.Host("first", [&](std::span<int32_t> v) { journal_.Add("first " + std::to_string(v[0]++)); }, ReadWrite(x));
  g.ParallelFor("run", 1, Count{}, ReadWrite(y));
  g.Host("last", [&](std::span<int32_t> v) { journal_.Add("last " + std::to_string(v[0]++)); }, ReadWrite(y));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int32_t> mx(1), my(1);
  io.Set(x, mx).Set(y, my).On(native());
  for (int i = 0; i < 3; ++i) {
    journal_.lines.clear();
    driver::Latch held;
    OfApplication before{[&] {
      held.Arrive();
      mx[0] = my[0] = 10 * (i + 1);
    }};
    Submit(before);
    std::thread opens([&] {
      held.AwaitArrived();
      std::this_thread::sleep_for(milliseconds(5));
      held.Open();
    });
    auto run = exec.Launch(io);
    const std::vector<int32_t> after = {mx[0], my[0]};  // nothing is under way that would change it
    opens.join();
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    const int32_t ten = 10 * (i + 1);
    EXPECT_THAT(journal_.lines,
                testing::UnorderedElementsAre("first " + std::to_string(ten), "last " + std::to_string(ten + 1)));
    EXPECT_EQ(after, (std::vector<int32_t>{ten + 1, ten + 2}));
  }
}

TEST_P(NativeStreamTest, AStreamThatCannotBeAskedFailsTheRun) {
  Graph g("g");
  g.Host("first", [this] { journal_.Add("first"); });
  auto x = g.InOut<int32_t>("x", 1, kDevice);
  g.ParallelFor("run", 1, Count{}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  const DeviceBuffer<int32_t> memory = Zeros();
  witness_->FailNth(driver::checked::CallKind::kQuery, 1, absl::DataLossError("planned"));
  auto run = exec.Launch(io.Set(x, memory).On(native()));
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait(seconds(60)).code(), absl::StatusCode::kDataLoss) << run->status();
  EXPECT_EQ(journal_.lines, std::vector<std::string>());
}

// Whichever thread submits the last of it, and ends it: pageable memory is copied by others.
TEST_P(NativeStreamTest, HoldsItsStreamForRunsThatEndWhileItLooks) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1);
  g.ParallelFor("run", 1, Count{}, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<int32_t> memory(1);
  io.Set(x, memory).On(native());
  for (int i = 0; i < 400; ++i) ASSERT_OK(exec.Launch(io).status());
  Finish();
  EXPECT_EQ(memory[0], 400);
}

TEST_P(NativeStreamTest, OrdersAStepThatIsDeclaredAgain) {
  GraphCache cache(*runtime_, {.compile = {.mode = GetParam()}});
  auto memory = runtime_->MakeHostBuffer<int32_t>(1);
  ASSERT_OK(memory.status());
  (*memory)[0] = 0;
  for (int i = 0; i < 4; ++i) {
    journal_.lines.clear();
    driver::Latch held;
    OfApplication before{[&] {
      held.Arrive();
      journal_.Add("before");
    }};
    Submit(before);
    auto run = cache.Launch([&](Graph& g, Bindings& io) {
      auto x = g.InOut<int32_t>("x", 1);
      g.ParallelFor("run", 1, Log{&journal_, "run"}, ReadWrite(x));
      io.Set(x, *memory).On(native());
    });
    ASSERT_OK(run.status());
    held.AwaitArrived();
    std::this_thread::sleep_for(milliseconds(5));
    held.Open();
    ASSERT_OK(run->Wait(seconds(60)));
    EXPECT_EQ(journal_.lines, (std::vector<std::string>{"before", "run"})) << i;
  }
  EXPECT_EQ((*memory)[0], 4);
}

INSTANTIATE_TEST_SUITE_P(Modes, NativeStreamTest, testing::Values(Mode::kStream, Mode::kGraph, Mode::kAuto),
                         [](const auto& mode) {
                           return mode.param == Mode::kStream  ? "stream"
                                  : mode.param == Mode::kGraph ? "graph"
                                                               : "automatic";
                         });

TEST(HostDevices, KnowNoStreamsOfTheApplications) {
  Runtime runtime = HostRuntime();
  HeldGraph held;
  held.latch.Open();
  auto exec = runtime.Compile(held.graph);
  ASSERT_OK(exec.status());
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 1);
  Journal journal;
  g.ParallelFor("run", 1, Log{&journal, "run"}, ReadWrite(x));
  auto one = runtime.Compile(g);
  ASSERT_OK(one.status());
  Bindings io = one->bindings();
  std::vector<int32_t> memory(1);
  int stream = 0;
  EXPECT_EQ(one->Launch(io.Set(x, memory).On({&stream})).status(),
            absl::InvalidArgumentError("graph 'g': the stream given to On: a host device knows no streams but its own; "
                                       "wait for the Run"));
}

}  // namespace
}  // namespace penstock::application_stream_test
