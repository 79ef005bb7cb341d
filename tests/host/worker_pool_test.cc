// WorkerPool: order, exactly once, the end, names; groups that help each other.
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
#include <utility>
#include <vector>

namespace penstock::host::worker_pool_test {
namespace {

using Job = std::function<void(int64_t)>;

// A task that calls `job`, which must outlive it.
Task Calling(Job& job, int64_t arg = 0) {
  return {[](void* context, int64_t a) { (*static_cast<Job*>(context))(a); }, &job, arg};
}

// So many threads, in so many groups, which may be more.
class WorkerPoolTest : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  static int threads() { return GetParam().first; }
  static int groups() { return GetParam().second; }
  static WorkerPool::Options Options() { return {.threads = threads(), .name = "test", .groups = groups()}; }
};
INSTANTIATE_TEST_SUITE_P(ThreadsAndGroups, WorkerPoolTest,
                         testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(5, 1), std::pair(1, 2),
                                         std::pair(2, 2), std::pair(5, 2), std::pair(5, 3)));

TEST_P(WorkerPoolTest, EveryTaskRunsOnceFromEveryPoster) {
  constexpr int kPosters = 4, kEach = 500;
  std::vector<std::atomic<int>> runs(kPosters * kEach);
  Job count = [&](int64_t i) { runs[static_cast<size_t>(i)].fetch_add(1); };
  {
    WorkerPool pool(Options());
    std::vector<std::jthread> posters;
    for (int p = 0; p < kPosters; ++p) {
      posters.emplace_back([&, p] {
        for (int i = 0; i < kEach; ++i) {
          Task task = Calling(count, p * kEach + i);
          task.more = i % 3 == 0;
          pool.Post(task, i % groups());
        }
      });
    }
  }
  for (const auto& n : runs) EXPECT_EQ(n.load(), 1);
}

TEST_P(WorkerPoolTest, ShutdownRunsWhatIsQueuedAndWhatThatPosts) {
  WorkerPool pool(Options());
  std::latch all_busy(threads()), go(1);
  Job hold = [&](int64_t) {
    all_busy.count_down();
    go.wait();
  };
  for (int i = 0; i < threads(); ++i) pool.Post(Calling(hold));
  all_busy.wait();
  std::atomic<int> ran{0};
  Job leaf = [&](int64_t) { ran.fetch_add(1); };
  Job parent = [&](int64_t) { pool.Post(Calling(leaf), groups() - 1); };
  for (int i = 0; i < 200; ++i) pool.Post(Calling(parent));  // more than the queue's first size
  EXPECT_EQ(ran.load(), 0);
  std::jthread closer([&] { pool.Shutdown(); });
  go.count_down();
  closer.join();
  EXPECT_EQ(ran.load(), 200);
}

TEST_P(WorkerPoolTest, PostAfterShutdownRunsOnTheCaller) {
  WorkerPool pool(Options());
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
  std::barrier together(threads() + 1);
  Job end = [&](int64_t) { ended.release(); };
  Job meet = [&](int64_t) { together.arrive_and_wait(); };
  WorkerPool pool(Options());
  for (int round = 0; round < 200; ++round) {
    Task more = Calling(end);
    more.more = true;
    pool.Post(more, round % groups());
    ended.acquire();
    for (int i = 0; i < threads(); ++i) pool.Post(Calling(meet), i * i % groups());
    together.arrive_and_wait();  // hangs where fewer run
  }
}

