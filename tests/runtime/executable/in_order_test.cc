// CompileOptions::in_order: what no thread of the host has to do between runs, when their waits are submitted, and what
// is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_driver.h"
#include "tests/support/latch.h"
#include "tests/support/mode_scope.h"
#include "tests/support/native_driver.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::in_order_test {
namespace {

using testing::HasSubstr;

struct CountTo {
  std::atomic<int>* count;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int64_t* x) const { *x = ++*count; }
};

class InOrderOptions : public testing::TestWithParam<Mode> {
 protected:
  const ModeScope mode_{""};  // those of the test count
};
INSTANTIATE_TEST_SUITE_P(Modes, InOrderOptions, testing::Values(Mode::kStream, Mode::kGraph));

// The library never sees that anything has ended, and yet the device executes all that it was given.
TEST_P(InOrderOptions, NoThreadOfTheHostIsNeededBetweenRuns) {
  const auto held = std::make_shared<std::atomic<bool>>(false);
  std::optional<Runtime> runtime;
  {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [&](auto driver) {
                                            return std::make_unique<HeldDriver>(std::move(driver), held);
                                          }});
    runtime.emplace(HostRuntime());
  }
  std::atomic<int> count = 0;
  Graph graph("count");
  const auto x = graph.InOut<int64_t>("x", 1, kDevice);
  graph.ParallelFor("count", 1, CountTo{&count}, ReadWrite(x));
  Executable exec = *runtime->Compile(graph, {.slots = 5, .in_order = true, .mode = GetParam()});
  const DeviceBuffer<int64_t> memory = *runtime->MakeDeviceBuffer<int64_t>(1);
  const Bindings io = exec.bindings().Set(x, memory);
  *held = true;
  std::vector<penstock::Run> runs;
  for (int r = 0; r < exec.slots(); ++r) {
    auto run = exec.TryLaunch(io);
    ASSERT_OK(run.status());
    runs.push_back(*run);
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (count < 5 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(count, 5);
  for (const penstock::Run& run : runs) EXPECT_FALSE(run.done());
  *held = false;
  for (const penstock::Run& run : runs) EXPECT_OK(run.Wait(std::chrono::minutes(1)));
}

// Notes what is submitted, and in which order.
class NotingDriver : public driver::NativeDriver {
 public:
  using NativeDriver::NativeDriver;
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    Note("kernel");
    return NativeDriver::Launch(stream, op);
  }
  absl::Status LaunchGraph(driver::GraphExec exec, driver::Stream stream) override {
    Note("kernel");
    return NativeDriver::LaunchGraph(exec, stream);
  }
  absl::Status WaitNative(driver::Stream stream, void* event) override {
    Note("event");
    return Wait(stream, {reinterpret_cast<uint64_t>(event)});
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mu_);
    return notes_;
  }

 private:
  void Note(const char* what) {
    const std::lock_guard lock(mu_);
    notes_.emplace_back(what);
  }
  std::mutex mu_;
  std::vector<std::string> notes_;
};

struct Mark {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int64_t* x) const { x[i] = 1; }
};

// The first run cannot submit its kernel yet. If the second one's wait for an event were in the stream before that,
// work of the application that needs the first run could never record the event.
TEST_P(InOrderOptions, ARunWaitsForEventsInItsTurn) {
  NotingDriver* driver = nullptr;
  std::optional<Runtime> runtime;
  {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [&](auto behind) {
                                            auto made = std::make_unique<NotingDriver>(std::move(behind));
                                            driver = made.get();
                                            return made;
                                          }});
    runtime.emplace(HostRuntime());
  }
  driver::Latch latch;
  Graph graph("turns");
  const auto x = graph.InOut<int64_t>("x", 1, kDevice);
  const auto number = graph.Param<int64_t>("number");
  const auto hold = [&](int64_t n) {
    if (n == 0) latch.Arrive();
  };
  const NodeRef host = graph.Host("hold", hold, number).Concurrency(2);
  graph.ParallelFor("mark", 1, Mark{}, ReadWrite(x)).After(host);
  Executable exec = *runtime->Compile(graph, {.slots = 2, .in_order = true, .mode = GetParam()});
  const DeviceBuffer<int64_t> memory = *runtime->MakeDeviceBuffer<int64_t>(1);
  const driver::Event event = *driver->CreateEvent(0, false);
  Bindings io = exec.bindings();
  io.Set(x, memory);
  const auto first = exec.Launch(io.Set(number, 0));
  ASSERT_OK(first.status());
  ASSERT_TRUE(latch.AwaitArrived());
  const auto second = exec.Launch(io.Set(number, 1).After(x, NativeEvent{reinterpret_cast<void*>(event.bits)}));
  ASSERT_OK(second.status());
  EXPECT_THAT(driver->notes(), testing::IsEmpty());
  latch.Open();
  EXPECT_OK(second->Wait(std::chrono::minutes(1)));
  EXPECT_OK(first->Wait());
  EXPECT_THAT(driver->notes(), testing::ElementsAre("kernel", "event", "kernel"));
  driver->DestroyEvent(event);
}

