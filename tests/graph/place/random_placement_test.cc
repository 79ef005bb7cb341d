// Random graphs with everything that a graph can have, as Compile would place them: against the oracle that knows
// nothing of the planner, and declared in another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "graph/passes/canonical.h"
#include "graph/place/choose_placement.h"
#include "tests/graph/oracle/lifetimes.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/permuted_graph.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"
#include "tests/graph/oracle/schedule.h"
#include "tests/graph/oracle/shape_oracle.h"
#include "tests/graph/oracle/simulation.h"

namespace penstock::graph::random_placement_test {
namespace {

constexpr int kNodes = 24;

class RandomPlacements : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shard, RandomPlacements, testing::Range(0, kShards));

// A byte takes a kernel a microsecond and a copy next to nothing, so that much is spread.
MachineFigures SlowNodesOf(const PlanOptions& options) {
  MachineFigures figures{.devices = {}, .submit_us = 1e-6, .crossing_us = 1e-6};
  for (const PlanDevice& device : options.devices) {
    figures.devices.push_back({.name = device.name, .memory = 1e-3, .upload = 1, .download = 1, .copy_us = 1e-6});
  }
  return figures;
}

TEST_P(RandomPlacements, KeepTheOrderAndTheContentsOfTheGraphHoweverItIsDeclared) {
  const Seeds seeds = SeedsOf(GetParam(), 4);
  int64_t spread = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    RandomGraph graph = MakeRandomGraph(seed, kNodes);
    graph.options.placement.clear();
    const Model& model = graph.builder.model;
    const MachineFigures figures = SlowNodesOf(graph.options);
    const auto placed = ChoosePlacement(model, graph.options, {.figures = &figures});
    ASSERT_TRUE(placed.ok()) << Rerun(seed) << placed.status();
    const auto text = [&] { return Rerun(seed) + ModelText(model) + PrintText(placed->plan, model); };
    PlanOptions options = graph.options;
    options.placement = placed->placement;
    ASSERT_EQ(CheckPlaces(model, options, placed->plan), "") << text();
    ASSERT_EQ(OrderOracle(model, placed->plan).Check(Execution(placed->plan)), "") << text();
    ASSERT_EQ(CheckMemory(model, placed->plan, Execution(placed->plan)), "") << text();
    ASSERT_EQ(Simulate(model, placed->plan, seed), "") << text();

    const DeclaredAgain again = DeclareAgain(graph, seed);
    const auto other = ChoosePlacement(again.model, again.options, {.figures = &figures});
    ASSERT_TRUE(other.ok()) << Rerun(seed) << other.status();
    ASSERT_EQ(placed->plan.structure_hash, other->plan.structure_hash) << text();
    ASSERT_EQ(ByName(placed->plan, model), ByName(other->plan, again.model)) << text();
    spread += placed->placement.empty() ? 0 : 1;
  }
  std::cout << "of " << seeds.count() << " graphs " << spread << " are placed on several devices\n";
  if (seeds.many()) {
    EXPECT_GT(spread, seeds.count() / 8);
  }
}

}  // namespace
}  // namespace penstock::graph::random_placement_test
