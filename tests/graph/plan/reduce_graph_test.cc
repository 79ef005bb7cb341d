// Edges of graphs against brute force: reachability by search, bytes by comparing intervals.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan/reduce_graph.h"
#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::reduce_graph_test {
namespace {

CsrRows RowsOf(const std::vector<std::vector<int32_t>>& lists) {
  CsrRows rows;
  for (const std::vector<int32_t>& list : lists) {
    for (const int32_t p : list) rows.Add(p);
    rows.Close();
  }
  return rows;
}

// Entry (a, b): a path leads from a to b.
std::vector<std::vector<char>> Reach(const CsrRows& preds) {
  const auto count = static_cast<size_t>(preds.rows());
  std::vector<std::vector<char>> reach(count, std::vector<char>(count));
  for (size_t v = 0; v < count; ++v) {
    for (const int32_t p : preds[static_cast<int32_t>(v)]) {
      for (size_t a = 0; a < count; ++a) reach[a][v] |= reach[a][p];
      reach[p][v] = 1;
    }
  }
  return reach;
}

CsrRows Without(const CsrRows& preds, int32_t node, int32_t pred) {
  CsrRows changed;
  for (int32_t v = 0; v < preds.rows(); ++v) {
    for (const int32_t p : preds[v]) {
      if (v != node || p != pred) changed.Add(p);
    }
    changed.Close();
  }
  return changed;
}

TEST(TransitiveReduction, LeavesOutWhatAPathImplies) {
  EXPECT_EQ(TransitiveReduction(RowsOf({{}, {0}, {0, 1}})), RowsOf({{}, {0}, {1}}));
  EXPECT_EQ(TransitiveReduction(RowsOf({{}, {0}, {1}, {0, 2}})), RowsOf({{}, {0}, {1}, {2}}));
  EXPECT_EQ(TransitiveReduction(RowsOf({{}, {0}, {0}, {1, 2}})), RowsOf({{}, {0}, {0}, {1, 2}})) << "a diamond is kept";
  EXPECT_EQ(TransitiveReduction(CsrRows()), CsrRows());
}

TEST(TransitiveReduction, IsExactOnRandomGraphs) {
  int removed = 0, kept = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    const int nodes = 1 + static_cast<int>(random() % 220), reach = 1 + static_cast<int>(random() % 80);
    const int degree = 1 + static_cast<int>(random() % 6);
    std::vector<Edge> list;
    for (int32_t v = 1; v < nodes; ++v) {
      for (uint64_t e = random() % static_cast<uint64_t>(degree + 1); e > 0; --e) {
        list.push_back({v - 1 - static_cast<int32_t>(random() % static_cast<uint64_t>(std::min(v, reach))), v});
      }
    }
    const CsrRows all = MakeEdges(nodes, list), reduced = TransitiveReduction(all);
    ASSERT_EQ(Reach(reduced), Reach(all)) << "seed " << seed;
    for (int32_t v = 0; v < reduced.rows(); ++v) {
      for (const int32_t p : reduced[v]) {
        ASSERT_FALSE(Reach(Without(reduced, v, p))[p][v])
            << "seed " << seed << ": " << p << " -> " << v << " is implied";
        if (++kept % 16 != 0) break;  // each look costs a closure
      }
    }
    removed += static_cast<int>(all.items() - reduced.items());
  }
  std::cout << removed << " edges removed, " << kept << " of the kept ones tried\n";
  EXPECT_GT(removed, 4000);
}

// More than 64 nodes with edges in question, and edges from the first to the last of them.
TEST(TransitiveReduction, LongEdgesOfManyNodes) {
  constexpr int kNodes = 1000;
  std::vector<std::vector<int32_t>> chain(1), skipping(1);
  for (int32_t v = 1; v < kNodes; ++v) {
    chain.push_back({v - 1});
    skipping.push_back(v > 1 ? std::vector<int32_t>{v / 2, v - 1} : std::vector<int32_t>{0});
    if (v == 2) skipping.back() = {1};
  }
  EXPECT_EQ(TransitiveReduction(RowsOf(skipping)), RowsOf(chain));
}

