// PinnedPool: first fit, coalescing, growth, the budget, lifetimes, threads.
#include "src/memory/pinned_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::memory {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A driver that has pinned memory and nothing else.
class PinnedOnlyDriver : public driver::Driver {
 public:
  ~PinnedOnlyDriver() override { EXPECT_EQ(live.load(), 0) << "slabs were not freed"; }

  absl::StatusOr<void*> AllocatePinned(size_t bytes) override {
    calls.fetch_add(1);
    if (before_allocate) before_allocate();
    if (fail.load()) return absl::UnavailableError("the driver said no");
    live.fetch_add(1);
    return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  }
  void FreePinned(void* memory) override {
    live.fetch_sub(1);
    std::free(memory);
  }

  std::atomic<int> calls{0}, live{0};
  std::atomic<bool> fail{false};
  std::function<void()> before_allocate;

  int device_count() const override { return 0; }
  const driver::DeviceInfo& device(int) const override { return none_; }
  int MakeCurrent(int) override { return 0; }
  void RestoreCurrent(int) override {}
  bool rings() const override { return false; }
  absl::StatusOr<driver::Stream> CreateStream(int, int) override { return No(); }
  void DestroyStream(driver::Stream) override {}
  void* NativeStream(driver::Stream) const override { return nullptr; }
  absl::StatusOr<driver::Event> CreateEvent(int, bool) override { return No(); }
  void DestroyEvent(driver::Event) override {}
  absl::Status Record(driver::Event, driver::Stream) override { return No(); }
  absl::Status Wait(driver::Stream, driver::Event) override { return No(); }
  absl::StatusOr<bool> Query(driver::Event) override { return No(); }
  absl::StatusOr<double> Elapsed(driver::Event, driver::Event) override { return No(); }
  absl::StatusOr<void*> AllocateDevice(int, size_t) override { return No(); }
  void FreeDevice(int, void*) override {}
  absl::StatusOr<driver::PointerInfo> Inspect(const void*) override { return No(); }
  absl::Status Copy(driver::Stream, const driver::CopyOp&) override { return No(); }
  absl::Status CopyBatch(driver::Stream, const driver::BatchOp&) override { return No(); }
  absl::Status Fill(driver::Stream, const driver::FillOp&) override { return No(); }
  absl::StatusOr<const void*> LoadKernel(int, const driver::KernelSource&) override { return No(); }
  absl::Status Launch(driver::Stream, const driver::KernelOp&) override { return No(); }

 private:
  static absl::Status No() { return absl::UnimplementedError("pinned memory only"); }
  driver::DeviceInfo none_;
};

PinnedBlock MustAllocate(PinnedPool& pool, size_t bytes) {
  absl::StatusOr<PinnedBlock> block = pool.Allocate(bytes);
  EXPECT_TRUE(block.ok()) << block.status();
  return block.ok() ? *std::move(block) : PinnedBlock();
}

std::byte* At(const PinnedBlock& block) { return static_cast<std::byte*>(block.data()); }

TEST(PinnedPool, BlocksAreAlignedApartAndFromOneSlab) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {4096, 0});
  EXPECT_EQ(driver.calls.load(), 0);
  const PinnedBlock a = MustAllocate(*pool, 1), b = MustAllocate(*pool, 257), c = MustAllocate(*pool, 256);
  for (const PinnedBlock* block : {&a, &b, &c}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % kPinnedAlignment, 0u);
  }
  EXPECT_EQ(At(b) - At(a), 256);
  EXPECT_EQ(At(c) - At(b), 512);
  EXPECT_EQ(b.bytes(), 257u);
  EXPECT_EQ(pool->bytes_in_use(), 1024u);
  EXPECT_EQ(pool->bytes_reserved(), 4096u);
  EXPECT_EQ(pool->slabs(), 1u);
}

TEST(PinnedPool, ZeroBytesGetAnAddressOfTheirOwn) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {4096, 0});
  const PinnedBlock a = MustAllocate(*pool, 0), b = MustAllocate(*pool, 0);
  ASSERT_NE(a.data(), nullptr);
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(a.bytes(), 0u);
}

TEST(PinnedPool, TakesTheFirstPlaceThatFits) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {4096, 0});
  PinnedBlock a = MustAllocate(*pool, 256), b = MustAllocate(*pool, 256), c = MustAllocate(*pool, 512),
              d = MustAllocate(*pool, 256);
  const std::byte* const small = At(a);
  const std::byte* const large = At(c);
  a = PinnedBlock();
  c = PinnedBlock();
  const PinnedBlock two = MustAllocate(*pool, 300), one = MustAllocate(*pool, 200);
  EXPECT_EQ(At(two), large);
  EXPECT_EQ(At(one), small);
}

