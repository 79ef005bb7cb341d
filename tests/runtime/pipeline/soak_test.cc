// Pipelines for a long time, at rest, and over devices of unequal speed.
//
// PENSTOCK_SOAK_ITEMS: how many items the soak test pushes through, 100 000 by default, a tenth of
// that under a sanitizer. Ten millions take minutes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/cpu_time.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/sanitized.h"
#include "tests/support/status.h"

namespace penstock::soak_test {
namespace {

int64_t SoakItems() {
  const char* const text = std::getenv("PENSTOCK_SOAK_ITEMS");
  if (text != nullptr) return std::atoll(text);
  return kSanitized ? 10'000 : 50'000;
}

struct Held {
  size_t heap = 0;
  int threads = 0;
  int files = 0;
};

Held HeldNow() {
  Held held;
  held.heap = mallinfo2().uordblks;
  const auto count = [](const char* folder) {
    const std::filesystem::directory_iterator entries(folder);
    return static_cast<int>(std::distance(begin(entries), end(entries)));
  };
  held.threads = count("/proc/self/task");
  held.files = count("/proc/self/fd");
  return held;
}

struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const int64_t* x, int64_t* sum) const { *sum += *x; }
};

// Items through a host stage, a run with a State, and another host stage, pushed and popped: what the process holds
// after a tenth of them it holds at the end.
TEST(PipelineSoak, MemoryThreadsAndFilesStayFlat) {
  Runtime runtime = HostRuntime();
  State<int64_t> sum = *runtime.MakeState<int64_t>("sum", 1);
  Graph graph("soak");
  const auto x = graph.Input<int64_t>("x", 1);
  graph.ParallelFor("add", 1, AddTo{}, Read(x), ReadWrite(sum));
  Stages<std::vector<int64_t>> stages;
  stages.Host("before", [](std::vector<int64_t>& v) { ++v[0]; });
  stages.Run("soak", *runtime.Compile(graph, {.slots = 3}),
             [&](Item<std::vector<int64_t>>& item) { item.Set(x, item.value()); });
  auto pipe = *Pipeline<std::vector<int64_t>>::Create(std::move(stages), {.window = 64, .order = kPerKey});
  const int64_t items = SoakItems();
  Held before;
  int64_t popped = 0, most_inside = 0;
  for (int64_t n = 0; n < items; ++n) {
    if (n == items / 10) before = HeldNow();
    most_inside = std::max(most_inside, pipe.stats().inside);
    while (pipe.stats().inside >= 63) {
      EXPECT_OK(pipe.Pop().status());
      ++popped;
    }
    ASSERT_OK(pipe.Push({n}, Key(static_cast<uint64_t>(n) * 0x9E3779B97F4A7C15u)));  // a new key each
  }
  const Held after = HeldNow();
  ASSERT_OK(pipe.Drain());
  while (auto item = pipe.Pop()) ++popped;
  EXPECT_EQ(popped, items);
  std::vector<int64_t> total(1);
  ASSERT_OK(sum.Read(total));
  EXPECT_EQ(total[0], items * (items - 1) / 2 + items);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.files, before.files);
  EXPECT_LE(after.heap, before.heap + 256 * 1024) << "before " << before.heap;
  EXPECT_LE(most_inside, pipe.window());
  const PipelineStats stats = pipe.stats();
  EXPECT_EQ(stats.inside, 0);
  EXPECT_EQ(stats.ready, 0);
  for (const auto& stage : stats.stages) EXPECT_EQ(stage.waiting + stage.working, 0) << stage.name;
  std::printf("%lld items, at most %lld inside; heap %zu and %zu bytes, threads %d and %d, files %d and %d\n",
              static_cast<long long>(items), static_cast<long long>(most_inside), before.heap, after.heap,
              before.threads, after.threads, before.files, after.files);
}

// With nothing inside all threads sleep. (Measured is CPU time, not wall time: a busy machine makes it no more.)
TEST(PipelineSoak, AtRestItTakesNoTimeOfTheProcessor) {
  Runtime runtime = HostRuntime(2, "host:4");
  Graph graph("rest");
  const auto x = graph.InOut<int64_t>("x", 1, kSlot);
  graph.Host("touch", [](std::span<int64_t> v) { ++v[0]; }, ReadWrite(x));
  auto pipe = *Pipeline<>::Create(runtime, graph);
  for (int i = 0; i < 10; ++i) {
    auto item = pipe.Acquire();
    ASSERT_OK(item.status());
    ASSERT_OK(item->Submit());
    EXPECT_OK(pipe.Pop().status());
  }
  usleep(300'000);  // more than the completion thread lingers
  const double before = ProcessCpuSeconds();
  usleep(500'000);
  EXPECT_LT(ProcessCpuSeconds() - before, 0.005);
}

// Device 1 is inside its first item until the end; the others go past it, and none waits for it.
TEST(PipelineSoak, NobodyWaitsForASlowDevice) {
  driver::Latch latch;
  Runtime runtime = HostRuntime(4, "host:2");
  Graph graph("speeds");
  const auto hold = graph.Param<int32_t>("hold");
  graph
      .Host(
          "work",
          [&](int32_t held) {
            if (held != 0) latch.Arrive();
          },
          hold)
      .Concurrency(4);
  const Executable executable = *runtime.Compile(graph, {.slots = 1, .devices = {0, 1}});
  Stages<> stages;
  stages.Run("speeds", executable, [&](Item<>& item) { item.Set(hold, item.device() == 1 ? 1 : 0); });
  auto pipe = *Pipeline<>::Create(std::move(stages), {.window = 8, .order = kAsReady});
  int on_fast = 0;
  for (int n = 0; n < 50; ++n) {
    ASSERT_OK(pipe.Push({}));
    if (n == 0) continue;  // two are inside, one of which is on device 1
    const Item<> item = pipe.Pop();
    EXPECT_EQ(item.device(), 0);
    ++on_fast;
  }
  EXPECT_EQ(on_fast, 49);
  EXPECT_TRUE(latch.AwaitArrived());
  latch.Open();
  EXPECT_EQ(pipe.Pop().device(), 1);
}

}  // namespace
}  // namespace penstock::soak_test
