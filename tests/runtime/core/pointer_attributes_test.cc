// What kind of memory a user has given, and how often the driver is asked: against an address space of our own, where
// each byte has its kind. What launches ask, on every driver: tests/conformance/graph/copy_counts_test.cc.
#include "src/runtime/core/pointer_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/kernels.h"
#include "tests/support/null_driver.h"

namespace penstock::runtime::pointer_attributes_test {
namespace {

using driver::PointerInfo;
using Kind = PointerInfo::Kind;

constexpr uintptr_t kBase = 1 << 20;

// From kBase on, blocks that touch; before and behind, pageable memory.
class Blocks : public NullDriver {
 public:
  struct Block {
    Kind kind = Kind::kPageable;
    int device = -1;
    size_t bytes = 0;
  };
  explicit Blocks(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}

  // Ranges are as narrow as a driver may tell them.
  void TellLess(std::mt19937& rng) { rng_ = &rng; }

  absl::StatusOr<PointerInfo> Inspect(const void* memory) override {
    ++calls_;
    const auto at = reinterpret_cast<uintptr_t>(memory);
    uintptr_t begin = kBase;
    for (const Block& block : blocks_) {
      uintptr_t end = begin + block.bytes;
      if (at < begin || at >= end) {
        begin = end;
        continue;
      }
      if (block.kind == Kind::kPageable) break;
      if (rng_ != nullptr) {
        begin = at - (*rng_)() % (at - begin + 1);
        end = at + 1 + (*rng_)() % (end - at);
      }
      return PointerInfo{block.kind, block.device, begin, end};
    }
    return PointerInfo{};
  }

  // The rule of memory_kind.h, byte by byte.
  Block KindOf(size_t offset, size_t bytes) const {
    const Block first = At(offset), last = At(offset + bytes - 1);
    if (first.kind == Kind::kPinned && last.kind == Kind::kPinned) return first;
    if (first.kind != Kind::kDevice) return {};
    return {Kind::kDevice, last.kind == Kind::kDevice && last.device == first.device ? first.device : -1};
  }
  int TakeCalls() { return std::exchange(calls_, 0); }

 private:
  Block At(size_t offset) const {
    for (const Block& block : blocks_) {
      if (offset < block.bytes) return block;
      offset -= block.bytes;
    }
    return {};
  }

  const std::vector<Block> blocks_;
  std::mt19937* rng_ = nullptr;
  int calls_ = 0;
};

const void* At(size_t offset) { return reinterpret_cast<const void*>(kBase + offset); }

constexpr Blocks::Block Pinned(size_t bytes) { return {Kind::kPinned, -1, bytes}; }
constexpr Blocks::Block Pageable(size_t bytes) { return {Kind::kPageable, -1, bytes}; }
constexpr Blocks::Block OnDevice(int device, size_t bytes) { return {Kind::kDevice, device, bytes}; }

TEST(MemoryKindTest, OfRandomMemoryIsThatOfItsEndsHoweverLittleTheDriverTells) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 rng(seed);
    std::vector<Blocks::Block> blocks;
    size_t all = 0;
    for (int i = 0; i < 12; ++i) {
      const size_t bytes = 1 + rng() % 9;
      const Blocks::Block kinds[] = {Pinned(bytes), Pageable(bytes), OnDevice(0, bytes), OnDevice(1, bytes),
                                     OnDevice(-1, bytes)};
      blocks.push_back(kinds[rng() % 5]);
      all += bytes;
    }
    Blocks driver(blocks);
    if (seed % 2 != 0) driver.TellLess(rng);
    MemoryKinds kinds;
    for (int i = 0; i < 200; ++i) {
      const size_t offset = rng() % all, bytes = 1 + rng() % 20;
      const Blocks::Block expected = driver.KindOf(offset, bytes);
      for (const absl::StatusOr<PointerInfo>& found :
           {InspectAll(driver, At(offset), bytes), kinds.Inspect(driver, At(offset), bytes)}) {
        ASSERT_TRUE(found.ok());
        EXPECT_EQ(found->kind, expected.kind) << "seed " << seed << ", " << bytes << " bytes at " << offset;
        EXPECT_EQ(found->device, expected.device) << "seed " << seed << ", " << bytes << " bytes at " << offset;
      }
      EXPECT_LE(driver.TakeCalls(), 4);
    }
  }
}

TEST(MemoryKindTest, TheEndIsLookedAtOnlyWhereTheBeginningDoesNotTell) {
  Blocks driver({Pinned(100), Pinned(100), Pageable(100), OnDevice(0, 100), OnDevice(0, 100), OnDevice(1, 100)});
  const auto look = [&](size_t offset, size_t bytes) {
    EXPECT_TRUE(InspectAll(driver, At(offset), bytes).ok());
    return driver.TakeCalls();
  };
  EXPECT_EQ(look(0, 100), 1);
  EXPECT_EQ(look(99, 1), 1);
  EXPECT_EQ(look(250, 100), 1) << "pageable, whatever the end is";
  EXPECT_EQ(look(300, 100), 1);
  EXPECT_EQ(look(50, 51), 2) << "from one block to the next";
  EXPECT_EQ(look(199, 2), 2) << "the end is not pinned";
  EXPECT_EQ(look(350, 100), 2);
  EXPECT_EQ(look(499, 2), 2) << "the end is another device's";
}

