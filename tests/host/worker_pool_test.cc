// WorkerPool: order, exactly once, the end, names.
#include "src/host/worker_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

namespace penstock::host {
namespace {

using Job = std::function<void(int64_t)>;

// A task that calls `job`, which must outlive it.
Task Calling(Job& job, int64_t arg = 0) {
  return {[](void* context, int64_t a) { (*static_cast<Job*>(context))(a); }, &job, arg};
}

class WorkerPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, WorkerPoolTest, testing::Values(1, 2, 5));

TEST_P(WorkerPoolTest, EveryTaskRunsOnceFromEveryPoster) {
  constexpr int kPosters = 4, kEach = 500;
  std::vector<std::atomic<int>> runs(kPosters * kEach);
  Job count = [&](int64_t i) { runs[static_cast<size_t>(i)].fetch_add(1); };
  {
    WorkerPool pool(GetParam(), "test");
    std::vector<std::jthread> posters;
    for (int p = 0; p < kPosters; ++p) {
      posters.emplace_back([&, p] {
        for (int i = 0; i < kEach; ++i) {
          Task task = Calling(count, p * kEach + i);
          task.more = i % 3 == 0;
          pool.Post(task);
        }
      });
    }
  }
  for (const auto& n : runs) EXPECT_EQ(n.load(), 1);
}

TEST_P(WorkerPoolTest, ShutdownRunsWhatIsQueuedAndWhatThatPosts) {
  WorkerPool pool(GetParam(), "test");
  std::latch all_busy(GetParam()), go(1);
  Job hold = [&](int64_t) {
    all_busy.count_down();
    go.wait();
  };
  for (int i = 0; i < GetParam(); ++i) pool.Post(Calling(hold));
  all_busy.wait();
  std::atomic<int> ran{0};
  Job leaf = [&](int64_t) { ran.fetch_add(1); };
  Job parent = [&](int64_t) { pool.Post(Calling(leaf)); };
  for (int i = 0; i < 200; ++i) pool.Post(Calling(parent));  // more than the queue's first size
  EXPECT_EQ(ran.load(), 0);
  std::jthread closer([&] { pool.Shutdown(); });
  go.count_down();
  closer.join();
  EXPECT_EQ(ran.load(), 200);
}

TEST_P(WorkerPoolTest, PostAfterShutdownRunsOnTheCaller) {
  WorkerPool pool(GetParam(), "test");
  pool.Shutdown();
  std::thread::id where;
  Job note = [&](int64_t) { where = std::this_thread::get_id(); };
  pool.Post(Calling(note));
  EXPECT_EQ(where, std::this_thread::get_id());
  pool.Shutdown();  // again
}

// A worker lingers, and takes one of those that follow; the others must wake.
TEST_P(WorkerPoolTest, WhoLingersKeepsNobodyAsleep) {
  std::counting_semaphore<> ended(0);
  std::barrier together(GetParam() + 1);
  Job end = [&](int64_t) { ended.release(); };
  Job meet = [&](int64_t) { together.arrive_and_wait(); };
  WorkerPool pool(GetParam(), "test");
  for (int round = 0; round < 200; ++round) {
    Task more = Calling(end);
    more.more = true;
    pool.Post(more);
    ended.acquire();
    for (int i = 0; i < GetParam(); ++i) pool.Post(Calling(meet));
    together.arrive_and_wait();  // hangs where fewer run
  }
}

TEST_P(WorkerPoolTest, ThreadsRunAtTheSameTime) {
  WorkerPool pool(GetParam(), "test");
  std::latch together(GetParam());
  Job meet = [&](int64_t) { together.arrive_and_wait(); };
  for (int i = 0; i < GetParam(); ++i) pool.Post(Calling(meet));
  pool.Shutdown();  // hangs where fewer threads run
  EXPECT_TRUE(together.try_wait());
  EXPECT_EQ(pool.threads(), GetParam());
}

TEST(WorkerPool, OneThreadRunsInOrderAcrossGrowth) {
  std::vector<int64_t> order;
  std::counting_semaphore<> go(0);
  Job hold = [&](int64_t) { go.acquire(); };
  Job note = [&](int64_t i) { order.push_back(i); };
  WorkerPool pool(1, "test");
  for (int64_t i = 0; i < 40; ++i) pool.Post(Calling(note, i));  // moves the head of the queue on
  pool.Post(Calling(hold));
  for (int64_t i = 40; i < 300; ++i) pool.Post(Calling(note, i));
  go.release();
  pool.Shutdown();
  ASSERT_EQ(order.size(), 300u);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int64_t>(i));
}

TEST(WorkerPool, WorkersKnowTheirIndexAndCarryTheName) {
  std::vector<std::string> names(3);
  std::vector<int> indices(3, -1);
  std::latch together(3);
  Job look = [&](int64_t) {
    const int index = WorkerPool::CurrentIndex();
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    names.at(static_cast<size_t>(index)) = name;
    indices.at(static_cast<size_t>(index)) = index;
    together.arrive_and_wait();
  };
  WorkerPool pool(3, "a name that is far too long");
  for (int i = 0; i < 3; ++i) pool.Post(Calling(look));
  pool.Shutdown();
  EXPECT_EQ(indices, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(names, (std::vector<std::string>{"a name that i/0", "a name that i/1", "a name that i/2"}));
  EXPECT_EQ(WorkerPool::CurrentIndex(), -1);
}

TEST(WorkerPool, FewerThanOneThreadCountsAsOne) {
  WorkerPool pool(-3, "test");
  EXPECT_EQ(pool.threads(), 1);
}

// The owner may destroy the pool as soon as it knows that the last task ran, while its poster is still inside Post.
TEST(WorkerPool, OwnerMayDestroyThePoolOnTheWordOfItsLastTask) {
  for (int i = 0; i < 200; ++i) {
    std::binary_semaphore ran(0);
    Job tell = [&](int64_t) { ran.release(); };
    auto pool = std::make_unique<WorkerPool>(1, "test");
    std::jthread poster([&, p = pool.get()] { p->Post(Calling(tell)); });
    ran.acquire();
    pool.reset();
  }
}

}  // namespace
}  // namespace penstock::host
