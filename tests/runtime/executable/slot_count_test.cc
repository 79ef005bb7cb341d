// How many slots Compile chooses where CompileOptions::slots is 0.
#include <gtest/gtest.h>

#include "penstock/penstock.h"
#include "tests/support/status.h"

namespace penstock::slot_count_test {
namespace {

constexpr int64_t kLarge = 100'000;  // bytes, more than StagingOptions::from_bytes

struct Zero {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, char* x) const { x[i] = 0; }
};

int SlotsOf(int64_t bytes, Where where, CompileOptions options = {}, int64_t device_memory = 256 << 20) {
  auto runtime = Runtime::Create({.devices = "host", .host_device_memory = device_memory});
  EXPECT_OK(runtime.status());
  Graph graph("g");
  const auto x = graph.InOut<char>("x", bytes, where);
  graph.ParallelFor("zero", bytes, Zero{}, ReadWrite(x));
  const auto exec = runtime->Compile(graph, options);
  EXPECT_OK(exec.status());
  return exec.ok() ? exec->slots() : 0;
}

TEST(SlotCount, IsSixteenWhereLargeMemoryMayNotBePinned) {
  EXPECT_EQ(SlotsOf(kLarge, kHost), 16);
  EXPECT_EQ(SlotsOf(64 << 10, kHost), 2) << "goes through the slot's pinned memory";
  EXPECT_EQ(SlotsOf(kLarge, kPinned), 2);
}

TEST(SlotCount, IsTwoWhereSixteenWouldTakeMuchMemory) {
  EXPECT_EQ(SlotsOf(kLarge, kHost, {}, 16 * 64 * (kLarge + 1000)), 16);
  EXPECT_EQ(SlotsOf(kLarge, kHost, {}, 16 * 64 * (kLarge - 1000)), 2);
  EXPECT_EQ(SlotsOf(kLarge, kHost, {.device_bytes = 64 << 20}), 2) << "the user limits the memory";
}

TEST(SlotCount, IsWhatTheUserAsksFor) {
  EXPECT_EQ(SlotsOf(kLarge, kHost, {.slots = 1}), 1);
  EXPECT_EQ(SlotsOf(kLarge, kPinned, {.slots = 5}), 5);
}

TEST(SlotCount, IsTwoWhereThePlanIsLong) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  Graph graph("g");
  const auto x = graph.InOut<char>("x", kLarge);
  for (int i = 0; i < 70; ++i) graph.ParallelFor(Name("zero", i), kLarge, Zero{}, ReadWrite(x));
  const auto exec = runtime->Compile(graph);
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->slots(), 2);
}

TEST(SlotCount, IsTwoWhereKernelsWaitForTheHost) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  Graph graph("g");
  const auto x = graph.InOut<char>("x", kLarge);
  graph.ParallelFor("zero", kLarge, Zero{}, ReadWrite(x));
  graph.Host("look", [](std::span<char>) {}, ReadWrite(x)).Inline();
  const auto exec = runtime->Compile(graph);
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->slots(), 2);
}

}  // namespace
}  // namespace penstock::slot_count_test
