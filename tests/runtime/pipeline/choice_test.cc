// Which of several devices an item goes to, as it shows from outside. Speeds are scripted: what is slow stays inside
// its run until others have been through theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::choice_test {
namespace {

using std::chrono::minutes;

// So many devices, with one slot each. Item 0 stays in its run until the latch opens.
class PipelineChoiceTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    hold_ = graph_.Param<int32_t>("hold");
    graph_
        .Host(
            "work",
            [this](int32_t hold) {
              if (hold != 0) latch_.Arrive();
            },
            hold_)
        .Concurrency(8);
    Executable executable = *runtime_.Compile(graph_, {.slots = 1, .devices = runtime_.all_devices()});
    stages_.Run("work", std::move(executable), [this](Item<>& item) { item.Set(hold_, item.id() == 0 ? 1 : 0); });
  }
  void TearDown() override { latch_.Open(); }

  void Take(Pipeline<>& pipe, std::vector<int>& devices, std::vector<uint64_t>& ids) {
    const Item<> item = pipe.Pop(minutes(1));
    ASSERT_OK(item.status());
    devices.push_back(item.device());
    ids.push_back(item.id());
  }

  driver::Latch latch_;
  Runtime runtime_ = HostRuntime(4, "host:" + std::to_string(GetParam()));
  Graph graph_{"work"};
  ParamHandle<int32_t> hold_;
  Stages<> stages_;
};
INSTANTIATE_TEST_SUITE_P(Devices, PipelineChoiceTest, testing::Values(2, 3));

// One device holds its first item while forty others go through the rest: none of them waits for it, and each comes out
// once. Then all devices are free, and the next item does not go to the one that took so long. (Each of the forty began
// behind the slow one and ended before it, so however slow this computer is they took less.)
TEST_P(PipelineChoiceTest, TheFastGetMoreAndTheSlowOneIsTakenLast) {
  constexpr uint64_t kItems = 40;
  auto pipe = *Pipeline<>::Create(std::move(stages_), {.window = 8, .order = kAsReady});
  std::vector<int> devices;
  std::vector<uint64_t> ids;
  ASSERT_OK(pipe.Push({}, {}, {.id = 0}));
  ASSERT_TRUE(latch_.AwaitArrived());
  for (uint64_t id = 1; id <= kItems; ++id) {
    ASSERT_OK(pipe.Push({}, {}, {.id = id}, minutes(1)));
    if (id >= 4) Take(pipe, devices, ids);
  }
  while (ids.size() < kItems) Take(pipe, devices, ids);
  latch_.Open();
  const Item<> slow = pipe.Pop();
  EXPECT_EQ(slow.id(), 0u);
  EXPECT_EQ(std::count(devices.begin(), devices.end(), slow.device()), 0);
  std::sort(ids.begin(), ids.end());
  for (uint64_t i = 0; i < kItems; ++i) EXPECT_EQ(ids[i], i + 1);
  ASSERT_OK(pipe.Push({}, {}, {.id = kItems + 1}));
  EXPECT_NE(pipe.Pop().device(), slow.device());
}

// A device that nobody has tried is: all get a first item, one after the other.
TEST_P(PipelineChoiceTest, EachDeviceIsTried) {
  latch_.Open();
  auto pipe = *Pipeline<>::Create(std::move(stages_), {.window = 8, .order = kAsReady});
  std::vector<int> devices;
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < static_cast<uint64_t>(GetParam()); ++id) {
    ASSERT_OK(pipe.Push({}, {}, {.id = id}));
    Take(pipe, devices, ids);
  }
  std::sort(devices.begin(), devices.end());
  for (int d = 0; d < GetParam(); ++d) EXPECT_EQ(devices[static_cast<size_t>(d)], d);
}

}  // namespace
}  // namespace penstock::choice_test
