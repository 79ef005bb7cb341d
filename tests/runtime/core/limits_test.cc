// What a runtime takes of a machine that gives it less, and what is asked for that nobody can give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "src/base/limits.h"
#include "src/runtime/core/environment.h"
#include "tests/support/held_graph.h"
#include "tests/support/sanitized.h"

namespace penstock::limits_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

RuntimeOptions Small() { return {.devices = "host", .workers = 1, .host_device_threads = 1}; }

TEST(LimitsOfThePlace, ThreadsAreAsManyAsTheAffinityAllows) {
  std::thread([] {
    cpu_set_t allowed, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    const Runtime runtime = *Runtime::Create({.devices = "host"});
    EXPECT_EQ(runtime.devices()[0].description, "1 CPU threads");
  }).join();
}

TEST(LimitsOfThePlace, ThePinnedBudgetIsAQuarterOfACgroupsLimit) {
  using runtime::PinnedBudgetOf;
  EXPECT_EQ(*PinnedBudgetOf(0, {300 * kMiB, true}), 75 * kMiB);
  EXPECT_EQ(*PinnedBudgetOf(0, {300 * kMiB, false}), 150 * kMiB);
  EXPECT_EQ(*PinnedBudgetOf(200 * kMiB, {300 * kMiB, true}), 200 * kMiB);
  EXPECT_EQ(*PinnedBudgetOf(400 * kMiB, {300 * kMiB, true}), 300 * kMiB);
}

TEST(CountsNobodyCanGive, AreRefusedByName) {
  constexpr int kMany = 1'000'000'000, kMost = std::numeric_limits<int>::max();
  for (const int count : {kMany, kMost, -1, std::numeric_limits<int>::min()}) {
    RuntimeOptions workers = Small(), compute = Small(), staging = Small();
    workers.workers = count;
    compute.host_device_threads = count;
    staging.staging.threads = count;
    for (const auto& [options, name] :
         {std::pair(workers, "workers"), std::pair(compute, "host_device_threads"), std::pair(staging, "staging")}) {
      const absl::Status refused = Runtime::Create(options).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name << " " << count;
      EXPECT_THAT(Text(refused), HasSubstr(name));
      EXPECT_THAT(Text(refused), HasSubstr(std::to_string(count)));
    }
  }
  const absl::Status together =
      Runtime::Create({.devices = "host:1024", .workers = 1, .host_device_threads = 4096}).status();
  EXPECT_EQ(together.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(together), HasSubstr("host_device_threads is 4096 for each of 1024 host devices"));
}

TEST(SizesNobodyCanGive, AreWhatTheProcessMayUse) {
  RuntimeOptions options = Small();
  options.host_device_memory = options.pinned_bytes = std::numeric_limits<int64_t>::max();
  Runtime runtime = *Runtime::Create(options);
  const int64_t usable = base::MemoryOfProcess().bytes;
  EXPECT_LE(runtime.devices()[0].memory_bytes, usable + 4096);  // a page
  EXPECT_EQ(runtime.pinned_memory().budget, usable);
  EXPECT_EQ(runtime.MakeDeviceBuffer<std::byte>(usable + 4097).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(runtime.MakeHostBuffer<std::byte>(usable + 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(SizesNobodyCanGive, OfStagedChunksAreRefusedAtCompile) {
  RuntimeOptions options = Small();
  options.staging.chunk_bytes = std::numeric_limits<int64_t>::max();
  Runtime runtime = *Runtime::Create(options);
  Graph g("g");
  auto x = g.InOut<std::byte>("x", kMiB);
  g.Fill("fill", Write(x), std::byte{1});
  const absl::Status refused = runtime.Compile(g).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused), HasSubstr("the threads and memory to stage with"));
}

TEST(SizesNobodyCanGive, OfAPipelinesPlacesAreRefusedAtCreate) {
  if (kSanitized) GTEST_SKIP() << "sanitizers end a process that asks for so much";
  struct Large {
    std::byte bytes[size_t{1} << 40];
  };
  Runtime runtime = *Runtime::Create(Small());
  Graph g("g");
  auto x = g.InOut<int>("x", 4);
  g.Fill("fill", Write(x), 1);
  Executable exec = *runtime.Compile(g);
  Stages<Large> stages;
  stages.Run("run", exec, [](Item<Large>&) {});
  const absl::Status refused = Pipeline<Large>::Create(std::move(stages), {.window = 1 << 20}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused), HasSubstr("PipelineOptions::window"));
}

}  // namespace
}  // namespace penstock::limits_test