TEST_P(WorkerPoolTest, ThreadsRunAtTheSameTime) {
  WorkerPool pool(Options());
  std::latch together(threads());
  Job meet = [&](int64_t) { together.arrive_and_wait(); };
  for (int i = 0; i < threads(); ++i) pool.Post(Calling(meet), i * i % groups());
  pool.Shutdown();  // hangs where fewer threads run
  EXPECT_TRUE(together.try_wait());
  EXPECT_EQ(pool.threads(), threads());
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

// Groups

void AwaitAsleep(const WorkerPool& pool, int workers) {
  while (pool.asleep() != workers) std::this_thread::yield();
}

TEST(WorkerPoolGroups, ATaskGoesToItsGroupWhereSomebodyIsIdleThere) {
  WorkerPool pool({.threads = 4, .name = "test", .groups = 2});
  for (int i = 0; i < 200; ++i) {
    AwaitAsleep(pool, 4);
    std::binary_semaphore ran(0);
    int where = -1;
    Job note = [&](int64_t) {
      where = WorkerPool::CurrentIndex();
      ran.release();
    };
    const int group = i / 3 % 2;
    pool.Post(Calling(note), group);
    ran.acquire();
    EXPECT_EQ(where % 2, group);
  }
}

// All tasks of either group must run at once, two of them on the other's workers.
TEST(WorkerPoolGroups, IdleWorkersOfAnotherGroupHelp) {
  std::barrier together(5);
  Job meet = [&](int64_t) { together.arrive_and_wait(); };
  WorkerPool pool({.threads = 4, .name = "test", .groups = 2});
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 4; ++i) pool.Post(Calling(meet), round % 2);
    together.arrive_and_wait();  // hangs where fewer run
  }
}

TEST(WorkerPoolGroups, AGroupThatIsHeldUpHoldsUpNobody) {
  std::latch held(2), go(1);
  Job hold = [&](int64_t) {
    held.count_down();
    go.wait();
  };
  WorkerPool pool({.threads = 4, .name = "test", .groups = 2});
  AwaitAsleep(pool, 4);
  pool.Post(Calling(hold), 0);
  pool.Post(Calling(hold), 0);
  held.wait();  // both workers of group 0
  for (int round = 0; round < 100; ++round) {
    std::binary_semaphore ran[2] = {std::binary_semaphore(0), std::binary_semaphore(0)};
    Job end = [&](int64_t group) { ran[group].release(); };
    for (const int group : {0, 1}) pool.Post(Calling(end, group), group);
    for (auto& group : ran) group.acquire();  // hangs where nobody helps group 0, or it keeps who could from group 1
  }
  go.count_down();
}

// One that lingers for its group is there for the other as well.
TEST(WorkerPoolGroups, WhoLingersIsCalledByOtherGroupsToo) {
  WorkerPool pool({.threads = 2, .name = "test", .groups = 2});
  for (int round = 0; round < 100; ++round) {
    std::latch held(1), go(1);
    Job hold = [&](int64_t) {
      held.count_down();
      go.wait();
    };
    std::counting_semaphore<> ended(0);
    Job end = [&](int64_t) { ended.release(); };
    pool.Post(Calling(hold), 0);
    held.wait();
    Task more = Calling(end);
    more.more = true;
    pool.Post(more, 1);
    ended.acquire();
    pool.Post(Calling(end), 0);
    ended.acquire();
    go.count_down();
    AwaitAsleep(pool, 2);
  }
}

TEST(WorkerPoolGroups, WorkersTakeTheirGroupsTasksFirstAndInOrder) {
  std::vector<int64_t> order;
  std::latch held(2), go(1);
  std::binary_semaphore end(0);
  Job hold = [&](int64_t) {
    held.count_down();
    go.wait();
  };
  Job hold_longer = [&](int64_t) {
    held.count_down();
    end.acquire();
  };
  Job note = [&](int64_t i) {
    order.push_back(i);
    if (order.size() == 6) end.release();
  };
  WorkerPool pool({.threads = 2, .name = "test", .groups = 2});
  AwaitAsleep(pool, 2);
  pool.Post(Calling(hold_longer), 0);
  pool.Post(Calling(hold), 1);
  held.wait();
  for (int64_t i = 0; i < 6; ++i) pool.Post(Calling(note, i), static_cast<int>(i % 2));
  go.count_down();
  pool.Shutdown();
  EXPECT_EQ(order, (std::vector<int64_t>{1, 3, 5, 0, 2, 4}));
}

TEST(WorkerPoolGroups, ThreadsAreToldTheirGroupAndNumber) {
  std::vector<std::pair<int, int>> told(5, {-1, -1});
  WorkerPool pool({.threads = 5, .name = "test", .groups = 2, .begin = [&](int group, int number) {
                     told.at(static_cast<size_t>(WorkerPool::CurrentIndex())) = {group, number};
                   }});
  pool.Shutdown();
  EXPECT_EQ(told, (std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}}));
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
}  // namespace penstock::host::worker_pool_test
