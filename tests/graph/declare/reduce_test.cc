// What a Reduce declares: its nodes, buffers and options, and that each mistake is told once, by the name and the line
// that the user gave.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/detail/reduce_tree.h"
#include "penstock/graph.h"
#include "tests/support/status.h"

namespace penstock::graph::reduce_test {
namespace {

constexpr int64_t kShortLeaves = int64_t{2048} * 2048, kTwoLevels = int64_t{1} << 26, kThreeLevels = kTwoLevels + 1;

struct Product {
  PENSTOCK_HOST_DEVICE double operator()(int64_t i, const float* p, const float* q) const { return p[i] * q[i]; }
};

Name At(const char* name, int line) { return Name(name, "dir/a.cc", line); }

PlanOptions OneDevice(bool is_cuda) {
  PlanOptions options;
  options.devices = {{is_cuda ? "cuda:0" : "host:0", is_cuda, 0, int64_t{1} << 40}};
  return options;
}
std::string MistakesOf(const Graph& g, bool is_cuda = false) {
  const absl::StatusOr<Plan> plan = MakePlan(g.model(), OneDevice(is_cuda));
  return plan.ok() ? "OK" : Text(plan.status());
}

std::string NamesOf(const Graph& g) {
  std::string names;
  for (const NodeDecl& node : g.model().nodes) {
    names += std::string(node.name.view()) + "@" + std::to_string(node.name.source().line) + " ";
  }
  for (const BufferDecl& buffer : g.model().buffers) {
    if (buffer.role != BufferRole::kInternal) continue;
    names += std::string(buffer.name.view()) + "[" + std::to_string(buffer.extent.dims[0].value) + "] ";
  }
  return names;
}

TEST(DeclaredReduce, HasANodeForEachLevelAndBuffersBetween) {
  const struct {
    int64_t n;
    const char* names;
  } kCases[] = {
      {0, "sum@5 "},
      {4096, "sum@5 "},
      {4097, "sum@5 sum/level 2@5 sum/partials[3] "},
      {kShortLeaves, "sum@5 sum/level 2@5 sum/partials[2048] "},
      {kShortLeaves + 1, "sum@5 sum/level 2@5 sum/partials[2048] "},
      {kTwoLevels, "sum@5 sum/level 2@5 sum/partials[8192] "},
      {kThreeLevels, "sum@5 sum/level 2@5 sum/level 3@5 sum/partials[8193] sum/partials 2[5] "},
  };
  for (const auto& c : kCases) {
    for (const bool by_maximum : {false, true}) {
      Graph g("g");
      auto x = g.Input<float>("x", by_maximum ? Dim(g.Param<int64_t>("n", AtMost(c.n))) : Dim(c.n));
      g.Reduce(At("sum", 5), Read(x), Write(g.Output<double>("y", 1)));
      EXPECT_EQ(NamesOf(g), c.names) << c.n;
      EXPECT_EQ(MistakesOf(g), "OK");
      // Each takes what the one before leaves, and has the extent of the elements.
      int level = 0;
      for (const NodeDecl& node : g.model().nodes) {
        EXPECT_EQ(node.level, ++level);
        EXPECT_EQ(node.extent, g.model().buffers[0].extent);
        EXPECT_EQ(node.accesses.size(), 2U);
      }
    }
  }
}

// Fewer elements than the most may leave more partials, but never more than there is room for, nor a level more.
TEST(DeclaredReduce, HasRoomForThePartialsOfFewerElements) {
  const auto levels = [](const std::function<int64_t(int)>& left) {
    int level = 1;
    while (left(level) > 1) ++level;
    return level;
  };
  constexpr int64_t kLong = int64_t{1} << 35;
  std::vector<int64_t> counts{1, 2, 2048, 2049, 4096, 4097, 8192, 8193};
  for (const int64_t at : {kShortLeaves, 2 * kShortLeaves, 4 * kShortLeaves, kTwoLevels, kLong}) {
    counts.insert(counts.end(), {at - 1, at, at + 1, at + 4096});
  }
  for (const int64_t most : counts) {
    const int all = levels([&](int level) { return detail::MostPartialsAfter(most, level); });
    for (const int64_t count : counts) {
      if (count > most) continue;
      EXPECT_LE(levels([&](int level) { return detail::PartialsAfter(count, level); }), all) << count << " of " << most;
      for (int level = 1; level <= all; ++level) {
        EXPECT_LE(detail::PartialsAfter(count, level), detail::MostPartialsAfter(most, level))
            << count << " of " << most;
      }
    }
  }
  EXPECT_EQ(detail::MostPartialsAfter(kShortLeaves + 1, 1), 2048);  // as kShortLeaves leave
  EXPECT_EQ(detail::PartialsAfter(kShortLeaves + 1, 1), 513);
}

TEST(DeclaredReduce, IsNamedInItsScope) {
  Graph g("g");
  auto p = g.Input<float>("p", 5000), q = g.Input<float>("q", 5000);
  auto y = g.Output<double>("y", 1);
  {
    const auto scope = g.Scope("step");
    g.TransformReduce(At("dot", 7), 5000, Product{}, Plus(), 0, Read(p), Read(q), Write(y));
  }
  EXPECT_EQ(NamesOf(g), "step/dot@7 step/dot/level 2@7 step/dot/partials[3] ");
}

TEST(DeclaredReduce, PassesItsOptionsToAllOfItsNodes) {
  Graph g("g");
  auto x = g.Input<float>("x", kThreeLevels);
  const NodeRef before = g.Host("before", [] {});
  const ReduceNode sum = g.Reduce("sum", Read(x), Write(g.Output<float>("y", 1))).After(before).On(0).Priority(3);
  g.Host("after", [] {}).After(sum);
  ASSERT_EQ(g.model().nodes.size(), 5U);
  for (int32_t n = 1; n < 4; ++n) {
    EXPECT_EQ(g.model().nodes[n].device, 0) << n;
    EXPECT_EQ(g.model().nodes[n].priority, 3) << n;
  }
  EXPECT_EQ(g.model().nodes[1].after, std::vector<DeclId>{DeclId(0)});
  EXPECT_EQ(g.model().nodes[4].after, std::vector<DeclId>{DeclId(3)});  // the result is there
}

TEST(DeclaredReduce, TellsAMistakeOnce) {
  const std::string one = "graph 'g' node 'sum' (a.cc:5)";
  {
    Graph g("g");
    auto x = g.Input<float>("x", kThreeLevels);
    g.Reduce(At("sum", 5), Read(x), Write(g.Output<float>("y", 1))).On(4);
    EXPECT_EQ(MistakesOf(g), one + ": pinned to device 4; the runtime has 0 (host:0); pin it to one of these");
  }
  {
    Graph g("g"), other("other");
    g.Reduce(At("sum", 5), Read(other.Input<float>("x", kThreeLevels)), Write(g.Output<float>("y", 1)));
    EXPECT_EQ(MistakesOf(g),
              one +
                  ": access 0 is to a buffer of another graph; a handle is good in the graph that made it; declare "
                  "the buffer in this graph");
  }
  {
    Graph g("g");
    auto p = g.Input<float>("p", 5000);
    auto y = g.Output<double>("y", 1);
    g.TransformReduce(At("sum", 5), -3, Product{}, Plus(), 0, Read(p), Read(p), Write(y));
    EXPECT_NE(MistakesOf(g).find(one + ": dimension 0 is -3"), std::string::npos) << MistakesOf(g);
    EXPECT_EQ(MistakesOf(g).find('\n'), std::string::npos) << MistakesOf(g);
  }
}

TEST(DeclaredReduce, NamesTheFileThatNvccDidNotCompileOnce) {
  Graph g("g");
  auto x = g.Input<int16_t>("x", kThreeLevels);
  g.Reduce(At("sum", 5), Read(x), Write(g.Output<int16_t>("y", 1)));
  EXPECT_EQ(MistakesOf(g, true),
            "graph 'g' node 'sum' (a.cc:5) on cuda:0: declared in a.cc, which nvcc did not compile; "
            "compile this file as CUDA or pin the node to a host device; without nvcc there are algorithms over some "
            "types, in a library built with them: docs/howto/algorithms.md has a list");
}

TEST(DeclaredReduce, WritesOneElement) {
  const auto mistakes = [](const Extent& extent, const Box& box) {
    Graph g("g");
    auto x = g.Input<float>("x", 5000);
    auto y = g.InOut<float>("y", extent);
    g.Reduce(At("sum", 5), Read(x), Write(y, box));
    return MistakesOf(g);
  };
  const std::string refused =
      "graph 'g' node 'sum' (a.cc:5): where its result goes is not one element; a Reduce makes one "
      "value of all; name a buffer of one element, or one element of a larger buffer, as in ps::Write(sums, "
      "ps::Slice({i}, "
      "{1}))";
  EXPECT_EQ(mistakes(1, {}), "OK");
  EXPECT_EQ(mistakes({1, 1, 1}, {}), "OK");
  EXPECT_EQ(mistakes({4, 6}, Slice({3, 2}, {1, 1})), "OK");
  EXPECT_EQ(mistakes(0, {}), refused);
  EXPECT_EQ(mistakes(2, {}), refused);
  EXPECT_EQ(mistakes({1, 3}, {}), refused);
  EXPECT_EQ(mistakes({4, 6}, Slice({3, 2}, {1, 2})), refused);
  Graph g("g");
  const auto one = g.Param<int>("one", AtMost(1));
  g.Reduce(At("sum", 5), Read(g.Input<float>("x", 5000)), Write(g.InOut<float>("y", one)));
  EXPECT_EQ(MistakesOf(g), refused);
}

TEST(DeclaredReduce, OfAnExtentThatOverflowsIsRefusedAsAParallelFor) {
  Graph g("g");
  auto p = g.Input<float>("p", 8);
  const Extent extent(int64_t{1} << 40, int64_t{1} << 40);
  const auto f = [](Index2, const float*) { return 1.F; };
  g.TransformReduce(At("sum", 5), extent, f, Plus(), 0, Read(p), Write(g.Output<float>("y", 1)));
  EXPECT_EQ(NamesOf(g), "sum@5 ");
  EXPECT_NE(MistakesOf(g), "OK");
}

TEST(DeclaredReduce, OfNullIsRefused) {
  Graph g("g");
  auto p = g.Input<float>("p", 8);
  float (*const f)(int64_t, const float*) = nullptr;
  float (*const op)(float, float) = nullptr;
  g.TransformReduce(At("sum", 5), 8, f, op, 0, Read(p), Write(g.Output<float>("y", 1)));
  const std::string text = MistakesOf(g);
  EXPECT_NE(text.find("node 'sum' (a.cc:5): the functor is null"), std::string::npos) << text;
  EXPECT_NE(text.find("node 'sum' (a.cc:5): the operation is null"), std::string::npos) << text;
}

TEST(ReduceOperations, HaveIdentities) {
  EXPECT_EQ(Plus::Identity<double>(), 0);
  EXPECT_EQ(Min::Identity<float>(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Max::Identity<float>(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(Min::Identity<uint8_t>(), 255);
  EXPECT_EQ(Max::Identity<int64_t>(), std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace penstock::graph::reduce_test
