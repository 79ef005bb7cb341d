// The pinned pool's thread: what it pins ahead, what it frees when, and that it sleeps. Time is the test's own; that
// the thread has done something shows in the driver below it or in its clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/memory/pinned_pool.h"
#include "tests/memory/pinned_only_driver.h"

namespace penstock::memory::pinned_pool_thread_test {
namespace {

constexpr std::chrono::seconds kIdle{10};

// Stands still but for Advance. Counts timed sleeps, by when they are to end, and how often the thread went to sleep in
// one: Advance wakes it, and it goes on sleeping where its time has not come.
class TestClock : public PoolClock {
 public:
  TimePoint Now() override { return TimePoint(TimePoint::duration(now_.load())); }
  void WaitUntil(base::CondVar& changed, base::Mutex& mu, TimePoint until) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    changed_.store(&changed);
    mu_.store(&mu);
    sleeps_ += until == until_ ? 0 : 1;
    until_ = until;
    looks_.fetch_add(1);
    looks_.notify_all();
    if (Now() < until) changed.Wait(mu);
  }
  void Advance(std::chrono::nanoseconds by) {
    now_.fetch_add(by.count());
    base::Mutex* const mu = mu_.load();
    if (mu == nullptr) return;  // not asleep yet: it looks at Now() before it sleeps
    const base::MutexLock lock(*mu);
    changed_.load()->NotifyAll();
  }
  int sleeps() const { return sleeps_; }  // when the thread has ended
  void AwaitLooks(int count) {
    for (int seen = looks_.load(); seen < count; seen = looks_.load()) looks_.wait(seen);
  }

 private:
  std::atomic<int64_t> now_{int64_t{1} << 40};
  TimePoint until_{};
  int sleeps_ = 0;
  std::atomic<int> looks_{0};
  std::atomic<base::CondVar*> changed_{nullptr};
  std::atomic<base::Mutex*> mu_{nullptr};
};

class PinnedPoolThread : public testing::Test {
 protected:
  const int others_ = PoolThreads();  // of runtimes that other tests have leaked on purpose

  void SetUp() override {
    driver_.before_allocate = [this] {
      if (!OnPoolThread()) {
        pinned_by_users_.fetch_add(1);
        return;
      }
      if (hold_.load()) {
        pinning_.release();
        go_on_.acquire();
      }
    };
    driver_.before_free = [this] {
      (OnPoolThread() ? freed_by_pool_ : freed_by_users_).fetch_add(1);
      if (OnPoolThread() && hold_.load()) {
        pinning_.release();
        go_on_.acquire();
      }
    };
  }
  std::shared_ptr<PinnedPool> MakePool(int slabs) {
    return PinnedPool::Create(
        driver_,
        {.slab_bytes = 1024, .budget = Budget(static_cast<size_t>(slabs) * 1024), .idle = kIdle, .clock = clock_});
  }
  std::vector<PinnedBlock> TakeSlabs(PinnedPool& pool, int count) {
    std::vector<PinnedBlock> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(MustAllocate(pool, 1024));
    return blocks;
  }

