// Executables in a row, joined on the device: random ones under the checked driver, on one device and across two, what
// fails in between, and that no host thread is between them. What is expected is computed without the library.
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::pipeline_chain_test {
namespace {

constexpr int64_t kN = 200;

struct MultiplyAdd {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t mul, const int32_t* x, int32_t* y) const {
    y[i] = x[i] * mul + static_cast<int32_t>(i);
  }
};

struct Numbered {
  int32_t number = 0;
  std::vector<int32_t> x = std::vector<int32_t>(kN), y = std::vector<int32_t>(kN, -1);
};

class PipelineChains : public testing::TestWithParam<Target> {
 protected:
  std::optional<Runtime> Make(uint64_t order_seed, int host_devices = 3) {
    const std::string devices = GetParam().devices;
    auto made = checks_.CreateRuntime({.devices = devices == "host" ? "host:" + std::to_string(host_devices) : devices,
                                       .workers = 4,
                                       .host_device_threads = 1},
                                      order_seed);
    if (!made.ok()) {
      EXPECT_EQ(RequiredDevices(), 0) << made.status();
      return std::nullopt;
    }
    return *std::move(made);
  }
  void ExpectClean(std::optional<Runtime>& runtime) {
    runtime.reset();
    EXPECT_EQ(checks_.Complaints(), "");
  }
  static Numbered Filled(int32_t n) {
    Numbered item{n};
    for (int64_t i = 0; i < kN; ++i) item.x[static_cast<size_t>(i)] = n * 100 + static_cast<int32_t>(i);
    return item;
  }

  CheckedRuntimes checks_;
};

// y = x * 3 + i -> * 5 + i -> * 7 + i, each by an executable of its own, on all devices.
TEST_P(PipelineChains, ThreeInARowBringEveryItemOnceAndRight) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    std::optional<Runtime> runtime = Make(seed);
    if (!runtime) GTEST_SKIP() << "no such devices";
    Graph first("first"), second("second"), third("third");
    const auto x = first.Input<int32_t>("x", kN);
    const auto a = first.Output<int32_t>("a", kN, kDevice);
    first.ParallelFor("multiply", kN, MultiplyAdd{}, 3, Read(x), Write(a));
    const auto b = second.Input<int32_t>("b", kN, kDevice);
    const auto c = second.Output<int32_t>("c", kN, kDevice);
    second.ParallelFor("multiply", kN, MultiplyAdd{}, 5, Read(b), Write(c));
    const auto d = third.Input<int32_t>("d", kN, kDevice);
    const auto y = third.Output<int32_t>("y", kN);
    third.ParallelFor("multiply", kN, MultiplyAdd{}, 7, Read(d), Write(y));
    const std::vector<DeviceShare> all = runtime->all_devices();
    Stages<Numbered> stages;
    if (below(2) == 0) stages.Host("before", [](Numbered&) {}, {.workers = 1 + below(2)});
    stages.Run("first", *runtime->Compile(first, {.slots = 1 + below(3), .devices = all}),
               [&](Item<Numbered>& item) { item.Set(x, item->x); });
    stages.Then("second", *runtime->Compile(second, {.slots = 1 + below(3), .devices = all}), {Link(a, b)});
    stages.Then("third", *runtime->Compile(third, {.slots = 1 + below(3), .devices = all}), {Link(c, d)},
                [&](Item<Numbered>& item) { item.Set(y, item->y); });
    if (below(2) == 0) stages.Host("behind", [](Numbered&) {}, {.workers = 1 + below(2)});
    auto pipe = *Pipeline<Numbered>::Create(std::move(stages), {.window = 1 + below(9)});
    constexpr int32_t kItems = 50;
    int32_t next = 0, seen = 0;
    ASSERT_OK(pipe.Run(
        [&]() -> std::optional<Numbered> {
          if (next == kItems) return std::nullopt;
          return Filled(next++);
        },
        [&](Item<Numbered>& item) {
          EXPECT_OK(item.status());
          EXPECT_EQ(item->number, seen++);
          for (int32_t i = 0; i < kN; ++i) {
            ASSERT_EQ(item->y[static_cast<size_t>(i)], (((item->number * 100 + i) * 3 + i) * 5 + i) * 7 + i)
                << item->number;
          }
        }));
    EXPECT_EQ(seen, kItems);
    {
      const auto gone = std::move(pipe);
    }
    ExpectClean(runtime);
  }
}

