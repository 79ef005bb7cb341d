// Edges: the rule, on declared accesses and on the instances that InsertTransfers makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/graph/oracle/box_oracle.h"
#include "tests/graph/oracle/draft_after.h"

namespace penstock::graph::edges_test {
namespace {

using Lists = std::vector<std::vector<int32_t>>;

Lists ListsOf(const CsrRows& rows) {
  Lists lists;
  for (int32_t r = 0; r < rows.rows(); ++r) {
    lists.emplace_back(rows[r].begin(), rows[r].end());
    std::sort(lists.back().begin(), lists.back().end());  // in any order
  }
  return lists;
}

Lists DeclaredOf(const ModelBuilder& g) {
  const PlanOptions options = Devices(1);
  return ListsOf(DraftAfter("DeclaredEdges", g.model, options).checked.declared);
}

TEST(Edges, AReadFollowsTheLastWrite) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.Host("w0", Out{x});
  g.Host("w1", Out{x});
  g.Host("r", In{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}}));
}

TEST(Edges, AWriteFollowsEveryReadSinceTheLastWrite) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.Host("w0", Out{x});
  g.Host("r0", In{x});
  g.Host("r1", In{x});
  g.Host("w1", Out{x});
  g.Host("w2", Out{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {0}, {1, 2}, {3}}));
}

TEST(Edges, ReadsAreNotOrdered) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4);
  g.Host("r0", In{x});
  g.Host("r1", In{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}}));
}

TEST(Edges, ReadWriteIsBoth) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.Host("r", In{x});
  g.Host("c0", Change{x});
  g.Host("c1", Change{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}}));
}

TEST(Edges, ANodeThatReadsAndWritesABufferApartDoesNotFollowItself) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.Host("a", In{x}, Out{x});
  g.Host("b", Out{x}, In{x});
  g.Host("c", In{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}}));
}

TEST(Edges, BuffersAreIndependent) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4), y = g.InOut("y", 4);
  g.Host("a", Out{x});
  g.Host("b", Out{y});
  g.Host("c", In{x}, In{y});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}, {0, 1}}));
}

TEST(Edges, AfterPointsBothWaysAndIsNotDoubled) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  const int32_t a = g.Host("a", Out{x}), b = g.Host("b", In{x}), c = g.Host("c");
  g.After(b, a);
  g.After(b, c);
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0, 2}, {}}));
}

TEST(Edges, UnsoundAccessesAreSkipped) {
  ModelBuilder g;
  g.InOut("x", 4);
  g.Host("a", Out{5});
  g.Host("b", In{5});
  g.After(1, 9);
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}}));
}

TEST(Edges, BoxesThatShareNoElementAreIndependent) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", {8, 8});
  g.Host("left", Change{x, Slice({0, 0}, {8, 4})});  // columns, which interleave in memory
  g.Host("right", Change{x, Slice({0, 4}, {8, 4})});
  g.Host("middle", In{x, Slice({2, 3}, {1, 2})});
  g.Host("again", Out{x, Slice({0, 0}, {8, 4})});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}, {0, 1}, {0, 2}}));
}

TEST(Edges, AWriteOfTheWholeFollowsAndHidesItsTiles) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.Host("a", Out{x, Slice(0, 4)});
  g.Host("b", Out{x, Slice(4, 4)});
  g.Host("all", Out{x});
  g.Host("c", In{x, Slice(0, 4)});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}, {0, 1}, {2}}));
}

TEST(Edges, AWriteOfABoxFollowsItsReadersAndNotTheWriterBeforeThem) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.Host("w0", Out{x, Slice(0, 4)});
  g.Host("r", In{x, Slice(0, 4)});
  g.Host("w1", Out{x, Slice(0, 4)});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}}));
}

TEST(Edges, WhatIsOverwrittenInPiecesIsHidden) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", {4, 4});
  g.Host("all", Out{x});
  g.Host("a", Out{x, Slice({0, 0}, {4, 3})});
  g.Host("b", Out{x, Slice({0, 3}, {4, 1})});
  g.Host("c", In{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {0}, {1, 2}}));
}

TEST(Edges, AnyPartOfABufferWithoutElementsIsAllOfIt) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", {0, 8});
  g.Host("a", Out{x, Slice({0, 0}, {0, 4})});
  g.Host("b", In{x, Slice({0, 4}, {0, 4})});
  g.Host("c", Out{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}}));
}

TEST(Edges, WhatIsOverwrittenInPartIsSeenByTheRestOnly) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", {4, 4});
  g.Host("all", Out{x});
  g.Host("a", Out{x, Slice({0, 0}, {4, 2})});
  g.Host("b", In{x, Slice({1, 0}, {2, 2})});
  g.Host("c", In{x, Slice({1, 1}, {2, 2})});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}, {0, 1}}));
}

TEST(Edges, ReadersOfAPartThatIsGoneAreForgotten) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.Host("r", In{x, Slice(2, 4)});
  g.Host("a", Out{x, Slice(0, 4)});
  g.Host("b", Out{x, Slice(4, 4)});
  g.Host("c", Out{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {0}, {1, 2}}));
}

TEST(Edges, EmptyBoxesConflictWithNothing) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.Host("a", Out{x});
  g.Host("b", Out{x, Slice(3, 0)});
  g.Host("c", Out{x, Slice(8, 0)});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}, {}}));
}

