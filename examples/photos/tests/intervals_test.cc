// Interval sets against a brute-force oracle: one flag a nanosecond.
#include "examples/photos/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>

namespace photos::intervals_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kEnd = 64;
using Bits = std::bitset<kEnd>;

Bits Mark(const std::vector<Interval>& intervals) {
  Bits bits;
  for (const Interval& interval : intervals) {
    for (int64_t i = interval.begin; i < interval.end; ++i) bits.set(static_cast<size_t>(i));
  }
  return bits;
}

bool IsNormal(const IntervalSet& set) {
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i].begin >= set[i].end || (i > 0 && set[i].begin <= set[i - 1].end)) return false;
  }
  return true;
}

// Up to `most` intervals, some empty, reversed or touching.
std::vector<Interval> RandomIntervals(std::mt19937* random, unsigned most) {
  std::vector<Interval> intervals((*random)() % (most + 1));
  for (Interval& interval : intervals) {
    interval.begin = static_cast<int64_t>((*random)() % kEnd);
    interval.end = std::min<int64_t>(kEnd, interval.begin - 2 + static_cast<int64_t>((*random)() % 14));
  }
  return intervals;
}

TEST(IntervalsTest, NormalizeMergesWhatOverlapsOrTouches) {
  EXPECT_THAT(Normalize({{5, 7}, {1, 3}, {3, 4}, {6, 9}}), ElementsAre(Interval{1, 4}, Interval{5, 9}));
}

TEST(IntervalsTest, NormalizeDropsEmptyAndReversedOnes) { EXPECT_THAT(Normalize({{5, 5}, {9, 2}}), IsEmpty()); }

TEST(IntervalsTest, NormalizeKeepsTheLongerOfTwoWithOneBegin) {
  EXPECT_THAT(Normalize({{1, 9}, {1, 3}}), ElementsAre(Interval{1, 9}));
}

TEST(IntervalsTest, SubtractSplitsAndSharesAHole) {
  EXPECT_THAT(Subtract({{0, 10}, {12, 20}}, {{3, 5}, {8, 15}}),
              ElementsAre(Interval{0, 3}, Interval{5, 8}, Interval{15, 20}));
}

TEST(IntervalsTest, SubtractFromAndOfNothing) {
  EXPECT_THAT(Subtract({}, {{1, 2}}), IsEmpty());
  EXPECT_THAT(Subtract({{1, 2}}, {}), ElementsAre(Interval{1, 2}));
}

TEST(IntervalsTest, AgreesWithOneFlagANanosecond) {
  std::mt19937 random(77);
  for (int round = 0; round < 5000; ++round) {
    const std::vector<Interval> raw_a = RandomIntervals(&random, 8), raw_b = RandomIntervals(&random, 8);
    const Bits bits_a = Mark(raw_a), bits_b = Mark(raw_b);
    const IntervalSet a = Normalize(raw_a), b = Normalize(raw_b);
    ASSERT_TRUE(IsNormal(a)) << "round " << round;
    ASSERT_EQ(Mark(a), bits_a) << "round " << round;
    const IntervalSet both = Union(a, b), left = Subtract(a, b);
    ASSERT_TRUE(IsNormal(both) && IsNormal(left)) << "round " << round;
    ASSERT_EQ(Mark(both), bits_a | bits_b) << "round " << round;
    ASSERT_EQ(Mark(left), bits_a & ~bits_b) << "round " << round;
    ASSERT_EQ(Length(a), static_cast<int64_t>(bits_a.count())) << "round " << round;
  }
}

TEST(CopyTimeTest, AgreesWithOneFlagANanosecond) {
  std::mt19937 random(78);
  for (int round = 0; round < 5000; ++round) {
    const std::vector<Interval> up = RandomIntervals(&random, 6), down = RandomIntervals(&random, 6),
                                compute = RandomIntervals(&random, 6);
    const Bits u = Mark(up), d = Mark(down), c = Mark(compute);
    const CopyTime time = MeasureCopies({Normalize(up), Normalize(down), Normalize(compute)});
    ASSERT_EQ(time.total, static_cast<int64_t>(u.count() + d.count())) << "round " << round;
    ASSERT_EQ(time.exposed, static_cast<int64_t>((u & ~d & ~c).count() + (d & ~u & ~c).count())) << "round " << round;
  }
}

TEST(CopyTimeTest, OneAfterTheOtherHidesNothing) {
  EXPECT_DOUBLE_EQ(MeasureCopies({{{0, 4}}, {{8, 12}}, {{4, 8}}}).hidden_share(), 0.0);
}

TEST(CopyTimeTest, CopiesUnderKernelsAreHidden) {
  EXPECT_DOUBLE_EQ(MeasureCopies({{{0, 4}}, {{4, 8}}, {{0, 8}}}).hidden_share(), 1.0);
}

TEST(CopyTimeTest, BothDirectionsAtOnceHideEachOther) {
  EXPECT_DOUBLE_EQ(MeasureCopies({{{0, 4}}, {{0, 2}}, {}}).hidden_share(), 1.0 - 2.0 / 6.0);
}

TEST(CopyTimeTest, NoCopiesHideNothing) { EXPECT_DOUBLE_EQ(MeasureCopies({{}, {}, {{0, 8}}}).hidden_share(), 0.0); }

}  // namespace
}  // namespace photos::intervals_test
