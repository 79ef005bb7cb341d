// Plans of random graphs against an oracle that knows nothing of the planner: order by brute-force reachability, memory
// by lifetimes, contents by simulation. random_mutation_test.cc then breaks the same plans, to see the oracle object.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/graph_shares.h"
#include "tests/graph/oracle/lifetimes.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"
#include "tests/graph/oracle/schedule.h"
#include "tests/graph/oracle/shape_oracle.h"
#include "tests/graph/oracle/simulation.h"

namespace penstock::graph::random_plan_test {
namespace {

constexpr int kNodes = 24, kInterleavings = 4;

class RandomPlans : public testing::TestWithParam<int> {
 protected:
  Seeds seeds() const { return SeedsOf(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomPlans, testing::Range(0, kShards));

TEST_P(RandomPlans, KeepTheDeclaredOrder) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    ASSERT_EQ(CheckShape(p.model(), p.graph.options, p.plan), "") << Rerun(seed) << p.text();
    ASSERT_EQ(CheckPlaces(p.model(), p.graph.options, p.plan), "") << Rerun(seed) << p.text();
    ASSERT_EQ(CheckLanes(p.graph.options, p.plan), "") << Rerun(seed) << p.text();
    ASSERT_EQ(OrderOracle(p.model(), p.plan).Check(Execution(p.plan)), "") << Rerun(seed) << p.text();
  }
}

TEST_P(RandomPlans, ShareNoBytesBetweenInstancesThatMayLiveAtOnce) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    ASSERT_EQ(CheckMemory(p.model(), p.plan, Execution(p.plan)), "") << Rerun(seed) << p.text();
  }
}

TEST_P(RandomPlans, ComputeWhatTheGraphComputesInEveryInterleaving) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    for (uint64_t i = 0; i < kInterleavings; ++i) {
      ASSERT_EQ(Simulate(p.model(), p.plan, seed * 1000 + i), "")
          << "interleaving " << i << " of " << Rerun(seed) << p.text();
    }
  }
}

TEST_P(RandomPlans, EndWithDoneEventsThatCoverWhateverWasSubmitted) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    ASSERT_EQ(CheckFinish(p.plan), "") << Rerun(seed) << p.text();
  }
}

TEST_P(RandomPlans, AreAFunctionOfTheirInputs) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    ASSERT_EQ(PlanRandom(seed, kNodes).plan, PlanRandom(seed, kNodes).plan) << Rerun(seed);
  }
}

// The two ways to say that instances live at once must agree: order never excludes what a schedule shows.
TEST_P(RandomPlans, HaveLifetimesThatSchedulesConfirm) {
  int64_t possible = 0, seen = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; seed += 10) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    const Execution run(p.plan);
    std::mt19937_64 random(seed);
    std::vector<std::pair<int32_t, int32_t>> lived;
    for (int i = 0; i < 16; ++i) {
      for (const auto& pair : LivedAtOnce(p.plan, RandomSchedule(run, random))) lived.push_back(pair);
    }
    std::sort(lived.begin(), lived.end());
    lived.erase(std::unique(lived.begin(), lived.end()), lived.end());
    for (const auto& [a, b] : lived) {
      ASSERT_TRUE(MayLiveAtOnce(p.plan, run, a, b)) << a << " and " << b << " of " << Rerun(seed) << p.text();
    }
    seen += static_cast<int64_t>(lived.size());
    for (int32_t b = 0; b < static_cast<int32_t>(p.plan.instances.size()); ++b) {
      for (int32_t a = 0; a < b; ++a) possible += MayLiveAtOnce(p.plan, run, a, b);
    }
  }
  std::cout << possible << " pairs may live at once, " << seen << " did in some schedule\n";
  if (seeds().many()) {
    EXPECT_GT(seen, possible * 3 / 4);
  }
}

TEST_P(RandomPlans, AreOfGraphsThatHoldEnoughOfWhatIsHard) {
  GraphShares shares;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    shares.Count(p.model(), p.graph.options, p.plan);
  }
  for (const Share* share : shares.all()) {
    std::cout << "seeds " << seeds().begin << " to " << seeds().end - 1 << ": " << share->text() << "\n";
    if (seeds().many()) {
      EXPECT_GE(share->value(), share->least) << share->name;
    }
  }
}

}  // namespace
}  // namespace penstock::graph::random_plan_test
