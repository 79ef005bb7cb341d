// Cycles, data that nobody wrote or that is not to be written, and missing order of Unordered accesses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/graph/oracle/box_oracle.h"
#include "tests/graph/oracle/draft_after.h"

namespace penstock::graph::check_test {
namespace {

TEST(Check, SequenceFollowsAfterAndElseTheDeclaration) {
  ModelBuilder g;
  const int32_t a = g.Host("a");
  g.Host("b");
  const int32_t c = g.Host("c");
  g.Host("d");
  g.After(a, c);
  const PlanOptions options = Devices(1);
  const Draft draft = DraftAfter("Check", g.model, options);
  EXPECT_EQ(draft.checked.sequence, (std::vector<DeclId>{1, 2, 0, 3}));
}

// Graphs by what is said to them.
const GraphVerdict kVerdicts[] = {
    {"NamesTheNodesOfACycle",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 4);
       g.Host("free");
       const int32_t a = g.Host("a", Out{x});
       g.Host("b", In{x});
       const int32_t c = g.Host("c");
       g.After(c, 2);
       g.After(a, c);
     },
     "graph 'g': nodes wait for each other: 'a' (a.cc:3) after 'c' (a.cc:5) after 'b' (a.cc:4) after 'a' (a.cc:3); "
     "none of them could start; remove an After"},
    {"FindsANodeAfterItself",
     [](ModelBuilder& g) {
       const int32_t a = g.Host("a");
       g.After(a, a);
     },
     "graph 'g': nodes wait for each other: 'a' (a.cc:1) after 'a' (a.cc:1); none of them could start; remove an "
     "After"},
    {"LeavesNodesBehindACycleOutOfIt",
     [](ModelBuilder& g) {
       const int32_t behind = g.Host("behind"), a = g.Host("a"), b = g.Host("b");
       g.After(behind, b);
       g.After(a, b);
       g.After(b, a);
     },
     "graph 'g': nodes wait for each other: 'a' (a.cc:2) after 'b' (a.cc:3) after 'a' (a.cc:2); none of them could "
     "start; remove an After"},
    {"RefusesReadsBeforeTheFirstWrite",
     [](ModelBuilder& g) {
       const int32_t t = g.Scratch("t", 4), y = g.Output("y", 4);
       g.For("k", In{t}, Out{y});
       g.For("again", In{t}, Out{y});
     },
     "graph 'g' node 'k' (a.cc:3): reads 't' (a.cc:1) before any node has written it; its contents would be undefined; "
     "write it first, say Write where this node writes all of it or WriteSome where it only writes some of it, or "
     "declare it with Input or InOut"},
    {"RefusesReadWriteBeforeTheFirstWrite",
     [](ModelBuilder& g) {
       const int32_t y = g.Output("y", 4);
       g.For("k", Change{y});
       g.For("late", Out{y});
     },
     "graph 'g' node 'k' (a.cc:2): reads 'y' (a.cc:1) before any node has written it; its contents would be undefined; "
     "write it first, say Write where this node writes all of it or WriteSome where it only writes some of it, or "
     "declare it with Input or InOut"},
    {"RefusesOutputsThatNobodyWrites", [](ModelBuilder& g) { g.Output("y", 4); },
     "graph 'g' buffer 'y' (a.cc:1): an Output that no node writes; its memory would come back untouched; write it or "
     "remove it"},
    {"RefusesWritesToInputs",
     [](ModelBuilder& g) {
       const int32_t x = g.Input("x", 4);
       g.For("k", Change{x});
     },
     "graph 'g' node 'k' (a.cc:2): writes 'x' (a.cc:1), which is an Input; bound Inputs are never changed; declare it "
     "with InOut"},
    {"RefusesWritesToPartsOfInputs",
     [](ModelBuilder& g) {
       const int32_t x = g.Input("x", 4), a = g.Alias("a", x, Slice(1, 2));
       g.For("k", Out{a});
     },
     "graph 'g' node 'k' (a.cc:3): writes 'x' (a.cc:1), which is an Input; bound Inputs are never changed; declare it "
     "with InOut"},
    {"SaysWhichPartOfAReadNobodyHasWritten",
     [](ModelBuilder& g) {
       const int32_t t = g.Scratch("t", {4, 8}), y = g.Output("y", 1);
       g.For("left", Out{t, Slice({0, 0}, {4, 5})});
       g.For("right", Out{t, Slice({0, 6}, {4, 2})});
       g.For("fine", In{t, Slice({1, 1}, {2, 4})}, Out{y});
       g.For("k", In{t, Slice({1, 0}, {2, 7})}, Out{y});
     },
     "graph 'g' node 'k' (a.cc:6): reads Slice({1, 0}, {2, 7}) of 't' (a.cc:1) before any node has written Slice({1, "
     "5}, {2, 1}) of it; its contents would be undefined; write it first, say Write where this node writes all of it "
     "or WriteSome where it only writes some of it, "
     "or declare it with Input or InOut"},
    {"SaysWhichPartNobodyHasWrittenAtAll",
     [](ModelBuilder& g) {
       const int32_t t = g.Scratch("t", {4, 8}), y = g.Output("y", 1);
       g.For("left", Out{t, Slice({0, 0}, {4, 4})});
       g.For("k", In{t, Slice({0, 4}, {4, 4})}, Out{y});
     },
     "graph 'g' node 'k' (a.cc:4): reads Slice({0, 4}, {4, 4}) of 't' (a.cc:1) before any node has written it; its "
     "contents would be undefined; write it first, say Write where this node writes all of it or WriteSome where it "
     "only writes some of it, or declare it with "
     "Input or InOut"},
    {"APartOfAnElementCountsAsMissing",
     [](ModelBuilder& g) {
       const int32_t t = g.Scratch("t", 4), bytes = g.Alias("bytes", t, 1, 16), y = g.Output("y", 1);
       g.For("rest", Out{bytes, Slice(6, 10)});
       g.For("k", In{t}, Out{y});
     },
     "graph 'g' node 'k' (a.cc:5): reads 't' (a.cc:1) before any node has written Slice({0}, {2}) of it; its contents "
     "would be undefined; write it first, say Write where this node writes all of it or WriteSome where it only writes "
     "some of it, or declare it with Input or "
     "InOut"},
    {"AFillOfAPartWritesThatPartOnly",
     [](ModelBuilder& g) {
       const int32_t t = g.Scratch("t", 8);
       g.node(g.Fill("f", t)).accesses[0].box = Slice(2, 6);
       g.For("inside", In{t, Slice(3, 5)});
       g.For("k", In{t});
     },
     "graph 'g' node 'k' (a.cc:4): reads 't' (a.cc:1) before any node has written Slice({0}, {2}) of it; its contents "
     "would be undefined; write it first, say Write where this node writes all of it or WriteSome where it only writes "
     "some of it, or declare it with Input or "
     "InOut"},
    {"AnOutputThatIsOnlyReadIsToldOnce", [](ModelBuilder& g) { g.For("k", In{g.Output("y", 4)}); },
     "graph 'g' node 'k' (a.cc:2): reads 'y' (a.cc:1) before any node has written it; its contents would be undefined; "
     "write it first, say Write where this node writes all of it or WriteSome where it only writes some of it, or "
     "declare it with Input or InOut"},
    {"TilesThatCoverABufferMayBeReadAsAWhole",
     [](ModelBuilder& g) {
       const int32_t t = g.Scratch("t", {100, 100}), y = g.Output("y", 1);
       for (int64_t at = 0; at < 100; ++at) {
         g.For("t" + std::to_string(at), Out{t, Slice({at / 10 * 10, at % 10 * 10}, {10, 10})});
       }
       g.For("k", In{t}, Out{y});
     },
     "OK"},
    {"NamesBothNodesThatNothingOrders",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", {4, 8});
       g.Host("a", Out{x, Slice({0, 0}, {4, 5})});
       g.Host("b", Loose{Change{x, Slice({0, 4}, {4, 4})}});
       g.Host("c", Loose{In{x}});
     },
     "graph 'g': 3 mistakes:\n"
     "  graph 'g' node 'b' (a.cc:3): changes Slice({0, 4}, {4, 4}) of 'x' (a.cc:1) while node 'a' (a.cc:2) may write "
     "Slice({0, 0}, {4, 5}) of 'x' (a.cc:1); an Unordered access leaves the order of the two to After, and no path "
     "orders them; let one come After the other, or drop Unordered\n"
     "  graph 'g' node 'c' (a.cc:4): reads 'x' (a.cc:1) while node 'a' (a.cc:2) may write Slice({0, 0}, {4, 5}) of 'x' "
     "(a.cc:1); an Unordered access leaves the order of the two to After, and no path orders them; let one come After "
     "the other, or drop Unordered\n"
     "  graph 'g' node 'c' (a.cc:4): reads 'x' (a.cc:1) while node 'b' (a.cc:3) may change Slice({0, 4}, {4, 4}) of "
     "'x' (a.cc:1); an Unordered access leaves the order of the two to After, and no path orders them; let one come "
     "After the other, or drop Unordered"},
    {"NamesTheAccessesThatMeet",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 8);
       g.Host("a", Out{x, Slice(0, 2)}, Out{x, Slice(4, 2)});
       g.Host("b", Loose{Change{x, Slice(5, 3)}});
     },
     "graph 'g' node 'b' (a.cc:3): changes Slice({5}, {3}) of 'x' (a.cc:1) while node 'a' (a.cc:2) may write "
     "Slice({4}, {2}) of 'x' (a.cc:1); an Unordered access leaves the order of the two to After, and no path orders "
     "them; let one come After the other, or drop Unordered"},
    {"BehindACycleMissingOrderIsNotLookedFor",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 8);
       const int32_t a = g.Host("a"), b = g.Host("b");
       g.Host("c", Loose{Out{x}});
       g.Host("d", Out{x});
       g.After(a, b);
       g.After(b, a);
     },
     "graph 'g': nodes wait for each other: 'a' (a.cc:2) after 'b' (a.cc:3) after 'a' (a.cc:2); none of them could "
     "start; remove an After"},
    {"AnUnorderedNodeMayConflictWithItself",
     [](ModelBuilder& g) {
       const int32_t x = g.InOut("x", 4);
       g.Host("a", Loose{In{x}}, Loose{Out{x, Slice(0, 2)}});
     },
     "OK"},
};