TEST(MemoryKindTest, ARangeCoversNoSumThatOverflows) {
  const PointerInfo info{Kind::kPinned, -1, 100, 200};
  EXPECT_TRUE(info.Covers(100, 100));
  EXPECT_FALSE(info.Covers(100, 101));
  EXPECT_FALSE(info.Covers(99, 1));
  EXPECT_FALSE(info.Covers(200, 0));
  EXPECT_FALSE(info.Covers(150, SIZE_MAX));
  EXPECT_FALSE(PointerInfo().Covers(0, 0)) << "of what nothing is known";
}

TEST(MemoryKindTest, ManyBuffersInOneAllocationAreOneCall) {
  Blocks driver({Pinned(1000)});
  MemoryKinds kinds;
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(kinds.Inspect(driver, At(i * 3), 3)->kind, Kind::kPinned);
  EXPECT_EQ(driver.TakeCalls(), 1);
  MemoryKinds next;
  EXPECT_TRUE(next.Inspect(driver, At(0), 3).ok());
  EXPECT_EQ(driver.TakeCalls(), 1) << "nothing is kept";
}

TEST(MemoryKindTest, BuffersThatTakeTurnsInFourAllocationsAreFourCalls) {
  Blocks driver({Pinned(100), OnDevice(0, 100), Pinned(100), OnDevice(1, 100), Pinned(100)});
  MemoryKinds kinds;
  for (size_t i = 0; i < 100; ++i) {
    for (size_t block = 0; block < 4; ++block) EXPECT_TRUE(kinds.Inspect(driver, At(100 * block + i), 1).ok());
  }
  EXPECT_EQ(driver.TakeCalls(), 4);
  for (size_t i = 0; i < 100; ++i) EXPECT_TRUE(kinds.Inspect(driver, At(400 + i), 1).ok());
  EXPECT_EQ(driver.TakeCalls(), 1) << "the fifth takes the place of the first";
  for (size_t block = 1; block < 4; ++block) EXPECT_TRUE(kinds.Inspect(driver, At(100 * block), 1).ok());
  EXPECT_EQ(driver.TakeCalls(), 0);
  EXPECT_TRUE(kinds.Inspect(driver, At(0), 1).ok());
  EXPECT_EQ(driver.TakeCalls(), 1);
}

TEST(MemoryKindTest, MemoryThatLeavesItsAllocationIsNotTakenForKnown) {
  Blocks driver({Pinned(100), Pageable(100), OnDevice(0, 100), OnDevice(1, 100)});
  MemoryKinds kinds;
  EXPECT_EQ(kinds.Inspect(driver, At(0), 100)->kind, Kind::kPinned);
  EXPECT_EQ(kinds.Inspect(driver, At(99), 2)->kind, Kind::kPageable);
  EXPECT_EQ(kinds.Inspect(driver, At(200), 100)->device, 0);
  EXPECT_EQ(kinds.Inspect(driver, At(250), 51)->device, -1);
  EXPECT_EQ(kinds.Inspect(driver, At(250), 50)->device, 0) << "what was refused is not remembered";
}

// An address space that is changed behind the back of whoever has asked.
class Changed : public NullDriver {
 public:
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override {
    const auto at = reinterpret_cast<uintptr_t>(memory);
    for (const PointerInfo& block : blocks) {
      if (block.Covers(at, 1)) return block;
    }
    if (refuses) return absl::UnavailableError("refused");
    return PointerInfo{};
  }
  std::vector<PointerInfo> blocks;
  bool refuses = false;
};

TEST(MemoryKindTest, WhatItRemembersIsStillTrueUntilTheDriverSaysOtherwise) {
  const PointerInfo pinned{Kind::kPinned, -1, 100, 200}, device{Kind::kDevice, 0, 300, 400};
  const auto change = [&](const PointerInfo& from, const PointerInfo& to) {
    Changed driver;
    driver.blocks = {pinned, device};
    MemoryKinds kinds;
    EXPECT_TRUE(kinds.StillTrue(driver)) << "of nothing";
    for (const uintptr_t at : {100, 150, 300, 500}) {
      EXPECT_TRUE(kinds.Inspect(driver, reinterpret_cast<const void*>(at), 10).ok());
    }
    EXPECT_TRUE(kinds.StillTrue(driver));
    driver.blocks.push_back({Kind::kPinned, -1, 500, 600});
    EXPECT_TRUE(kinds.StillTrue(driver)) << "what was pageable host threads copy";
    std::replace(driver.blocks.begin(), driver.blocks.end(), from, to);
    const bool still = kinds.StillTrue(driver);
    kinds.Forget();
    EXPECT_TRUE(kinds.StillTrue(driver));
    return !still;
  };
  EXPECT_FALSE(change(pinned, pinned));
  EXPECT_TRUE(change(pinned, {})) << "unpinned";
  EXPECT_TRUE(change(pinned, {Kind::kPinned, -1, 100, 190})) << "another allocation";
  EXPECT_TRUE(change(device, {Kind::kDevice, 1, 300, 400})) << "on another device";
}

