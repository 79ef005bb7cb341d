// Cycles, and data that nobody wrote or that is not to be written.
#include <gtest/gtest.h>

#include "graph/passes.h"
#include "tests/graph/model_builder.h"

namespace penstock::graph {
namespace {

TEST(Check, NamesTheNodesOfACycle) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.Host("free");
  const int32_t a = g.Host("a", Out{x});
  g.Host("b", In{x});
  const int32_t c = g.Host("c");
  g.After(c, 2);
  g.After(a, c);
  EXPECT_EQ(
      MistakeOf(g),
      "INVALID_ARGUMENT: graph 'g': nodes wait for each other: 'a' (a.cc:3) after 'c' (a.cc:5) after 'b' (a.cc:4) "
      "after 'a' (a.cc:3); none of them could start; remove an After");
}

TEST(Check, FindsANodeAfterItself) {
  ModelBuilder g;
  const int32_t a = g.Host("a");
  g.After(a, a);
  EXPECT_EQ(
      MistakeOf(g),
      "INVALID_ARGUMENT: graph 'g': nodes wait for each other: 'a' (a.cc:1) after 'a' (a.cc:1); none of them could "
      "start; remove an After");
}

TEST(Check, LeavesNodesBehindACycleOutOfIt) {
  ModelBuilder g;
  const int32_t behind = g.Host("behind"), a = g.Host("a"), b = g.Host("b");
  g.After(behind, b);
  g.After(a, b);
  g.After(b, a);
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g': nodes wait for each other: 'a' (a.cc:2) after 'b' (a.cc:3) after 'a' "
            "(a.cc:2); none of them could start; remove an After");
}

TEST(Check, SequenceFollowsAfterAndElseTheDeclaration) {
  ModelBuilder g;
  const int32_t a = g.Host("a");
  g.Host("b");
  const int32_t c = g.Host("c");
  g.Host("d");
  g.After(a, c);
  const PlanOptions options = Devices(1);
  Draft draft(g.model, options);
  DeclaredEdges(draft);
  Check(draft);
  EXPECT_EQ(draft.sequence, (std::vector<int32_t>{1, 2, 0, 3}));
}

TEST(Check, RefusesReadsBeforeTheFirstWrite) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4), y = g.Output("y", 4);
  g.For("k", In{t}, Out{y});
  g.For("again", In{t}, Out{y});
  EXPECT_EQ(
      MistakeOf(g),
      "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:3): reads 't' (a.cc:1) before any node has written it; its "
      "contents would be undefined; write it first, say Write where this node writes all of it, or declare it with "
      "Input or InOut");
}

TEST(Check, RefusesReadWriteBeforeTheFirstWrite) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 4);
  g.For("k", Change{y});
  g.For("late", Out{y});
  EXPECT_EQ(
      MistakeOf(g),
      "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:2): reads 'y' (a.cc:1) before any node has written it; its "
      "contents would be undefined; write it first, say Write where this node writes all of it, or declare it with "
      "Input or InOut");
}

TEST(Check, ANodeDoesNotReadWhatItWritesItself) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k", Out{t}, In{t});
  EXPECT_NE(MistakeOf(g), "OK");
}

TEST(Check, RefusesOutputsThatNobodyWrites) {
  ModelBuilder g;
  g.Output("y", 4);
  EXPECT_EQ(
      MistakeOf(g),
      "INVALID_ARGUMENT: graph 'g' buffer 'y' (a.cc:1): an Output that no node writes; its memory would come back "
      "untouched; write it or remove it");
}

TEST(Check, RefusesWritesToInputs) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4);
  g.For("k", Change{x});
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'k' (a.cc:2): writes 'x' (a.cc:1), which is an Input; bound Inputs are "
            "never changed; declare it with InOut");
}

}  // namespace
}  // namespace penstock::graph