// n * n / 2 edges, each answered by a search among the predecessors of the last one.
TEST(TransitiveReduction, NeedsNoSweepWhereEachNodeComesAfterAllBeforeIt) {
  constexpr int32_t kNodes = 400;
  std::vector<std::vector<int32_t>> chain(1), all(1);
  for (int32_t v = 1; v < kNodes; ++v) {
    chain.push_back({v - 1});
    all.push_back(all.back());
    all.back().push_back(v - 1);
  }
  int64_t examined = -1;
  EXPECT_EQ(TransitiveReduction(RowsOf(all), &examined), RowsOf(chain));
  EXPECT_EQ(examined, 0);
}

// Three layers, the last after some of either, so that every edge from the first to the last is in doubt and each sweep
// goes over the edges of the middle one. `nodes` of each.
CsrRows Layers(int32_t nodes) {
  std::mt19937_64 random(4711);
  std::vector<Edge> list;
  const auto any = [&](int32_t layer) {
    return layer * nodes + static_cast<int32_t>(random() % static_cast<uint64_t>(nodes));
  };
  for (int32_t v = 0; v < nodes; ++v) {
    for (int e = 0; e < 4; ++e) list.push_back({any(0), nodes + v});
    for (int e = 0; e < 2; ++e) list.push_back({any(0), 2 * nodes + v}), list.push_back({any(1), 2 * nodes + v});
  }
  return MakeEdges(3 * nodes, list);
}

TEST(TransitiveReduction, StopsWhenItHasLookedSixteenTimesAtEachEdge) {
  for (const int32_t nodes : {100, 8000}) {
    const CsrRows all = Layers(nodes);
    const auto edges = static_cast<int64_t>(all.items());
    int64_t examined = 0;
    const CsrRows reduced = TransitiveReduction(all, &examined);
    EXPECT_EQ(examined > kMostExamined * edges, nodes == 8000) << examined << " examined at " << edges << " edges";
    EXPECT_LE(examined, (kMostExamined + 2) * edges + all.rows());
    // Of three layers: what is left out has a path of two edges, and what has one is left out unless the examined
    // ended.
    int64_t left_out = 0, implied = 0;
    for (int32_t v = 0; v < all.rows(); ++v) {
      for (const int32_t p : all[v]) {
        const std::span<const int32_t> kept = reduced[v];
        const bool stays = std::binary_search(kept.begin(), kept.end(), p);
        const bool is_implied = std::any_of(all[v].begin(), all[v].end(), [&](int32_t q) {
          return std::binary_search(all[q].begin(), all[q].end(), p);
        });
        ASSERT_TRUE(stays || is_implied) << p << " -> " << v;
        left_out += !stays;
        implied += is_implied;
      }
    }
    EXPECT_GT(implied, 0);
    if (nodes == 100) {
      EXPECT_EQ(left_out, implied);
    }
  }
}

// Of a graph of all nodes.
CsrRows EdgesOf(const Plan& plan) {
  std::vector<NodeId> nodes;
  for (const NodeId n : plan.nodes.ids()) {
    if (!JoinsBatch(plan, n)) nodes.push_back(n);
  }
  return EdgesOfGraph(plan, MemoryEdges(plan), LaneEdges(plan), nodes);
}

TEST(MemoryEdges, JoinTheUsersOfBytesThatOnlyALaneOrders) {
  ModelBuilder g;
  g.For("k0", Out{g.Scratch("t", 64)});
  g.For("k1", Out{g.Scratch("u", 64)});
  PlanOptions options = Devices(1);
  options.max_lanes = 1;
  const Plan plan = PlanOf(g, options);
  ASSERT_EQ(plan.instances[0].offset, plan.instances[1].offset);
  EXPECT_TRUE(plan.nodes[1].preds.empty());
  EXPECT_EQ(MemoryEdges(plan), RowsOf({{}, {0}}));
  EXPECT_EQ(EdgesOf(plan), RowsOf({{}, {0}}));
}

TEST(LaneEdges, JoinNeighboursOfOneLane) {
  ModelBuilder g;
  for (const char* name : {"a", "b", "c"}) g.Launch(name, Out{g.Scratch(std::string("of ") + name, 64)});
  PlanOptions options = Devices(1);
  EXPECT_EQ(LaneEdges(PlanOf(g, options)), RowsOf({{}, {}, {}})) << "each has a lane";
  options.max_lanes = 1;
  EXPECT_EQ(LaneEdges(PlanOf(g, options)), RowsOf({{}, {0}, {1}}));
  EXPECT_EQ(EdgesOf(PlanOf(g, options)), RowsOf({{}, {0}, {1}}));
}

