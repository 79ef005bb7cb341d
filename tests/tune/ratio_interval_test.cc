// Intervals of ratios, against values worked out by hand and against known distributions.
#include "src/tune/ratio_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace penstock::tune::ratio_interval_test {
namespace {

TEST(RatioInterval, IsStudentsOfFewPairs) {
  const RatioInterval interval = IntervalOf({0.3, 0.1, 0.4, 0.2});
  EXPECT_EQ(interval.pairs, 4);
  EXPECT_NEAR(std::log(interval.ratio), 0.25, 1e-12);
  EXPECT_NEAR(std::log(interval.low), 0.25 - 5.841 * 0.0645497, 1e-6);  // 0.1291 / sqrt(4)
  EXPECT_NEAR(std::log(interval.high), 0.25 + 5.841 * 0.0645497, 1e-6);
}

TEST(RatioInterval, LeavesOutOutliers) {
  const RatioInterval interval = IntervalOf({1.00, 0.03, 0.00, 0.02, 0.04, 0.01});
  EXPECT_NEAR(std::log(interval.ratio), 0.025, 1e-12);
  // Winsorized: 1 1 2 3 4 4, squares 9.5, 4 kept.
  EXPECT_NEAR(std::log(interval.high), 0.025 + 5.841 * 0.01 * std::sqrt(9.5 / 12), 1e-6);
}

TEST(RatioInterval, SaysNothingOfOnePair) {
  EXPECT_EQ(IntervalOf({}).pairs, 0);
  EXPECT_EQ(IntervalOf({0.5}).high, 0);
  EXPECT_NEAR(IntervalOf({0.5}).ratio, std::exp(0.5), 1e-12);
}

// At each look 99 % of the intervals hold the truth, so at most 5 % of comparisons are ever wrong.
TEST(RatioInterval, HoldsTheTruthAsOftenAsItSays) {
  std::mt19937 random(20261128);
  std::normal_distribution<double> noise(std::log(0.9), 0.03);
  constexpr int kComparisons = 4000;
  int ever_wrong = 0;
  for (int c = 0; c < kComparisons; ++c) {
    std::vector<double> logs;
    bool wrong = false;
    for (const int look : kLooks) {
      while (static_cast<int>(logs.size()) < look) logs.push_back(noise(random));
      const RatioInterval interval = IntervalOf(logs);
      wrong = wrong || interval.low > 0.9 || interval.high < 0.9;
    }
    ever_wrong += wrong ? 1 : 0;
  }
  EXPECT_LE(ever_wrong, kComparisons * 5 / 100);
  EXPECT_GE(ever_wrong, kComparisons * 1 / 100);  // an interval of any width would hold it
}

}  // namespace
}  // namespace penstock::tune::ratio_interval_test
