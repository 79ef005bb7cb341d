// PipelineCore over devices that the test plays: order, exactly once, exact bounds, failures, any speeds.
#include "src/runtime/pipeline_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <latch>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/host/worker_pool.h"

namespace penstock::runtime {
namespace {

using testing::HasSubstr;

using Done = PipelineCore::Done;

// Counts the items that exist.
class Tracked {
 public:
  explicit Tracked(std::atomic<int64_t>* alive) : alive_(alive) { alive_->fetch_add(1); }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  ~Tracked() { alive_->fetch_sub(1); }

 private:
  std::atomic<int64_t>* alive_;
};

// What the stages below pass along.
struct Item {
  int64_t number = 0;
  int before = 0, launched = 0, after = 0;  // how often each stage saw it
};
struct Node {
  Item item;
  Tracked tracked;
};

Item& AsItem(void* node) { return static_cast<Node*>(node)->item; }

// Counts a concurrent visit for a scope and keeps the highest count.
class Visit {
 public:
  struct Count {
    std::atomic<int> now{0}, most{0};
  };
  explicit Visit(Count& count) : count_(count) {
    const int now = count.now.fetch_add(1) + 1;
    int most = count.most.load();
    while (most < now && !count.most.compare_exchange_weak(most, now)) {
    }
  }
  ~Visit() { count_.now.fetch_sub(1); }

 private:
  Count& count_;
};

// Executables whose runs the test ends, one by one or all at once.
class HeldRuns {
 public:
  absl::Status Add(Item& item, Done done) {
    item.launched++;
    base::MutexLock lock(mu_);
    if (open_) {
      pool_.Post({&HeldRuns::Call, new Done(std::move(done)), 0});
    } else {
      held_.push_back(std::move(done));
    }
    return absl::OkStatus();
  }
  // Ends the `i`-th of the runs that are held, on the calling thread.
  void End(size_t i, const absl::Status& status = absl::OkStatus()) {
    Done done;
    {
      base::MutexLock lock(mu_);
      done = std::move(held_.at(i));
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    done(status);
  }
  // From now on runs end by themselves, on threads of their own.
  void Open() {
    std::deque<Done> held;
    {
      base::MutexLock lock(mu_);
      open_ = true;
      held.swap(held_);
    }
    for (Done& done : held) done(absl::OkStatus());
  }

 private:
  static void Call(void* done, int64_t) {
    std::unique_ptr<Done> owned(static_cast<Done*>(done));
    (*owned)(absl::OkStatus());
  }

  base::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Done> held_ ABSL_GUARDED_BY(mu_);
  host::WorkerPool pool_{2, "fake"};
};

// A pipeline of `items` numbered items that checks what must always hold: one source call and one sink call at a time,
// the source within the window, the sink in order.
class Line {
 public:
  Line(int64_t items, std::vector<int> slots, PipelineOptions options)
      : slots(std::move(slots)), options(options), window(PipelineCore::MaxInFlight(this->slots, options)) {
    stages.source = [this, items]() -> detail::AnyItem {
      const Visit visit(in_source);
      if (pulled.load() == items) return {};
      const int64_t number = pulled.fetch_add(1);
      EXPECT_LT(number - returned.load(), window);
      EXPECT_LT(alive.load(), window);
      return {new Node{Item{number}, Tracked(&alive)}, {[](void* p) { delete static_cast<Node*>(p); }}};
    };
    stages.before = [this](void* item) {
      const Visit visit(in_before);
      AsItem(item).before++;
      return before ? before(AsItem(item)) : absl::OkStatus();
    };
    stages.launch = [this](void* item, int executable, Done done) {
      launches.push_back(executable);
      if (launch) return launch(AsItem(item), executable, std::move(done));
      return runs.Add(AsItem(item), std::move(done));
    };
    stages.after = [this](void* item) {
      const Visit visit(in_after);
      AsItem(item).after++;
      return after ? after(AsItem(item)) : absl::OkStatus();
    };
    stages.sink = [this](void* item, const absl::Status& status) {
      const Visit visit(in_sink);
      seen.push_back(AsItem(item));
      statuses.push_back(status);
      if (sink) sink(AsItem(item), status);
      returned.fetch_add(1);
    };
  }

  // Makes the core; the stages may be changed until then.
  PipelineCore& core() {
    if (core_ == nullptr) core_ = std::make_unique<PipelineCore>(stages, slots, options);
    return *core_;
  }
  absl::Status Run() { return core().Run(); }

