#include "src/driver/checked/footprint.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace penstock::driver::checked::footprint_test {
namespace {

const void* At(size_t address) { return reinterpret_cast<const void*>(address); }

// The addresses of a box, one by one.
std::set<uintptr_t> BytesOf(size_t begin, size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  std::set<uintptr_t> bytes;
  for (size_t z = 0; z < depth; ++z) {
    for (size_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < width; ++x) bytes.insert(begin + z * slice + y * pitch + x);
    }
  }
  return bytes;
}

struct RandomBox {
  explicit RandomBox(std::mt19937& random) {
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const size_t begin = 1000 + below(60), width = below(6), height = 1 + below(4), depth = 1 + below(3);
    const size_t pitch = width + below(4), slice = pitch * height + below(5);
    box = Footprint(At(begin), width, height, depth, pitch, slice);
    bytes = BytesOf(begin, width, height, depth, pitch, slice);
  }
  Footprint box;
  std::set<uintptr_t> bytes;
};

TEST(FootprintTest, TouchesExactlyWhereAByteIsInBoth) {
  std::mt19937 random(20261121);
  int touching = 0;
  for (int i = 0; i < 20000; ++i) {
    const RandomBox a(random), b(random);
    bool common = false;
    for (const uintptr_t byte : a.bytes) common = common || b.bytes.count(byte) > 0;
    touching += common;
    ASSERT_EQ(a.box.Touches(b.box), common) << i << ": " << TextOf(a.box) << " " << TextOf(b.box);
    ASSERT_EQ(b.box.Touches(a.box), common) << i;
  }
  EXPECT_GT(touching, 2000);
  EXPECT_LT(touching, 18000);
}

TEST(FootprintTest, RowsWithoutGapsAreOneRow) {
  EXPECT_TRUE(Footprint(At(64), 8, 4, 2, 8, 32).dense());
  EXPECT_EQ(Footprint(At(64), 8, 4, 2, 8, 32).width, 64u);
  EXPECT_FALSE(Footprint(At(64), 8, 4, 1, 9).dense());
}

TEST(IntervalSetTest, KnowsWhatIsMissing) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    IntervalSet set;
    std::set<uintptr_t> bytes;
    for (int i = 0; i < 12; ++i) {
      const RandomBox box(random);
      set.Add(box.box);
      bytes.insert(box.bytes.begin(), box.bytes.end());
      const RandomBox asked(random);
      bool all = true;
      for (const uintptr_t byte : asked.bytes) all = all && bytes.count(byte) > 0;
      const auto missing = set.Missing(asked.box);
      ASSERT_EQ(missing.has_value(), !all) << round << " " << TextOf(asked.box);
      if (!missing) continue;
      for (uintptr_t byte = missing->first; byte < missing->second; ++byte) {
        ASSERT_EQ(bytes.count(byte), 0u);
        ASSERT_EQ(asked.bytes.count(byte), 1u);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::driver::checked::footprint_test
