// TimeSet against a set of moments: intervals of whole numbers, looked at one unit at a time.
#include "src/analysis/time_set.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <vector>

namespace penstock::analysis::time_set_test {
namespace {

constexpr int kUnits = 40;
using Units = std::bitset<kUnits>;

Units UnitsOf(const std::vector<Interval>& intervals) {
  Units units;
  for (const Interval& interval : intervals) {
    for (int u = static_cast<int>(interval.begin); u < static_cast<int>(interval.end); ++u)
      units.set(static_cast<size_t>(u));
  }
  return units;
}

TEST(TimeSet, DoesWhatASetOfMomentsDoes) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const auto some = [&] {
    std::vector<Interval> intervals(random() % 6);
    for (Interval& interval : intervals) {
      interval.begin = static_cast<double>(random() % kUnits);
      interval.end = std::min<double>(kUnits, interval.begin + static_cast<double>(random() % 9));
    }
    return intervals;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::vector<Interval> of_a = some(), of_b = some();
    const TimeSet a(of_a), b(of_b);
    const Units in_a = UnitsOf(of_a), in_b = UnitsOf(of_b);
    EXPECT_EQ(a.length(), static_cast<double>(in_a.count()));
    EXPECT_EQ(UnitsOf(a.And(b).intervals()), in_a & in_b);
    EXPECT_EQ(a.And(b).length(), static_cast<double>((in_a & in_b).count()));
    EXPECT_EQ(UnitsOf(a.Minus(b).intervals()), in_a & ~in_b);
    EXPECT_EQ(a.Minus(b).length(), static_cast<double>((in_a & ~in_b).count()));
    for (size_t n = 1; n < a.intervals().size(); ++n) EXPECT_LT(a.intervals()[n - 1].end, a.intervals()[n].begin);
  }
}

}  // namespace
}  // namespace penstock::analysis::time_set_test
