// Options of nodes: what their setters keep, and in which order they may stand.
#include "penstock/node.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "penstock/graph.h"

namespace penstock::node_test {
namespace {

TEST(NodeOptions, AHostFallbackMayStandAnywhereAmongTheSetters) {
  Graph g("g");
  auto x = g.Input<int32_t>("x", 8), y = g.Output<int32_t>("y", 8);
  const NodeRef first = g.Host("first", [] {});
  const auto set = [&](auto node) {
    node.After(first)
        .On(1)
        .HostFallback([](const int32_t*, int32_t*) {})
        .Priority(2)
        .InPlace(x, y)
        .Concurrency(3)
        .Flops(7);
  };
  set(g.Kernel("kernel", +[](const int32_t*, int32_t*) {}, Threads(8), Read(x), Write(y)));
  set(g.Launch("launch", [](LaunchContext&, const int32_t*, int32_t*) {}, Read(x), Write(y)));
  g.Launch("last", [](LaunchContext&) {})
      .Flops(7)
      .Concurrency(3)
      .InPlace(x, y)
      .Priority(2)
      .On(1)
      .After(first)
      .HostFallback([] {});
  for (size_t i = 1; i < g.model().nodes.size(); ++i) {
    const NodeDecl& node = g.model().nodes[i];
    EXPECT_NE(node.code.call_fallback, nullptr) << node.name.view();
    EXPECT_EQ(node.after, std::vector<DeclId>{0}) << node.name.view();
    EXPECT_EQ(node.in_place.size(), 1U) << node.name.view();
    EXPECT_EQ(node.device, 1) << node.name.view();
    EXPECT_EQ(node.priority, 2) << node.name.view();
    EXPECT_EQ(node.concurrency, 3) << node.name.view();
    EXPECT_EQ(node.flops, 7) << node.name.view();
  }
}

// The last of its nodes only adds a few sums.
TEST(NodeOptions, TheOperationsOfAReduceAreThoseOfItsFirstNode) {
  Graph g("g");
  g.Reduce("sum", Read(g.Input<float>("x", 1 << 20)), Write(g.Output<float>("sum", 1))).Flops(1 << 20);
  ASSERT_GT(g.model().nodes.size(), 1U);
  for (size_t i = 0; i < g.model().nodes.size(); ++i) EXPECT_EQ(g.model().nodes[i].flops, i == 0 ? 1 << 20 : 0);
}

}  // namespace
}  // namespace penstock::node_test