// One executable on device 0, the next on device 1, which gets what the first has written by a peer copy.
TEST_P(PipelineChains, EachOnItsOwnDevice) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    std::optional<Runtime> runtime = Make(seed, 2);
    if (!runtime || runtime->devices().size() < 2) GTEST_SKIP() << "there are fewer than two such devices";
    Graph first("first"), second("second");
    const auto x = first.Input<int32_t>("x", kN);
    const auto a = first.Output<int32_t>("a", kN, kDevice);
    first.ParallelFor("multiply", kN, MultiplyAdd{}, 3, Read(x), Write(a));
    const auto b = second.Input<int32_t>("b", kN, kDevice, /*device=*/0);
    const auto y = second.Output<int32_t>("y", kN);
    second.ParallelFor("multiply", kN, MultiplyAdd{}, 5, Read(b), Write(y));
    Executable on_first = *runtime->Compile(first, {.slots = 2, .device = 0});
    Executable on_second = *runtime->Compile(second, {.slots = 2, .device = 1});
    EXPECT_NE(on_second.PlanText().find("peer"), std::string::npos) << on_second.PlanText();
    Stages<Numbered> stages;
    stages.Run("first", on_first, [&](Item<Numbered>& item) { item.Set(x, item->x); });
    stages.Then("second", on_second, {Link(a, b)}, [&](Item<Numbered>& item) { item.Set(y, item->y); });
    auto pipe = *Pipeline<Numbered>::Create(std::move(stages));
    for (int32_t n = 0; n < 30; ++n) {
      ASSERT_OK(pipe.Push(Filled(n)));
      if (n < 3) continue;
      const auto item = pipe.Pop();
      ASSERT_OK(item.status());
      for (int32_t i = 0; i < kN; ++i) {
        ASSERT_EQ(item->y[static_cast<size_t>(i)], ((item->number * 100 + i) * 3 + i) * 5 + i) << item->number;
      }
    }
    EXPECT_EQ(pipe.stats().stages.size(), 1u) << "together they are one stage";
    {
      const auto gone = std::move(pipe);
    }
    on_first = on_second = Executable();
    ExpectClean(runtime);
  }
}

// The second is launched while the first cannot end.
TEST_P(PipelineChains, TheNextIsLaunchedWhileTheOneBeforeGoesOn) {
  std::optional<Runtime> runtime = Make(0);
  if (!runtime) GTEST_SKIP() << "no such devices";
  struct Door {
    std::mutex mu;
    std::condition_variable cv;
    bool open = false;
  };
  auto door = std::make_shared<Door>();
  Graph first("first"), second("second");
  const auto a = first.Output<int32_t>("a", kN, kDevice);
  const auto x = first.Input<int32_t>("x", kN);
  const auto middle = first.Buffer<int32_t>("middle", kN);
  first.ParallelFor("multiply", kN, MultiplyAdd{}, 3, Read(x), Write(middle));
  first.Host(
      "door",
      [door](std::span<int32_t>) {
        std::unique_lock<std::mutex> lock(door->mu);
        door->cv.wait(lock, [&] { return door->open; });
      },
      ReadWrite(middle));
  first.ParallelFor("again", kN, MultiplyAdd{}, 1, Read(middle), Write(a));
  const auto b = second.Input<int32_t>("b", kN, kDevice);
  const auto y = second.Output<int32_t>("y", kN);
  second.ParallelFor("multiply", kN, MultiplyAdd{}, 5, Read(b), Write(y));
  const Executable on_first = *runtime->Compile(first), on_second = *runtime->Compile(second);
  Stages<Numbered> stages;
  stages.Run("first", on_first, [&](Item<Numbered>& item) { item.Set(x, item->x); });
  stages.Then("second", on_second, {Link(a, b)}, [&](Item<Numbered>& item) { item.Set(y, item->y); });
  auto pipe = *Pipeline<Numbered>::Create(std::move(stages));
  ASSERT_OK(pipe.Push(Filled(4)));
  while (on_second.launches() < 1) std::this_thread::yield();
  EXPECT_FALSE(pipe.Pop(std::chrono::milliseconds(1)));
  {
    std::lock_guard<std::mutex> lock(door->mu);
    door->open = true;
  }
  door->cv.notify_all();
  const auto item = pipe.Pop();
  ASSERT_OK(item.status());
  for (int32_t i = 0; i < kN; ++i) {
    ASSERT_EQ(item->y[static_cast<size_t>(i)], ((400 + i) * 3 + i + i) * 5 + i);
  }
}

