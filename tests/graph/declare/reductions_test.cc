// What ArgMin, ArgMax, ReduceRows, ReduceByKey and a Reduce over a CountOf declare: their nodes and buffers, and that
// each mistake is told once, by the name and the line that the user gave.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "graph/plan/plan.h"
#include "penstock/arg_max.h"
#include "penstock/reduce_by_key.h"
#include "penstock/reduce_rows.h"
#include "tests/support/status.h"

namespace penstock::graph::reductions_test {
namespace {

constexpr int64_t kTwoLevels = int64_t{2048} * 2048, kThreeLevels = kTwoLevels + 1;

struct Copied {
  PENSTOCK_HOST_DEVICE float operator()(int64_t i, float* y) const { return y[i]; }
};

Name At(const char* name, int line) { return Name(name, "dir/a.cc", line); }

std::string MistakesOf(const Graph& g) {
  PlanOptions options;
  options.devices = {{"host:0", false, 0, int64_t{1} << 40}};
  const absl::StatusOr<Plan> plan = MakePlan(g.model(), options);
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

TEST(DeclaredCountedReduce, HasTheNodesOfTheMaximum) {
  constexpr int64_t kMost = (int64_t{1} << 26) + 1;
  Graph g("g");
  auto count = g.Input<int32_t>("count", 1);
  auto x = g.Input<float>("x", kMost);
  g.Reduce(At("r", 5), CountOf(count, kMost), Read(x), Write(g.Output<double>("y", 1)));
  EXPECT_EQ(NamesOf(g), "r@5 r/level 2@5 r/level 3@5 r/partials[8193] r/partials 2[5] ");
  EXPECT_EQ(MistakesOf(g), "OK");
}

TEST(DeclaredCountedReduce, TellsEachMistakeOnce) {
  Graph g("g");
  auto counts = g.InOut<int32_t>(At("counts", 1), 3);
  auto x = g.Input<float>(At("x", 2), 5000);
  auto y = g.InOut<float>(At("y", 3), 5000);
  const auto one = Read(counts, Slice({1}, {1}));
  g.Reduce("good", CountOf(one, 5000), Read(x), Write(y, Slice({0}, {1})));
  g.Reduce(At("all", 5), CountOf(counts, 5000), Read(x), Write(y, Slice({1}, {1})));
  g.Reduce(At("short", 6), CountOf(one, 4999), Read(x), Write(y, Slice({2}, {1})));
  g.Reduce(At("own", 7), CountOf(one, 5000), Read(x), Write(counts, Slice({1}, {1})));
  g.TransformReduce(At("writes", 8), CountOf(one, 3), Copied{}, Plus(), 0, ReadWrite(y), Write(y, Slice({3}, {1})));
  EXPECT_EQ(
      MistakesOf(g),
      "graph 'g': 3 mistakes:\n"
      "  graph 'g' node 'all' (a.cc:5): its count is {3} elements of 'counts' (a.cc:1); a CountOf reads one integer; "
      "name a buffer of one element, or one element of a larger buffer, with ps::Slice({i}, {1})\n"
      "  graph 'g' node 'short' (a.cc:6): its CountOf has a maximum of {4999} and it reads {5000} elements of 'x' "
      "(a.cc:2); a count is of the first elements of one dimension; name that dimension as its maximum\n"
      "  graph 'g' node 'own' (a.cc:7): reads 'counts' (a.cc:1) and writes 'counts' (a.cc:1), which may be the same "
      "memory; it writes memory that it does not read; name another buffer");
}

TEST(DeclaredArgMax, HasAnIndexThatAllElementsFitInto) {
  const auto mistakes = [](auto index, int64_t n) {
    Graph g("g");
    auto x = g.Buffer<uint8_t>(At("x", 1), n);
    g.Fill("fill", Write(x), 1);
    ArgMax(g, At("a", 5), Read(x), Write(g.Output<decltype(index)>("y", 1)));
    return MistakesOf(g);
  };
  const int64_t most = int64_t{1} << 31;
  EXPECT_EQ(mistakes(int32_t{0}, most), "OK");
  EXPECT_EQ(mistakes(int64_t{0}, most + 1), "OK");
  EXPECT_EQ(
      mistakes(int32_t{0}, most + 1),
      "graph 'g' node 'a' (a.cc:5): reads {2147483649} elements of 'x' (a.cc:1), and the type of its index is for "
      "at most 2147483648; name a larger type, or read fewer elements");
}

TEST(DeclaredArgMax, IsTheNodesOfAReduce) {
  Graph g("g");
  auto x = g.Input<float>("x", {4, 1250});
  auto count = g.Input<int32_t>("count", 1);
  ArgMin(g, At("a", 5), Read(x), Write(g.Output<int32_t>("y", 1)));
  ArgMax(g, At("b", 6), CountOf(count, 100), Read(g.Input<float>("z", 100)), Write(g.Output<Indexed<float>>("w", 1)));
  EXPECT_EQ(NamesOf(g), "a@5 a/level 2@5 b@6 a/partials[3] ");
  EXPECT_EQ(MistakesOf(g), "OK");
}

TEST(DeclaredRows, AreOneNodeForEachFactorOf2048) {
  const struct {
    Extent extent, of_rows;
    const char* names;
  } kCases[] = {
      {{1'000'000, 32}, 1'000'000, "r@5 "},
      {{700, 2048}, 700, "r@5 "},
      {{4, 2049}, 4, "r@5 r/level 2@5 r/partials[8] "},
      {{3, 5, kTwoLevels}, {3, 5}, "r@5 r/level 2@5 r/partials[30720] "},
      {{3, kThreeLevels}, 3, "r@5 r/level 2@5 r/level 3@5 r/partials[6147] r/partials 2[6] "},
  };
  for (const auto& c : kCases) {
    Graph g("g");
    ReduceRows(g, At("r", 5), Read(g.Input<float>("x", c.extent)), Write(g.Output<double>("y", c.of_rows)));
    EXPECT_EQ(NamesOf(g), c.names);
    EXPECT_EQ(MistakesOf(g), "OK") << c.names;
  }
}

TEST(DeclaredRows, TellEachMistakeOnce) {
  const auto mistakes = [](const Extent& taken, const Extent& given) {
    Graph g("g");
    ReduceRows(g, At("r", 5), Read(g.Input<float>(At("x", 1), taken)), Write(g.Output<float>(At("y", 2), given)));
    return MistakesOf(g);
  };
  EXPECT_EQ(mistakes({4, 5000}, {4}), "OK");
  EXPECT_EQ(mistakes({4, 5000}, {5}),
            "graph 'g' node 'r' (a.cc:5): reads {4, 5000} elements of 'x' (a.cc:1) and writes {5} of 'y' (a.cc:2); a "
            "ReduceRows writes one element for each row; name a buffer or a box of the same extent without its last "
            "dimension");
  EXPECT_NE(mistakes({3, 4, 50}, {12}), "OK");
  EXPECT_NE(mistakes({3, 4, 50}, {4, 3}), "OK");
  EXPECT_NE(mistakes({3, 4, 50}, {3}), "OK");
  EXPECT_NE(mistakes({4, 50}, {4, 50}), "OK");
  EXPECT_EQ(mistakes({5000}, {1}),
            "graph 'g' node 'r' (a.cc:5): reads {5000} elements of 'x' (a.cc:1) and writes {1} of 'y' (a.cc:2); a "
            "ReduceRows reads rows of two or three dimensions; name Reduce for one dimension");
  Graph g("g");
  auto x = g.InOut<float>(At("x", 1), {9, 50});
  ReduceRows(g, "good", Read(x, Slice({1, 0}, {1, 50})), Write(g.Output<float>("y", 1)));
  ReduceRows(g, At("r", 5), Read(x, Slice({0, 1}, {9, 49})), Write(g.Alias("z", x, Slice({0, 0}, {9, 1}))));
  const std::string text = MistakesOf(g);
  EXPECT_NE(text.find("which may be the same memory"), std::string::npos) << text;
}

TEST(DeclaredByKey, IsTheNodesOfAScan) {
  const struct {
    int64_t n;
    const char* names;
  } kCases[] = {{2048, "k@5 "},
                {2049, "k@5 k/scan 2@5 k/scan@5 k/partials[2] k/before[2] "},
                {kThreeLevels,
                 "k@5 k/level 2@5 k/scan 3@5 k/scan 2@5 k/scan@5 k/partials[2049] k/before[2049] k/partials 2[2] "
                 "k/before 2[2] "}};
  for (const auto& c : kCases) {
    Graph g("g");
    ReduceByKey(g, At("k", 5), Read(g.Input<int8_t>("k", c.n)), Read(g.Input<float>("v", c.n)),
                Write(g.Output<int8_t>("u", c.n)), Write(g.Output<double>("t", c.n)), Write(g.Output<int32_t>("c", 1)));
    EXPECT_EQ(NamesOf(g), c.names);
    EXPECT_EQ(MistakesOf(g), "OK") << c.names;
  }
}

TEST(DeclaredByKey, TellsEachMistakeOnce) {
  const auto mistakes = [](int64_t keys, int64_t values, int64_t unique, int64_t totals, int64_t counts) {
    Graph g("g");
    ReduceByKey(g, At("k", 5), Read(g.Input<int32_t>(At("k", 1), keys)), Read(g.Input<float>(At("v", 2), values)),
                Write(g.Output<int32_t>(At("u", 3), unique)), Write(g.Output<float>(At("t", 4), totals)),
                Write(g.Output<uint16_t>(At("c", 6), counts)));
    return MistakesOf(g);
  };
  const std::string one = "graph 'g' node 'k' (a.cc:5): ";
  EXPECT_EQ(mistakes(9000, 9000, 9000, 9000, 1), "OK");
  EXPECT_EQ(mistakes(9000, 8999, 9000, 9000, 1),
            one +
                "reads {9000} keys of 'k' (a.cc:1) and {8999} values of 'v' (a.cc:2); there is a value for each key; "
                "declare both with the same constants and parameters");
  EXPECT_EQ(mistakes(9000, 9000, 8999, 9000, 1),
            one +
                "reads {9000} elements of 'k' (a.cc:1) and may write as many to {8999} of 'u' (a.cc:3); each may be a "
                "run of its own; read one dimension, and write to one of at least as many elements");
  EXPECT_NE(mistakes(9000, 9000, 9000, 8999, 1).find("'t' (a.cc:4); each may be a run"), std::string::npos);
  EXPECT_NE(mistakes(9000, 9000, 9000, 9000, 2).find("a ReduceByKey writes one integer"), std::string::npos);
  EXPECT_NE(mistakes(70'000, 70'000, 70'000, 70'000, 1).find("the type of its count is for at most 65535"),
            std::string::npos);
  const auto shares = [](auto declare) {
    Graph g("g");
    auto k = g.InOut<int32_t>("k", 9000), v = g.InOut<int32_t>("v", 9000), u = g.InOut<int32_t>("u", 9000);
    auto t = g.InOut<int32_t>("t", 9000);
    declare(g, k, v, u, t);
    return MistakesOf(g).find("which may be the same memory") != std::string::npos;
  };
  const Box last = Slice({8999}, {1}), front = Slice({0}, {4000}), back = Slice({4000}, {4000});
  EXPECT_TRUE(shares([&](Graph& g, auto k, auto v, auto u, auto) {
    ReduceByKey(g, "k", Read(k, front), Read(v, front), Write(u), Write(k, back), Write(u, last));
  }));
  EXPECT_TRUE(shares([&](Graph& g, auto k, auto v, auto u, auto t) {
    ReduceByKey(g, "k", Read(k), Read(v), Write(u), Write(v), Write(t, last));
  }));
  EXPECT_TRUE(shares([&](Graph& g, auto k, auto v, auto u, auto t) {
    ReduceByKey(g, "k", Read(k), Read(v), Write(u), Write(u), Write(t, last));
  }));
  EXPECT_TRUE(shares([&](Graph& g, auto k, auto v, auto u, auto t) {
    ReduceByKey(g, "k", CountOf(Read(t, last), 9000), Read(k), Read(v), Write(u), Write(t),
                Write(g.Output<int32_t>("c", 1)));
  }));
  EXPECT_FALSE(shares([&](Graph& g, auto k, auto v, auto u, auto t) {
    ReduceByKey(g, "k", Read(k, front), Read(v, front), Write(k, back), Write(u, front), Write(t, last));
  }));
}

}  // namespace
}  // namespace penstock::graph::reductions_test
