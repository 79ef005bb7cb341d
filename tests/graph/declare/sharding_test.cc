// How arrays are cut: against a count of who has each index.
#include "penstock/sharding.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "penstock/sharded.h"

namespace penstock::graph::sharding_test {
namespace {

ShardLayout CutOk(const Extent& extent, const Sharding& sharding, Halo halo = Halo()) {
  std::string mistake;
  ShardLayout layout = detail::LayOut("u", extent, sharding, halo, &mistake);
  EXPECT_EQ(mistake, "");
  return layout;
}
std::string MistakeOf(const Extent& extent, const Sharding& sharding, Halo halo = Halo()) {
  std::string mistake;
  EXPECT_TRUE(detail::LayOut("u", extent, sharding, halo, &mistake).shards.empty());
  return mistake;
}
std::vector<DeviceShare> Equal(int shards) {
  std::vector<DeviceShare> shares;
  for (int s = 0; s < shards; ++s) shares.emplace_back(s % 3);
  return shares;
}
int64_t Elements(const std::vector<ShardPart>& parts) {
  int64_t all = 0;
  for (const ShardPart& part : parts) all += part.end - part.begin;
  return all;
}

TEST(Sharding, GivesEachIndexToOneShardInOrder) {
  std::mt19937 rng(1);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<int64_t>(1 + rng() % 200);
    std::vector<DeviceShare> shares = Equal(static_cast<int>(1 + rng() % 64));
    for (DeviceShare& share : shares) share.weight = static_cast<double>(rng() % 4);
    shares[rng() % shares.size()].weight = 1;
    const auto block = static_cast<int64_t>(rng() % 8);
    const ShardLayout layout = CutOk({3, n, 5}, block == 0 ? Blocked(1, shares) : Cyclic(1, block, shares));
    ASSERT_EQ(layout.shards.size(), shares.size());
    std::vector<int> owners(static_cast<size_t>(n), -1);
    int64_t last_end = 0;
    for (const Shard& shard : layout.shards) {
      const auto s = static_cast<size_t>(shard.index);
      EXPECT_EQ(shard.device, shares[s].device);
      EXPECT_EQ(shard.extent, Extent(3, Elements(shard.blocks), 5));
      if (shares[s].weight == 0) {
        EXPECT_TRUE(shard.blocks.empty());
      }
      int64_t at = 0;
      for (const ShardPart& part : shard.blocks) {
        ASSERT_LT(part.begin, part.end);
        if (block == 0) {
          EXPECT_EQ(part.begin, last_end);
        }
        last_end = part.end;
        for (int64_t i = part.begin; i < part.end; ++i) {
          ASSERT_EQ(owners[static_cast<size_t>(i)], -1) << i;
          owners[static_cast<size_t>(i)] = shard.index;
          if (block > 0) {
            EXPECT_EQ(i / block, part.begin / block);
          }
        }
        EXPECT_EQ(detail::BoxOf(layout, part), Slice({0, at, 0}, {3, part.end - part.begin, 5}));
        at += part.end - part.begin;
      }
    }
    for (const int owner : owners) ASSERT_GE(owner, 0);
  }
}

TEST(Sharding, CutsEqualSharesAsIntegersWould) {
  for (int64_t shards = 1; shards <= 64; ++shards) {
    for (int64_t n = shards; n <= 1000; n += 7) {
      const ShardLayout layout = CutOk(n, Blocked(0, Equal(static_cast<int>(shards))));
      for (int64_t s = 0; s < shards; ++s) {
        const std::vector<ShardPart>& blocks = layout.shards[static_cast<size_t>(s)].blocks;
        ASSERT_EQ(blocks.size(), 1U) << n << " on " << shards;
        ASSERT_EQ(blocks[0].begin, n * s / shards) << n << " on " << shards;
      }
    }
  }
}

TEST(Sharding, FollowsTheWeights) {
  const ShardLayout rows = CutOk({100, 8}, Blocked(0, {{0, 3}, {1, 1}, {2, 0}, {1, 1}}));
  EXPECT_EQ(rows.shards[0].extent, Extent(60, 8));
  EXPECT_EQ(rows.shards[1].extent, Extent(20, 8));
  EXPECT_EQ(rows.shards[2].extent, Extent(0, 8));
  EXPECT_EQ(rows.shards[3].extent, Extent(20, 8));
  const ShardLayout blocks = CutOk(90, Cyclic(0, 10, {{0, 2}, {1, 1}}));
  std::vector<int64_t> second;
  for (const ShardPart& part : blocks.shards[1].blocks) second.push_back(part.begin);
  EXPECT_EQ(second, std::vector<int64_t>({10, 40, 70}));
}

TEST(Sharding, PutsFirstWhatNeighboursNeed) {
  const ShardLayout layout = CutOk({30, 8}, Blocked(0, Equal(3)), Halo(2));
  const auto ranges = [&](int shard) {
    std::vector<int64_t> all;
    for (const ShardPart& part : layout.shards[static_cast<size_t>(shard)].parts) {
      all.push_back(part.begin);
      all.push_back(part.end);
    }
    return all;
  };
  EXPECT_EQ(ranges(0), std::vector<int64_t>({8, 10, 0, 8}));
  EXPECT_EQ(ranges(1), std::vector<int64_t>({10, 12, 18, 20, 12, 18}));
  EXPECT_EQ(ranges(2), std::vector<int64_t>({20, 22, 22, 30}));
  const auto parts = [](int64_t rows, int shards, Halo halo) {
    std::vector<int64_t> lengths;
    for (const ShardPart& part : CutOk({rows, 8}, Blocked(0, Equal(shards)), halo).shards[1].parts) {
      lengths.push_back(part.end - part.begin);
    }
    return lengths;
  };
  EXPECT_EQ(parts(3, 3, Halo(1)), std::vector<int64_t>({1}));
  EXPECT_EQ(parts(6, 3, Halo(1)), std::vector<int64_t>({1, 1})) << "none is longer than the halo is wide";
  EXPECT_EQ(parts(9, 3, Halo(2)), std::vector<int64_t>({2, 1}));
}

TEST(Sharding, ShiftedElementsAreANeighboursIfItHasThemAll) {
  for (const bool periodic : {false, true}) {
    const Halo halo = periodic ? Halo::Periodic(2) : Halo(2);
    Graph graph("g");
    const auto u = graph.Sharded<float>("u", 30, Blocked(0, Equal(3)), halo);
    const auto part = [&](int shard, int64_t begin, int64_t end) {
      return ShardPart{shard, shard % 3, 0, begin, end, end - begin};
    };
    const auto expect = [&](const AccessOf<float, AccessMode::kRead>& access, int shard, int64_t offset,
                            bool uncopied) {
      EXPECT_EQ(access.buffer.index(), u.Of(u.shards()[static_cast<size_t>(shard)]).index());
      EXPECT_EQ(access.box.offset, Extent(offset));
      EXPECT_EQ(access.uncopied, uncopied);
    };
    expect(ReadShifted(u, part(1, 10, 12), -2), 0, 10, true);
    expect(ReadShifted(u, part(1, 10, 12), -1), 1, 1, false);  // partly its own
    expect(ReadShifted(u, part(1, 12, 18), 2), 1, 6, false);
    expect(ReadShifted(u, part(1, 18, 20), 2), 2, 2, true);
    expect(ReadShifted(u, part(1, 12, 18), 5), 1, -1, false);  // beyond the halo
    if (periodic) expect(ReadShifted(u, part(2, 28, 30), 2), 0, 2, true);
    else expect(ReadShifted(u, part(2, 28, 30), 2), 2, 12, false);
  }
  Graph graph("g");
  const auto alone = graph.Sharded<float>("alone", 30, Blocked(0, Equal(1)), Halo::Periodic(1));
  const ShardPart& first = alone.shards()[0].parts[0];
  EXPECT_EQ(ReadShifted(alone, first, -1).box, Slice(30, 1)) << "its own last element, and not the halo";
  EXPECT_EQ(ReadShifted(alone, first, 1).box, Slice(2, 1));
  const auto other = graph.Sharded<float>("other", 30, Blocked(0, {{0, 2}, {0, 1}}));
  EXPECT_EQ(Write(alone, other.shards()[1].blocks[0]).buffer.index(), -1) << "there is no such shard";
  const auto halves = graph.Sharded<float>("halves", 30, Blocked(0, Equal(2)), Halo(2));
  EXPECT_EQ(Write(halves, other.shards()[0].blocks[0]).box.offset, Extent(-1)) << "part of it is its halo";
  const auto dealt = graph.Sharded<float>("u", 30, Cyclic(0, 5, Equal(3)));
  EXPECT_EQ(ReadShifted(dealt, dealt.shards()[0].blocks[1], 1).box.offset, Extent(-1));
  EXPECT_EQ(ReadWithHalo(dealt, dealt.shards()[0].blocks[1], 1).box.offset, Extent(-1));
}

TEST(Sharding, SharesByFiguresAreTheirRatio) {
  MachineFigures figures;
  figures.devices = {{.name = "a", .memory = 400, .fp32 = 10}, {.name = "b", .memory = 200, .fp32 = 30}, {.name = "c"}};
  const std::vector<DeviceShare> by_memory = SharesOf(figures);
  ASSERT_EQ(by_memory.size(), 3U);
  EXPECT_EQ(by_memory[0].weight, 2 * by_memory[1].weight);
  EXPECT_EQ(by_memory[2].weight, 300);
  EXPECT_EQ(by_memory[2].device, 2);
  EXPECT_EQ(SharesOf(figures, &MachineFigures::Device::fp32)[1].weight, 30);
  figures.devices = {{.name = "a"}, {.name = "b"}};
  EXPECT_EQ(SharesOf(figures)[0].weight, SharesOf(figures)[1].weight);
}

TEST(Sharding, MistakesAreToldWithWhatToDo) {
  const Extent extent(10, 8);
  EXPECT_NE(MistakeOf(extent, Blocked(0, {})).find("into 0 shards; name 1 to 64 devices"), std::string::npos);
  EXPECT_NE(MistakeOf(1000, Blocked(0, Equal(65))).find("into 65 shards"), std::string::npos);
  EXPECT_NE(MistakeOf(extent, Blocked(0, {{-1, 1}})).find("on device -1"), std::string::npos);
  for (const double weight :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(MistakeOf(extent, Blocked(0, {{0, weight}})).find("weight"), std::string::npos);
  }
  EXPECT_NE(MistakeOf(extent, Blocked(0, {{0, 0}, {1, 0}})).find("without any weight"), std::string::npos);
  EXPECT_NE(MistakeOf(extent, Blocked(2, Equal(2))).find("dimension 2; it has dimensions 0 to 1"), std::string::npos);
  EXPECT_NE(MistakeOf(extent, Cyclic(0, 0, Equal(2))).find("blocks of no elements"), std::string::npos);
  EXPECT_NE(MistakeOf(int64_t{1} << 40, Cyclic(0, 1, Equal(2))).find("more than 65536 blocks"), std::string::npos);
  EXPECT_NE(MistakeOf(extent, Cyclic(0, 2, Equal(2)), Halo(1)).find("needs Blocked"), std::string::npos);
  EXPECT_NE(MistakeOf(extent, Blocked(0, Equal(2)), Halo(-1)).find("halo -1 wide"), std::string::npos);
  EXPECT_NE(MistakeOf({0, 8}, Blocked(0, Equal(2))).find("has 0 elements"), std::string::npos);
  EXPECT_NE(MistakeOf(extent, Blocked(0, Equal(4)), Halo(3)).find("halo 3 wide, but shard 0 has 2 elements"),
            std::string::npos);
  Graph graph("g");
  const auto n = graph.Param<int32_t>("n", AtMost(10));
  EXPECT_NE(MistakeOf({n, 8}, Blocked(0, Equal(2))).find("is a parameter"), std::string::npos);
  EXPECT_EQ(CutOk({8, n}, Blocked(0, Equal(2))).shards.size(), 2U);
}

TEST(Sharding, MistakesInAGraphAreKeptWithTheirNameAndDeclareNothing) {
  Graph graph("g");
  const auto scope = graph.Scope("here");
  const auto bad = graph.Sharded<float>("u", {10, 8}, Blocked(0, Equal(4)), Halo(3));
  const auto u = graph.Sharded<float>("v", {10, 8}, Blocked(0, Equal(2)), Halo(1));
  const auto other = graph.Sharded<float>("w", {8, 10}, Blocked(0, Equal(2)));
  const auto in = graph.Input<float>("in", {11, 8});
  Exchange(graph, "nothing", bad);
  Exchange(graph, "shapes", u, other);
  Scatter(graph, "rows", in, u);
  Gather(graph, "none", u, BufferHandle<float>());
  Exchange(graph, "empty", ShardedHandle<float>());
  EXPECT_EQ(graph.model().nodes.count(), 0);
  const std::vector<Mistake>& kept = graph.model().mistakes;
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(kept[0].text.find("graph 'g' sharded array 'here/u' (sharding_test.cc:"), 0U) << kept[0].text;
  EXPECT_NE(kept[1].text.find("'here/shapes'"), std::string::npos) << kept[1].text;
  EXPECT_NE(kept[1].text.find("whose extents differ"), std::string::npos) << kept[1].text;
  EXPECT_NE(kept[2].text.find("or the one in one piece the halo's width more"), std::string::npos) << kept[2].text;
  EXPECT_NE(kept[3].text.find("names a buffer of another graph, or none"), std::string::npos) << kept[3].text;
  EXPECT_NE(kept[4].text.find("was never set"), std::string::npos) << kept[4].text;
}

TEST(Sharding, ADeviceScopePinsNodesThatDoNotSayOtherwise) {
  Graph graph("g");
  const auto x = graph.Buffer<float>("x", 8);
  {
    const auto on_one = graph.ScopeOn(1);
    graph.Fill("one", x, 1.f);
    {
      const auto on_two = graph.ScopeOn(2);
      graph.Fill("two", x, 1.f);
      graph.Fill("three", x, 1.f).On(3);
    }
    graph.Fill("one again", x, 1.f);
  }
  graph.Fill("none", x, 1.f);
  std::vector<int> devices;
  for (const NodeDecl& node : graph.model().nodes) devices.push_back(node.device);
  EXPECT_EQ(devices, std::vector<int>({1, 2, 3, 1, -1}));
}

}  // namespace
}  // namespace penstock::graph::sharding_test