  PinnedOnlyDriver driver_;
  const std::shared_ptr<TestClock> clock_ = std::make_shared<TestClock>();
  std::atomic<int> pinned_by_users_{0}, freed_by_pool_{0}, freed_by_users_{0};
  std::atomic<bool> hold_{false};  // whether the pool's thread stops before it calls the driver
  std::binary_semaphore pinning_{0}, go_on_{0};
};

TEST_F(PinnedPoolThread, PinsTheNextSlabWhenLittleIsLeft) {
  auto pool = MakePool(4);
  const PinnedBlock first = MustAllocate(*pool, 600);
  EXPECT_EQ(driver_.calls.load(), 1);
  const PinnedBlock second = MustAllocate(*pool, 100);  // leaves 0 of 1024
  driver_.AwaitCalls(2);
  const PinnedBlock third = MustAllocate(*pool, 1024);
  EXPECT_EQ(pinned_by_users_.load(), 1) << "the first";
  EXPECT_EQ(pool->gauges().slabs, driver_.live.load());
}

TEST_F(PinnedPoolThread, AQuarterOfASlabIsEnough) {
  auto pool = MakePool(4);
  const PinnedBlock block = MustAllocate(*pool, 768);
  EXPECT_EQ(PoolThreads(), others_);
}

TEST_F(PinnedPoolThread, NobodyWaitsWhileItPins) {
  auto pool = MakePool(4);
  hold_ = true;
  PinnedBlock most = MustAllocate(*pool, 700);
  const PinnedBlock wanted_more = MustAllocate(*pool, 100);
  pinning_.acquire();
  most = PinnedBlock();
  most = MustAllocate(*pool, 700);
  EXPECT_EQ(driver_.calls.load(), 1);
  EXPECT_EQ(pool->gauges().waits, 1) << "for the first slab";
  hold_ = false;
  go_on_.release();
}

// It would be a third slab if it pinned one of its own, for which there is no budget.
TEST_F(PinnedPoolThread, WhoFindsNoRoomWaitsForTheSlabOnItsWay) {
  auto pool = MakePool(2);
  hold_ = true;
  const PinnedBlock most = MustAllocate(*pool, 1000);
  pinning_.acquire();
  PinnedBlock large;
  std::jthread user([&] { large = MustAllocate(*pool, 1024); });
  while (pool->gauges().waits < 2) std::this_thread::yield();
  hold_ = false;
  go_on_.release();
  user.join();
  EXPECT_EQ(pinned_by_users_.load(), 1);
  EXPECT_EQ(driver_.calls.load(), 2);
}

TEST_F(PinnedPoolThread, BlocksLargerThanASlabAskForNothingAhead) {
  auto pool = PinnedPool::Create(driver_, {.slab_bytes = 1024});
  const PinnedBlock large = MustAllocate(*pool, 5000);
  EXPECT_EQ(PoolThreads(), others_);
}

TEST_F(PinnedPoolThread, StaysWithinTheBudget) {
  auto pool = MakePool(3);
  std::vector<std::jthread> users;
  for (int t = 0; t < 3; ++t) {
    users.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const absl::StatusOr<PinnedBlock> a = pool->Allocate(static_cast<size_t>(1 + (i * 37 + t) % 900));
        const absl::StatusOr<PinnedBlock> b = pool->Allocate(static_cast<size_t>(1 + (i * 53 + t) % 700));
      }
    });
  }
  users.clear();
  pool->EndThread();
  EXPECT_LE(driver_.most_live_bytes(), 3 * 1024u);
  EXPECT_EQ(pool->gauges().reserved, driver_.live.load() * 1024);
}

TEST_F(PinnedPoolThread, ARefusalAheadIsNobodysError) {
  auto pool = MakePool(4);
  const PinnedBlock small = MustAllocate(*pool, 256);
  driver_.fail = true;
  const PinnedBlock most = MustAllocate(*pool, 700);
  driver_.AwaitCalls(2);
  const absl::Status refused = pool->Allocate(1024).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  driver_.fail = false;
  EXPECT_NE(MustAllocate(*pool, 1024).data(), nullptr);
  pool->EndThread();
  EXPECT_EQ(pool->gauges().reserved, pool->gauges().slabs * 1024);
}

// No system has room for such a stack, so none gives a thread.
TEST_F(PinnedPoolThread, GoesWithoutWhereTheSystemGivesNone) {
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_init(&huge);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  {
    auto pool = MakePool(4);
    TakeSlabs(*pool, 3);  // and returns them
    EXPECT_EQ(pinned_by_users_.load(), 3);
    EXPECT_EQ(pool->Trim(), 3 * 1024u);
  }
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&before);
}

TEST_F(PinnedPoolThread, FreesWhatHasLongBeenIdleButOne) {
  auto pool = MakePool(3);
  TakeSlabs(*pool, 3);
  clock_->Advance(kIdle);
  driver_.AwaitLive(1);
  EXPECT_EQ(freed_by_users_.load(), 0);
  const PinnedBlock again = MustAllocate(*pool, 256);
  EXPECT_EQ(driver_.calls.load(), 3);
  EXPECT_EQ(pool->gauges().slabs, 1);
}