// Whatever the order of return, the slab is one piece again, so a block of its full size fits without another slab.
TEST(PinnedPool, NeighboursThatAreFreeBecomeOne) {
  for (const std::vector<size_t>& order :
       {std::vector<size_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}}) {
    PinnedOnlyDriver driver;
    auto pool = PinnedPool::Create(driver, {1024, 0});
    std::vector<PinnedBlock> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(MustAllocate(*pool, 256));
    for (const size_t i : order) blocks[i] = PinnedBlock();
    EXPECT_EQ(pool->bytes_in_use(), 0u);
    const PinnedBlock whole = MustAllocate(*pool, 1024);
    EXPECT_EQ(pool->slabs(), 1u) << testing::PrintToString(order);
  }
}

// Blocks of a seeded random life: none overlaps another, the counters agree, and at the end the pool is whole.
TEST(PinnedPool, RandomLivesNeverOverlap) {
  const uint32_t seed = 20261;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {64 << 10, 0});
  std::vector<std::pair<PinnedBlock, int>> blocks;
  size_t in_use = 0, peak = 0;
  auto held = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  for (int step = 0; step < 4000; ++step) {
    if (blocks.size() < 60 && random() % 2 == 0) {
      PinnedBlock block = MustAllocate(*pool, 1 + random() % 9000);
      std::memset(block.data(), step & 0xFF, block.bytes());
      in_use += held(block.bytes());
      peak = std::max(peak, in_use);
      blocks.emplace_back(std::move(block), step & 0xFF);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto& [block, mark] = blocks.back();
      for (size_t i = 0; i < block.bytes(); ++i) ASSERT_EQ(std::to_integer<int>(At(block)[i]), mark);
      in_use -= held(block.bytes());
      blocks.pop_back();
    }
    ASSERT_EQ(pool->bytes_in_use(), in_use);
  }
  EXPECT_EQ(pool->peak_bytes(), peak);
  blocks.clear();
  const size_t slabs = pool->slabs();
  for (size_t i = 0; i < slabs; ++i) blocks.emplace_back(MustAllocate(*pool, 64 << 10), 0);
  EXPECT_EQ(pool->slabs(), slabs);
}

TEST(PinnedPool, LargerThanASlabGetsASlabOfItsOwnThatIsKept) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 0});
  const PinnedBlock small = MustAllocate(*pool, 256);
  PinnedBlock large = MustAllocate(*pool, 5000);
  EXPECT_EQ(pool->slabs(), 2u);
  EXPECT_EQ(pool->bytes_reserved(), 1024u + 5120u);
  std::memset(large.data(), 1, large.bytes());
  large = PinnedBlock();
  large = MustAllocate(*pool, 5120);
  EXPECT_EQ(driver.calls.load(), 2);
}

TEST(PinnedPool, OverBudgetIsResourceExhaustedWithTheNumbers) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 2048});
  PinnedBlock a = MustAllocate(*pool, 1024), b = MustAllocate(*pool, 768);
  const absl::Status status = pool->Allocate(300).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("300 bytes asked for"), HasSubstr("1792 in use"),
                                                   HasSubstr("2048 reserved"), HasSubstr("budget of 2048")));
  EXPECT_EQ(driver.calls.load(), 2);
  EXPECT_NE(MustAllocate(*pool, 256).data(), nullptr);
  a = PinnedBlock();
  EXPECT_NE(MustAllocate(*pool, 300).data(), nullptr);
}

TEST(PinnedPool, LastSlabIsSmallerWhereTheBudgetLeavesLess) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 1700});
  const PinnedBlock a = MustAllocate(*pool, 1024), b = MustAllocate(*pool, 256), c = MustAllocate(*pool, 256);
  EXPECT_EQ(pool->bytes_reserved(), 1024u + 512u);  // 1700 - 1024, rounded down to whole units
  EXPECT_EQ(pool->Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PinnedPool, AbsurdSizesAreRefusedWithoutOverflow) {
  PinnedOnlyDriver driver;
  for (const size_t budget : {size_t{0}, size_t{4096}}) {
    auto pool = PinnedPool::Create(driver, {1024, budget});
    for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 254, SIZE_MAX / 2 + 1}) {
      EXPECT_EQ(pool->Allocate(bytes).status().code(), absl::StatusCode::kResourceExhausted) << bytes;
    }
    EXPECT_EQ(pool->bytes_reserved(), 0u);
  }
  EXPECT_EQ(driver.calls.load(), 0);
}

