// How often something is timed, and what becomes of the times. Times and the clock are made up here.
#include "src/cli/measure/timing.h"

#include <gtest/gtest.h>

#include <vector>
#include "src/analysis/median.h"

namespace penstock::cli::measure::timing_test {
namespace {

// Runs that take `us` each by a clock of their own.
class Runs {
 public:
  explicit Runs(std::vector<double> us) : us_(std::move(us)) {}
  absl::StatusOr<double> Median(const Effort& effort) {
    return MedianOf(
        effort,
        [this]() -> absl::StatusOr<double> {
          const double us = us_[static_cast<size_t>(count_++) % us_.size()];
          now_ += us;
          return us;
        },
        [this] { return now_; });
  }
  int count() const { return count_; }

 private:
  const std::vector<double> us_;
  double now_ = 1e9;
  int count_ = 0;
};

TEST(Timing, TakesTheMiddleOfOddNumbersAndTheMeanOfTheMiddleTwoOfEvenOnes) {
  EXPECT_EQ(analysis::Median({5}), 5);
  EXPECT_EQ(analysis::Median({9, 1, 3}), 3);
  EXPECT_EQ(analysis::Median({9, 1, 3, 4}), 3.5);
}

TEST(Timing, CountsGigabytesOf1000000000Bytes) {
  EXPECT_DOUBLE_EQ(GigabytesPerSecond(1'000'000'000, 1e6), 1);
  EXPECT_DOUBLE_EQ(GigabytesPerSecond(int64_t{1} << 30, 20'000), 53.6870912);
  EXPECT_EQ(GigabytesPerSecond(1, 0), 0);
}

TEST(Timing, RepeatsShortRunsAsOftenAsAsked) {
  Runs runs({10, 30, 20});
  EXPECT_EQ(*runs.Median({.repeats = 31, .least_repeats = 5, .budget_us = 1000}), 20);
  EXPECT_EQ(runs.count(), 31);
}

TEST(Timing, EndsWithTheBudgetButNotBeforeTheLeastNumberOfRuns) {
  Runs runs({100});
  EXPECT_EQ(*runs.Median({.repeats = 31, .least_repeats = 5, .budget_us = 750}), 100);
  EXPECT_EQ(runs.count(), 8);
  Runs long_ones({10'000});
  EXPECT_EQ(*long_ones.Median({.repeats = 31, .least_repeats = 5, .budget_us = 750}), 10'000);
  EXPECT_EQ(long_ones.count(), 5);
}

TEST(Timing, EndsWithTheFirstError) {
  int calls = 0;
  const auto median = MedianOf({}, [&]() -> absl::StatusOr<double> {
    if (++calls == 3) return absl::AbortedError("enough");
    return 1;
  });
  EXPECT_EQ(median.status(), absl::AbortedError("enough"));
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace penstock::cli::measure::timing_test