// Counts the kernels that it is given, on streams.
class CountingDriver final : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    ++kernels;
    return ForwardingDriver::Launch(stream, op);
  }
  std::atomic<int> kernels{0};
};

// CUDA would block a thread that is about 1020 commands ahead of the device in one stream.
TEST(InOrderTurns, LongRunsLeaveRoomInTheStreamThatTheyShare) {
  const ModeScope mode("");
  const auto held = std::make_shared<std::atomic<bool>>(false);
  CountingDriver* driver = nullptr;
  std::optional<Runtime> runtime;
  {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [&](auto behind) {
                                            auto counting = std::make_unique<CountingDriver>(std::move(behind));
                                            driver = counting.get();
                                            return std::make_unique<HeldDriver>(std::move(counting), held);
                                          }});
    runtime.emplace(HostRuntime());
  }
  constexpr int kNodes = 200, kRuns = 5;
  Graph graph("long");
  const auto x = graph.InOut<int64_t>("x", 1, kDevice);
  for (int i = 0; i < kNodes; ++i) graph.ParallelFor(Name("mark", i), 1, Mark{}, ReadWrite(x));
  Executable exec = *runtime->Compile(graph, {.slots = kRuns, .in_order = true, .mode = Mode::kStream});
  const DeviceBuffer<int64_t> memory = *runtime->MakeDeviceBuffer<int64_t>(1);
  *held = true;
  std::vector<penstock::Run> runs;
  for (int r = 0; r < kRuns; ++r) runs.push_back(*exec.TryLaunch(exec.bindings().Set(x, memory)));
  EXPECT_EQ(driver->kernels, 2 * kNodes) << "512 commands hold two runs";
  *held = false;
  for (const penstock::Run& run : runs) EXPECT_OK(run.Wait(std::chrono::minutes(1)));
  EXPECT_EQ(driver->kernels, kRuns * kNodes);
}

// What slots would need for each of them: the memory of their arenas, and the kernels that wait for the host.
TEST_P(InOrderOptions, SlotsNeedNoMoreOfADeviceThanOne) {
  Runtime runtime = HostRuntime();
  constexpr int64_t kBytes = int64_t{1} << 20;
  Graph graph("one");
  const auto x = graph.InOut<int64_t>("x", 1, kDevice);
  const auto scratch = graph.Buffer<std::byte>("scratch", kBytes);
  graph.Fill("fill", scratch, std::byte{1});
  graph.Host("host", [](std::span<int64_t>) {}, ReadWrite(x)).Inline();
  const CompileOptions options = {.slots = 40, .in_order = true, .mode = GetParam(), .device_bytes = 2 * kBytes};
  EXPECT_OK(runtime.Compile(graph, options).status());
  CompileOptions apart = options;
  apart.in_order = false;
  EXPECT_THAT(Text(runtime.Compile(graph, apart).status()), HasSubstr("40 slots of"));
  apart.device_bytes = 0;
  EXPECT_THAT(Text(runtime.Compile(graph, apart).status()), HasSubstr("in 40 slots"));
}

TEST_P(InOrderOptions, SmallPlansHaveManySlotsByDefault) {
  Runtime runtime = HostRuntime();
  Graph graph("small"), large("large");
  graph.Fill("fill", graph.Output<int64_t>("x", 1, kDevice), 1);
  const auto y = large.InOut<int64_t>("y", 1, kDevice);
  for (int i = 0; i < 65; ++i) large.ParallelFor(Name("mark", i), 1, Mark{}, ReadWrite(y));
  EXPECT_EQ(runtime.Compile(graph, {.in_order = true, .mode = GetParam()})->slots(), 16);
  EXPECT_EQ(runtime.Compile(large, {.in_order = true, .mode = GetParam()})->slots(), 2);
}

TEST_P(InOrderOptions, SeveralDevicesAndExportAreRefused) {
  Runtime runtime = HostRuntime(2, "host:2");
  Graph graph("g");
  const auto x = graph.Output<int64_t>("x", 1, kDevice);
  graph.Fill("fill", x, 1);
  const auto refused = runtime.Compile(graph, {.devices = {{0}, {1}}, .in_order = true});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused.status()), HasSubstr("in_order is set with 2 devices"));
  Executable exec = *runtime.Compile(graph, {.in_order = true, .mode = Mode::kGraph});
  const auto exported = exec.Export(exec.bindings());
  EXPECT_EQ(exported.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(exported.status()), HasSubstr("CompileOptions::in_order"));
}

}  // namespace
}  // namespace penstock::in_order_test