// A failure of either is the item's, with its stage; the others pass.
TEST_P(PipelineChains, FailuresInTheRowAreTheItems) {
  std::optional<Runtime> runtime = Make(0);
  if (!runtime) GTEST_SKIP() << "no such devices";
  Graph first("first"), second("second");
  const auto fail = first.Param<int32_t>("fail");
  const auto a = first.Output<int32_t>("a", kN, kDevice);
  first.Host(
           "judge", [](int32_t f) { return f == 1 ? absl::DataLossError("bad") : absl::OkStatus(); }, fail)
      .Concurrency(8);
  first.Fill("fill", Write(a), 7);
  const auto b = second.Input<int32_t>("b", kN, kDevice);
  const auto y = second.Output<int32_t>("y", kN);
  second.ParallelFor("multiply", kN, MultiplyAdd{}, 5, Read(b), Write(y));
  Stages<Numbered> stages;
  std::vector<int32_t> few(3);
  stages.Run("first", *runtime->Compile(first), [&](Item<Numbered>& item) { item.Set(fail, item->number % 4); });
  stages.Then("second", *runtime->Compile(second), {Link(a, b)}, [&](Item<Numbered>& item) -> absl::Status {
    if (item->number % 4 == 3) return absl::AbortedError("not this one");
    if (item->number % 4 == 2) item.Set(y, few);  // the launch refuses it, behind one that was launched
    if (item->number % 4 < 2) item.Set(y, item->y);
    return absl::OkStatus();
  });
  auto pipe = *Pipeline<Numbered>::Create(std::move(stages));
  for (int32_t n = 0; n < 24; ++n) {
    ASSERT_OK(pipe.Push(Filled(n)));
    const auto item = pipe.Pop();
    const absl::StatusCode codes[] = {absl::StatusCode::kOk, absl::StatusCode::kDataLoss,
                                      absl::StatusCode::kInvalidArgument, absl::StatusCode::kAborted};
    EXPECT_EQ(item.status().code(), codes[n % 4]) << n << ": " << item.status();
    if (n % 4 != 0) continue;
    for (int32_t i = 0; i < kN; ++i) ASSERT_EQ(item->y[static_cast<size_t>(i)], 35 + i);
  }
}

TEST_P(PipelineChains, MistakesAreToldWithWhatToDo) {
  std::optional<Runtime> runtime = Make(0);
  if (!runtime) GTEST_SKIP() << "no such devices";
  Graph first("first"), second("second");
  const auto a = first.Output<int32_t>("a", kN, kDevice);
  const auto on_host = first.Output<int32_t>("on host", kN);
  first.Fill("fill", Write(a), 7);
  first.Fill("fill too", Write(on_host), 7);
  const auto b = second.Input<int32_t>("b", kN, kDevice);
  const auto shorter = second.Input<int32_t>("shorter", kN - 1, kDevice);
  const auto y = second.Output<int32_t>("y", kN);
  second.ParallelFor("multiply", kN, MultiplyAdd{}, 5, Read(b), Write(y));
  const Executable on_first = *runtime->Compile(first), on_second = *runtime->Compile(second);
  const auto message = [&](Stages<Numbered> stages) {
    const absl::Status status = Pipeline<Numbered>::Create(std::move(stages)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const auto joined = [&](Link link) {
    Stages<Numbered> stages;
    stages.Run("first", on_first).Then("second", on_second, {link});
    return message(std::move(stages));
  };
  EXPECT_NE(joined(Link(b, a)).find("goes from a buffer of the graph of the Run before"), std::string::npos);
  EXPECT_NE(joined(Link(on_host, b)).find("both kDevice"), std::string::npos);
  EXPECT_NE(joined(Link(a, shorter)).find("joins 800 bytes with 796"), std::string::npos);
  Stages<Numbered> behind_host;
  behind_host.Run("first", on_first).Host("between", [](Numbered&) {}).Then("second", on_second, {Link(a, b)});
  EXPECT_NE(message(std::move(behind_host)).find("a Then comes right behind a Run"), std::string::npos);
  if (runtime->devices().size() < 2) return;
  Stages<Numbered> apart;
  apart.Run("first", on_first).Then("second", *runtime->Compile(second, {.device = 1}), {Link(a, b)});
  EXPECT_NE(message(std::move(apart)).find("on different devices (0 and 1"), std::string::npos);
  Stages<Numbered> many;
  many.Run("first", on_first).Then("second", *runtime->Compile(second, {.devices = {0, 1}}), {Link(a, b)});
  EXPECT_NE(message(std::move(many)).find("has 2 devices, and the Run before it 1"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Host, PipelineChains, testing::Values(Target{"host", "auto", true}));
INSTANTIATE_TEST_SUITE_P(Cuda, PipelineChains, testing::Values(Target{"cuda", "auto", true}));

}  // namespace
}  // namespace penstock::conformance::pipeline_chain_test
