// How a graph is rewritten to check its host fallbacks: nodes come between, and what pointed at a node still does. What
// the checks compute is tests/conformance/graph/host_fallback_test.cc.
#include "graph/declare/host_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/graph.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/model_text.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/shape_oracle.h"
#include "tests/support/kernels.h"
#include "tests/support/status.h"

namespace penstock::graph::host_check_test {
namespace {

struct Sum {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, int32_t* sum) const {
    sum[i] = a[i] + b[i];
  }
};

TEST(TwinCheck, AfterStillMeansTheSameNode) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 8);
  g.ParallelFor("add", 8, AddOne{}, ReadWrite(x));
  const NodeRef first = g.Host("first", [] {});
  g.Host("second", [] {}).After(first);
  std::vector<std::string> unchecked;
  const Model model = WithHostChecks(g.model(), 0, unchecked);
  std::vector<std::string> names;
  for (const NodeDecl& node : model.nodes) names.emplace_back(node.name.view());
  EXPECT_EQ(names, (std::vector<std::string>{"keep add x", "add", "check add", "first", "second"}));
  EXPECT_EQ(model.nodes[4].after, std::vector<DeclId>{3});
}

// A check is a Host node, whose arguments may have any size.
TEST(TwinCheck, ANodeWithManyArgumentsIsChecked) {
  Graph g("g");
  std::vector<AccessOf<int32_t, AccessMode::kRead>> parts;
  for (int i = 0; i < 200; ++i) parts.push_back(Read(g.Input<int32_t>("x" + std::to_string(i), 8)));
  auto sum = g.Output<int32_t>("sum", 8);
  g.Kernel("sum", static_cast<void (*)(ViewTable<const int32_t, 200>, int32_t*)>(nullptr), Threads(8), All(parts),
           Write(sum))
      .HostFallback([](Views<const int32_t>, int32_t*) {});
  std::vector<std::string> unchecked;
  const Model model = WithHostChecks(g.model(), 0, unchecked);
  EXPECT_TRUE(unchecked.empty());
  EXPECT_EQ(model.nodes.count(), 2);
}

// Whether the rewritten graph checks the node "n", and what is said of nodes that are not checked.
std::string CheckOf(const Graph& g) {
  std::vector<std::string> unchecked;
  const Model model = WithHostChecks(g.model(), 0, unchecked);
  std::string text;
  for (const std::string& line : unchecked) text += line + "\n";
  for (const NodeDecl& node : model.nodes) {
    if (node.name.view() == "check n") text += "checked\n";
  }
  EXPECT_OK(MakePlan(model, Devices(1)).status());
  return text;
}

TEST(TwinCheck, OfANodeThatAccessesPartsOfABufferThatLieApart) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 8);
  g.ParallelFor("n", 2, Twice{}, Read(x, Slice(0, 2)), Write(x, Slice(2, 2)));
  EXPECT_EQ(CheckOf(g), "checked\n");
}

TEST(TwinCheck, OfANodeThatWritesTwoPartsOfABuffer) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 8);
  g.ParallelFor("n", 2, AddTo<>{}, ReadWrite(x, Slice(0, 2)), ReadWrite(x, Slice(2, 2)));
  EXPECT_EQ(CheckOf(g), "checked\n");
}

TEST(TwinCheck, OfANodeThatReadsElementsTwice) {
  Graph g("g");
  auto x = g.Input<int32_t>("x", 8), y = g.Output<int32_t>("y", 8);
  g.ParallelFor("n", 4, Sum{}, Read(x, Slice(0, 4)), Read(x, Slice(2, 4)), Write(y));
  EXPECT_EQ(CheckOf(g), "checked\n");
}

TEST(TwinCheck, OneLineForEachReasonWhyNodesAreNotChecked) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 8), z = g.InOut<int32_t>("z", 8);
  auto from = g.Param<int>("from");
  g.ParallelFor(Name("n", "a.cc", 1), 2, Twice{}, Read(x, Slice(0, 3)), Write(x, Slice(2, 2)));
  EXPECT_EQ(CheckOf(g),
            "graph 'g' node 'n' (a.cc:1): not checked against its host code: it accesses elements of 'x' twice and "
            "writes them\n");
  g.ParallelFor(Name("loose", "a.cc", 2), 8, AddOne{}, Unordered(ReadWrite(z)));
  g.ParallelFor(Name("m", "a.cc", 3), 2, Twice{}, Read(x, Slice(from, 2)), Write(x, Slice(2, 2)));
  EXPECT_EQ(CheckOf(g),
            "graph 'g' node 'n' (a.cc:1): not checked against its host code: it accesses elements of 'x' twice and "
            "writes them; nor is 1 other node, for such a reason\n"
            "graph 'g' node 'loose' (a.cc:2): not checked against its host code: an access to 'z' is Unordered\n");
  g.ParallelFor(Name("k", "a.cc", 4), 8, AddTo<>{}, Read(x), ReadWrite(x));
  EXPECT_EQ(CheckOf(g),
            "graph 'g' node 'n' (a.cc:1): not checked against its host code: it accesses elements of 'x' twice and "
            "writes them; nor are 2 other nodes, for such a reason\n"
            "graph 'g' node 'loose' (a.cc:2): not checked against its host code: an access to 'z' is Unordered\n");
}

// Whatever a graph does with slices, aliases and States, it can be planned with checks between, and they are ordered.
TEST(TwinCheck, OfRandomGraphsIsPlannedInTheDeclaredOrder) {
  int64_t checked = 0, reasons = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    RandomGraph random = MakeRandomGraph(seed, 12);
    random.options.costs.clear();  // they are of other nodes
    random.options.placement.clear();
    std::vector<std::string> unchecked;
    const Model model = WithHostChecks(random.builder.model, 0, unchecked);
    checked += std::count_if(model.nodes.begin(), model.nodes.end(),
                             [](const NodeDecl& node) { return node.name.view().starts_with("check "); });
    reasons += static_cast<int64_t>(unchecked.size());
    const absl::StatusOr<Plan> plan = MakePlan(model, random.options);
    ASSERT_TRUE(plan.ok()) << "seed " << seed << "\n" << ModelText(model) << plan.status();
    ASSERT_EQ(CheckShape(model, random.options, *plan), "") << "seed " << seed << "\n" << ModelText(model);
    ASSERT_EQ(CheckOrder(model, *plan), "") << "seed " << seed << "\n" << ModelText(model);
  }
  std::cout << checked << " nodes were checked; " << reasons << " reasons why others were not\n";
  EXPECT_GT(checked, 500);
}

}  // namespace
}  // namespace penstock::graph::host_check_test
