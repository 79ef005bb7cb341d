// Names made of parts: their texts, where they lie, and what a scope makes of them.
#include "penstock/name.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"

namespace penstock::name_test {
namespace {

// Whether the text is in the object itself.
bool IsInside(const Name& name) {
  const auto* object = reinterpret_cast<const char*>(&name);
  return name.c_str() >= object && name.c_str() < object + sizeof(name);
}

std::vector<std::string> NodesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeDecl& node : graph.model().nodes) names.emplace_back(node.name.view());
  return names;
}

TEST(Name, PutsNumbersBehindItsText) {
  EXPECT_EQ(Name("tile", 3).view(), "tile 3");
  EXPECT_EQ(Name("tile", 0, size_t{7}).view(), "tile 0 7");
  EXPECT_EQ(Name("tile", -1, 0, std::numeric_limits<int64_t>::min()).view(), "tile -1 0 -9223372036854775808");
  EXPECT_STREQ(Name("tile", 3).c_str(), "tile 3");
}

TEST(Name, KnowsTheLineThatMadeItOfNumbers) {
  const Name name("tile", 3, 4);
  EXPECT_EQ(name.source().line, __LINE__ - 1);
  EXPECT_NE(std::string(name.source().file).find("name_test.cc"), std::string::npos);
}

TEST(Name, OfPartsIsInTheObjectUpTo31Characters) {
  EXPECT_TRUE(IsInside(Name("a text of twenty-five bytes", 123)));
  EXPECT_EQ(Name("a text of twenty-five bytes", 123).view().size(), 31U);
  const Name longer("a text of twenty-five bytes", 1234);
  EXPECT_FALSE(IsInside(longer));
  EXPECT_EQ(longer.view(), "a text of twenty-five bytes 1234");
}

TEST(Name, ThatIsSharedKeepsItsTextWhereItIs) {
  Name name("tile", 3);
  name.Share();
  const char* const text = name.c_str();
  const Name copy = name;
  name = Name("other");
  EXPECT_STREQ(text, "tile 3");
  EXPECT_EQ(copy.c_str(), text);
  Name literal("other");
  const char* const before = literal.c_str();
  literal.Share();
  EXPECT_EQ(literal.c_str(), before);
}

TEST(Name, OfPartsHasItsOwnTextWhereverItIsCopiedOrMoved) {
  std::vector<Name> names;
  for (int i = 0; i < 9; ++i) {
    Name made("tile", i);
    names.push_back(made);
    made = Name("other");
  }
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(names[i].view(), "tile " + std::to_string(i));
    EXPECT_TRUE(IsInside(names[i]));
  }
  names[0] = std::move(names[8]);
  names[1] = Name(std::string("a name that is longer than any that lies inside"));
  EXPECT_EQ(names[0].view(), "tile 8");
  EXPECT_EQ(names[1].view(), "a name that is longer than any that lies inside");
}

TEST(Scope, PrefixesTheNamesOfNodesBuffersAndParameters) {
  Graph g("g");
  const auto step = g.Scope(Name("step", 3));
  g.Param<int>("p");
  auto x = g.InOut<int>("x", 8);
  g.Alias("head", x, Slice({0}, {4}));
  g.Host(Name("tile", 1, 2), [] {});
  EXPECT_EQ(NodesOf(g), std::vector<std::string>{"step 3/tile 1 2"});
  EXPECT_EQ(g.model().params[0].name.view(), "step 3/p");
  EXPECT_EQ(g.model().buffers[0].name.view(), "step 3/x");
  EXPECT_EQ(g.model().buffers[1].name.view(), "step 3/head");
  EXPECT_TRUE(IsInside(g.model().nodes[0].name));
}

TEST(Scope, NestsAndEndsWithItsObject) {
  Graph g("g");
  g.Host("a", [] {});
  {
    const auto outer = g.Scope("outer");
    {
      const auto inner = g.Scope("inner");
      g.Host("a", [] {});
    }
    g.Host("a", [] {});
  }
  g.Host("b", [] {});
  EXPECT_EQ(NodesOf(g), (std::vector<std::string>{"a", "outer/inner/a", "outer/a", "b"}));
}

TEST(Scope, FollowsAGraphThatIsMoved) {
  Graph from("g");
  const auto scope = from.Scope("part");
  Graph to = std::move(from);
  to.Host("a", [] {});
  EXPECT_EQ(NodesOf(to), std::vector<std::string>{"part/a"});
}

// It would be a name otherwise, and nobody would tell that none was given.
TEST(Scope, LeavesAnEmptyNameEmpty) {
  Graph g("g");
  const auto scope = g.Scope("part");
  g.Host("", [] {});
  EXPECT_EQ(NodesOf(g), std::vector<std::string>{""});
}

TEST(Scope, WithoutANameIsAMistake) {
  Graph g("g");
  const auto outer = g.Scope("outer");
  const auto scope = g.Scope(Name("", "dir/a.cc", 7));
  g.Host("a", [] {});
  EXPECT_EQ(NodesOf(g), std::vector<std::string>{"outer/a"});
  ASSERT_EQ(g.model().mistakes.size(), 1U);
  EXPECT_EQ(g.model().mistakes[0].text,
            "graph 'g': the scope begun at a.cc:7 has no name; names in it would be those outside; give it one");
}

}  // namespace
}  // namespace penstock::name_test
