// FindOverlap against every pair, on random ranges.
#include "src/runtime/slot/memory_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace penstock::runtime::memory_overlap_test {
namespace {

bool Clash(const BoundRange& a, const BoundRange& b) {
  for (uintptr_t byte = a.begin; byte < a.end; ++byte) {
    if (byte >= b.begin && byte < b.end) return a.written || b.written;
  }
  return false;
}

bool AnyPairClashes(const std::vector<BoundRange>& ranges, const std::vector<int32_t>& order) {
  for (const int32_t a : order) {
    for (const int32_t b : order) {
      if (a != b && Clash(ranges[static_cast<size_t>(a)], ranges[static_cast<size_t>(b)])) return true;
    }
  }
  return false;
}

TEST(OverlapTest, AgreesWithEveryPair) {
  constexpr unsigned kSeed = 20261121;
  std::mt19937 rng(kSeed);
  int found = 0, clear = 0, empty = 0, shared_reads = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<BoundRange> ranges(rng() % 7);
    const unsigned space = 4 + rng() % 60;
    for (BoundRange& r : ranges) {
      r.begin = 1000 + rng() % space;
      r.end = r.begin + rng() % 8;
      r.written = rng() % 3 == 0;
      empty += r.begin == r.end;
    }
    std::vector<int32_t> order(ranges.size());
    std::iota(order.begin(), order.end(), 0);
    if (!order.empty() && rng() % 4 == 0) order.pop_back();  // the last is not bound: it counts for nothing
    std::shuffle(order.begin(), order.end(), rng);
    const std::vector<int32_t> before = order;
    const std::optional<Overlap> overlap = FindOverlap(ranges, order);
    ASSERT_EQ(overlap.has_value(), AnyPairClashes(ranges, before)) << "seed " << kSeed << " round " << round;
    ASSERT_TRUE(std::is_permutation(order.begin(), order.end(), before.begin(), before.end()));
    overlap ? ++found : ++clear;
    if (!overlap) {
      std::vector<BoundRange> all_written = ranges;
      for (BoundRange& r : all_written) r.written = true;
      shared_reads += AnyPairClashes(all_written, before);
      continue;
    }
    ASSERT_LT(overlap->first, overlap->second);
    ASSERT_TRUE(Clash(ranges[static_cast<size_t>(overlap->first)], ranges[static_cast<size_t>(overlap->second)]));
  }
  EXPECT_GT(found, 2000) << "the ranges are too sparse to prove much";
  EXPECT_GT(clear, 2000);
  EXPECT_GT(empty, 2000);
  EXPECT_GT(shared_reads, 500);
}

}  // namespace
}  // namespace penstock::runtime::memory_overlap_test
