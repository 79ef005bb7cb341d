// IntervalUnion against a list of marked units.
#include "src/observe/interval_union.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace penstock::observe::interval_union_test {
namespace {

TEST(IntervalUnion, CountsWhatIsCoveredOnce) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int units = 20 + static_cast<int>(random() % 200);
    std::vector<bool> marked(static_cast<size_t>(units));
    IntervalUnion covered;
    for (int i = 0; i < 60; ++i) {
      const int begin = static_cast<int>(random() % static_cast<unsigned>(units));
      const int end = std::min(units, begin + static_cast<int>(random() % 9));
      std::fill(marked.begin() + begin, marked.begin() + end, true);
      covered.Add(begin, end);
      ASSERT_EQ(covered.length(), static_cast<double>(std::count(marked.begin(), marked.end(), true)))
          << "seed " << seed << ", interval " << i << ": [" << begin << ", " << end << ")";
    }
  }
}

TEST(IntervalUnion, WhatEndsBeforeItBeginsDoesNotCount) {
  IntervalUnion covered;
  covered.Add(3, 2);
  covered.Add(4, 4);
  EXPECT_EQ(covered.length(), 0);
}

// Several streams' ends, a little out of order, with gaps: all of it counts, though only the newest part is kept.
TEST(IntervalUnion, ALongWhileCountsWhole) {
  IntervalUnion covered;
  for (int i = 0; i < 100'000; i += 2) {
    covered.Add(2 * i + 2, 2 * i + 3);
    covered.Add(2 * i, 2 * i + 1);
  }
  EXPECT_EQ(covered.length(), 100'000);
}

TEST(IntervalUnion, WhatComesFarTooLateCountsFromWhereItIsKnown) {
  IntervalUnion covered;
  for (int i = 0; i < 1000; ++i) covered.Add(2 * i, 2 * i + 1);
  covered.Add(0, 2);  // long closed
  EXPECT_EQ(covered.length(), 1000);
  covered.Add(0, 2000);
  EXPECT_GT(covered.length(), 1000);
  EXPECT_LE(covered.length(), 2000);
}

}  // namespace
}  // namespace penstock::observe::interval_union_test
