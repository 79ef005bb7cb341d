// RunPipeline over real executables on host devices: results, order, bounds, failures of binds, runs and callers.
// What needs no executable is in pipeline_core_test.cc.
#include "penstock/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

#define ASSERT_OK(expr) ASSERT_EQ((expr), absl::OkStatus())

constexpr int64_t kMost = 2000;  // elements of an item

struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int64_t amount, int32_t* x) const {
    x[i] += static_cast<int32_t>(amount);
  }
};

// An item with its memory inside: sizes differ from item to item.
struct Item {
  explicit Item(int64_t n) : number(n), data(static_cast<size_t>(1 + n * 37 % kMost), static_cast<int32_t>(n)) {}
  Item(Item&&) = default;  // moves only
  Item& operator=(Item&&) = default;

  int64_t number;
  std::vector<int32_t> data;
};

// A runtime with one executable a device, all of one graph: x[i] += amount, and a host node that calls `look`.
class PipelineTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { Make(GetParam(), /*slots=*/2); }

  void Make(int devices, int slots) {
    auto made = Runtime::Create({.devices = "host:" + std::to_string(devices), .workers = 4, .host_device_threads = 1});
    ASSERT_OK(made.status());
    executables_.clear();
    runtime_ = std::make_unique<Runtime>(*std::move(made));
    Graph graph("line");
    size_ = graph.Param<int64_t>("size", AtMost(kMost));
    amount_ = graph.Param<int64_t>("amount");
    x_ = graph.InOut<int32_t>("x", size_);
    graph.ParallelFor("add", size_, Add{}, amount_, ReadWrite(x_));
    if (look_) {
      graph.Host(
               "look", [this](int64_t amount, std::span<const int32_t>) { return look_(amount); }, amount_, Read(x_))
          .Concurrency(8);
    }
    for (int d = 0; d < devices; ++d) {
      auto executable = runtime_->Compile(graph, {.slots = slots, .device = d});
      ASSERT_OK(executable.status());
      executables_.push_back(*std::move(executable));
    }
  }

  // The sink's and the source's part of every test: `items` numbered items in, all of them out in order.
  PipelineStages<Item> Stages(int64_t items) {
    PipelineStages<Item> stages;
    stages.source = [this, items]() -> std::optional<Item> {
      const int64_t n = pulled_.load();
      if (n == items) return std::nullopt;
      EXPECT_LT(n - returned_.load(), window_);
      pulled_.fetch_add(1);
      return Item(n);
    };
    stages.bind = [this](Item& item, int executable, Bindings& io) {
      EXPECT_GE(executable, 0);
      EXPECT_LT(static_cast<size_t>(executable), executables_.size());
      io.Set(size_, static_cast<int64_t>(item.data.size())).Set(amount_, item.number + 1).Set(x_, item.data);
      return absl::OkStatus();
    };
    stages.sink = [this](Item&& item, const absl::Status& status) {
      EXPECT_EQ(item.number, static_cast<int64_t>(statuses_.size()));
      statuses_.push_back(status);
      if (status.ok()) {
        const std::vector<int32_t> expected(item.data.size(), static_cast<int32_t>(2 * item.number + 1));
        EXPECT_EQ(item.data, expected) << item.number;
      }
      returned_.fetch_add(1);
    };
    return stages;
  }

  std::function<absl::Status(int64_t amount)> look_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<Executable> executables_;
  ParamHandle<int64_t> size_, amount_;
  BufferHandle<int32_t> x_;
  std::atomic<int64_t> pulled_{0}, returned_{0};
  int64_t window_ = std::numeric_limits<int64_t>::max();  // how far the source may be ahead
  std::vector<absl::Status> statuses_;
};

INSTANTIATE_TEST_SUITE_P(Devices, PipelineTest, testing::Values(1, 4));

TEST_P(PipelineTest, EveryItemIsComputedOnceAndComesOutInOrder) {
  auto stages = Stages(200);
  std::atomic<int> before{0}, after{0};
  stages.before = [&](Item&) {
    before.fetch_add(1);
    return absl::OkStatus();
  };
  stages.after = [&](Item& item) {
    after.fetch_add(1);
    EXPECT_EQ(item.data.front(), 2 * item.number + 1);  // the run's outputs are there
    return absl::OkStatus();
  };
  ASSERT_OK(RunPipeline(executables_, stages, {.before_workers = 3, .after_workers = 3}));
  EXPECT_EQ(statuses_.size(), 200u);
  for (const absl::Status& status : statuses_) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(before.load(), 200);
  EXPECT_EQ(after.load(), 200);
  int64_t launches = 0;
  for (const Executable& executable : executables_) launches += executable.launches();
  EXPECT_EQ(launches, 200);
}

