// Random graphs declared a second time: where only what commutes is in another order, the plan and the hash are the
// same; where one thing is another, the hash is.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <thread>
#include <vector>

#include "graph/passes/canonical.h"
#include "graph/plan/plan.h"
#include "tests/graph/oracle/graph_changes.h"
#include "tests/graph/oracle/model_text.h"
#include "tests/graph/oracle/permuted_graph.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"

namespace penstock::graph::random_canonical_test {
namespace {

constexpr int kNodes = 24;

class RandomCanonical : public testing::TestWithParam<int> {
 protected:
  Seeds seeds(int one_in = 1) const { return SeedsOf(GetParam(), one_in); }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomCanonical, testing::Range(0, kShards));

RandomGraph GraphWithArguments(uint64_t seed) {
  RandomGraph graph = MakeRandomGraph(seed, kNodes);
  std::mt19937_64 random(seed);
  AddArguments(graph, random);
  return graph;
}

struct Declared {
  DeclaredAgain graph;
  absl::StatusOr<Plan> plan;
};
Declared DeclareAndPlan(const RandomGraph& graph, uint64_t seed) {
  DeclaredAgain again = DeclareAgain(graph, seed);
  absl::StatusOr<Plan> plan = MakePlan(again.model, again.options);
  return {std::move(again), std::move(plan)};
}
Declared InAnotherThread(const RandomGraph& graph, uint64_t seed) {
  std::vector<Declared> result;
  std::thread([&] { result.push_back(DeclareAndPlan(graph, seed)); }).join();
  return std::move(result.front());
}

TEST_P(RandomCanonical, DeclaredInAnotherOrderHaveEqualPlansAndHashes) {
  int64_t moved = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomGraph graph = GraphWithArguments(seed);
    const Model& model = graph.builder.model;
    const Plan plan = PlanOf(graph.builder, graph.options);
    const Declared again = seed % 16 == 0 ? InAnotherThread(graph, seed) : DeclareAndPlan(graph, seed);
    const Model& other = again.graph.model;
    const auto both = [&] { return Rerun(seed) + ModelText(model) + "\nand\n" + ModelText(other); };
    ASSERT_TRUE(again.plan.ok()) << again.plan.status() << both();
    ASSERT_EQ(plan.structure_hash, again.plan->structure_hash) << both();
    ASSERT_EQ(ByName(plan, model), ByName(*again.plan, other))
        << both() << PrintText(plan, model) << PrintText(*again.plan, other);
    moved += !(plan == *again.plan);
  }
  std::cout << "seeds " << seeds().begin << " to " << seeds().end - 1 << ": " << moved << " plans had other indices\n";
  if (seeds().many()) {
    EXPECT_GT(moved, seeds().count() * 3 / 4);
  }
}

TEST_P(RandomCanonical, WithOneChangeHaveAnotherHash) {
  const Seeds some = seeds(4);
  for (const GraphChange& change : GraphChanges()) {
    int64_t seen = 0;
    for (uint64_t seed = some.begin; seed < some.end; ++seed) {
      const RandomGraph graph = GraphWithArguments(seed);
      RandomGraph changed = graph;
      std::mt19937_64 random(seed);
      if (!change.apply(changed, random)) continue;
      const absl::StatusOr<Plan> plan = MakePlan(changed.builder.model, changed.options);
      if (!plan.ok()) continue;  // no graph that could be run
      ASSERT_NE(plan->structure_hash, PlanOf(graph.builder, graph.options).structure_hash)
          << change.name << " of " << Rerun(seed) << ModelText(graph.builder.model) << "\nand\n"
          << ModelText(changed.builder.model);
      ++seen;
    }
    std::cout << change.name << ": " << seen << " graphs\n";
    if (some.count() >= 500) {  // of all seeds
      EXPECT_GE(seen, 50) << change.name;
    }
  }
}

}  // namespace
}  // namespace penstock::graph::random_canonical_test
