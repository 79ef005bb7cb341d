// Regions, trees of them and the table of what accesses cover, against byte-by-byte sets.
#include "graph/conflicts/boxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/graph/oracle/box_oracle.h"
#include "tests/graph/oracle/draft_after.h"
#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::boxes_test {
namespace {

Region RandomRegion(std::mt19937_64& random, int64_t n) {
  Region region;
  for (size_t d = 0; d < 3; ++d) {
    region.lo[d] = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    region.hi[d] = region.lo[d] + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(n - region.lo[d]));
  }
  return region;
}

std::set<std::array<int64_t, 3>> CellsOf(const Region& r) {
  std::set<std::array<int64_t, 3>> cells;
  for (int64_t z = r.lo[0]; z < r.hi[0]; ++z) {
    for (int64_t y = r.lo[1]; y < r.hi[1]; ++y) {
      for (int64_t x = r.lo[2]; x < r.hi[2]; ++x) cells.insert({z, y, x});
    }
  }
  return cells;
}

TEST(Boxes, SubtractLeavesEveryOtherCellOnce) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    const Region a = RandomRegion(random, 5), b = RandomRegion(random, 5);
    if (!Overlap(a, b)) continue;
    std::vector<Region> parts;
    Subtract(a, b, parts);
    auto expected = CellsOf(a);
    for (const auto& cell : CellsOf(b)) expected.erase(cell);
    std::set<std::array<int64_t, 3>> left;
    size_t count = 0;
    for (const Region& part : parts) {
      const auto cells = CellsOf(part);
      count += cells.size();
      left.insert(cells.begin(), cells.end());
    }
    ASSERT_EQ(left, expected) << "seed " << seed;
    ASSERT_EQ(count, expected.size()) << "seed " << seed << ": parts overlap";
  }
}

TEST(Boxes, UncoveredIsAPartThatNoBoxHoldsOrNothing) {
  int covered = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    const Region region = RandomRegion(random, 4);
    std::vector<Region> boxes;
    for (size_t n = random() % 14; n > 0; --n) boxes.push_back(RandomRegion(random, 4));
    auto missing = CellsOf(region);
    for (const Region& box : boxes) {
      for (const auto& cell : CellsOf(box)) missing.erase(cell);
    }
    const Region found = Uncovered(region, boxes);
    ASSERT_EQ(IsEmpty(found), missing.empty()) << "seed " << seed;
    for (const auto& cell : CellsOf(found)) ASSERT_TRUE(missing.count(cell)) << "seed " << seed;
    covered += missing.empty();
  }
  EXPECT_GT(covered, 200);
}

TEST(Boxes, TreeFindsTheLiveBoxesThatOverlap) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Region> boxes;
    for (size_t n = 1 + random() % 40; n > 0; --n) boxes.push_back(RandomRegion(random, 9));
    const BoxTree tree(boxes);
    BoxTree::Live live = tree.NoneLive();
    std::vector<bool> on(boxes.size());
    for (int step = 0; step < 60; ++step) {
      const size_t b = random() % boxes.size();
      on[b] = !on[b];
      tree.SetLive(live, static_cast<int32_t>(b), on[b]);
      const Region region = RandomRegion(random, 9);
      std::vector<int32_t> expected, found;
      for (size_t i = 0; i < boxes.size(); ++i) {
        if (on[i] && Overlap(boxes[i], region)) expected.push_back(static_cast<int32_t>(i));
      }
      tree.Find(live, region, found);
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, expected) << "seed " << seed;
    }
  }
}

TEST(Boxes, ATableOfWholeAccessesHoldsNoTree) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.Host("h", Change{x}, In{x, Slice(0, 8)});
  const PlanOptions options = Devices(1);
  const Draft draft = DraftAfter("Validate", g.model, options);
  const BoxTable& table = draft.records.boxes;
  EXPECT_EQ(table.tree(x), nullptr);
  EXPECT_TRUE(table[0][1].whole());
}

