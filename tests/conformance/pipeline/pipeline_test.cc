// Pipelines over all devices there are, under the checked driver and permuted orders: random stages, windows and
// orders; every item exactly once, with its right contents, in the order asked for. The expected contents are computed
// without the library.
#include "penstock/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::pipeline_test {
namespace {

constexpr int64_t kN = 64;

struct MultiplyAdd {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t mul, const int32_t* x, int32_t* y) const {
    y[i] = x[i] * mul + static_cast<int32_t>(i);
  }
};

struct Numbered {
  int32_t number = 0;
  std::vector<int32_t> x = std::vector<int32_t>(kN), y = std::vector<int32_t>(kN, -1);
};

class Pipelines : public testing::TestWithParam<Target> {
 protected:
  // "host:4", or all CUDA devices.
  std::optional<Runtime> Make(uint64_t order_seed) {
    const std::string devices = GetParam().devices;
    auto made = checks_.CreateRuntime(
        {.devices = devices == "host" ? "host:4" : devices, .workers = 4, .host_device_threads = 1}, order_seed);
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

  CheckedRuntimes checks_;
};

// y = x * 3 + i, then x = y * 5 + i on the next Run, with host stages between that take all kinds of time.
TEST_P(Pipelines, RandomOnesBringEveryItemOnceAndRight) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    std::optional<Runtime> runtime = Make(seed);
    if (!runtime) GTEST_SKIP() << "no such devices";
    const int devices = static_cast<int>(runtime->devices().size());
    Graph first("first"), second("second");
    const auto x = first.Input<int32_t>("x", kN);
    const auto y = first.Output<int32_t>("y", kN);
    first.ParallelFor("multiply", kN, MultiplyAdd{}, 3, Read(x), Write(y));
    const auto from = second.Input<int32_t>("from", kN);
    const auto to = second.Output<int32_t>("to", kN);
    second.ParallelFor("multiply", kN, MultiplyAdd{}, 5, Read(from), Write(to));
    std::vector<DeviceShare> some;
    for (int d = 0; d < devices; ++d) {
      if (d == 0 || below(2) == 0) some.emplace_back(d, 1 + below(3));
    }
    Executable on_all = *runtime->Compile(first, {.slots = 1 + below(3), .devices = runtime->all_devices()});
    Executable on_some = *runtime->Compile(second, {.slots = 1 + below(3), .devices = some});
    const auto dawdle = [](const Numbered& item) {
      for (uint32_t i = 0; i < static_cast<uint32_t>(item.number) * 2654435761u % 7; ++i) std::this_thread::yield();
    };
    Stages<Numbered> stages;
    if (below(2) == 0) stages.Host("before", [&](Numbered& item) { dawdle(item); }, {.workers = 1 + below(3)});
    stages.Run("first", on_all, [&](Item<Numbered>& item) { item.Set(x, item->x).Set(y, item->y); });
    if (below(2) == 0) stages.Host("between", [&](Numbered& item) { dawdle(item); }, {.workers = 1 + below(3)});
    stages.Run("second", on_some, [&](Item<Numbered>& item) { item.Set(from, item->y).Set(to, item->x); });
    if (below(2) == 0) stages.Host("behind", [&](Numbered& item) { dawdle(item); }, {.workers = 1 + below(3)});
    const Order order = std::vector{kInOrder, kAsReady, kPerKey}[static_cast<size_t>(below(3))];
    auto pipe = *Pipeline<Numbered>::Create(std::move(stages), {.window = 1 + below(12), .order = order});
    constexpr int32_t kItems = 120;
    constexpr uint64_t kKeys = 3;
    std::thread producer([&] {
      for (int32_t n = 0; n < kItems; ++n) {
        Numbered item{n};
        for (int64_t i = 0; i < kN; ++i) item.x[static_cast<size_t>(i)] = n * 100 + static_cast<int32_t>(i);
        const auto id = static_cast<uint64_t>(n);
        EXPECT_EQ(pipe.Push(std::move(item), Key(id % kKeys), {.id = id}), absl::OkStatus());
      }
      pipe.Stop();
    });
    std::vector<int> seen(kItems);
    std::map<uint64_t, uint64_t> last;  // of each key; of all of them under `kKeys`
    while (auto item = pipe.Pop()) {
      EXPECT_EQ(item.status(), absl::OkStatus());
      ++seen[static_cast<size_t>(item->number)];
      if (order != kAsReady) {
        const uint64_t chain = order == kPerKey ? item.key().value : kKeys;
        const auto [at, is_first] = last.try_emplace(chain, item.id());
        if (!is_first) {
          EXPECT_LT(at->second, item.id());
        }
        at->second = item.id();
      }
      for (int32_t i = 0; i < kN; ++i) {
        ASSERT_EQ(item->x[static_cast<size_t>(i)], ((item->number * 100 + i) * 3 + i) * 5 + i) << item->number;
      }
    }
    producer.join();
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), kItems);
    {
      const auto gone = std::move(pipe);
    }
    on_all = Executable();
    on_some = Executable();
    ExpectClean(runtime);
  }
}

