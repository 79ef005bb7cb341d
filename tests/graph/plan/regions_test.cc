// Regions against brute force: reachability of nodes and of entries by closing matrices.
#include "graph/plan/regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "graph/plan/reduce_graph.h"

namespace penstock::graph::regions_test {
namespace {

using Lists = std::vector<std::vector<int32_t>>;
using Matrix = std::vector<std::vector<char>>;

constexpr int32_t kMany = 1 << 20;

CsrRows RowsOf(const Lists& lists) {
  CsrRows rows;
  for (const std::vector<int32_t>& list : lists) {
    for (const int32_t p : list) rows.Add(p);
    rows.Close();
  }
  return rows;
}

Lists ListsOf(const CsrRows& rows) {
  Lists lists;
  for (int32_t v = 0; v < rows.rows(); ++v) lists.emplace_back(rows[v].begin(), rows[v].end());
  return lists;
}

CsrRows Chain(int32_t nodes) {
  CsrRows rows;
  for (int32_t v = 0; v < nodes; ++v) {
    if (v > 0) rows.Add(v - 1);
    rows.Close();
  }
  return rows;
}

// Entry (a, b): a path leads from a to b. `edges` may have cycles.
Matrix Closure(Matrix edges) {
  for (size_t k = 0; k < edges.size(); ++k) {
    for (size_t a = 0; a < edges.size(); ++a) {
      for (size_t b = 0; edges[a][k] != 0 && b < edges.size(); ++b) edges[a][b] |= edges[k][b];
    }
  }
  return edges;
}

Matrix EdgesOf(const CsrRows& preds) {
  const auto count = static_cast<size_t>(preds.rows());
  Matrix edges(count, std::vector<char>(count));
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) edges[static_cast<size_t>(p)][static_cast<size_t>(v)] = 1;
  }
  return edges;
}

Matrix Contracted(const Matrix& edges, const Contraction& result) {
  Matrix contracted(result.entries.size(), std::vector<char>(result.entries.size()));
  for (size_t a = 0; a < edges.size(); ++a) {
    for (size_t b = 0; b < edges.size(); ++b) {
      const auto from = static_cast<size_t>(result.entry_of[a]), to = static_cast<size_t>(result.entry_of[b]);
      if (from != to) contracted[from][to] |= edges[a][b];
    }
  }
  return contracted;
}

struct RandomGraph {
  CsrRows preds;
  std::vector<int32_t> group;
  int32_t least, most;
};

RandomGraph MakeRandomGraph(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); };
  const int32_t nodes = 1 + below(48), groups = 1 + below(3), degree = 1 + below(4), reach = 1 + below(20);
  const int32_t outside = 1 + below(8);
  CsrRows preds;
  RandomGraph graph;
  for (int32_t v = 0; v < nodes; ++v) {
    for (int32_t k = below(degree + 1); v > 0 && k > 0; --k) preds.Add(std::max(0, v - 1 - below(reach)));
    preds.CloseAsSet();
    graph.group.push_back(below(outside) == 0 ? -1 : below(groups));
  }
  graph.preds = TransitiveReduction(preds);
  graph.least = 1 + below(4);
  graph.most = graph.least + below(12);
  return graph;
}

template <class F>
void ForEachRandomGraph(F&& f) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph graph = MakeRandomGraph(seed);
    f(graph, FindRegions(graph.preds, graph.group, graph.least, graph.most));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(FindRegions, PutsEachNodeIntoOneEntryAndRegionsHaveOneGroupAndTheSizesAskedFor) {
  size_t regions = 0, outside = 0;
  ForEachRandomGraph([&](const RandomGraph& graph, const Contraction& result) {
    std::vector<int32_t> entry_of(graph.group.size(), -1);
    std::vector<int32_t> seen;
    for (size_t e = 0; e < result.entries.size(); ++e) {
      const Contraction::Entry entry = result.entries[e];
      std::vector<int32_t> nodes = {entry.node};
      if (entry.region >= 0) {
        seen.push_back(entry.region);
        nodes = result.regions[static_cast<size_t>(entry.region)];
        ASSERT_TRUE(std::is_sorted(nodes.begin(), nodes.end()));
        ASSERT_EQ(nodes.front(), entry.node);
        ASSERT_GE(nodes.size(), static_cast<size_t>(graph.least));
        ASSERT_LE(nodes.size(), static_cast<size_t>(graph.most));
      }
      for (const int32_t v : nodes) {
        ASSERT_EQ(entry_of[static_cast<size_t>(v)], -1) << v << " is in two entries";
        entry_of[static_cast<size_t>(v)] = static_cast<int32_t>(e);
        if (entry.region < 0) continue;
        ASSERT_GE(graph.group[static_cast<size_t>(v)], 0);
        ASSERT_EQ(graph.group[static_cast<size_t>(v)], graph.group[static_cast<size_t>(entry.node)]);
      }
      outside += entry.region < 0;
    }
    ASSERT_EQ(entry_of, result.entry_of);
    for (size_t r = 0; r < seen.size(); ++r) ASSERT_EQ(seen[r], static_cast<int32_t>(r));
    ASSERT_EQ(seen.size(), result.regions.size());
    regions += seen.size();
  });
  EXPECT_GT(regions, 500);
  EXPECT_GT(outside, 500);
}

