// What CountOf, Transform, Scan and Select declare: their nodes, buffers and options, and that each mistake is told
// once, by the name and the line that the user gave.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/histogram.h"
#include "penstock/scan.h"
#include "penstock/select.h"
#include "penstock/sort.h"
#include "penstock/transform.h"
#include "tests/support/status.h"

namespace penstock::graph::algorithms_test {
namespace {

constexpr int64_t kTwoLevels = int64_t{2048} * 2048, kThreeLevels = kTwoLevels + 1;

struct Add {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, float* y) const { y[i] += 1; }
};
struct Negative {
  PENSTOCK_HOST_DEVICE float operator()(float x) const { return -x; }
};

Name At(const char* name, int line) { return Name(name, "dir/a.cc", line); }

std::string MistakesOf(const Graph& g, bool is_cuda = false) {
  PlanOptions options;
  options.devices = {{is_cuda ? "cuda:0" : "host:0", is_cuda, 0, int64_t{1} << 40}};
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

TEST(DeclaredScan, HasTwoNodesForEachFactorOf2048AndBuffersBetween) {
  const struct {
    Extent extent;
    const char* names;
  } kCases[] = {
      {0, "s@5 "},
      {2048, "s@5 "},
      {{700, 2048}, "s@5 "},
      {2049, "s@5 s/scan 2@5 s/scan@5 s/partials[2] s/before[2] "},
      {{3, 5, 2049}, "s@5 s/scan 2@5 s/scan@5 s/partials[30] s/before[30] "},
      {kTwoLevels, "s@5 s/scan 2@5 s/scan@5 s/partials[2048] s/before[2048] "},
      {kThreeLevels,
       "s@5 s/level 2@5 s/scan 3@5 s/scan 2@5 s/scan@5 s/partials[2049] s/before[2049] s/partials 2[2] s/before 2[2] "},
  };
  for (const auto& c : kCases) {
    Graph g("g");
    Scan(g, At("s", 5), Read(g.Input<float>("x", c.extent)), Write(g.Output<double>("y", c.extent)));
    EXPECT_EQ(NamesOf(g), c.names);
    EXPECT_EQ(MistakesOf(g), "OK") << c.names;
    bool first = true;
    for (const NodeDecl& node : g.model().nodes) {
      EXPECT_EQ(node.extent, c.extent);
      EXPECT_TRUE(node.by_rows);
      EXPECT_EQ(node.later, !first) << node.name.view();
      first = false;
    }
  }
}

TEST(DeclaredScan, IsOnePassWhereTheOrderCannotMatterOrNeedNot) {
  const auto names = [](auto op, auto value, const ScanOptions& options) {
    Graph g("g");
    const auto buffers = std::pair(g.Input<decltype(value)>("x", {3, 5000}), g.Output<decltype(value)>("y", {3, 5000}));
    Scan(g, At("s", 5), Read(buffers.first), Write(buffers.second), op, value, options);
    EXPECT_EQ(MistakesOf(g), "OK");
    return NamesOf(g).substr(0, NamesOf(g).find('['));
  };
  struct Combine {
    PENSTOCK_HOST_DEVICE int32_t operator()(int32_t a, int32_t b) const { return a * b; }
  };
  struct Long {
    double a[3];
  };
  struct Sum {
    PENSTOCK_HOST_DEVICE Long operator()(const Long& a, const Long&) const { return a; }
  };
  const char *const kPass = "s@5 s/scan@5 s/tiles", *const kLevels = "s@5 s/scan 2@5 s/scan@5 s/partials";
  constexpr ScanOptions kAnyOrder{.order = CombineOrder::kAny};
  EXPECT_EQ(names(Plus(), uint16_t{1}, {}), kPass);
  EXPECT_EQ(names(Max(), int64_t{1}, kExclusive), kPass);
  EXPECT_EQ(names(Min(), 1.0, {}), kPass);
  EXPECT_EQ(names(Combine(), 1, {}), kLevels);
  EXPECT_EQ(names(Combine(), 1, kAnyOrder), kPass);
  EXPECT_EQ(names(Plus(), 1.F, {}), kLevels);
  EXPECT_EQ(names(Plus(), 1.F, kAnyOrder), kPass);
  EXPECT_EQ(names(Sum(), Long{}, kAnyOrder), kLevels);
}

TEST(DeclaredScan, IsNamedInItsScopeAndPassesItsOptionsToAllOfItsNodes) {
  Graph g("g");
  const NodeRef before = g.Host("before", [] {});
  {
    const auto scope = g.Scope("step");
    auto x = g.Input<float>("x", 5000);
    const ScanNode scan =
        Scan(g, At("s", 7), Read(x), Write(g.Output<float>("y", 5000))).After(before).On(0).Priority(3);
    g.Host("after", [] {}).After(scan);
  }
  EXPECT_EQ(NamesOf(g).substr(NamesOf(g).find("step/s@")).substr(0, 40), "step/s@7 step/s/scan 2@7 step/s/scan@7 s");
  for (int32_t n = 1; n < 4; ++n) {
    EXPECT_EQ(g.model().nodes[n].device, 0) << n;
    EXPECT_EQ(g.model().nodes[n].priority, 3) << n;
  }
  EXPECT_EQ(g.model().nodes[1].after, std::vector<DeclId>{DeclId(0)});
  EXPECT_EQ(g.model().nodes[4].after, std::vector<DeclId>{DeclId(3)});  // the result is there
}

TEST(DeclaredScan, TellsAMistakeOnce) {
  const std::string one = "graph 'g' node 's' (a.cc:5)";
  const auto mistakes = [](const Extent& taken, const Box& from, const Extent& given, const Box& to) {
    Graph g("g");
    Scan(g, At("s", 5), Read(g.Input<float>(At("x", 1), taken), from), Write(g.Output<float>(At("y", 2), given), to));
    return MistakesOf(g);
  };
  EXPECT_EQ(mistakes(5000, {}, 4999, {}),
            one +
                ": reads {5000} elements of 'x' (a.cc:1) and writes {4999} of 'y' (a.cc:2); a Scan reads and writes "
                "boxes of one shape; declare both with the same constants and parameters");
  EXPECT_NE(mistakes({4, 6}, {}, {6, 4}, {}), "OK");
  EXPECT_NE(mistakes({4, 6}, {}, 24, {}), "OK");
  EXPECT_EQ(mistakes({4, 6}, Slice({1, 1}, {2, 3}), {2, 3}, {}), "OK");
  EXPECT_EQ(mistakes(9000, Slice({5000}, {4001}), 4001, {}).find('\n'), std::string::npos);
  {
    Graph g("g"), other("other");
    Scan(g, At("s", 5), Read(other.Input<float>("x", kThreeLevels)), Write(g.Output<float>("y", 5000)));
    EXPECT_EQ(MistakesOf(g),
              one +
                  ": access 0 is to a buffer of another graph; a handle is good in the graph that made it; declare "
                  "the buffer in this graph");
  }
  {
    Graph g("g");
    Scan(g, At("s", 5), Read(g.Input<float>("x", 5000)), Write(g.Output<float>("y", 5000))).On(4);
    EXPECT_EQ(MistakesOf(g), one + ": pinned to device 4; the runtime has 0 (host:0); pin it to one of these");
  }
  {
    Graph g("g");
    Scan(g, At("s", 5), Read(g.Input<int16_t>("x", 5000)), Write(g.Output<int16_t>("y", 5000)));
    EXPECT_EQ(MistakesOf(g, true),
              one +
                  " on cuda:0: declared in a.cc, which nvcc did not compile; compile this file as CUDA or pin the node "
                  "to a host device; without nvcc there are algorithms over some types, in a library built with them: "
                  "docs/howto/algorithms.md has a list");
  }
  {
    Graph g("g");
    float (*const op)(float, float) = nullptr;
    Scan(g, At("s", 5), Read(g.Input<float>("x", 5)), Write(g.Output<float>("y", 5)), op, 0);
    EXPECT_EQ(MistakesOf(g), one + ": the operation is null; give one that can be called");
  }
}

TEST(DeclaredScan, WritesWhatItReadsOrOtherMemory) {
  const auto mistakes = [](const Box& from, const Box& to, bool by_alias = false) {
    Graph g("g");
    auto x = g.InOut<float>(At("x", 1), {8, 10});
    Scan(g, At("s", 5), Read(x, from), Write(by_alias ? g.Alias(At("z", 2), x, Slice({0, 0}, {8, 10})) : x, to));
    return MistakesOf(g);
  };
  EXPECT_EQ(mistakes({}, {}), "OK");
  EXPECT_EQ(mistakes(Slice({1, 2}, {3, 4}), Slice({1, 2}, {3, 4})), "OK");
  EXPECT_EQ(mistakes(Slice({1, 2}, {3, 4}), Slice({4, 2}, {3, 4})), "OK");
  EXPECT_EQ(mistakes(Slice({1, 2}, {3, 4}), Slice({1, 6}, {3, 4})), "OK");
  EXPECT_EQ(mistakes(Slice({1, 2}, {3, 4}), Slice({1, 3}, {3, 4})),
            "graph 'g' node 's' (a.cc:5): reads 'x' (a.cc:1) and writes 'x' (a.cc:1), which may be the same memory; it "
            "writes the elements that it reads, or memory that it does not read; name the same box, or another buffer");
  EXPECT_NE(mistakes({}, {}, true), "OK");
}

TEST(DeclaredCount, IsOneElementAndItsMaximumThatOfTheElements) {
  Graph g("g");
  auto counts = g.Input<int32_t>(At("counts", 1), 3);
  auto x = g.InOut<float>(At("x", 2), 100);
  g.ParallelFor(At("p", 5), CountOf(counts, 100), Add{}, ReadWrite(x));
  g.ParallelFor("good", CountOf(Read(counts, Slice({2}, {1})), 100), Add{}, ReadWrite(x));
  Scan(g, At("s", 6), CountOf(Read(counts, Slice({2}, {1})), 99), Read(x), Write(x));
  EXPECT_EQ(MistakesOf(g),
            "graph 'g': 2 mistakes:\n  graph 'g' node 'p' (a.cc:5): its count is {3} elements of 'counts' (a.cc:1); a "
            "CountOf reads one integer; name a buffer of one element, or one element of a larger buffer, with "
            "ps::Slice({i}, {1})\n  graph 'g' node 's' (a.cc:6): its CountOf has a maximum of {99} and it reads {100} "
            "elements of 'x' (a.cc:2); a count is of the first elements of one dimension; name that dimension as its "
            "maximum");
  Graph other("other");
  void (*const f)(int64_t, float*) = nullptr;
  other.ParallelFor(At("p", 5), CountOf(counts, 100), f, ReadWrite(other.InOut<float>("x", 100)));
  const std::string text = MistakesOf(other);
  EXPECT_NE(text.find("node 'p' (a.cc:5): the functor is null"), std::string::npos) << text;
  EXPECT_NE(text.find("node 'p' (a.cc:5): access 0 is to a buffer of another graph"), std::string::npos) << text;
}

// A Scan of 5000 elements in any order, in a graph that is deterministic or not.
template <class V, class Op>
std::string OfAnyOrder(Op op, bool deterministic = true) {
  Graph g("g");
  const auto x = g.Input<V>(At("x", 1), 5000);
  const auto y = g.Output<V>(At("y", 2), 5000);
  Scan(g, At("s", 5), Read(x), Write(y), op, V(1), ScanOptions{.order = CombineOrder::kAny});
  if (deterministic) g.Deterministic();
  return MistakesOf(g);
}
struct Multiply {
  template <class V>
  PENSTOCK_HOST_DEVICE V operator()(const V& a, const V& b) const {
    return static_cast<V>(a * b);
  }
};

TEST(DeclaredScan, OfAnyOrderIsRefusedInADeterministicGraphWhereTheOrderMatters) {
  const std::string refused =
      "graph 'g' node 's' (a.cc:5): may combine values in any order, and the graph is Deterministic; another order may "
      "give other bits; take CombineOrder::kFixed, the default";
  EXPECT_EQ(OfAnyOrder<float>(Plus()), refused);
  EXPECT_EQ(OfAnyOrder<double>(Plus()), refused);
  EXPECT_EQ(OfAnyOrder<float>(Multiply()), refused);
  EXPECT_EQ(OfAnyOrder<int>(Multiply()), refused) << "nobody knows what it does";
  EXPECT_EQ(OfAnyOrder<int>(Plus()), "OK");
  EXPECT_EQ(OfAnyOrder<uint8_t>(Plus()), "OK");
  EXPECT_EQ(OfAnyOrder<float>(Min()), "OK");
  EXPECT_EQ(OfAnyOrder<int64_t>(Max()), "OK");
  EXPECT_EQ(OfAnyOrder<float>(Plus(), false), "OK");
}

TEST(DeclaredScan, OfTheFixedOrderMayBeInADeterministicGraph) {
  Graph g("g");
  g.Deterministic();
  const auto x = g.Input<float>(At("x", 1), 5000);
  const auto y = g.Output<float>(At("y", 2), 5000);
  Scan(g, At("s", 5), Read(x), Write(y));
  EXPECT_EQ(MistakesOf(g), "OK");
}

TEST(DeclaredTransform, TakesElementsOfOneShape) {
  Graph g("g");
  auto n = g.Param<int>("n", AtMost(9));
  auto x = g.Input<float>(At("x", 1), n), y = g.Input<float>(At("y", 2), 9);
  auto z = g.Output<float>(At("z", 3), n);
  Transform(g, "good", Read(x), Write(z), Negative{});
  EXPECT_EQ(MistakesOf(g), "OK");
  Transform(g, At("t", 5), Read(y), Write(z), Negative{});
  EXPECT_EQ(
      MistakesOf(g),
      "graph 'g' node 't' (a.cc:5): reads {9} elements of 'y' (a.cc:2) and writes {n} of 'z' (a.cc:3); a Transform "
      "reads and writes boxes of one shape; declare both with the same constants and parameters");
}

struct Product {
  PENSTOCK_HOST_DEVICE float operator()(float a, float b) const { return a * b; }
};

TEST(DeclaredScan, BeginsWithWhatSomebodyHasNamed) {
  const auto mistakes = [](const ScanOptions& options, bool named) {
    Graph g("g");
    auto x = g.InOut<float>("x", 5);
    if (named) Scan(g, At("s", 5), Read(x), Write(x), Product{}, 1, options);
    else Scan(g, At("s", 5), Read(x), Write(x), Product{}, options);
    return MistakesOf(g);
  };
  EXPECT_EQ(mistakes(kExclusive, false),
            "graph 'g' node 's' (a.cc:5): begins with the identity of its operation, and the operation has none; name "
            "the initial value after the operation, or give it an Identity");
  EXPECT_EQ(mistakes(kExclusive, true), "OK");
  EXPECT_EQ(mistakes(kInclusive, false), "OK");
}

// What is read may be the same memory as what is written.
TEST(DeclaredAlgorithms, WriteOtherMemoryThanTheyRead) {
  const auto mistakes = [](auto declare) {
    Graph g("g");
    declare(g, g.InOut<int32_t>(At("x", 1), 100), g.InOut<int32_t>(At("y", 2), 100));
    const std::string text = MistakesOf(g);
    return text == "OK" ? text : text.find("which may be the same memory") != std::string::npos ? "same" : text;
  };
  const Box first = Slice({0}, {1}), front = Slice({0}, {50}), back = Slice({50}, {50}), middle = Slice({1}, {50});
  struct Negate {
    int32_t operator()(int32_t x) const { return -x; }
  };
  struct IsEven {
    bool operator()(int32_t x) const { return x % 2 == 0; }
  };
  struct Nothing {
    void operator()(int64_t, int32_t*) const {}
  };
  EXPECT_EQ(mistakes([](auto& g, auto x, auto y) { Sort(g, "s", Read(x), Write(y)); }), "OK");
  EXPECT_EQ(mistakes([](auto& g, auto x, auto) { Sort(g, "s", Read(x), Write(x)); }), "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto) { Sort(g, "s", Read(x, front), Write(x, back)); }), "OK");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto) { Sort(g, "s", Read(x, front), Write(x, middle)); }), "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto y) {
              SortPairs(g, "s", Read(x, front), Write(y, front), Read(x, back), Write(y, front));
            }),
            "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto y) {
              SortPairs(g, "s", Read(x, front), Write(y, front), Read(y, front), Write(y, back));
            }),
            "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto y) {
              SortPairs(g, "s", Read(x, front), Write(y, front), Read(x, back), Write(y, back));
            }),
            "OK");
  EXPECT_EQ(mistakes([](auto& g, auto x, auto) { Transform(g, "t", Read(x), Write(x), Negate{}); }), "OK");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto) { Transform(g, "t", Read(x, front), Write(x, middle), Negate{}); }),
            "same");
  EXPECT_EQ(mistakes([](auto& g, auto x, auto) { Histogram(g, "h", Read(x), Write(x), OwnBin()); }), "same");
  EXPECT_EQ(mistakes([](auto& g, auto x, auto y) { Histogram(g, "h", Read(x), Write(y), OwnBin()); }), "OK");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto y) { Scan(g, "s", CountOf(Read(y, first), 100), Read(x), Write(y)); }),
            "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto y) { Select(g, "s", Read(x), Write(y), Write(y, first), IsEven{}); }),
            "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto y) { Select(g, "s", Read(x), Write(y), Write(x, first), IsEven{}); }),
            "same");
  EXPECT_EQ(mistakes([](auto& g, auto x, auto y) {
              auto count = g.template Buffer<int32_t>("count", 1);
              g.Fill("set", count, 5);
              Select(g, "s", CountOf(count, 100), Read(x), Write(y), Write(count), IsEven{});
            }),
            "same");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto) {
              g.ParallelFor("p", CountOf(Read(x, first), 100), Nothing{}, ReadWrite(x, back));
            }),
            "OK");
  EXPECT_EQ(mistakes([&](auto& g, auto x, auto) {
              g.ParallelFor("p", CountOf(Read(x, first), 100), Nothing{}, ReadWrite(x));
            }),
            "same");
}