// Threads that have batches one after the other on one pipeline: each sees its own items, once, in order and right.
TEST_P(Pipelines, BatchesOfSeveralThreadsBringEachItsOwn) {
  std::optional<Runtime> runtime = Make(0);
  if (!runtime) GTEST_SKIP() << "no such devices";
  {
    Graph graph("batches");
    const auto x = graph.Input<int32_t>("x", kN);
    const auto y = graph.Output<int32_t>("y", kN);
    graph.ParallelFor("multiply", kN, MultiplyAdd{}, 3, Read(x), Write(y));
    Stages<Numbered> stages;
    stages.Host("before", [](Numbered& item) { std::fill(item.x.begin(), item.x.end(), item.number); });
    stages.Run("run", *runtime->Compile(graph, {.slots = 2, .devices = runtime->all_devices()}),
               [&](Item<Numbered>& item) { item.Set(x, item->x).Set(y, item->y); });
    auto pipe = *Pipeline<Numbered>::Create(std::move(stages), {.window = 5});
    const auto batches = [&](int32_t first) {
      int32_t given = first, seen = first;
      for (const int32_t size : {7, 0, 1, 20}) {
        const int32_t end = given + size;
        const auto source = [&] { return given == end ? std::nullopt : std::optional(Numbered{given++}); };
        EXPECT_EQ(pipe.RunBatch(source,
                                [&](Item<Numbered>& item) {
                                  EXPECT_EQ(item.status(), absl::OkStatus());
                                  EXPECT_EQ(item->number, seen++);
                                  for (int32_t i = 0; i < kN; ++i) {
                                    EXPECT_EQ(item->y[static_cast<size_t>(i)], 3 * item->number + i);
                                  }
                                }),
                  absl::OkStatus());
        EXPECT_EQ(seen, end);
      }
    };
    std::jthread other(batches, 1000), another(batches, 2000);
    batches(0);
  }
  ExpectClean(runtime);
}

// Results that are filled and read in the slots, by as many items as there are slots.
TEST_P(Pipelines, SlotsAreFilledAndReadInPlace) {
  std::optional<Runtime> runtime = Make(0);
  if (!runtime) GTEST_SKIP() << "no such devices";
  {
    Graph graph("slots");
    const auto x = graph.Input<int32_t>("x", kN, kSlot);
    const auto y = graph.Output<int32_t>("y", kN, kSlot);
    graph.ParallelFor("multiply", kN, MultiplyAdd{}, 7, Read(x), Write(y));
    auto pipe = *Pipeline<>::Create(*runtime, graph, {.slots_per_device = 2});
    std::vector<int> on(runtime->devices().size());
    for (int32_t n = 0; n < 60; ++n) {
      auto item = pipe.Acquire();
      ASSERT_EQ(item.status(), absl::OkStatus());
      std::fill(item->span(x).begin(), item->span(x).end(), n);
      ASSERT_EQ(item->Submit({.id = static_cast<uint64_t>(n)}), absl::OkStatus());
      if (n % 2 == 0) continue;
      for (int32_t k = n - 1; k <= n; ++k) {
        const Item<> done = pipe.Pop();
        ASSERT_EQ(done.status(), absl::OkStatus());
        EXPECT_EQ(done.id(), static_cast<uint64_t>(k));
        ++on[static_cast<size_t>(done.device())];
        for (int32_t i = 0; i < kN; ++i) ASSERT_EQ(done.span(y)[static_cast<size_t>(i)], 7 * k + i);
      }
    }
    EXPECT_GE(*std::min_element(on.begin(), on.end()), 1);
  }
  ExpectClean(runtime);
}

INSTANTIATE_TEST_SUITE_P(Host, Pipelines, testing::Values(Target{"host", "auto", true}));
INSTANTIATE_TEST_SUITE_P(Cuda, Pipelines, testing::Values(Target{"cuda", "auto", true}));

}  // namespace
}  // namespace penstock::conformance::pipeline_test