TEST(FindRegions, NoPathLeavesARegionAndComesBack) {
  ForEachRandomGraph([&](const RandomGraph& graph, const Contraction& result) {
    const Matrix reach = Closure(EdgesOf(graph.preds));
    for (const std::vector<int32_t>& region : result.regions) {
      for (size_t v = 0; v < reach.size(); ++v) {
        if (std::binary_search(region.begin(), region.end(), static_cast<int32_t>(v))) continue;
        bool after = false, before = false;
        for (const int32_t n : region) {
          after |= reach[static_cast<size_t>(n)][v] != 0;
          before |= reach[v][static_cast<size_t>(n)] != 0;
        }
        ASSERT_FALSE(after && before) << v;
      }
    }
  });
}

TEST(FindRegions, EntriesHaveTheContractedOrderAndNoEdgeTooMany) {
  ForEachRandomGraph([&](const RandomGraph& graph, const Contraction& result) {
    const Matrix expected = Closure(Contracted(EdgesOf(graph.preds), result));
    for (size_t e = 0; e < expected.size(); ++e) ASSERT_EQ(expected[e][e], 0) << "entry " << e << " is in a cycle";
    ASSERT_EQ(result.preds.rows(), static_cast<int32_t>(result.entries.size()));
    Matrix edges = EdgesOf(result.preds);
    ASSERT_EQ(Closure(edges), expected);
    for (int32_t e = 0; e < result.preds.rows(); ++e) {
      const std::span<const int32_t> preds = result.preds[e];
      ASSERT_TRUE(std::is_sorted(preds.begin(), preds.end()));
      for (const int32_t p : preds) {
        ASSERT_LT(p, e);
        char& edge = edges[static_cast<size_t>(p)][static_cast<size_t>(e)];
        edge = 0;
        ASSERT_NE(Closure(edges), expected) << p << " -> " << e << " is implied";
        edge = 1;
      }
    }
  });
}

// An entry comes before an earlier node only if that one still waits for it or for one after it.
TEST(FindRegions, EntriesComeInTheOrderOfTheirFirstNodesWherePossible) {
  ForEachRandomGraph([&](const RandomGraph&, const Contraction& result) {
    for (int32_t e = 0; e < result.preds.rows(); ++e) {
      for (int32_t later = e + 1; later < result.preds.rows(); ++later) {
        if (result.entries[static_cast<size_t>(later)].node > result.entries[static_cast<size_t>(e)].node) continue;
        ASSERT_FALSE(result.preds[later].empty());
        ASSERT_GE(result.preds[later].back(), e);
      }
    }
  });
}

TEST(FindRegions, MergesWhateverHasTheSameNeighbours) {
  ForEachRandomGraph([&](const RandomGraph& graph, const Contraction&) {
    const Contraction result = FindRegions(graph.preds, graph.group, 1, kMany);
    const Matrix edges = Contracted(EdgesOf(graph.preds), result);
    std::set<std::vector<std::vector<char>>> seen;
    for (size_t e = 0; e < edges.size(); ++e) {
      if (result.entries[e].region < 0) continue;
      std::vector<char> before;
      for (const std::vector<char>& row : edges) before.push_back(row[e]);
      const auto group = static_cast<char>(graph.group[static_cast<size_t>(result.entries[e].node)]);
      ASSERT_TRUE(seen.insert({{group}, before, edges[e]}).second) << "entry " << e;
    }
  });
}

TEST(FindRegions, AChainBrokenByAForeignNodeGivesTwoRegions) {
  for (const int32_t foreign : {-1, 7}) {
    const Contraction result = FindRegions(Chain(7), {0, 0, 0, foreign, 0, 0, 0}, 2, kMany);
    EXPECT_EQ(result.regions, Lists({{0, 1, 2}, {4, 5, 6}}));
    EXPECT_EQ(ListsOf(result.preds), Lists({{}, {0}, {1}}));
  }
}

TEST(FindRegions, AForeignNodeBesideAChainDoesNotBreakIt) {
  // 1 is a source, 3 a sink.
  const Contraction result = FindRegions(RowsOf({{}, {}, {0, 1}, {2}, {2}}), {0, -1, 0, -1, 0}, 2, kMany);
  EXPECT_EQ(result.regions, Lists({{0, 2, 4}}));
  EXPECT_EQ(result.entry_of, std::vector<int32_t>({1, 0, 1, 2, 1}));
  EXPECT_EQ(ListsOf(result.preds), Lists({{}, {0}, {1}}));
}

