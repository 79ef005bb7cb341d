// Edges: the rule, on declared accesses and on the instances that Transfers makes.
#include <gtest/gtest.h>

#include "graph/passes.h"
#include "tests/graph/model_builder.h"

namespace penstock::graph {
namespace {

using Lists = std::vector<std::vector<int32_t>>;

Lists ListsOf(const Rows& rows) {
  Lists lists;
  for (int32_t r = 0; r < rows.rows(); ++r) lists.emplace_back(rows[r].begin(), rows[r].end());
  return lists;
}

Lists DeclaredOf(const ModelBuilder& g) {
  const PlanOptions options = Devices(1);
  Draft draft(g.model, options);
  DeclaredEdges(draft);
  return ListsOf(draft.declared);
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

// host writes x.bound | upload reads x.pinned | ... : at launch the two may be the same memory.
TEST(Edges, StagingAndBoundMemoryConflictUnlessStaged) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.For("k", In{x});
  g.Host("h", Out{x});
  const PlanOptions options = Devices(1);
  Draft draft(g.model, options);
  Validate(draft);
  DeclaredEdges(draft);
  Check(draft);
  Place(draft);
  Transfers(draft);
  InstanceEdges(draft);
  // stage x, upload x, k, h: h writes what is staged from and, when they are one, what is uploaded from.
  ASSERT_EQ(draft.steps.size(), 4u);
  EXPECT_EQ(ListsOf(draft.edges), (Lists{{}, {0}, {1}, {0, 1, 2}}));
}

}  // namespace
}  // namespace penstock::graph
