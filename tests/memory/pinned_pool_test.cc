// PinnedPool: first fit, coalescing, growth, the budget, lifetimes, threads.
#include "src/memory/pinned_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <latch>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/user_code.h"
#include "tests/memory/pinned_only_driver.h"

namespace penstock::memory::pinned_pool_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::byte* At(const PinnedBlock& block) { return static_cast<std::byte*>(block.data()); }

TEST(PinnedPool, BlocksAreAlignedApartAndFromOneSlab) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 4096});
  EXPECT_EQ(driver.calls.load(), 0);
  const PinnedBlock a = MustAllocate(*pool, 1), b = MustAllocate(*pool, 257), c = MustAllocate(*pool, 256);
  for (const PinnedBlock* block : {&a, &b, &c}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % kPinnedAlignment, 0u);
  }
  EXPECT_EQ(At(b) - At(a), 256);
  EXPECT_EQ(At(c) - At(b), 512);
  EXPECT_EQ(b.bytes(), 257u);
  EXPECT_EQ(pool->gauges().in_use, 1024);
  EXPECT_EQ(pool->gauges().reserved, 4096);
  EXPECT_EQ(pool->gauges().slabs, 1);
}

TEST(PinnedPool, ZeroBytesGetAnAddressOfTheirOwn) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 4096});
  const PinnedBlock a = MustAllocate(*pool, 0), b = MustAllocate(*pool, 0);
  ASSERT_NE(a.data(), nullptr);
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(a.bytes(), 0u);
}

TEST(PinnedPool, TakesTheFirstPlaceThatFits) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 4096});
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
    auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(1024)});
    std::vector<PinnedBlock> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(MustAllocate(*pool, 256));
    for (const size_t i : order) blocks[i] = PinnedBlock();
    EXPECT_EQ(pool->gauges().in_use, 0);
    const PinnedBlock whole = MustAllocate(*pool, 1024);
    EXPECT_EQ(pool->gauges().slabs, 1) << testing::PrintToString(order);
  }
}

// Blocks of a seeded random life: none overlaps another, the counters agree, and at the end the pool is whole.
TEST(PinnedPool, RandomLivesNeverOverlap) {
  const uint32_t seed = 20261;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 64 << 10, .budget = Budget(16 * (64 << 10))});
  std::vector<std::pair<PinnedBlock, int>> blocks;
  int64_t in_use = 0, peak = 0;
  auto held = [](size_t bytes) { return static_cast<int64_t>((bytes + 255) / 256 * 256); };
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
    ASSERT_EQ(pool->gauges().in_use, in_use);
  }
  EXPECT_EQ(pool->gauges().peak, peak);
  blocks.clear();
  for (int i = 0; i < 16; ++i) blocks.emplace_back(MustAllocate(*pool, 64 << 10), 0);
}

TEST(PinnedPool, LargerThanASlabGetsASlabOfItsOwnThatIsKept) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024});
  const PinnedBlock small = MustAllocate(*pool, 256);
  PinnedBlock large = MustAllocate(*pool, 5000);
  EXPECT_EQ(pool->gauges().slabs, 2);
  EXPECT_EQ(pool->gauges().reserved, 1024 + 5120);
  std::memset(large.data(), 1, large.bytes());
  large = PinnedBlock();
  large = MustAllocate(*pool, 5120);
  EXPECT_EQ(driver.calls.load(), 2);
}

TEST(PinnedPool, OverBudgetIsResourceExhaustedWithTheNumbers) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(2048)});
  PinnedBlock a = MustAllocate(*pool, 1024), b = MustAllocate(*pool, 256), c = MustAllocate(*pool, 512);
  b = PinnedBlock();  // pieces of 256 on both sides of c
  const absl::Status status = pool->Allocate(300).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("300 bytes asked for"), HasSubstr("1536 in use"), HasSubstr("2048 reserved"),
                    HasSubstr("free piece has 256,"), HasSubstr("budget of 2048")));
  EXPECT_EQ(driver.calls.load(), 2);
  EXPECT_NE(MustAllocate(*pool, 256).data(), nullptr);
  a = PinnedBlock();
  EXPECT_NE(MustAllocate(*pool, 300).data(), nullptr);
}

TEST(PinnedPool, PoolsMayShareABudget) {
  PinnedOnlyDriver driver;
  const auto budget = Budget(3072);
  auto one = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = budget});
  auto two = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = budget});
  const PinnedBlock a = MustAllocate(*one, 2048);
  {
    const PinnedBlock b = MustAllocate(*two, 1024);
    EXPECT_EQ(one->Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
  }
  two.reset();  // with its slab
  EXPECT_NE(MustAllocate(*one, 1024).data(), nullptr);
}