TEST(DeclaredHistogram, IsTwoNodesAndHasOneDimensionOfCounts) {
  Graph g("g");
  auto x = g.Input<uint8_t>("x", 100);
  const NodeRef before = g.Host("before", [] {});
  Histogram(g, At("h", 5), Read(x), Write(g.Output<int32_t>("y", 256)), OwnBin()).After(before).On(0).Priority(2);
  EXPECT_EQ(NamesOf(g).substr(NamesOf(g).find("h/zero")), "h/zero@5 h@5 ");
  for (int32_t n = 1; n < 3; ++n) {
    EXPECT_EQ(g.model().nodes[n].device, 0) << n;
    EXPECT_EQ(g.model().nodes[n].priority, 2) << n;
    EXPECT_EQ(g.model().nodes[n].after, std::vector<DeclId>{DeclId(n - 1)}) << n;
  }
  EXPECT_EQ(MistakesOf(g), "OK");
  Histogram(g, At("other", 6), Read(x), Write(g.Output<int32_t>(At("z", 7), {2, 128})), OwnBin());
  EXPECT_EQ(MistakesOf(g),
            "graph 'g' node 'other' (a.cc:6): writes {2, 128} counts to 'z' (a.cc:7); the bins of a Histogram have one "
            "dimension; name a buffer or a box of one");
}
TEST(DeclaredHistogram, OfACountHasTheMaximumOfItsElements) {
  Graph g("g");
  auto x = g.Input<uint8_t>(At("x", 1), 100);
  auto count = g.Input<int32_t>("count", 1);
  Histogram(g, At("h", 5), CountOf(count, 100), Read(x), Write(g.Output<int32_t>("y", 256)), OwnBin());
  EXPECT_EQ(MistakesOf(g), "OK");
  Histogram(g, At("other", 6), CountOf(count, 99), Read(x), Write(g.Output<int32_t>("z", 256)), OwnBin());
  EXPECT_NE(MistakesOf(g).find("node 'other' (a.cc:6)"), std::string::npos) << MistakesOf(g);
}

