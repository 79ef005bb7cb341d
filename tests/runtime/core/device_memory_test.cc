// What an executable takes of memory: what it says before its first run is what it asks the driver for.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/kernels.h"
#include "tests/support/status.h"

namespace penstock::device_memory_test {
namespace {

using driver::checked::CallRecorder;

class DeviceMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [this](auto driver) {
                                            return driver::checked::CreateCheckedDriver(std::move(driver), witness_);
                                          }});
    auto made = Runtime::Create({.devices = "host:2", .workers = 2, .host_device_threads = 1});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }

  const std::shared_ptr<CallRecorder> witness_ = std::make_shared<CallRecorder>();
  std::optional<Runtime> runtime_;
};

TEST_F(DeviceMemoryTest, IsReportedAsItIsTakenOfEachDevice) {
  Graph graph("g");
  auto x = graph.Input<int32_t>("x", 1000, kPinned);
  auto y = graph.Output<int32_t>("y", 1000, kPinned);
  auto t = graph.Buffer<int32_t>("t", 1000);
  graph.ParallelFor("first", 1000, PlusOne{}, Read(x), Write(t));
  graph.ParallelFor("second", 1000, PlusOne{}, Read(t), Write(y)).On(1);
  EXPECT_EQ(witness_->gauges().device_bytes, 0);
  auto executable = runtime_->Compile(graph, {.slots = 3});
  ASSERT_OK(executable.status());

  const MemoryReport report = executable->memory();
  EXPECT_EQ(report.slots, 3);
  ASSERT_EQ(report.arenas.size(), 2u);
  EXPECT_EQ(report.arenas[0].where, "host:0");
  EXPECT_EQ(report.arenas[1].where, "host:1");
  EXPECT_GT(report.arenas[1].all_bytes, 0);
  EXPECT_EQ(report.arenas[0].all_bytes + report.arenas[1].all_bytes, witness_->gauges().device_bytes);
  EXPECT_EQ(witness_->gauges().device_blocks, 2 * 3);
}

// The checked driver overwrites what a node only writes before it runs, but not where the node reads the same bytes.
TEST_F(DeviceMemoryTest, NodesInPlaceComputeTheSameInHalfOfIt) {
  const auto run = [&](bool in_place, int64_t& bytes) {
    Graph graph("g");
    auto x = graph.Input<int32_t>("x", 1000), t = graph.Buffer<int32_t>("t", 1000);
    auto y = graph.Output<int32_t>("y", 1000);
    NodeRef first = graph.ParallelFor("first", 1000, PlusOne{}, Read(x), Write(t));
    NodeRef second = graph.ParallelFor("second", 1000, PlusOne{}, Read(t), Write(y));
    if (in_place) first.InPlace(x, t), second.InPlace(t, y);
    auto executable = runtime_->Compile(graph, {.slots = 1});
    EXPECT_EQ(executable.status(), absl::OkStatus());
    bytes = executable->memory().arenas.back().slot_bytes;
    std::vector<int32_t> in(1000), out(1000);
    for (int32_t i = 0; i < 1000; ++i) in[static_cast<size_t>(i)] = i;
    Bindings bindings = executable->bindings();
    auto started = executable->Launch(bindings.Set(x, in).Set(y, out));
    EXPECT_EQ(started.status(), absl::OkStatus());
    EXPECT_EQ(started->Wait(), absl::OkStatus());
    return out;
  };
  int64_t apart = 0, in_place = 0;
  const std::vector<int32_t> out = run(true, in_place);
  EXPECT_EQ(out, run(false, apart));
  EXPECT_EQ(out[999], 1001);
  EXPECT_EQ(2 * in_place, apart);
  EXPECT_TRUE(witness_->violations().empty());
}

TEST_F(DeviceMemoryTest, ABudgetOfTheExecutableIsKept) {
  Graph graph("g");
  graph.Fill("fill", graph.Buffer<char>("big", 1 << 20), 1);
  EXPECT_EQ(runtime_->Compile(graph, {.slots = 2, .device_bytes = 2 << 20}).status(), absl::OkStatus());
  const absl::Status over = runtime_->Compile(graph, {.slots = 3, .device_bytes = 2 << 20}).status();
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(over.message().find("use at most 2 slots"), std::string::npos) << over;
  EXPECT_EQ(runtime_->Compile(graph, {.device_bytes = -1}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceMemoryTest, OfNoExecutableIsNothing) {
  EXPECT_TRUE(Executable().memory().arenas.empty());
  EXPECT_EQ(Executable().memory().slots, 0);
}

}  // namespace
}  // namespace penstock::device_memory_test
