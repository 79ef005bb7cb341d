// NestedRows: gives each interval the first row in which it is disjoint from or nested in all others.
#include "src/observe/nested_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace penstock::nested_rows_test {
namespace {

using Interval = std::pair<int64_t, int64_t>;

std::vector<Interval> InOrder(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  return intervals;
}

std::vector<size_t> RowsOf(const std::vector<Interval>& intervals) {
  observe::NestedRows rows;
  std::vector<size_t> of;
  for (const auto& [begin, end] : intervals) of.push_back(rows.RowOf(begin, end));
  return of;
}

bool DisjointOrNested(const Interval& a, const Interval& b) {
  if (a.second <= b.first || b.second <= a.first) return true;
  return (a.first <= b.first && b.second <= a.second) || (b.first <= a.first && a.second <= b.second);
}

// Compares with all intervals of each row.
std::vector<size_t> FirstRowsThatFit(const std::vector<Interval>& intervals) {
  std::vector<std::vector<Interval>> rows;
  std::vector<size_t> of;
  for (const Interval& interval : intervals) {
    size_t row = 0;
    const auto fits = [&](const Interval& other) { return DisjointOrNested(interval, other); };
    while (row < rows.size() && !std::all_of(rows[row].begin(), rows[row].end(), fits)) ++row;
    if (row == rows.size()) rows.emplace_back();
    rows[row].push_back(interval);
    of.push_back(row);
  }
  return of;
}

TEST(NestedRows, AreTheFirstThatFit) {
  const uint32_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> intervals;
    const int64_t longest = 1 + random() % 60;
    for (int i = 0; i < 60; ++i) {
      const int64_t begin = random() % 100;
      intervals.emplace_back(begin, begin + static_cast<int64_t>(random()) % longest);
    }
    intervals = InOrder(std::move(intervals));
    ASSERT_EQ(RowsOf(intervals), FirstRowsThatFit(intervals)) << "round " << round;
  }
}

// Each looks at few rows, although there are as many rows as intervals; at all of them, this would take minutes.
TEST(NestedRows, MayBeAsManyAsThereAreIntervals) {
  constexpr int64_t kMany = 200'000;
  observe::NestedRows rows;
  for (int64_t i = 0; i < kMany; ++i) ASSERT_EQ(rows.RowOf(i, kMany + i), static_cast<size_t>(i));
}

}  // namespace
}  // namespace penstock::nested_rows_test
