// How a graph is rewritten to check its twins: nodes come between, and what pointed at a node still does. What the
// checks compute is tests/conformance/twin_test.cc.
#include "graph/twin_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/graph.h"

namespace penstock::graph {
namespace {

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] += 1; }
};

TEST(TwinCheck, AfterStillMeansTheSameNode) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 8);
  g.ParallelFor("add", 8, AddOne{}, ReadWrite(x));
  const NodeRef first = g.Host("first", [] {});
  g.Host("second", [] {}).After(first);
  std::vector<std::string> unchecked;
  const Model model = WithTwinChecks(g.model(), 0, unchecked);
  std::vector<std::string> names;
  for (const NodeDecl& node : model.nodes) names.emplace_back(node.name.view());
  EXPECT_EQ(names, (std::vector<std::string>{"keep add x", "add", "check add", "first", "second"}));
  EXPECT_EQ(model.nodes[4].after, std::vector<int32_t>{3});
}

}  // namespace
}  // namespace penstock::graph