struct IsHot {
  PENSTOCK_HOST_DEVICE bool operator()(float x) const { return x > 1; }
};

TEST(DeclaredSelect, HasACountThatAllElementsFitInto) {
  const auto mistakes = [](int64_t n) {
    Graph g("g");
    auto x = g.Input<float>(At("x", 1), n);
    Select(g, At("s", 5), Read(x), Write(g.Output<float>("y", n)), Write(g.Output<uint8_t>("count", 1)), IsHot{});
    return MistakesOf(g);
  };
  EXPECT_EQ(mistakes(255), "OK");
  EXPECT_EQ(
      mistakes(256),
      "graph 'g' node 's' (a.cc:5): reads {256} elements of 'x' (a.cc:1), and the type of its count is for at most "
      "255; name a larger type, or read fewer elements");
}

TEST(DeclaredSelect, HasTwoNodesAndTheStatesOfItsTilesForMoreThanALeaf) {
  const struct {
    int64_t n;
    const char* names;
  } kCases[] = {{2048, "s@5 "}, {2049, "s@5 s/scan@5 s/tiles[3] "}, {kThreeLevels, "s@5 s/scan@5 s/tiles[2050] "}};
  for (const auto& c : kCases) {
    Graph g("g");
    Select(g, At("s", 5), Read(g.Input<float>("x", c.n)), Write(g.Output<float>("y", c.n)),
           Write(g.Output<int32_t>("count", 1)), IsHot{});
    EXPECT_EQ(NamesOf(g), c.names);
    EXPECT_EQ(MistakesOf(g), "OK") << c.names;
  }
}