  // Every item of the source came to the sink, once, in order, and no stage saw one at a wrong time.
  void ExpectAllInOrder(int64_t items) const {
    ASSERT_EQ(static_cast<int64_t>(seen.size()), items);
    for (int64_t i = 0; i < items; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)].number, i);
    EXPECT_LE(in_source.most.load(), 1);
    EXPECT_LE(in_sink.most.load(), 1);
    EXPECT_LE(in_before.most.load(), options.before_workers);
    EXPECT_LE(in_after.most.load(), options.after_workers);
  }
  void ExpectEveryStageOnce() const {
    for (const Item& item : seen) {
      EXPECT_TRUE(item.before == 1 && item.launched == 1 && item.after == 1) << item.number;
    }
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  }

  const std::vector<int> slots;
  const PipelineOptions options;
  const int64_t window;
  PipelineCore::Stages stages;
  std::function<absl::Status(Item&)> before, after;
  std::function<absl::Status(Item&, int, Done)> launch;
  std::function<void(Item&, const absl::Status&)> sink;

  HeldRuns runs;
  std::vector<int> launches;  // the feeder's
  Visit::Count in_source, in_before, in_after, in_sink;
  std::atomic<int64_t> pulled{0}, returned{0}, alive{0};
  std::vector<Item> seen;
  std::vector<absl::Status> statuses;