TEST(Boxes, AnOffsetFromAParameterIsAllOfTheBuffer) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 4), x = g.InOut("x", {8, 8});
  g.Host("h", Change{x, Slice({g.ParamDim(n), 2}, {1, 2})}, In{x, Slice({1, 1}, {1, 1})});
  const PlanOptions options = Devices(1);
  const Draft draft = DraftAfter("Validate", g.model, options);
  const BoxTable& table = draft.records.boxes;
  EXPECT_EQ(table[0][0].box, 0);
  EXPECT_FALSE(table[0][0].exact);
  EXPECT_NE(table[0][1].box, 0);
}

TEST(Boxes, ASizeFromAParameterCountsWithItsMaximumInsideTheBuffer) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 3), m = g.Param("m", 100), x = g.InOut("x", 8);
  g.Host("h", Change{x, Slice(2, g.ParamDim(n))}, Change{x, Slice(2, g.ParamDim(m))});
  const PlanOptions options = Devices(1);
  const Draft draft = DraftAfter("Validate", g.model, options);
  const BoxTable& table = draft.records.boxes;
  const BoxTree& tree = *table.tree(x);
  EXPECT_EQ(tree.box(table[0][0].box), (Region{{0, 0, 8}, {1, 1, 20}}));
  EXPECT_EQ(tree.box(table[0][1].box), (Region{{0, 0, 8}, {1, 1, 32}}));
  EXPECT_FALSE(table[0][0].exact);
}

TEST(Boxes, AllOfADimensionIsExactWhateverItsParameterIs) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 16);
  const int32_t x = g.InOut("x", {g.ParamDim(n), 8});
  g.Host("h", Change{x, Slice({0, 4}, {g.ParamDim(n), 2})});
  const PlanOptions options = Devices(1);
  const Draft draft = DraftAfter("Validate", g.model, options);
  const BoxTable& table = draft.records.boxes;
  EXPECT_TRUE(table[0][0].exact);
  EXPECT_EQ(table.tree(x)->box(table[0][0].box), (Region{{0, 0, 16}, {1, 16, 24}}));
}

TEST(Boxes, AccessesOfAliasesTouchTheBytesOfTheirBase) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    ModelBuilder g;
    const int rank = 1 + static_cast<int>(random() % 3);
    Extent extent(int64_t{4});
    extent.rank = rank;
    for (int i = 0; i < rank; ++i) extent.dims[i] = Dim(2 + static_cast<int64_t>(random() % 4));
    const int32_t x = g.Buffer("x", extent, BufferRole::kInOut, kHost, 4);
    Extent halves = extent;
    halves.dims[static_cast<size_t>(rank) - 1].value *= 2;
    const int32_t retyped = g.Alias("retyped", x, 2, halves);
    int32_t at = random() % 2 ? x : retyped;
    for (int depth = static_cast<int>(random() % 3); depth > 0; --depth) {
      const Extent& of = g.model.buffers[at].extent;
      Box box = RandomBox(random, of);
      for (Dim& d : box.size.dims) d.value = std::max<int64_t>(d.value, 1);
      at = g.Alias("part" + std::to_string(depth), at, box);
    }
    const Extent last = g.model.buffers[at].extent;
    const int32_t node = g.Host("h", Change{at, RandomBox(random, last)});
    const PlanOptions options = Devices(1);
    const Draft draft = DraftAfter("Validate", g.model, options);
    const BoxTable& table = draft.records.boxes;
    const BoxRef ref = table[node][0];
    ASSERT_EQ(ref.base, x);
    ASSERT_TRUE(ref.exact);
    Bytes covered;
    const Region whole{{0, 0, 0},
                       {rank > 2 ? extent.dims[0].value : 1, rank > 1 ? extent.dims[rank - 2].value : 1,
                        4 * extent.dims[rank - 1].value}};
    const BoxTree* tree = table.tree(x);
    for (const auto& [z, y, b] : CellsOf(ref.box < 0 ? Region{} : tree == nullptr ? whole : tree->box(ref.box))) {
      covered.insert((z * whole.hi[1] + y) * whole.hi[2] + b);
    }
    ASSERT_EQ(covered, BoxOracle(g.model).Touched(g.model.nodes[0].accesses[0])) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::graph::boxes_test