TEST_P(PipelineTest, OneItemEmptySourceAndOneWorkerEverywhere) {
  for (const int64_t items : {0, 1, 40}) {
    pulled_ = returned_ = 0;
    statuses_.clear();
    ASSERT_OK(RunPipeline(executables_, Stages(items),
                          {.before_workers = 1, .after_workers = 1, .before_queue = 1, .after_queue = 1}));
    EXPECT_EQ(static_cast<int64_t>(statuses_.size()), items);
    for (const absl::Status& status : statuses_) EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(PipelineTest, SinkRunsOnTheCallersThread) {
  auto stages = Stages(5);
  const auto sink = stages.sink;
  stages.sink = [&, caller = std::this_thread::get_id()](Item&& item, const absl::Status& status) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    sink(std::move(item), status);
  };
  ASSERT_OK(RunPipeline(executables_, stages));
  EXPECT_EQ(statuses_.size(), 5u);
}

// The first item blocks in the sink until as many as promised have left the source and come through the after stage;
// the source checks at each of its calls that it is never ahead by more.
TEST_P(PipelineTest, BlockedSinkLetsExactlyMaxInFlightLeaveTheSource) {
  const PipelineOptions options{.before_workers = 2, .after_workers = 3, .before_queue = 2, .after_queue = 1};
  window_ = MaxInFlight(executables_, options);
  EXPECT_EQ(window_, 2 * GetParam() + 2 + 1 + 2 + 3 + 1);
  auto stages = Stages(150);
  std::counting_semaphore<> came_through(0);
  stages.after = [&](Item&) {
    came_through.release();
    return absl::OkStatus();
  };
  const auto sink = stages.sink;
  stages.sink = [&](Item&& item, const absl::Status& status) {
    if (item.number == 0) {
      for (int64_t i = 0; i < window_; ++i) came_through.acquire();
      EXPECT_EQ(pulled_.load(), window_);
    }
    sink(std::move(item), status);
  };
  ASSERT_OK(RunPipeline(executables_, stages, options));
  EXPECT_EQ(statuses_.size(), 150u);
}

// Each executable's first run waits inside until all of them are running.
TEST_P(PipelineTest, AllExecutablesRunAtOnce) {
  std::latch all_running(GetParam());
  look_ = [&](int64_t amount) {
    if (amount <= GetParam()) all_running.arrive_and_wait();
    return absl::OkStatus();
  };
  Make(GetParam(), /*slots=*/1);
  ASSERT_OK(RunPipeline(executables_, Stages(20)));
  EXPECT_EQ(statuses_.size(), 20u);
  for (const Executable& executable : executables_) EXPECT_GE(executable.launches(), 1);
}

TEST_P(PipelineTest, FailedRunReachesTheSinkWithTheRunsStatus) {
  look_ = [](int64_t amount) { return amount == 4 ? absl::DataLossError("bad light") : absl::OkStatus(); };
  Make(GetParam(), 2);
  auto stages = Stages(8);
  std::atomic<int> after{0};
  stages.after = [&](Item& item) {
    EXPECT_NE(item.number, 3);
    after.fetch_add(1);
    return absl::OkStatus();
  };
  ASSERT_OK(RunPipeline(executables_, stages));
  ASSERT_EQ(statuses_.size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(statuses_[i].ok(), i != 3) << statuses_[i];
  EXPECT_EQ(statuses_[3].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(statuses_[3].message()),
              AllOf(HasSubstr("graph 'line' node 'look'"), HasSubstr("bad light")));
  EXPECT_EQ(after.load(), 7);
}

// A bind that fails, throws, or makes a mistake fails its own item; the next on the same executable is not touched.
TEST_P(PipelineTest, FailedBindFailsItsItemOnly) {
  auto stages = Stages(9);
  Graph other("other");
  const auto foreign = other.InOut<int32_t>("x", 10);
  const auto bind = stages.bind;
  stages.bind = [&](Item& item, int executable, Bindings& io) -> absl::Status {
    if (item.number == 1) return absl::AbortedError("no");
    if (item.number == 3) throw std::runtime_error("boom");
    if (item.number == 5) io.Set(foreign, item.data);
    if (item.number == 7) item.data.resize(item.data.size() - 1);
    const absl::Status status = bind(item, executable, io);
    if (item.number == 7) io.Set(size_, static_cast<int64_t>(item.data.size() + 1));
    return status;
  };
  ASSERT_OK(RunPipeline(executables_, stages));
  ASSERT_EQ(statuses_.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(statuses_[i].ok(), i % 2 == 0) << i << ": " << statuses_[i];
  EXPECT_EQ(statuses_[1], absl::AbortedError("no"));
  EXPECT_THAT(std::string(statuses_[3].message()), HasSubstr("bind threw an exception: boom"));
  EXPECT_EQ(statuses_[5].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(statuses_[7].message()), HasSubstr("buffer 'x'"));
}

// Nothing of an item is held for it once its run is over: a keep-alive goes before the next item comes.
TEST_P(PipelineTest, BindingsDoNotHoldAnItemsMemory) {
  auto stages = Stages(2);
  std::latch released(1);
  const auto source = stages.source;
  stages.source = [&] {
    if (pulled_.load() == 1) released.wait();
    return source();
  };
  std::weak_ptr<int> watch;
  const auto bind = stages.bind;
  stages.bind = [&](Item& item, int executable, Bindings& io) {
    const absl::Status status = bind(item, executable, io);
    auto keep_alive = std::make_shared<int>(0);
    if (item.number == 0) watch = keep_alive;
    io.Set(x_, item.data, std::move(keep_alive));
    return status;
  };
  const auto sink = stages.sink;
  stages.sink = [&](Item&& item, const absl::Status& status) {
    if (item.number == 0) {
      while (!watch.expired()) std::this_thread::yield();  // the run lets go just after it has told us its end
      released.count_down();
    }
    sink(std::move(item), status);
  };
  ASSERT_OK(RunPipeline(executables_, stages));
  EXPECT_EQ(statuses_.size(), 2u);
}

// Others may use the executables meanwhile: then an item waits for its slot, and nothing is lost.
TEST_P(PipelineTest, SharesItsExecutablesWithOtherCallers) {
  std::atomic<bool> stop{false};
  std::jthread other([&] {
    std::vector<int32_t> data(100, 0);
    Bindings io = executables_[0].bindings();
    while (!stop.load()) {
      auto run = executables_[0].Launch(io.Set(size_, 100).Set(amount_, 1).Set(x_, data));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
    }
  });
  ASSERT_OK(RunPipeline(executables_, Stages(100)));
  stop = true;
  EXPECT_EQ(statuses_.size(), 100u);
  for (const absl::Status& status : statuses_) EXPECT_TRUE(status.ok()) << status;
}

TEST_P(PipelineTest, RefusedInsideAHostNodeAndACallback) {
  absl::Status inside;
  look_ = [&](int64_t) {
    inside = RunPipeline(executables_, Stages(1));
    return absl::OkStatus();
  };
  Make(GetParam(), 1);
  std::vector<int32_t> data(100, 0);
  Bindings io = executables_[0].bindings();
  auto run = executables_[0].Launch(io.Set(size_, 100).Set(amount_, 1).Set(x_, data));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(inside.code(), absl::StatusCode::kFailedPrecondition);
  std::binary_semaphore called(0);
  run->OnDone([&](const absl::Status&) {
    inside = RunPipeline(executables_, Stages(1));
    called.release();
  });
  called.acquire();
  EXPECT_EQ(inside.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pulled_.load(), 0);
}

TEST_P(PipelineTest, BadOptionsAndMissingPartsAreNamed) {
  auto message = [&](std::vector<Executable> executables, PipelineStages<Item> stages, PipelineOptions options = {}) {
    const absl::Status status = RunPipeline(std::move(executables), std::move(stages), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto stages = Stages(1);
  EXPECT_THAT(message(executables_, stages, {.before_workers = 0}), HasSubstr("before_workers is 0"));
  EXPECT_THAT(message(executables_, stages, {.after_workers = -1}), HasSubstr("after_workers is -1"));
  EXPECT_THAT(message(executables_, stages, {.before_queue = 0}), HasSubstr("before_queue is 0"));
  EXPECT_THAT(message(executables_, stages, {.after_queue = 1 << 20}), HasSubstr("after_queue is 1048576"));
  EXPECT_THAT(message({}, stages), HasSubstr("no executables"));
  EXPECT_THAT(message({executables_[0], Executable()}, stages), HasSubstr("executable 1"));
  for (int missing = 0; missing < 3; ++missing) {
    auto fewer = Stages(1);
    if (missing == 0) fewer.source = nullptr;
    if (missing == 1) fewer.bind = nullptr;
    if (missing == 2) fewer.sink = nullptr;
    EXPECT_THAT(message(executables_, fewer), HasSubstr("a stage is missing"));
  }
  EXPECT_EQ(pulled_.load(), 0);
}

}  // namespace
}  // namespace penstock