TEST(FindRegions, ParallelChainsWithTheSameOutsideAreOneRegion) {
  // From 0 to 7 three chains of two.
  const CsrRows preds = RowsOf({{}, {0}, {0}, {0}, {1}, {2}, {3}, {4, 5, 6}});
  EXPECT_EQ(FindRegions(preds, {-1, 0, 0, 0, 0, 0, 0, -1}, 4, kMany).regions, Lists({{1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(FindRegions(preds, {-1, 0, 1, 0, 0, 1, 0, -1}, 2, kMany).regions, Lists({{1, 3, 4, 6}, {2, 5}}));
}

TEST(FindRegions, ParallelChainsWithDifferentOutsideAreTwoRegions) {
  const CsrRows two_sources = RowsOf({{}, {}, {0}, {1}, {2}, {3}, {4, 5}});
  EXPECT_EQ(FindRegions(two_sources, {-1, -1, 0, 0, 0, 0, -1}, 2, kMany).regions, Lists({{2, 4}, {3, 5}}));
  const CsrRows two_sinks = RowsOf({{}, {0}, {0}, {1}, {2}, {3}, {4}});
  EXPECT_EQ(FindRegions(two_sinks, {-1, 0, 0, 0, 0, -1, -1}, 2, kMany).regions, Lists({{1, 3}, {2, 4}}));
}

TEST(FindRegions, ComponentsWithoutAnyOutsideAreOneRegion) {
  EXPECT_EQ(FindRegions(RowsOf({{}, {}, {0}, {1}, {}}), {3, 3, 3, 3, 3}, 5, kMany).regions, Lists({{0, 1, 2, 3, 4}}));
}

// 2 and 3 wait for different nodes of one region.
TEST(FindRegions, NodesOfOneRegionAreOneNeighbour) {
  const CsrRows preds = RowsOf({{}, {0}, {0}, {1}, {2}, {3}, {4}});
  EXPECT_EQ(FindRegions(preds, {0, 0, 0, 1, 1, 1, 1}, 1, kMany).regions, Lists({{0, 1, 2}, {3, 4, 5, 6}}));
  // With regions of four nodes, the first three are entries of their own.
  EXPECT_EQ(FindRegions(preds, {0, 0, 0, 1, 1, 1, 1}, 4, kMany).regions, Lists());
}

TEST(FindRegions, WhatIsTooSmallIsLeftAsItIs) {
  const CsrRows chain = Chain(5);
  const Contraction result = FindRegions(chain, {0, 0, -1, 0, 0}, 3, kMany);
  EXPECT_TRUE(result.regions.empty());
  EXPECT_EQ(result.entry_of, std::vector<int32_t>({0, 1, 2, 3, 4}));
  EXPECT_EQ(result.preds, chain);
  EXPECT_EQ(FindRegions(chain, {-1, -1, -1, -1, -1}, 1, kMany).preds, chain);
  EXPECT_TRUE(FindRegions(chain, {0, 0, 0, 0, 0}, 1, 0).regions.empty());
  EXPECT_EQ(FindRegions(CsrRows(), {}, 1, kMany).entries.size(), 0u);
}

TEST(FindRegions, CutsLongChainsIntoEqualPartsAndKeepsShortOnesWhole) {
  EXPECT_EQ(FindRegions(Chain(7), std::vector<int32_t>(7, 0), 1, 4).regions, Lists({{0, 1, 2}, {3, 4, 5, 6}}));
  // Equal parts would be too small.
  EXPECT_EQ(FindRegions(Chain(7), std::vector<int32_t>(7, 0), 4, 5).regions, Lists({{0, 1, 2, 3, 4}}));
  // Three chains of three, side by side.
  const CsrRows chains = RowsOf({{}, {}, {}, {0}, {1}, {2}, {3}, {4}, {5}});
  EXPECT_EQ(FindRegions(chains, std::vector<int32_t>(9, 0), 1, 7).regions, Lists({{0, 1, 3, 4, 6, 7}, {2, 5, 8}}));
}

// Not to be quadratic: each of these takes some milliseconds.
TEST(FindRegions, LongChainsAndLargeStars) {
  constexpr int32_t kNodes = 100'000;
  const std::vector<int32_t> all(kNodes, 0);
  EXPECT_EQ(FindRegions(Chain(kNodes), all, 8, kMany).entries.size(), 1u);
  CsrRows star, join;
  star.Close();
  for (int32_t v = 1; v < kNodes; ++v) star.Add(0), star.Close(), join.Close(), join.Add(v - 1);
  join.Close();
  EXPECT_EQ(FindRegions(star, all, 8, kMany).entries.size(), 1u);
  std::vector<int32_t> hub = all;
  hub.front() = -1;
  EXPECT_EQ(FindRegions(star, hub, 8, kMany).entries.size(), 2u);
  std::swap(hub.front(), hub.back());
  EXPECT_EQ(FindRegions(join, hub, 8, kMany).entries.size(), 2u);
}

}  // namespace
}  // namespace penstock::graph::regions_test