TEST(MemoryKindTest, OfMemoryInSeveralAllocationsBothEndsAreLookedAtAgain) {
  Changed driver;
  driver.blocks = {{Kind::kPinned, -1, 100, 200}, {Kind::kPinned, -1, 200, 300}};
  MemoryKinds kinds;
  EXPECT_EQ(kinds.Inspect(driver, reinterpret_cast<const void*>(150), 100)->kind, Kind::kPinned);
  EXPECT_TRUE(kinds.StillTrue(driver));
  driver.blocks.pop_back();
  EXPECT_FALSE(kinds.StillTrue(driver));
}

TEST(MemoryKindTest, ADriverThatRefusesToSayIsNotReliedOn) {
  Changed driver;
  driver.blocks = {{Kind::kPinned, -1, 100, 200}};
  MemoryKinds kinds;
  EXPECT_TRUE(kinds.Inspect(driver, reinterpret_cast<const void*>(150), 10).ok());
  driver.blocks.clear();
  driver.refuses = true;
  EXPECT_FALSE(kinds.StillTrue(driver));
}

// From an address on, memory is other memory.
class CutDriver : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override {
    absl::StatusOr<PointerInfo> info = ForwardingDriver::Inspect(memory);
    const auto at = reinterpret_cast<uintptr_t>(memory);
    if (!info.ok() || !info->Covers(at, 1)) return info;
    if (at >= cut) return beyond;
    info->end = std::min(info->end, cut);
    return info;
  }
  uintptr_t cut = UINTPTR_MAX;
  PointerInfo beyond;
};

class CutMemory : public testing::Test {
 protected:
  void SetUp() override {
    const ScopedDriverHook hook({.wrap = [this](std::unique_ptr<driver::Driver> host) {
      auto made = std::make_unique<CutDriver>(std::move(host));
      driver_ = made.get();
      return made;
    }});
    runtime_.emplace(*Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1}));
  }
  // What a launch says whose input is `memory`, and from its last byte on something else.
  template <class Memory>
  std::string RefusalOf(Where where, const Memory& memory, const PointerInfo& beyond) {
    Graph graph("g");
    auto x = graph.Input<int32_t>("x", kN, where), y = graph.Output<int32_t>("y", kN);
    graph.ParallelFor("k", kN, PlusOne{}, Read(x), Write(y));
    Executable exec = *runtime_->Compile(graph);
    Bindings io = exec.bindings();
    std::vector<int32_t> out(kN);
    io.Set(x, memory).Set(y, out);
    driver_->beyond = beyond;
    driver_->cut = reinterpret_cast<uintptr_t>(memory.data() + kN) - 1;
    const absl::StatusOr<penstock::Run> run = exec.Launch(io);
    const absl::Status status = run.ok() ? run->Wait() : run.status();
    return std::string(status.message());
  }

  static constexpr int64_t kN = 64;
  CutDriver* driver_ = nullptr;
  std::optional<Runtime> runtime_;
};

TEST_F(CutMemory, WhoseEndIsNotTheDevicesIsRefused) {
  const DeviceBuffer<int32_t> memory = *runtime_->MakeDeviceBuffer<int32_t>(kN, 0);
  const char refusal[] = "bound to memory that is not all of host:0";
  EXPECT_THAT(RefusalOf(kDevice, memory, {Kind::kDevice, 1}), testing::HasSubstr(refusal));
  EXPECT_THAT(RefusalOf(kDevice, memory, {}), testing::HasSubstr(refusal));
  EXPECT_EQ(RefusalOf(kDevice, memory, {Kind::kDevice, 0}), "");
}

TEST_F(CutMemory, WhoseEndIsNotPinnedIsNotPinned) {
  const HostBuffer<int32_t> memory = *runtime_->MakeHostBuffer<int32_t>(kN);
  EXPECT_THAT(RefusalOf(kPinned, memory, {}), testing::HasSubstr("bound to memory that is not pinned"));
  EXPECT_EQ(RefusalOf(kHost, memory, {}), "") << "it is staged";
  EXPECT_EQ(RefusalOf(kPinned, memory, {Kind::kPinned}), "");
}

}  // namespace
}  // namespace penstock::runtime::pointer_attributes_test
