// Plans of random graphs against an oracle that knows nothing of the planner (oracle.h): order by brute force, contents
// by simulation, and every wait removed once to see the oracle object.
#include <gtest/gtest.h>

#include <iostream>

#include "graph/plan.h"
#include "tests/graph/oracle.h"
#include "tests/graph/random_graph.h"

namespace penstock::graph {
namespace {

constexpr uint64_t kFirstSeed = 1;
constexpr int kGraphs = 1500, kInterleavings = 4, kMutated = 400;

// Plans graph `seed`; on failure says how to see it again.
struct Planned {
  RandomGraph graph;
  Plan plan;
};
Planned PlanRandom(uint64_t seed, int nodes) {
  Planned planned{MakeRandomGraph(seed, nodes), {}};
  absl::StatusOr<Plan> plan = MakePlan(planned.graph.builder.model, planned.graph.options);
  EXPECT_TRUE(plan.ok()) << "seed " << seed << ": " << plan.status();
  if (plan.ok()) planned.plan = *std::move(plan);
  return planned;
}

TEST(RandomPlans, KeepTheDeclaredOrderAndContents) {
  int cross_lane = 0, hosts = 0, shared = 0, staged = 0, peers = 0, many_segments = 0, capped = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kGraphs; ++seed) {
    const Planned p = PlanRandom(seed, 24);
    const Model& model = p.graph.builder.model;
    const auto show = [&] { return "seed " + std::to_string(seed) + "\n" + PrintText(p.plan, model); };
    ASSERT_EQ(CheckShape(model, p.plan), "") << show();
    ASSERT_EQ(CheckOrder(model, p.plan), "") << show();
    for (uint64_t i = 0; i < kInterleavings; ++i) {
      ASSERT_EQ(Interpret(model, p.plan, seed * 1000 + i), "") << "interleaving " << i << " of " << show();
    }
    for (const PlanNode& node : p.plan.nodes) peers += node.kind == PlanKind::kPeerCopy;
    for (const Instance& i : p.plan.instances) staged += i.stages;
    for (const Command& c : p.plan.commands) cross_lane += c.op == Command::Op::kWait;
    for (const std::string& note : p.plan.notes) {
      shared += note.find("reuse memory") != std::string::npos;
      capped += note.find("lanes capped") != std::string::npos;
    }
    hosts += !p.plan.host_steps.empty();
    many_segments += p.plan.segments.size() > 1;
  }
  std::cout << kGraphs << " graphs: " << cross_lane << " waits, " << peers << " peer copies, " << staged
            << " staged buffers, " << hosts << " with host steps, " << many_segments << " of several segments, "
            << shared << " arenas that reuse memory, " << capped << " devices with capped lanes\n";
  EXPECT_GT(cross_lane, kGraphs);
  EXPECT_GT(peers, kGraphs / 10);
  EXPECT_GT(staged, kGraphs / 10);
  EXPECT_GT(hosts, kGraphs / 10);
  EXPECT_GT(many_segments, kGraphs / 10);
  EXPECT_GT(shared, kGraphs / 10);
  EXPECT_GT(capped, kGraphs / 10);
}

TEST(RandomPlans, DoneEventsCoverWhateverWasSubmitted) {
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kMutated; ++seed) {
    const Planned p = PlanRandom(seed, 14);
    ASSERT_EQ(CheckFinish(p.plan), "") << "seed " << seed << "\n" << PrintText(p.plan, p.graph.builder.model);
  }
}

TEST(RandomPlans, HaveNoWaitThatCouldBeRemoved) {
  Redundant sum;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kMutated; ++seed) {
    const Planned p = PlanRandom(seed, 14);
    const Redundant r = CountRedundant(p.graph.builder.model, p.plan);
    ASSERT_EQ(r.events, 0) << "seed " << seed << "\n" << PrintText(p.plan, p.graph.builder.model);
    ASSERT_EQ(r.hosts, 0) << "seed " << seed << "\n" << PrintText(p.plan, p.graph.builder.model);
    sum.tried_events += r.tried_events;
    sum.tried_hosts += r.tried_hosts;
  }
  std::cout << sum.tried_events << " event waits and " << sum.tried_hosts << " host waits removed, each noticed\n";
  EXPECT_GT(sum.tried_events, kMutated);
  EXPECT_GT(sum.tried_hosts, kMutated);
}

// The simulation is no proof of order, but it must not be blind: without a wait most plans soon compute something else.
// (Not all: order is kept for some accesses that the copies have moved apart.)
TEST(RandomPlans, AreSimulatedCloselyEnoughToMissAWait) {
  int tried = 0, noticed = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + 100; ++seed) {
    Planned p = PlanRandom(seed, 14);
    for (int32_t c = 0; c < p.plan.finish_begin; ++c) {
      Command& command = p.plan.commands[static_cast<size_t>(c)];
      if (command.op != Command::Op::kWait) continue;
      const Command wait = command;
      p.plan.events.push_back(p.plan.events[0]);
      command = {Command::Op::kRecord, wait.lane, static_cast<int32_t>(p.plan.events.size()) - 1};
      bool differs = false;
      for (uint64_t i = 0; i < 40 && !differs; ++i) differs = !Interpret(p.graph.builder.model, p.plan, i).empty();
      command = wait;
      ++tried;
      noticed += differs;
    }
  }
  std::cout << tried << " waits removed, " << noticed << " noticed by the simulation\n";
  EXPECT_GT(noticed, tried / 2);
}

TEST(RandomPlans, AreAFunctionOfTheirInputs) {
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + 50; ++seed) {
    EXPECT_EQ(PlanRandom(seed, 24).plan, PlanRandom(seed, 24).plan) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::graph