TEST(LaneEdges, AreNoneWhereAPathOrdersThem) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64);
  g.Launch("a", Out{t});
  g.For("k", Change{t});
  g.Launch("b", Change{t});
  EXPECT_EQ(EdgesOf(PlanOf(g)), RowsOf({{}, {0}, {1}}));
}

// One instance a node, by offset and bytes.
Plan PlanOfInstances(const std::vector<std::pair<int64_t, int64_t>>& instances) {
  Plan plan;
  for (const auto& [offset, bytes] : instances) {
    plan.instances.push_back(
        {.buffer = static_cast<int32_t>(plan.instances.size()), .device = 0, .bytes = bytes, .offset = offset});
    PlanNode node;
    node.kind = PlanKind::kKernel;
    node.decl = static_cast<int32_t>(plan.nodes.size());
    node.segment = 0;
    node.uses = {{plan.instances.count() - 1, AccessMode::kWrite}};
    plan.nodes.push_back(node);
  }
  return plan;
}

TEST(MemoryEdges, ARegionTakenInPartsKeepsItsTenantForTheRest) {
  const Plan plan = PlanOfInstances({{0, 768}, {256, 256}, {0, 768}});
  EXPECT_EQ(MemoryEdges(plan), RowsOf({{}, {0}, {0, 1}}));
  EXPECT_EQ(EdgesOf(plan), RowsOf({{}, {0}, {1}}));
  EXPECT_EQ(MemoryEdges(PlanOfInstances({{0, 768}, {256, 256}, {0, 256}, {512, 256}})), RowsOf({{}, {0}, {0}, {0}}));
}

// Nodes that use no memory: by their predecessors, and the first of their batch where they have one.
struct NodeOf {
  absl::InlinedVector<NodeId, 4> preds;
  NodeId batch{};
};
Plan PlanOfNodes(const std::vector<NodeOf>& nodes) {
  Plan plan;
  for (const NodeOf& n : nodes) {
    PlanNode node;
    node.kind = PlanKind::kKernel;
    node.decl = static_cast<int32_t>(plan.nodes.size());
    node.preds = n.preds;
    node.batch = n.batch;
    plan.nodes.push_back(node);
  }
  return plan;
}

TEST(EdgesOfGraph, OfABatchAreThoseOfAllItsNodes) {
  const Plan plan = PlanOfNodes({{}, {}, {{0}, 2}, {{1}, 2}, {{1}, 2}, {{0, 2}}, {{4}}});
  EXPECT_EQ(EdgesOf(plan), RowsOf({{}, {}, {0, 1}, {2}, {2}}));
}

TEST(EdgesOfGraph, JoinBatchesThatStandSideBySide) {
  const Plan plan = PlanOfNodes({{{}, 0}, {{}, 0}, {{1}, 2}, {{}, 2}, {{3}}});
  EXPECT_EQ(EdgesOf(plan), RowsOf({{}, {0}, {1}}));
}

TEST(EdgesOfGraph, InsideABatchAreNone) {
  EXPECT_EQ(EdgesOf(PlanOfNodes({{{}, 0}, {{0}, 0}, {{0, 1}, 0}})), RowsOf({{}}));
}

TEST(EdgesOfGraph, LeaveOutNodesOfOtherGraphs) {
  const Plan plan = PlanOfNodes({{}, {{0}}, {{1}}, {{0, 2}}, {{3}}, {{1, 4}}});
  const CsrRows memory = MemoryEdges(plan);
  EXPECT_EQ(EdgesOfGraph(plan, memory, LaneEdges(plan), std::vector<NodeId>{1, 3, 5}), RowsOf({{}, {}, {0}}))
      << "what a path through another graph says is no edge";
  EXPECT_EQ(EdgesOfGraph(plan, memory, LaneEdges(plan), std::vector<NodeId>{4}), RowsOf({{}}));
  EXPECT_EQ(EdgesOfGraph(plan, memory, LaneEdges(plan), {}), CsrRows());
}

TEST(EdgesOfGraph, HaveTheMemoryEdgesOfAllNodesOfABatch) {
  Plan plan = PlanOfInstances({{0, 256}, {256, 256}, {256, 256}, {0, 256}});
  plan.nodes[2].batch = plan.nodes[3].batch = 2;
  EXPECT_EQ(EdgesOf(plan), RowsOf({{}, {}, {0, 1}}));
}

}  // namespace
}  // namespace penstock::graph::reduce_graph_test