TEST(Edges, ParameterOffsetsOrderAgainstAllOfTheBuffer) {
  ModelBuilder g;
  const int32_t n = g.Param("n"), x = g.InOut("x", 8);
  g.Host("a", Out{x, Slice(0, 1)});
  g.Host("b", Out{x, Slice(g.ParamDim(n), 1)});
  g.Host("c", In{x, Slice(7, 1)});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {1}}));
}

TEST(Edges, ParameterSizesCountWithTheirMaximum) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 4), x = g.InOut("x", 8);
  g.Host("a", Out{x, Slice(0, g.ParamDim(n))});
  g.Host("b", Out{x, Slice(3, 1)});
  g.Host("c", Out{x, Slice(4, 4)});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {}}));
}

TEST(Edges, AnAliasIsItsBase) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", {4, 4});
  const int32_t top = g.Alias("top", x, Slice({0, 0}, {2, 4})), corner = g.Alias("corner", top, Slice({1, 3}, {1, 1}));
  const int32_t bytes = g.Alias("bytes", x, 1, {4, 16});
  g.Host("a", Out{top});
  g.Host("b", In{corner});
  g.Host("c", Out{x, Slice({2, 0}, {2, 4})});
  g.Host("d", Out{bytes, Slice({1, 11}, {1, 1})});  // the last byte of column 2
  g.Host("e", In{corner});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {0}, {}, {0}, {0}}));
}

TEST(Edges, UnorderedAccessesMakeNone) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.Host("a", Out{x});
  g.Host("b", Loose{Out{x}});
  g.Host("c", In{x});
  EXPECT_EQ(DeclaredOf(g), (Lists{{}, {}, {0}}));
}

// Any two nodes that touch a common byte, one writing, are on a path, and every edge is between two such.
TEST(Edges, RandomBoxesAreOrderedExactlyWhereTheyMeet) {
  int boxed = 0, edges = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    ModelBuilder g;
    const int rank = 1 + static_cast<int>(random() % 3);
    const Extent extents[] = {Extent(12), Extent(6, 5), Extent(3, 4, 4)};
    const Extent& extent = extents[rank - 1];
    const int32_t x = g.InOut("x", extent);
    Extent halves = extent;
    halves.dims[static_cast<size_t>(rank) - 1].value *= 2;
    const int32_t buffers[] = {x, x, x, g.Alias("halves", x, 2, halves), g.InOut("y", extent)};
    const int count = 2 + static_cast<int>(random() % 24);
    for (int n = 0; n < count; ++n) {
      const int32_t node = g.Host("n" + std::to_string(n));
      for (int a = 1 + static_cast<int>(random() % 2); a > 0; --a) {
        const int32_t b = buffers[random() % 5];
        const Box box = random() % 8 == 0 ? Box{} : RandomBox(random, g.model.buffers[b].extent);
        const auto mode = static_cast<AccessMode>(1 + random() % 3);
        g.node(node).accesses.push_back({b, ModelBuilder::kSerial, mode, false, box});
        boxed += !box.whole;
      }
    }
    const Lists preds = DeclaredOf(g);
    const auto path = Reachable(preds);
    const BoxOracle oracle(g.model);
    for (size_t b = 0; b < preds.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const bool conflict = oracle.Conflict(g.model.nodes[a], g.model.nodes[b]);
        const bool edge = std::count(preds[b].begin(), preds[b].end(), static_cast<int32_t>(a)) > 0;
        ASSERT_TRUE(!conflict || path[a][b]) << "seed " << seed << ": n" << a << " and n" << b << " are not ordered";
        ASSERT_TRUE(conflict || !edge) << "seed " << seed << ": n" << a << " and n" << b << " share nothing";
        edges += edge;
      }
    }
  }
  EXPECT_GT(boxed, 10000);
  EXPECT_GT(edges, 10000);
}

// Row blocks with halos, step after step: a reader of a halo is forgotten once its neighbours have written.
TEST(Edges, AStencilHasAsManyEdgesAStepHoweverManySteps) {
  const auto edges = [](int steps) {
    ModelBuilder g;
    const int32_t even = g.InOut("even", {64, 4}), odd = g.InOut("odd", {64, 4});
    for (int s = 0; s < steps; ++s) {
      for (int64_t row = 0; row < 64; row += 8) {
        const int64_t from = std::max<int64_t>(row - 1, 0), to = std::min<int64_t>(row + 9, 64);
        g.For("s" + std::to_string(s) + "r" + std::to_string(row),
              In{s % 2 ? odd : even, Slice({from, 0}, {to - from, 4})},
              Out{s % 2 ? even : odd, Slice({row, 0}, {8, 4})});
      }
    }
    size_t count = 0;
    for (const auto& preds : DeclaredOf(g)) count += preds.size();
    return count;
  };
  EXPECT_EQ(edges(40) - edges(30), edges(30) - edges(20));
}

// host writes x.bound | upload reads x.pinned | ... : at launch the two may be the same memory.
TEST(Edges, StagingAndBoundMemoryConflictUnlessStaged) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.For("k", In{x});
  g.Host("h", Out{x});
  const PlanOptions options = Devices(1);
  const Draft draft = DraftAfter("InstanceEdges", g.model, options, "EliminateCopies");
  // stage x, upload x, k, h: h writes what is staged from and, when they are one, what is uploaded from.
  ASSERT_EQ(draft.ordered.steps.size(), 4u);
  EXPECT_EQ(ListsOf(draft.ordered.edges), (Lists{{}, {0}, {1}, {0, 1, 2}}));
}

}  // namespace
}  // namespace penstock::graph::edges_test