 private:
  std::unique_ptr<PipelineCore> core_;
};

struct Size {
  std::vector<int> slots;
  PipelineOptions options;
};
void PrintTo(const Size& s, std::ostream* out) {
  *out << testing::PrintToString(s.slots) << " workers " << s.options.before_workers << "/" << s.options.after_workers
       << " queues " << s.options.before_queue << "/" << s.options.after_queue;
}

class PipelineCoreTest : public testing::TestWithParam<Size> {
 protected:
  const Size& size() const { return GetParam(); }
  int all_slots() const { return std::accumulate(size().slots.begin(), size().slots.end(), 0); }
};

INSTANTIATE_TEST_SUITE_P(Sizes, PipelineCoreTest,
                         testing::Values(Size{{1}, {1, 1, 1, 1}}, Size{{2}, {1, 1, 2, 2}}, Size{{3}, {4, 1, 1, 5}},
                                         Size{{1, 1, 1, 1}, {1, 4, 3, 1}}, Size{{2, 1, 5}, {5, 7, 1, 2}},
                                         Size{{1}, {8, 8, 1, 1}}));

TEST_P(PipelineCoreTest, EveryItemOnceAndInOrder) {
  Line line(300, size().slots, size().options);
  line.runs.Open();
  EXPECT_TRUE(line.Run().ok());
  line.ExpectAllInOrder(300);
  line.ExpectEveryStageOnce();
}

TEST_P(PipelineCoreTest, EmptySource) {
  Line line(0, size().slots, size().options);
  EXPECT_TRUE(line.Run().ok());
  line.ExpectAllInOrder(0);
}

TEST_P(PipelineCoreTest, OneItem) {
  Line line(1, size().slots, size().options);
  line.runs.Open();
  EXPECT_TRUE(line.Run().ok());
  line.ExpectAllInOrder(1);
  line.ExpectEveryStageOnce();
}

// The bounds, each with what stands behind it blocked. WaitUntilIdle proves that no more can come.

TEST_P(PipelineCoreTest, BlockedSinkLetsExactlyTheWindowLeaveTheSource) {
  Line line(1000, size().slots, size().options);
  line.runs.Open();
  std::latch in_sink(1), go_on(1);
  line.sink = [&](Item& item, const absl::Status&) {
    if (item.number != 0) return;
    in_sink.count_down();
    go_on.wait();
  };
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  in_sink.wait();
  core.WaitUntilIdle({});
  const PipelineOptions& o = size().options;
  EXPECT_EQ(line.pulled.load(), all_slots() + o.before_queue + o.after_queue + o.before_workers + o.after_workers + 1);
  EXPECT_EQ(line.pulled.load(), line.window);
  go_on.count_down();
  caller.join();
  line.ExpectAllInOrder(1000);
  line.ExpectEveryStageOnce();
}

TEST_P(PipelineCoreTest, BlockedExecutablesHoldExactlySlotsQueueAndBeforeWorkers) {
  Line line(1000, size().slots, size().options);
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  core.WaitUntilIdle({.runs = all_slots()});
  EXPECT_EQ(line.pulled.load(), all_slots() + size().options.before_queue + size().options.before_workers);
  line.runs.Open();
  caller.join();
  line.ExpectAllInOrder(1000);
  line.ExpectEveryStageOnce();
}

// With every after worker in its stage, the after queue fills, then the slots stay taken, and so on back.
TEST_P(PipelineCoreTest, BlockedAfterStageHoldsExactlyAllButTheSink) {
  Line line(1000, size().slots, size().options);
  line.runs.Open();
  std::latch go_on(1);
  line.after = [&](Item&) {
    go_on.wait();
    return absl::OkStatus();
  };
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  core.WaitUntilIdle({.after = size().options.after_workers});
  const PipelineOptions& o = size().options;
  EXPECT_EQ(line.pulled.load(), all_slots() + o.before_queue + o.after_queue + o.before_workers + o.after_workers);
  go_on.count_down();
  caller.join();
  line.ExpectAllInOrder(1000);
  line.ExpectEveryStageOnce();
}

TEST_P(PipelineCoreTest, BlockedBeforeStageHoldsExactlyItsWorkers) {
  Line line(1000, size().slots, size().options);
  line.runs.Open();
  std::latch go_on(1);
  line.before = [&](Item&) {
    go_on.wait();
    return absl::OkStatus();
  };
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  core.WaitUntilIdle({.before = size().options.before_workers});
  EXPECT_EQ(line.pulled.load(), size().options.before_workers);
  go_on.count_down();
  caller.join();
  line.ExpectAllInOrder(1000);
}

// The first item is slow: the others overtake it as far as the window goes, and wait for it at the sink. Where it has
// the only after worker, they can overtake it only before that stage; if none did, the place in the sink stays empty.
TEST_P(PipelineCoreTest, SlowFirstItemHoldsTheSinkButNotTheOthers) {
  Line line(1000, size().slots, size().options);
  line.runs.Open();
  std::latch go_on(1);
  line.after = [&](Item& item) {
    if (item.number == 0) go_on.wait();
    return absl::OkStatus();
  };
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  core.WaitUntilIdle({.after = 1});
  EXPECT_LE(line.pulled.load(), line.window);
  EXPECT_GE(line.pulled.load(), line.window - (size().options.after_workers == 1 ? 1 : 0));
  EXPECT_EQ(line.returned.load(), 0);
  go_on.count_down();
  caller.join();
  line.ExpectAllInOrder(1000);
}

// Speeds that change from item to item, by a seed: whatever meets whatever, nothing hangs or is lost.
TEST_P(PipelineCoreTest, UnequalSpeedsAndFailuresLoseNothing) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Line line(400, size().slots, size().options);
    line.runs.Open();
    auto choose = [seed](const Item& item, uint32_t stage) {
      return std::mt19937(seed * 7919 + stage * 104729 + static_cast<uint32_t>(item.number))();
    };
    auto stage = [&](uint32_t number) {
      return [&choose, number](Item& item) -> absl::Status {
        const uint32_t r = choose(item, number);
        for (uint32_t i = 0; i < r % 4; ++i) std::this_thread::yield();
        return r % 13 == 0 ? absl::DataLossError(std::to_string(number)) : absl::OkStatus();
      };
    };
    line.before = stage(1);
    line.after = stage(3);
    line.launch = [&](Item& item, int, Done done) -> absl::Status {
      const uint32_t r = choose(item, 2);
      if (r % 17 == 0) return absl::DataLossError("2");
      if (r % 11 == 0) {
        item.launched++;
        done(absl::OkStatus());  // at once, on the feeder
        return absl::OkStatus();
      }
      return line.runs.Add(item, std::move(done));
    };
    EXPECT_TRUE(line.Run().ok());
    line.ExpectAllInOrder(400);
    for (size_t i = 0; i < line.seen.size(); ++i) {
      const Item& item = line.seen[i];
      const bool fails1 = choose(item, 1) % 13 == 0, fails2 = choose(item, 2) % 17 == 0,
                 fails3 = choose(item, 3) % 13 == 0;
      EXPECT_EQ(line.statuses[i].message(), fails1 ? "1" : fails2 ? "2" : fails3 ? "3" : "") << i;
      EXPECT_EQ(item.before, 1);
      EXPECT_EQ(item.launched, fails1 || fails2 ? 0 : 1);
      EXPECT_EQ(item.after, fails1 || fails2 ? 0 : 1);
    }
    EXPECT_EQ(line.alive.load(), 0);
  }
}

PipelineOptions Small() { return {1, 1, 1, 1}; }

TEST(PipelineCore, StagesBeforeAndAfterMayBeEmpty) {
  Line line(50, {2}, Small());
  line.runs.Open();
  line.stages.before = nullptr;
  line.stages.after = nullptr;
  EXPECT_TRUE(line.Run().ok());
  line.ExpectAllInOrder(50);
  for (const Item& item : line.seen) EXPECT_EQ(item.launched, 1);
}

TEST(PipelineCore, FailedRunSkipsTheAfterStageAndFreesItsSlot) {
  Line line(3, {1}, Small());
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  for (int i = 0; i < 3; ++i) {
    core.WaitUntilIdle({.runs = 1});
    line.runs.End(0, absl::AbortedError("run"));
  }
  caller.join();
  line.ExpectAllInOrder(3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(line.statuses[i].code(), absl::StatusCode::kAborted);
    EXPECT_EQ(line.seen[i].after, 0);
  }
}

