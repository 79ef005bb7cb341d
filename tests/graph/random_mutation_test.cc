// Plans of random graphs, broken in one place after the other: without each wait, without each kept edge, with each
// pair of instances that may live at once in the same bytes. The oracle must object every time. That shows both that it
// is not blind, and that a plan holds nothing it could do without.
#include <gtest/gtest.h>

#include <iostream>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/mutations.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"
#include "tests/graph/oracle/simulation.h"

namespace penstock::graph::random_mutation_test {
namespace {

constexpr int kNodes = 24;

class RandomMutations : public testing::TestWithParam<int> {
 protected:
  Seeds seeds() const { return SeedsOf(GetParam()); }

  // Adds up what `mutate` finds over the plans of the shard. Stops at the first that is not noticed.
  template <class Mutate>
  Tally Sum(const char* what, Mutate mutate) {
    Tally sum;
    for (uint64_t seed = seeds().begin; seed < seeds().end && sum.missed.empty(); ++seed) {
      const RandomPlan p = PlanRandom(seed, kNodes);
      sum.Add(mutate(p.model(), p.plan));
      EXPECT_EQ(sum.missed, "") << Rerun(seed) << p.text();
    }
    std::cout << "seeds " << seeds().begin << " to " << seeds().end - 1 << ": " << sum.tried << " " << what << ", "
              << sum.noticed << " noticed\n";
    EXPECT_EQ(sum.noticed, sum.tried);
    if (seeds().many()) {
      EXPECT_GT(sum.tried, seeds().count());
    }
    return sum;
  }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomMutations, testing::Range(0, kShards));

TEST_P(RandomMutations, WithoutOneEventWaitAreNoticed) { Sum("event waits removed", RemoveEachEventWait); }

TEST_P(RandomMutations, WithoutOneHostWaitAreNoticed) { Sum("host waits removed", RemoveEachHostWait); }

TEST_P(RandomMutations, WithoutOneKeptEdgeAreNoticed) { Sum("kept edges removed", RemoveEachKeptEdge); }

TEST_P(RandomMutations, WithoutOneWaitAtTheEndAreNoticed) {
  Sum("waits at the end removed", [](const Model&, const Plan& plan) { return RemoveEachFinishWait(plan); });
}

TEST_P(RandomMutations, WithTwoLiveInstancesInTheSameBytesAreNoticed) { Sum("pairs overlapped", OverlapEachLivePair); }

// The simulation is no proof of order, but it must not be blind: without a wait most plans soon compute something else.
// (Not all: order is kept for some accesses that the copies have moved apart.)
TEST_P(RandomMutations, WithoutOneEventWaitMostlyComputeSomethingElse) {
  const auto differs = [](const Model& model, const Plan& plan) {
    for (uint64_t i = 0; i < 40; ++i) {
      if (!Simulate(model, plan, i).empty()) return true;
    }
    return false;
  };
  int64_t tried = 0, noticed = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; seed += 100) {
    RandomPlan p = PlanRandom(seed, 14);
    for (int32_t c = 0; c < p.plan.epilogue_begin; ++c) {
      Command& command = p.plan.commands[c];
      if (command.op != Command::Op::kWait) continue;
      const Command wait = command;
      p.plan.events.push_back(p.plan.events[0]);
      command = {Command::Op::kRecord, wait.lane, static_cast<int32_t>(p.plan.events.size()) - 1};
      noticed += differs(p.model(), p.plan);
      command = wait;
      ++tried;
    }
  }
  std::cout << tried << " waits removed, " << noticed << " noticed by the simulation\n";
  if (tried >= 50) {  // a sanitizer's build tries too few to judge shares
    EXPECT_GT(noticed, tried / 2);
  }
}

}  // namespace
}  // namespace penstock::graph::random_mutation_test