class CheckVerdicts : public testing::TestWithParam<GraphVerdict> {};
TEST_P(CheckVerdicts, AreAsListed) { ExpectVerdict(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, CheckVerdicts, testing::ValuesIn(kVerdicts), NameOfEntry<GraphVerdict>);

TEST(Check, ANodeDoesNotReadWhatItWritesItself) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k", Out{t}, In{t});
  EXPECT_NE(MistakeOf(g), "OK");
}

TEST(Check, TakesParametersForTheBest) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 8), t = g.Scratch("t", 8), u = g.Scratch("u", 8), y = g.Output("y", 1);
  g.For("a", Out{t, Slice(0, g.ParamDim(n))});
  g.For("b", In{t, Slice(4, 4)}, Out{y});
  g.For("c", Out{u, Slice(0, 1)});
  g.For("d", In{u, Slice(g.ParamDim(n), 1)}, In{u, Slice(0, g.ParamDim(n))}, Out{y});
  EXPECT_EQ(MistakeOf(g), "OK");
  g.For("e", In{u, Slice(1, g.ParamDim(n))}, Out{y});
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'e' (a.cc:9): reads Slice({1}, {7}) of 'u' (a.cc:3) before any node has "
            "written it; its contents would be undefined; write it first, say Write where this node writes all of it "
            "or WriteSome where it only writes some of it, "
            "or declare it with Input or InOut");
}