// Two slabs that nobody uses stand between the caller and a large block.
TEST(PinnedPool, IdleSlabsAreGivenBackBeforeABlockIsRefused) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(3072)});
  const PinnedBlock kept = MustAllocate(*pool, 1024);
  {
    const PinnedBlock a = MustAllocate(*pool, 1024), b = MustAllocate(*pool, 1024);
  }
  {
    const base::UserCodeScope in_a_host_node;  // where freeing might wait for the node itself
    EXPECT_EQ(pool->Allocate(2048).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(driver.live.load(), 3);
  }
  EXPECT_EQ(pool->Allocate(4096).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(driver.live.load(), 3) << "given back for a block that would not fit anyway";
  EXPECT_NE(MustAllocate(*pool, 2048).data(), nullptr);
}

TEST(PinnedPool, CountsWhoWasNotServedAtOnce) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(2048)});
  const PinnedBlock a = MustAllocate(*pool, 256), b = MustAllocate(*pool, 256);
  EXPECT_EQ(pool->gauges().waits, 1);  // for the first slab
  const PinnedBlock c = MustAllocate(*pool, 1024);
  EXPECT_EQ(pool->gauges().waits, 2);
  const PinnedPool::Waiter waiter(*pool);
  EXPECT_EQ(pool->gauges().waits, 3);
}

TEST(PinnedPool, AnnouncesReturnsOnlyToThoseWhoWait) {
  PinnedOnlyDriver driver;
  int announced = 0;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 4096, .returned = [&] { ++announced; }});
  MustAllocate(*pool, 1);
  EXPECT_EQ(announced, 0);
  {
    const PinnedPool::Waiter waiter(*pool);
    MustAllocate(*pool, 1);
    EXPECT_EQ(announced, 1);
  }
  MustAllocate(*pool, 1);
  EXPECT_EQ(announced, 1);
  EXPECT_EQ(pool->returned(), 3);
}

TEST(PinnedPool, LastSlabIsSmallerWhereTheBudgetLeavesLess) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(1700)});
  const PinnedBlock a = MustAllocate(*pool, 1024), b = MustAllocate(*pool, 256), c = MustAllocate(*pool, 256);
  EXPECT_EQ(pool->gauges().reserved, 1024 + 512);  // 1700 - 1024, rounded down to whole units
  EXPECT_EQ(pool->Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PinnedPool, AbsurdSizesAreRefusedWithoutOverflow) {
  PinnedOnlyDriver driver;
  for (const size_t budget : {size_t{0}, size_t{4096}}) {
    auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = budget == 0 ? nullptr : Budget(budget)});
    for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 254, SIZE_MAX / 2 + 1}) {
      EXPECT_EQ(pool->Allocate(bytes).status().code(), absl::StatusCode::kResourceExhausted) << bytes;
    }
    EXPECT_EQ(pool->gauges().reserved, 0);
  }
  EXPECT_EQ(driver.calls.load(), 0);
}

TEST(PinnedPool, DriversRefusalIsPassedOnAndChangesNothing) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(1024)});
  driver.fail = true;
  const absl::Status status = pool->Allocate(10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the driver said no"));
  EXPECT_EQ(pool->gauges().reserved, 0);
  driver.fail = false;
  EXPECT_NE(MustAllocate(*pool, 10).data(), nullptr);
}

TEST(PinnedPool, BlockKeepsThePoolAlive) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024});
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
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024});
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
  EXPECT_EQ(pool->gauges().in_use, 0);
  go_on.release();
}

// Threads that all find the pool full share one new slab instead of pinning one each.
TEST(PinnedPool, ThreadsThatNeedRoomAtOnceShareTheNewSlab) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024, .budget = Budget(1024)});
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
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 4096, .budget = Budget(64 << 10)});
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
  EXPECT_EQ(pool->gauges().in_use, 0);
  EXPECT_LE(pool->gauges().reserved, 64 << 10);
}

#ifndef NDEBUG
TEST(PinnedPool, ReturnedBlocksArePoisonedInDebugBuilds) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 1024});
  PinnedBlock block = MustAllocate(*pool, 100);
  const std::byte* const memory = At(block);
  std::memset(block.data(), 1, block.bytes());
  block = PinnedBlock();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(memory[i], std::byte{0xDD});
}
#endif

TEST(PinnedPool, TrimFreesTheSlabsThatNoBlockLiesIn) {
  PinnedOnlyDriver driver;
  auto pool = PinnedPool::Create(driver, {.slab_bytes = 4096, .budget = Budget(3 * 4096)});
  std::vector<PinnedBlock> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(MustAllocate(*pool, 4096));
  std::memset(blocks[2].data(), 7, 4096);
  pool->EndThread();  // it would pin the next slab once the budget has room
  blocks.erase(blocks.begin(), blocks.begin() + 2);
  EXPECT_EQ(pool->Trim(), 2 * 4096u);
  EXPECT_EQ(pool->Trim(), 0u);
  EXPECT_EQ(driver.live.load(), 1);
  EXPECT_EQ(pool->gauges().slabs, 1);
  EXPECT_EQ(pool->gauges().reserved, 4096);
  // What is left is where it was, and the budget has room again, also for a larger slab.
  const PinnedBlock large = MustAllocate(*pool, 2 * 4096);
  EXPECT_EQ(pool->gauges().slabs, 2);
  EXPECT_EQ(At(blocks[0])[4095], std::byte{7});
  blocks.clear();
  EXPECT_EQ(pool->Trim(), 4096u);
}

}  // namespace
}  // namespace penstock::memory::pinned_pool_test
