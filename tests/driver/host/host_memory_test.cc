#include "src/driver/host/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/quick_deaths.h"
#include "tests/support/status.h"

namespace penstock::driver::host::host_memory_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

std::byte* Take(DeviceHeap& heap, size_t bytes) {
  const auto memory = heap.Allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? static_cast<std::byte*>(*memory) : nullptr;
}

TEST(DeviceHeapTest, BlocksAreAlignedAndApart) {
  DeviceHeap heap("host:0", kMiB);
  EXPECT_EQ(heap.capacity(), static_cast<int64_t>(kMiB));
  std::byte* end = nullptr;
  for (const size_t bytes : {1, 255, 256, 257, 5000, 0, 1}) {
    std::byte* const memory = Take(heap, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kDeviceAlignment, 0u);
    EXPECT_GE(memory, end);
    end = memory + std::max<size_t>(bytes, 1);
  }
}

TEST(DeviceHeapTest, BytesWrittenAtTheRealAddressStay) {
  DeviceHeap heap("host:0", kMiB);
  std::byte *const a = Take(heap, 1000), *const b = Take(heap, 1000);
  std::memset(*heap.Access(a, 1000), 1, 1000);
  std::memset(*heap.Access(b, 1000), 2, 1000);
  EXPECT_EQ((*heap.Access(a, 1000))[999], std::byte{1});
  EXPECT_EQ(*heap.Access(a + 10, 1), *heap.Access(a, 1) + 10);
}

TEST(DeviceHeapTest, AccessStaysInsideOneLiveBlock) {
  DeviceHeap heap("host:0", kMiB);
  std::byte* const memory = Take(heap, 1000);
  Take(heap, 1000);
  EXPECT_TRUE(heap.Access(memory, 1000).ok());
  EXPECT_TRUE(heap.Access(memory + 1000, 0).ok());
  EXPECT_FALSE(heap.Access(memory + 1, 1000).ok());  // 1024 bytes are held, 1000 were asked for
  EXPECT_FALSE(heap.Access(memory, 2000).ok());
  EXPECT_FALSE(heap.Access(memory, ~size_t{0}).ok());
  EXPECT_FALSE(heap.Access(memory - 1, 1).ok());
  EXPECT_FALSE(heap.Access(nullptr, 0).ok());
  EXPECT_TRUE(heap.Free(memory));
  const absl::Status status = heap.Access(memory, 8).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), AllOf(HasSubstr(", +8)"), HasSubstr("host:0")));
}

TEST(DeviceHeapTest, TooMuchNamesBytesAskedForFreeAndTheDevice) {
  DeviceHeap heap("host:3", kMiB);
  Take(heap, kMiB / 2);
  const absl::Status status = heap.Allocate(kMiB).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("host:3"), HasSubstr("1048576 bytes"), HasSubstr("524288 of 1048576 bytes are free")));
  EXPECT_EQ(heap.Allocate(~size_t{0}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(heap.Allocate(kMiB / 2).ok());
}

TEST(DeviceHeapTest, FreedNeighboursGrowTogetherInAnyOrder) {
  const std::vector<std::vector<int>> orders = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {0, 2, 1, 3}, {2, 0, 3, 1}};
  for (const auto& order : orders) {
    DeviceHeap heap("host:0", kMiB);
    std::vector<std::byte*> quarters;
    for (int i = 0; i < 4; ++i) quarters.push_back(Take(heap, kMiB / 4));
    for (const int i : order) EXPECT_TRUE(heap.Free(quarters[static_cast<size_t>(i)]));
    EXPECT_TRUE(heap.Allocate(kMiB).ok());
  }
}

TEST(DeviceHeapTest, TheFirstFittingPieceIsTaken) {
  DeviceHeap heap("host:0", kMiB);
  std::byte* const a = Take(heap, 4096);
  Take(heap, 256);
  EXPECT_TRUE(heap.Free(a));
  EXPECT_EQ(Take(heap, 4096), a);
}

TEST(DeviceHeapTest, OnlyTheStartOfALiveBlockCanBeFreed) {
  DeviceHeap heap("host:0", kMiB);
  std::byte* const memory = Take(heap, 4096);
  int local = 0;
  EXPECT_FALSE(heap.Free(memory + 256));
  EXPECT_FALSE(heap.Free(&local));
  EXPECT_TRUE(heap.Free(memory));
  EXPECT_FALSE(heap.Free(memory));
}