// A mistake exactly where some read touches a byte that no write before it has.
TEST(Check, RandomReadsAreRefusedExactlyWhereAByteIsMissing) {
  int refused = 0, accepted = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    std::mt19937_64 random(seed);
    ModelBuilder g;
    const Extent extents[] = {Extent(6), Extent(3, 3), Extent(2, 2, 3)};
    const Extent& extent = extents[random() % 3];
    const int32_t t = g.Scratch("t", extent);
    Bytes written;
    bool missing = false;
    for (int n = 0; n < 10; ++n) {
      const bool reads = n > 4 && random() % 2 == 0;
      const Box box = random() % 10 == 0 ? Box{} : RandomBox(random, extent);
      const int32_t node =
          reads ? g.Host("n" + std::to_string(n), In{t, box}) : g.Host("n" + std::to_string(n), Out{t, box});
      const Bytes touched = BoxOracle(g.model).Touched(g.node(node).accesses[0]);
      if (!reads) written.insert(touched.begin(), touched.end());
      for (const int64_t byte : touched) missing = missing || written.count(byte) == 0;
    }
    ASSERT_EQ(MistakeOf(g) != "OK", missing) << "seed " << seed << ": " << MistakeOf(g);
    (missing ? refused : accepted) += 1;
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(accepted, 300);
}