TEST(PinnedPool, DriversRefusalIsPassedOnAndChangesNothing) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 1024});
  driver.fail = true;
  const absl::Status status = pool->Allocate(10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the driver said no"));
  EXPECT_EQ(pool->bytes_reserved(), 0u);
  driver.fail = false;
  EXPECT_NE(MustAllocate(*pool, 10).data(), nullptr);
}

TEST(PinnedPool, BlockKeepsThePoolAlive) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 0});
  const std::weak_ptr<PinnedPool> watch = pool;
  PinnedBlock block = MustAllocate(*pool, 100);
  pool.reset();
  EXPECT_FALSE(watch.expired());
  std::memset(block.data(), 7, block.bytes());
  PinnedBlock moved = std::move(block);
  block = PinnedBlock();
  EXPECT_EQ(driver.live.load(), 1);
  moved = PinnedBlock();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(driver.live.load(), 0);
}

// The driver's slow call runs without the pool's lock: meanwhile others allocate, return and look.
TEST(PinnedPool, PinningDoesNotHoldTheLock) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 0});
  PinnedBlock held = MustAllocate(*pool, 256);
  std::binary_semaphore pinning(0), go_on(0);
  driver.before_allocate = [&] {
    pinning.release();
    go_on.acquire();
  };
  std::jthread grower([&] { EXPECT_NE(MustAllocate(*pool, 2048).data(), nullptr); });
  pinning.acquire();
  EXPECT_NE(MustAllocate(*pool, 256).data(), nullptr);
  held = PinnedBlock();
  EXPECT_EQ(pool->bytes_in_use(), 0u);
  go_on.release();
}

// Threads that all find the pool full share one new slab instead of pinning one each.
TEST(PinnedPool, ThreadsThatNeedRoomAtOnceShareTheNewSlab) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 0});
  std::vector<PinnedBlock> blocks(4);
  std::latch all_about_to_ask(4);
  driver.before_allocate = [&] { all_about_to_ask.wait(); };
  {
    std::vector<std::jthread> threads;
    for (PinnedBlock& block : blocks) {
      threads.emplace_back([&] {
        all_about_to_ask.count_down();
        block = MustAllocate(*pool, 256);
      });
    }
  }
  EXPECT_EQ(driver.calls.load(), 1);
}

TEST(PinnedPool, ThreadsKeepTheirBlocksApart) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {4096, 64 << 10});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int i = 0; i < 500; ++i) {
        absl::StatusOr<PinnedBlock> a = pool->Allocate(1 + random() % 3000), b = pool->Allocate(random() % 6000);
        if (!a.ok() || !b.ok()) continue;
        std::memset(a->data(), t, a->bytes());
        std::memset(b->data(), t + 10, b->bytes());
        for (size_t k = 0; k < a->bytes(); ++k) ASSERT_EQ(std::to_integer<int>(At(*a)[k]), t);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(pool->bytes_in_use(), 0u);
  EXPECT_LE(pool->bytes_reserved(), size_t{64} << 10);
}

#ifndef NDEBUG
TEST(PinnedPool, ReturnedBlocksArePoisonedInDebugBuilds) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {1024, 0});
  PinnedBlock block = MustAllocate(*pool, 100);
  const std::byte* const memory = At(block);
  std::memset(block.data(), 1, block.bytes());
  block = PinnedBlock();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(memory[i], std::byte{0xDD});
}
#endif

TEST(PinnedPool, TrimFreesTheSlabsThatNoBlockLiesIn) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {4096, 3 * 4096});
  std::vector<PinnedBlock> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(MustAllocate(*pool, 4096));
  std::memset(blocks[2].data(), 7, 4096);
  blocks.erase(blocks.begin(), blocks.begin() + 2);
  EXPECT_EQ(pool->Trim(), 2 * 4096u);
  EXPECT_EQ(pool->Trim(), 0u);
  EXPECT_EQ(driver.live.load(), 1);
  EXPECT_EQ(pool->slabs(), 1u);
  EXPECT_EQ(pool->bytes_reserved(), 4096u);
  // What is left is where it was, and the budget has room again, also for a larger slab.
  const PinnedBlock large = MustAllocate(*pool, 2 * 4096);
  EXPECT_EQ(pool->slabs(), 2u);
  EXPECT_EQ(At(blocks[0])[4095], std::byte{7});
  blocks.clear();
  EXPECT_EQ(pool->Trim(), 4096u);
}

}  // namespace
}  // namespace penstock::memory