TEST(PipelineCore, RunsThatEndOutOfOrderComeOutInOrder) {
  Line line(4, {4}, {4, 1, 4, 4});
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  core.WaitUntilIdle({.runs = 4});
  for (int left = 4; left > 0; --left) line.runs.End(static_cast<size_t>(left) - 1);  // the last launched first
  caller.join();
  line.ExpectAllInOrder(4);
  line.ExpectEveryStageOnce();
}

// Items go where there is room: as many on each executable as it has slots, and the next to the one that comes free.
TEST(PipelineCore, ItemGoesToTheExecutableWithAFreeSlot) {
  Line line(8, {1, 3, 2}, {1, 1, 1, 1});
  std::vector<Done> held;
  line.launch = [&](Item&, int, Done done) {
    held.push_back(std::move(done));
    return absl::OkStatus();
  };
  PipelineCore& core = line.core();
  std::jthread caller([&] { EXPECT_TRUE(line.Run().ok()); });
  core.WaitUntilIdle({.runs = 6});
  for (const int e : {0, 1, 2}) {
    EXPECT_EQ(std::count(line.launches.begin(), line.launches.end(), e), (std::vector<int>{1, 3, 2})[e]);
  }
  const auto on_two = std::find(line.launches.begin(), line.launches.end(), 2) - line.launches.begin();
  held[static_cast<size_t>(on_two)](absl::OkStatus());
  core.WaitUntilIdle({.runs = 6});
  EXPECT_EQ(line.launches.back(), 2);
  const auto on_zero = std::find(line.launches.begin(), line.launches.end(), 0) - line.launches.begin();
  held[static_cast<size_t>(on_zero)](absl::OkStatus());
  core.WaitUntilIdle({.runs = 6});
  EXPECT_EQ(line.launches.back(), 0);
  for (size_t i = 0; i < held.size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) != on_two && static_cast<std::ptrdiff_t>(i) != on_zero)
      held[i](absl::OkStatus());
  }
  caller.join();
  line.ExpectAllInOrder(8);
}

TEST(PipelineCore, EqualExecutablesTakeTurns) {
  Line line(30, {1, 1, 1}, Small());
  line.launch = [](Item&, int, const Done& done) {
    done(absl::OkStatus());
    return absl::OkStatus();
  };
  EXPECT_TRUE(line.Run().ok());
  for (const int e : {0, 1, 2}) EXPECT_GE(std::count(line.launches.begin(), line.launches.end(), e), 5) << e;
}

// Exceptions

TEST(PipelineCore, ThrowingStagesFailTheirItem) {
  Line line(4, {1}, Small());
  line.runs.Open();
  line.before = [](Item& item) -> absl::Status {
    if (item.number == 1) throw std::runtime_error("boom");
    if (item.number == 2) throw 42;
    return absl::OkStatus();
  };
  line.after = [](Item& item) -> absl::Status {
    if (item.number == 3) throw std::runtime_error("bang");
    return absl::OkStatus();
  };
  EXPECT_TRUE(line.Run().ok());
  line.ExpectAllInOrder(4);
  EXPECT_TRUE(line.statuses[0].ok());
  for (const size_t i : {1, 2, 3}) EXPECT_EQ(line.statuses[i].code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(line.statuses[1].message()), HasSubstr("before threw an exception: boom"));
  EXPECT_THAT(std::string(line.statuses[2].message()), HasSubstr("before threw something"));
  EXPECT_THAT(std::string(line.statuses[3].message()), HasSubstr("after threw an exception: bang"));
  EXPECT_EQ(line.seen[1].launched, 0);
}

TEST(PipelineCore, ThrowingSourceEndsTheStreamAndIsReturned) {
  Line line(100, {2}, {3, 2, 1, 1});
  line.runs.Open();
  auto source = line.stages.source;
  line.stages.source = [&, source] {
    if (line.pulled.load() == 7) throw std::runtime_error("dry");
    return source();
  };
  const absl::Status status = line.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("source threw an exception: dry"));
  line.ExpectAllInOrder(7);
  line.ExpectEveryStageOnce();
}

TEST(PipelineCore, ThrowingSinkEndsTheStreamAndIsReturned) {
  Line line(100, {2}, {3, 2, 1, 1});
  line.runs.Open();
  line.sink = [](Item& item, const absl::Status&) {
    if (item.number == 5) throw std::runtime_error("full");
  };
  const absl::Status status = line.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("sink threw an exception: full"));
  line.ExpectAllInOrder(6);
  EXPECT_LE(line.pulled.load(), 5 + line.window);
  EXPECT_EQ(line.alive.load(), 0);
}

}  // namespace
}  // namespace penstock::runtime