// Against a plain model: blocks never overlap, keep their bytes, and all come back.
TEST(DeviceHeapTest, ManyRandomBlocksKeepTheirBytes) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  DeviceHeap heap("host:0", 8 * kMiB);
  std::map<std::byte*, std::pair<size_t, int>> live;
  for (int step = 0; step < 3000; ++step) {
    if (live.empty() || random() % 3 != 0) {
      const size_t bytes = random() % 20000;
      const auto memory = heap.Allocate(bytes);
      if (!memory.ok()) continue;
      std::memset(*heap.Access(*memory, bytes), step & 0xff, bytes);
      ASSERT_TRUE(live.emplace(static_cast<std::byte*>(*memory), std::make_pair(bytes, step & 0xff)).second);
    } else {
      const auto victim = std::next(live.begin(), static_cast<ptrdiff_t>(random() % live.size()));
      const auto [bytes, value] = victim->second;
      const std::byte* const real = *heap.Access(victim->first, bytes);
      for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(real[i], static_cast<std::byte>(value));
      ASSERT_TRUE(heap.Free(victim->first));
      live.erase(victim);
    }
  }
  for (const auto& [memory, block] : live) EXPECT_TRUE(heap.Free(memory));
  EXPECT_TRUE(heap.Allocate(8 * kMiB).ok());
}

#ifndef NDEBUG
TEST(DeviceHeapTest, NewAndFreedMemoryIsPoisoned) {
  DeviceHeap heap("host:0", kMiB);
  std::byte* const memory = Take(heap, 10000);
  std::byte* const real = *heap.Access(memory, 10000);
  for (const size_t i : {0, 5000, 9999}) EXPECT_EQ(real[i], std::byte{kFresh});
  heap.Free(memory);
  for (const size_t i : {0, 5000, 9999}) EXPECT_EQ(real[i], std::byte{kFreed});
}
#endif

using DeviceHeapDeathTest = testing::Test;

TEST(DeviceHeapDeathTest, TheHostCannotReadOrWriteWhatWasHandedOut) {
  const QuickDeaths quick;
  DeviceHeap heap("host:0", kMiB);
  volatile char* const memory = reinterpret_cast<volatile char*>(Take(heap, 4096));
  EXPECT_DEATH(static_cast<void>(memory[0]), "");
  EXPECT_DEATH(memory[4095] = 1, "");
}

TEST(DeviceHeapDeathTest, RunningOffTheEndDies) {
  const QuickDeaths quick;
  DeviceHeap heap("host:0", kMiB);
  volatile char* const memory = reinterpret_cast<volatile char*>(Take(heap, kMiB));
  EXPECT_DEATH(memory[kMiB] = 1, "");
}

constexpr size_t kMost = size_t{1} << 40;

TEST(PinnedMemoryTest, ContainsExactlyItsLiveBytes) {
  PinnedMemory pinned(kMost);
  auto* const memory = static_cast<std::byte*>(*pinned.Allocate(1000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
  std::memset(memory, 1, 1000);
  EXPECT_TRUE(pinned.Contains(memory, 1000));
  EXPECT_TRUE(pinned.Contains(memory + 999, 1));
  EXPECT_FALSE(pinned.Contains(memory + 999, 2));
  EXPECT_FALSE(pinned.Contains(memory + 1000, 0));
  EXPECT_FALSE(pinned.Contains(memory - 1, 1));
  EXPECT_FALSE(pinned.Contains(nullptr, 0));
  EXPECT_FALSE(pinned.Free(memory + 1));
  EXPECT_TRUE(pinned.Free(memory));
  EXPECT_FALSE(pinned.Contains(memory, 1));
  EXPECT_FALSE(pinned.Free(memory));
}

TEST(PinnedMemoryTest, TooMuchIsResourceExhausted) {
  PinnedMemory pinned(kMost);
  for (const size_t bytes : {size_t{1} << 50, ~size_t{0}}) {
    const absl::Status status = pinned.Allocate(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Text(status), HasSubstr(std::to_string(bytes) + " bytes of pinned memory"));
  }
}

TEST(PinnedMemoryTest, WhatIsLeftGoesWithTheRegister) {
  PinnedMemory pinned(kMost);  // a leak checker sees it otherwise
  ASSERT_TRUE(pinned.Allocate(1 << 16).ok());
}

}  // namespace
}  // namespace penstock::driver::host::host_memory_test
