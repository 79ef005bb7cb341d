// The pace of runs: which of their ends count.
#include "src/observe/run_meter.h"

#include <gtest/gtest.h>

#include <chrono>

namespace penstock::observe::run_meter_test {
namespace {

RunMeter::Time At(int64_t us) { return RunMeter::Time(std::chrono::microseconds(us)); }

TEST(RunMeter, LeavesOutTheFirstQuarter) {
  RunMeter meter;
  meter.Start(At(0), "");
  for (int r = 1; r <= 2; ++r) meter.RunEnded(At(100'000 * r));
  for (int r = 1; r <= 6; ++r) meter.RunEnded(At(200'000 + 10 * r));
  EXPECT_EQ(meter.pace().runs, 8);
  EXPECT_DOUBLE_EQ(meter.pace().run_us, 10);
}

TEST(RunMeter, CountsUntilTheLastItem) {
  RunMeter meter;
  meter.Start(At(0), "");
  for (int r = 1; r <= 4; ++r) meter.RunEnded(At(10 * r));
  meter.ItemEnded(At(100));
  EXPECT_DOUBLE_EQ(meter.pace().run_us, 30);
}

TEST(RunMeter, CountsAllOfFewRuns) {
  RunMeter meter;
  EXPECT_EQ(meter.pace().run_us, 0);
  meter.Start(At(5), "");
  meter.RunEnded(At(25));
  EXPECT_DOUBLE_EQ(meter.pace().run_us, 20);
}

TEST(RunMeter, KeepsFewTimesOfManyRuns) {
  RunMeter meter;
  meter.Start(At(0), "");
  constexpr int64_t kRuns = 1'000'003;
  for (int64_t r = 1; r <= kRuns; ++r) meter.RunEnded(At(r <= kRuns / 5 ? 1000 * r : 1000 * (kRuns / 5) + 7 * r));
  EXPECT_EQ(meter.pace().runs, kRuns);
  EXPECT_NEAR(meter.pace().run_us, 7, 1e-9);
}

}  // namespace
}  // namespace penstock::observe::run_meter_test