TEST(DeclaredSelect, TellsEachMistakeOnce) {
  const auto mistakes = [](const Extent& taken, const Extent& given, const Extent& counted) {
    Graph g("g");
    Select(g, At("s", 5), Read(g.Input<float>(At("x", 1), taken)), Write(g.Output<float>(At("y", 2), given)),
           Write(g.Output<int64_t>(At("c", 3), counted)), IsHot{});
    return MistakesOf(g);
  };
  EXPECT_EQ(mistakes(5000, 6000, 1), "OK");
  EXPECT_EQ(mistakes(5000, 4999, 1),
            "graph 'g' node 's' (a.cc:5): reads {5000} elements of 'x' (a.cc:1) and may write as many to {4999} of 'y' "
            "(a.cc:2); a Select may keep all; read one dimension, and write to one of at least as many elements");
  EXPECT_NE(mistakes({5, 10}, 50, 1), "OK");
  EXPECT_NE(mistakes(50, {5, 10}, 1), "OK");
  EXPECT_EQ(
      mistakes(5000, 5000, 2),
      "graph 'g' node 's' (a.cc:5): its count is {2} elements of 'c' (a.cc:3); a Select writes one integer; name a "
      "buffer of one element, or one element of a larger buffer, with ps::Slice({i}, {1})");
  Graph g("g");
  auto x = g.InOut<float>(At("x", 1), 5000);
  Select(g, At("s", 5), Read(x), Write(x), Write(g.Output<int64_t>("c", 1)), IsHot{});
  EXPECT_EQ(MistakesOf(g),
            "graph 'g' node 's' (a.cc:5): reads 'x' (a.cc:1) and writes 'x' (a.cc:1), which may be the same memory; it "
            "writes memory that it does not read; name another buffer");
}

}  // namespace
}  // namespace penstock::graph::algorithms_test