TEST_F(PinnedPoolThread, FreesNothingBeforeItsTime) {
  auto pool = MakePool(3);
  TakeSlabs(*pool, 3);
  clock_->AwaitLooks(1);
  clock_->Advance(kIdle - std::chrono::nanoseconds(1));
  clock_->AwaitLooks(2);  // it has looked, and sleeps again
  EXPECT_EQ(driver_.live.load(), 3);
  clock_->Advance(std::chrono::nanoseconds(1));
  driver_.AwaitLive(1);
}

TEST_F(PinnedPoolThread, LeavesSlabsWithABlockInThem) {
  auto pool = MakePool(4);
  std::vector<PinnedBlock> blocks = TakeSlabs(*pool, 4);
  blocks.erase(blocks.begin(), blocks.begin() + 3);
  const PinnedBlock small = MustAllocate(*pool, 1);  // in the first slab
  clock_->Advance(kIdle);
  driver_.AwaitLive(3);
  pool->EndThread();
  EXPECT_EQ(driver_.live.load(), 3) << "two in use, one kept";
}

TEST_F(PinnedPoolThread, KeepsNoLargeSlab) {
  auto pool = PinnedPool::Create(driver_, {.slab_bytes = 1024, .idle = kIdle, .clock = clock_});
  MustAllocate(*pool, 1025);
  clock_->Advance(kIdle);
  driver_.AwaitLive(0);
}

TEST_F(PinnedPoolThread, BeginsAtMostOneTimedSleepAfterTheLastReturn) {
  auto pool = MakePool(4);
  std::vector<PinnedBlock> blocks = TakeSlabs(*pool, 4);
  blocks.pop_back();
  blocks.pop_back();  // one is kept, the other may go
  clock_->AwaitLooks(1);
  clock_->Advance(kIdle / 2);
  clock_->AwaitLooks(2);
  blocks.clear();
  clock_->Advance(kIdle / 2);
  driver_.AwaitLive(2);  // what was returned at first
  clock_->AwaitLooks(3);
  clock_->Advance(kIdle / 2);
  driver_.AwaitLive(1);
  clock_->Advance(1000 * kIdle);
  pool->EndThread();
  EXPECT_EQ(clock_->sleeps(), 2);
}

TEST_F(PinnedPoolThread, IsNotMadeForOneSlab) {
  auto pool = MakePool(1);
  for (int i = 0; i < 3; ++i) TakeSlabs(*pool, 1);
  EXPECT_EQ(PoolThreads(), others_);
  EXPECT_EQ(driver_.live.load(), 1);
  auto two = MakePool(2);
  TakeSlabs(*two, 2);
  while (PoolThreads() != others_ + 1) std::this_thread::yield();  // it names itself
}

TEST_F(PinnedPoolThread, TrimWaitsForWhatTheThreadIsFreeing) {
  auto pool = MakePool(2);
  TakeSlabs(*pool, 2);
  hold_ = true;
  clock_->Advance(kIdle);
  pinning_.acquire();  // it is about to free one
  EXPECT_EQ(pool->gauges().reserved, 2 * 1024) << "not free yet";
  std::jthread helper([this] {
    driver_.AwaitLive(1);  // Trim has freed the other one, and waits
    hold_ = false;
    go_on_.release();
  });
  EXPECT_EQ(pool->Trim(), 2 * 1024u);
  EXPECT_EQ(driver_.live.load(), 0);
  EXPECT_EQ(pool->gauges().reserved, 0);
}

TEST_F(PinnedPoolThread, EndsInATimedSleep) {
  auto pool = MakePool(3);
  TakeSlabs(*pool, 3);
  clock_->AwaitLooks(1);
  pool->EndThread();
  TakeSlabs(*pool, 3);
  clock_->Advance(kIdle);
  EXPECT_EQ(driver_.live.load(), 3);
  EXPECT_EQ(pool->Trim(), 3 * 1024u);
}

}  // namespace
}  // namespace penstock::memory::pinned_pool_thread_test