TEST(Check, AnyPathOrdersUnorderedAccesses) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4), y = g.InOut("y", 4);
  const int32_t a = g.Host("a", Loose{Out{x}});
  const int32_t between = g.Host("between", Out{y});
  g.After(between, a);
  g.Host("data", In{y});
  const int32_t b = g.Host("b", Loose{In{x}});
  EXPECT_NE(MistakeOf(g), "OK");
  g.After(b, 2);
  EXPECT_EQ(MistakeOf(g), "OK");
}

TEST(Check, UnorderedReadsMayComeBeforeTheirWriterInTheDeclaration) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  const int32_t read = g.Host("read", Loose{In{t}});
  EXPECT_NE(MistakeOf(g), "OK");
  g.After(read, g.Host("write", Out{t}));
  EXPECT_EQ(MistakeOf(g), "OK");
}

TEST(Check, WhatMayBeWrittenInPartMayBeRead) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8), y = g.Output("y", 8);
  g.For("compact", Some{t, Slice(0, 6)}, Some{y});
  g.For("read", In{t, Slice(2, 4)});
  EXPECT_EQ(MistakeOf(g), "OK");
  g.For("more", In{t});
  EXPECT_THAT(MistakeOf(g), testing::HasSubstr("reads 't' (a.cc:1) before any node has written Slice({6}, {2}) of it"));
}

TEST(Check, ScratchLeavesNothingToRead) {
  for (const bool parts : {false, true}) {
    ModelBuilder g;
    const int32_t t = g.Scratch("t", 8), y = g.Output("y", 8);
    if (parts) g.For("part", Out{t, Slice(1, 2)});
    g.For("write", Out{t});
    g.For("use", Temporary{t});
    g.For("read", In{t}, Out{y});
    EXPECT_THAT(MistakeOf(g), testing::HasSubstr("node 'read' (a.cc:" + std::to_string(parts ? 6 : 5) +
                                                 "): reads 't' (a.cc:1) before any node has written it"));
  }
}

TEST(Check, ScratchOfAPartLeavesTheRest) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", {4, 8});
  g.For("write", Out{t});
  g.For("first", Temporary{t, Slice({1, 2}, {2, 3})});
  g.For("second", Temporary{t, Slice({0, 4}, {2, 2})});
  g.For("left", In{t, Slice({0, 0}, {4, 2})}, In{t, Slice({3, 0}, {1, 8})}, In{t, Slice({0, 0}, {1, 4})});
  EXPECT_EQ(MistakeOf(g), "OK");
  g.For("again", Out{t, Slice({1, 2}, {1, 2})});
  g.For("new", In{t, Slice({1, 0}, {1, 4})});
  EXPECT_EQ(MistakeOf(g), "OK");
  g.For("gone", In{t, Slice({0, 0}, {1, 8})});
  EXPECT_THAT(MistakeOf(g), testing::HasSubstr("before any node has written Slice({0, 4}, {1, 2}) of it"));
}

