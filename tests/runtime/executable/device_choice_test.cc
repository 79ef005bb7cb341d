// Which device takes the next run, on loads made up here.
#include "src/runtime/executable/device_choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::runtime::device_choice_test {
namespace {

int Choose(const std::vector<DeviceLoad>& loads) {
  return ChooseDevice(static_cast<int>(loads.size()), [&](int i) { return loads[static_cast<size_t>(i)]; });
}

TEST(DeviceChoice, OfFreeOnesTheOneThatWillBeDoneFirst) {
  EXPECT_EQ(Choose({{.slots = 2, .mean_ns = 100}, {.slots = 2, .mean_ns = 90}}), 1);
  EXPECT_EQ(Choose({{.slots = 2, .mean_ns = 100}, {.taken = 1, .slots = 2, .mean_ns = 90}}), 0);
  EXPECT_EQ(Choose({{.slots = 2, .mean_ns = 300}, {.taken = 1, .slots = 2, .mean_ns = 90}}), 1);
  EXPECT_EQ(Choose({{.slots = 1, .mean_ns = 100}, {.slots = 4, .mean_ns = 300}}), 1) << "more slots work at once";
}

TEST(DeviceChoice, ASlowOneIsTakenWhenTheOthersAreFull) {
  EXPECT_EQ(Choose({{.taken = 2, .slots = 2, .mean_ns = 1}, {.slots = 1, .mean_ns = 1e9}}), 1);
  EXPECT_EQ(Choose({{.taken = 2, .slots = 2}, {.taken = 1, .slots = 1}}), -1);
  EXPECT_EQ(Choose({}), -1);
}

TEST(DeviceChoice, WhatIsNotKnownIsTriedAndEqualsTakeTurns) {
  EXPECT_EQ(Choose({{.slots = 1, .mean_ns = 5}, {.slots = 1}}), 1);
  EXPECT_EQ(Choose({{.slots = 1, .mean_ns = 5, .last = 7}, {.slots = 1, .mean_ns = 5, .last = 3}}), 1);
  EXPECT_EQ(Choose({{.slots = 1, .last = 2}, {.slots = 1, .last = 3}, {.slots = 1, .last = 1}}), 2);
}

// While it is being launched to, which may be dear.
TEST(DeviceChoice, OneThatTakesTheNextLaterCountsAsSlowerByThat) {
  EXPECT_EQ(Choose({{.slots = 2, .mean_ns = 100}, {.slots = 2, .mean_ns = 90, .busy_ns = 20}}), 0);
  EXPECT_EQ(Choose({{.slots = 2, .mean_ns = 100}, {.slots = 2, .mean_ns = 90, .busy_ns = 4}}), 1);
  EXPECT_EQ(Choose({{.taken = 1, .slots = 1}, {.slots = 1, .mean_ns = 1, .busy_ns = 1e9}}), 1) << "it is not full";
}

TEST(DeviceChoice, AWeightCountsAsSpeedAndZeroAsNotAtAll) {
  EXPECT_EQ(Choose({{.slots = 1, .mean_ns = 100, .weight = 1}, {.slots = 1, .mean_ns = 150, .weight = 2}}), 1);
  EXPECT_EQ(Choose({{.slots = 1, .weight = 0}, {.slots = 1, .mean_ns = 1e9}}), 1);
  EXPECT_EQ(Choose({{.slots = 1, .weight = 0}}), -1);
}

}  // namespace
}  // namespace penstock::runtime::device_choice_test
