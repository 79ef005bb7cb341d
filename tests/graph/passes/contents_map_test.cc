// RegionSet and ContentsMap against a bit for each cell of a grid; and what Join makes of regions.
#include "graph/passes/contents_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace penstock::graph::contents_map_test {
namespace {

constexpr int64_t kSide = 20;

class Grid {
 public:
  Grid() : cells_(static_cast<size_t>(kSide * kSide * kSide)) {}

  template <class F>
  static void ForCells(const Region& r, F&& f) {
    for (int64_t z = r.lo[0]; z < r.hi[0]; ++z) {
      for (int64_t y = r.lo[1]; y < r.hi[1]; ++y) {
        for (int64_t x = r.lo[2]; x < r.hi[2]; ++x) f(static_cast<size_t>((z * kSide + y) * kSide + x));
      }
    }
  }
  void Set(const Region& region, bool on) {
    ForCells(region, [&](size_t cell) { cells_[cell] = on; });
  }
  int64_t Count(const Region& region) const {
    int64_t count = 0;
    ForCells(region, [&](size_t cell) { count += cells_[cell] ? 1 : 0; });
    return count;
  }
  // Whether the parts are disjoint and together what is `on` of the region.
  bool AreExactly(const std::vector<Region>& parts, const Region& region, bool on) const {
    Grid seen;
    for (const Region& part : parts) {
      if (IsEmpty(part) || !Covers(region, part) || seen.Count(part) > 0) return false;
      if (Count(part) != (on ? BytesOf(part) : 0)) return false;
      seen.Set(part, true);
    }
    return seen.Count(region) == (on ? Count(region) : BytesOf(region) - Count(region));
  }

 private:
  std::vector<bool> cells_;
};

constexpr Region kAll{{0, 0, 0}, {kSide, kSide, kSide}};

Region RandomRegion(std::mt19937& random, int64_t longest) {
  Region region;
  for (size_t d = 0; d < kMaxRank; ++d) {
    const int64_t length = 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(longest));
    region.lo[d] = static_cast<int64_t>(random() % static_cast<uint32_t>(kSide - length + 1));
    region.hi[d] = region.lo[d] + length;
  }
  return region;
}

std::vector<Region> AllOf(const RegionSet& set) {
  std::vector<Region> all;
  set.AppendAll(all);
  return all;
}

TEST(RegionSets, HoldWhatWasAddedAndNotRemovedSince) {
  size_t most = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    RegionSet set;
    Grid grid;
    const int64_t longest = 1 + seed % 6;
    for (int i = 0; i < 400; ++i) {
      const Region region = RandomRegion(random, longest), asked = RandomRegion(random, kSide);
      const bool add = random() % 4 != 0;
      add ? set.Add(region) : set.Remove(region);
      grid.Set(region, add);
      ASSERT_EQ(set.Overlaps(asked), grid.Count(asked) > 0) << "seed " << seed;
      ASSERT_EQ(set.Holds(asked), grid.Count(asked) == BytesOf(asked)) << "seed " << seed;
      std::vector<Region> common, missing;
      set.AppendCommon(asked, common);
      set.AppendMissing(asked, missing);
      ASSERT_TRUE(grid.AreExactly(common, asked, true)) << "seed " << seed;
      ASSERT_TRUE(grid.AreExactly(missing, asked, false)) << "seed " << seed;
    }
    ASSERT_TRUE(grid.AreExactly(AllOf(set), kAll, true)) << "seed " << seed;
    most = std::max(most, AllOf(set).size());
    set.Remove(kAll);
    ASSERT_TRUE(set.empty());
  }
  EXPECT_GT(most, 300u) << "enough for many chunks";
}

TEST(RegionSets, OfTilesInAnyOrderAreOneRegionInTheEnd) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    std::vector<Region> tiles;
    for (int64_t y = 0; y < kSide; y += 2) {
      for (int64_t x = 0; x < kSide; x += 4) tiles.push_back({{0, y, x}, {1, y + 2, x + 4}});
    }
    std::mt19937 random(seed);
    std::shuffle(tiles.begin(), tiles.end(), random);
    RegionSet set;
    for (const Region& tile : tiles) set.Add(tile);
    std::vector<Region> left = AllOf(set);
    Join(left);
    EXPECT_EQ(left, (std::vector<Region>{{{0, 0, 0}, {1, kSide, kSide}}})) << "seed " << seed;
  }
}

TEST(RegionSets, JoinNeighboursAsTheyCome) {
  RegionSet set;
  for (int64_t x = 0; x < 1000; ++x) set.Add({{0, 0, 8 * x}, {1, 1, 8 * x + 8}});
  EXPECT_EQ(AllOf(set), (std::vector<Region>{{{0, 0, 0}, {1, 1, 8000}}}));
}

TEST(RegionSets, KeepNothingOfAnEmptyRegion) {
  RegionSet set;
  set.Add({{0, 0, 3}, {1, 1, 3}});
  EXPECT_TRUE(set.empty());
}

TEST(Join, MakesFewBoxesAndKeepsThemApart) {
  std::vector<Region> l_shape = {{{0, 0, 0}, {1, 1, 4}}, {{0, 1, 0}, {1, 2, 2}}, {{0, 2, 0}, {1, 3, 2}}};
  Join(l_shape);
  EXPECT_EQ(l_shape, (std::vector<Region>{{{0, 0, 0}, {1, 1, 4}}, {{0, 1, 0}, {1, 3, 2}}}));
  std::vector<Region> pinwheel = {{{0, 0, 0}, {1, 1, 2}},
                                  {{0, 0, 2}, {1, 2, 3}},
                                  {{0, 1, 1}, {1, 2, 2}},
                                  {{0, 2, 1}, {1, 3, 3}},
                                  {{0, 1, 0}, {1, 3, 1}}};
  Join(pinwheel);
  EXPECT_EQ(pinwheel, (std::vector<Region>{{{0, 0, 0}, {1, 3, 3}}})) << "though no two of them join";
}

TEST(ContentsMaps, SayWhereTheLastVersionIs) {
  const Region low{{0, 0, 0}, {1, 1, 8}}, high{{0, 0, 8}, {1, 1, 16}}, all{{0, 0, 0}, {1, 1, 16}};
  ContentsMap map(3, all);
  EXPECT_FALSE(map.Anywhere(all));
  map.Write(all, 0);
  map.Copy(high, 1);
  map.Write(low, 2);
  EXPECT_TRUE(map.at(0).Holds(high));
  EXPECT_FALSE(map.at(0).Overlaps(low));
  EXPECT_TRUE(map.at(1).Holds(high));
  EXPECT_FALSE(map.at(1).Holds(all));
  EXPECT_TRUE(map.at(2).Holds(low));
  map.Forget(low);
  EXPECT_FALSE(map.Anywhere(low));
  EXPECT_TRUE(map.at(1).Holds(all)) << "what is not written counts as current everywhere";
}

}  // namespace
}  // namespace penstock::graph::contents_map_test
