// Out of memory: what is idle is given back, releases in flight are waited for, and what still does not fit fails
// alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"

namespace penstock::memory_pressure_test {
namespace {

using driver::checked::CallKind;
using driver::checked::CallRecorder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMemory = 8 << 20;
constexpr int64_t kMost = 6 << 20;  // two of them do not fit

class MemoryPressureTest : public testing::Test {
 protected:
  void SetUp() override {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [this](auto driver) {
                                            return driver::checked::CreateCheckedDriver(std::move(driver), witness_);
                                          }});
    auto made =
        Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1, .host_device_memory = kMemory});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }

  // A graph that takes most of the device's memory; with a latch, its host node stays there.
  struct Large {
    Graph graph{"large"};
    BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4);
    explicit Large(driver::Latch* latch = nullptr) {
      auto big = graph.Buffer<char>("big", kMost);
      graph.Fill("fill", big, 1);
      if (latch != nullptr) graph.Host("hold", [latch](std::span<int32_t>) { latch->Arrive(); }, ReadWrite(x));
    }
  };
  absl::StatusOr<Executable> Compile(const Large& large) { return runtime_->Compile(large.graph, {.slots = 1}); }

  int64_t allocations() const { return witness_->log().count(CallKind::kAllocateDevice); }

  const std::shared_ptr<CallRecorder> witness_ = std::make_shared<CallRecorder>();
  std::optional<Runtime> runtime_;
};

TEST_F(MemoryPressureTest, WhatDoesNotFitFailsAloneWithTheNumbers) {
  EXPECT_EQ(runtime_->devices()[0].memory_bytes, kMemory);
  const Large large;
  std::optional<Executable> first = *Compile(large);
  const absl::Status refused = Compile(large).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused), StartsWith("graph 'large': slot 0 of 1: host:0: no room for "));
  EXPECT_THAT(Text(refused), HasSubstr("of 8388608 bytes are free"));
  std::vector<int32_t> x(4);
  Bindings io = first->bindings();
  EXPECT_OK(first->Launch(io.Set(large.x, x))->Wait());
  first.reset();
  EXPECT_OK(Compile(large).status());
}

TEST_F(MemoryPressureTest, AReleaseInFlightIsWaitedFor) {
  driver::Latch latch;
  const Large held(&latch), large;
  std::optional<Executable> first = *Compile(held);
  std::vector<int32_t> x(4);
  Bindings io = first->bindings();
  const penstock::Run run = *first->Launch(io.Set(held.x, x));
  ASSERT_TRUE(latch.AwaitArrived());
  first.reset();  // its memory comes back when the run has ended
  const int64_t before = allocations();
  auto second = std::async(std::launch::async, [&] { return Compile(large).status(); });
  while (allocations() < before + 2) std::this_thread::yield();  // it has failed, trimmed and failed again
  latch.Open();
  EXPECT_OK(second.get());
  EXPECT_OK(run.Wait());
}

TEST_F(MemoryPressureTest, AnAbandonedRunIsNotWaitedFor) {
  driver::Latch latch;
  const Large held(&latch), large;
  std::optional<Executable> first = *Compile(held);
  std::vector<int32_t> x(4);
  Bindings io = first->bindings();
  for (auto deadline = std::chrono::milliseconds(1); latch.arrived() == 0; deadline *= 2) {
    const auto run = first->Launch(io.Set(held.x, x), deadline);
    EXPECT_EQ((run.ok() ? run->Wait() : run.status()).code(), absl::StatusCode::kDeadlineExceeded);
  }
  first.reset();
  EXPECT_EQ(Compile(large).status().code(), absl::StatusCode::kResourceExhausted);
  latch.Open();
  EXPECT_OK(runtime_->Shutdown());  // the latch goes with this function
}

TEST_F(MemoryPressureTest, AHostNodeDoesNotWaitForItsOwnRun) {
  const Large large;
  std::promise<void> dropped;
  absl::Status inside;
  Large compiles;
  compiles.graph.Host(
      "compile",
      [&, gate = dropped.get_future().share()](std::span<int32_t>) {
        gate.wait();
        inside = Compile(large).status();
      },
      ReadWrite(compiles.x));
  std::optional<Executable> first = *Compile(compiles);
  std::vector<int32_t> x(4);
  Bindings io = first->bindings();
  const penstock::Run run = *first->Launch(io.Set(compiles.x, x));
  first.reset();
  dropped.set_value();
  EXPECT_OK(run.Wait());
  EXPECT_EQ(inside.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MemoryPressureTest, IdlePinnedSlabsAreGivenBackFirst) {
  {
    const HostBuffer<char> used = *runtime_->MakeHostBuffer<char>(1 << 20);
  }
  EXPECT_EQ(witness_->gauges().pinned_blocks, 1);  // the pool keeps the slab
  witness_->FailNth(CallKind::kAllocatePinned, 1, absl::ResourceExhaustedError("no pinned memory"));
  const absl::StatusOr<HostBuffer<char>> large = runtime_->MakeHostBuffer<char>(64 << 20);
  EXPECT_OK(large.status());
  EXPECT_EQ(witness_->gauges().pinned_blocks, 1);
}

TEST_F(MemoryPressureTest, PinnedMemoryThatDoesNotFitFailsAlone) {
  const absl::Status refused = runtime_->MakeHostBuffer<char>(int64_t{1} << 50).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused), HasSubstr("1125899906842624 bytes"));
  EXPECT_OK(runtime_->MakeHostBuffer<char>(1 << 10).status());
}

}  // namespace
}  // namespace penstock::memory_pressure_test