TEST(Check, OnlyABufferIsScratch) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8), a = g.Alias("a", x, Slice(0, 4));
  g.For("use", Temporary{a});
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'use' (a.cc:3): uses 'x' (a.cc:1) as scratch, whose contents outlive the "
            "run; scratch "
            "leaves none; name a Buffer");
}

TEST(Check, ANodeDoesNotReadItsScratch) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8);
  g.For("write", Out{t});
  g.For("apart", Temporary{t, Slice(0, 4)}, In{t, Slice(4, 4)});
  EXPECT_EQ(MistakeOf(g), "OK");
  g.For("use", Temporary{t, Slice(0, 6)}, In{t, Slice(4, 4)});
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'use' (a.cc:4): uses 't' (a.cc:1) as scratch, and accesses the same "
            "elements otherwise; "
            "scratch has no contents before or after the node; name another Buffer, or say ReadWrite");
}

// A mistake exactly where two nodes conflict on some byte and no path of edges joins them; it names such a pair.
TEST(Check, RandomUnorderedAccessesAreRefusedExactlyWhereNoPathIs) {
  int refused = 0, accepted = 0, pairs = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    std::mt19937_64 random(seed);
    ModelBuilder g;
    const Extent extents[] = {Extent(8), Extent(4, 4), Extent(2, 3, 3)};
    const Extent& extent = extents[random() % 3];
    const int32_t x = g.InOut("x", extent), a = g.Alias("a", x, Box{}), y = g.InOut("y", extent);
    const int32_t buffers[] = {x, a, y};
    const auto one_in = 2 + random() % 6;
    const int count = 2 + static_cast<int>(random() % 10);
    for (int n = 0; n < count; ++n) {
      const int32_t node = g.Host("n" + std::to_string(n));
      const Box box = random() % 4 == 0 ? Box{} : RandomBox(random, extent);
      g.node(node).accesses.push_back({buffers[random() % 3], ModelBuilder::kSerial,
                                       static_cast<AccessMode>(1 + random() % 3), random() % one_in == 0, box});
      for (int p = 0; p < n; ++p) {
        if (random() % 5 == 0) g.After(node, p);
      }
    }
    const PlanOptions options = Devices(1);
    Draft draft = DraftAfter("DeclaredEdges", g.model, options);
    std::vector<std::vector<int32_t>> preds;
    const CsrRows& declared = draft.checked.declared;
    for (int32_t n = 0; n < count; ++n) preds.emplace_back(declared[n].begin(), declared[n].end());
    const auto path = Reachable(preds);
    std::vector<std::string> expected;
    for (size_t later = 0; later < preds.size(); ++later) {
      for (size_t earlier = 0; earlier < later; ++earlier) {
        if (path[earlier][later] || !BoxOracle(g.model).Conflict(g.model.nodes[earlier], g.model.nodes[later]))
          continue;
        expected.push_back("node 'n" + std::to_string(later) + "'|node 'n" + std::to_string(earlier) + "'");
      }
    }
    Check(draft.records, draft.checked, draft.findings);
    ASSERT_EQ(draft.findings.mistakes.empty(), expected.empty()) << "seed " << seed;
    for (const Mistake& mistake : draft.findings.mistakes) {
      bool named = false;
      for (const std::string& pair : expected) {
        const size_t bar = pair.find('|');
        named = named || (mistake.text.find(pair.substr(0, bar)) != std::string::npos &&
                          mistake.text.find("while " + pair.substr(bar + 1)) != std::string::npos);
      }
      ASSERT_TRUE(named) << "seed " << seed << ": " << mistake.text;
    }
    pairs += static_cast<int>(expected.size());
    (expected.empty() ? accepted : refused) += 1;
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(accepted, 300);
  EXPECT_GT(pairs, 1000);
}

}  // namespace
}  // namespace penstock::graph::check_test
