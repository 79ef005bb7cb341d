// The library's kernels of algorithms under PENSTOCK_CHECKED_VIEWS, which makes View another type: they are found all
// the same.
#define PENSTOCK_CHECKED_VIEWS 1

#include <gtest/gtest.h>

#include <cstdint>

#include "penstock/penstock.h"
#include "penstock/sort.h"

namespace penstock::checked_algorithm_code_test {
namespace {

TEST(AlgorithmCode, IsThereForCheckedViews) {
  constexpr int64_t kN = 5000;
  Graph g("g");
  auto x = g.Input<float>("x", kN);
  auto y = g.Output<float>("y", kN);
  auto counts = g.Output<int32_t>("counts", 4);
  g.Reduce("sum", Read(x), Write(g.Output<float>("s", 1)));
  Scan(g, "scan", Read(x), Write(y));
  Select(g, "select", Read(x), Write(y), Write(counts, Slice(0, 1)), LessThan(1.F));
  Histogram(g, "bins", Read(x), Write(counts), EvenBins(0.F, 1.F, 4));
  Sort(g, "sort", Read(x), Write(y));
  EXPECT_GE(g.model().nodes.size(), 9u);
  for (const NodeDecl& node : g.model().nodes) EXPECT_FALSE(node.code.lacks_cuda) << node.name.view();
}

}  // namespace
}  // namespace penstock::checked_algorithm_code_test
