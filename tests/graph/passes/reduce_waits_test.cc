// Reduce and lower: which waits are left, and the commands that carry them.
#include <gtest/gtest.h>

#include <string>

#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/mutations.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/shape_oracle.h"
#include "tests/graph/oracle/simulation.h"

namespace penstock::graph::reduce_waits_test {
namespace {

// The commands of the segments: "k0, record 0, | wait 0, k1" with "|" between segments.
std::string CommandsOf(const Plan& plan) {
  std::string text;
  for (const Segment& segment : plan.segments) {
    if (!text.empty()) text += " | ";
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const Command& command = plan.commands[c];
      const std::string lane = "@" + std::to_string(command.lane);
      if (c > segment.begin) text += ", ";
      switch (command.op) {
        case Command::Op::kNode: text += plan.nodes[command.arg].name + lane; break;
        case Command::Op::kRecord: text += "record " + std::to_string(command.arg); break;
        case Command::Op::kWait: text += "wait " + std::to_string(command.arg) + lane; break;
        default: break;  // states: states_test.cc
      }
    }
  }
  return text;
}

TEST(Reduce, LaneOrderNeedsNoWait) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Output("y", 4, kPinned);
  g.For("k", In{x}, Out{y});
  EXPECT_EQ(CommandsOf(PlanOf(g)), "upload x@0, record 0, wait 0@1, k@1, record 0, wait 0@2, download y@2");
}

TEST(Reduce, TheLastOfALaneCoversThoseBefore) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Input("y", 4, kPinned);
  g.For("k", In{x}, In{y});
  EXPECT_EQ(CommandsOf(PlanOf(g)), "upload x@0, upload y@0, record 0, wait 0@1, k@1");
}

TEST(Reduce, WhatALaneHasWaitedForHoldsForTheRestOfIt) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), t = g.Scratch("t", 4);
  g.For("k0", In{x}, Out{t});
  g.For("k1", In{x}, Change{t});
  EXPECT_EQ(CommandsOf(PlanOf(g)), "upload x@0, record 0, wait 0@1, k0@1, k1@1");
}

TEST(Reduce, AWaitCarriesWhatTheRecorderHasWaitedFor) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), t = g.Scratch("t", 4);
  g.For("k0", In{x}, Out{t});
  g.node(g.For("k1", In{x}, Change{t})).priority = 1;  // a lane of its own: waits for k0, and so for the upload
  EXPECT_EQ(CommandsOf(PlanOf(g)), "upload x@0, record 0, wait 0@1, k0@1, record 0, wait 0@2, k1@2");
}

TEST(Reduce, HostStepsCarryOrderFromSegmentToSegment) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4, kPinned), t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  g.For("k0", Out{t}, Out{u});
  g.Host("h", Out{s});
  g.After(1, 0);
  g.For("k1", In{s}, In{u});  // after h, which was after k0
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CommandsOf(plan), "k0@0, record 0 | upload s@1, record 1, wait 1@0, k1@0");
  EXPECT_EQ(CheckOrder(g.model, plan), "");
}

TEST(Reduce, DevicesAreJoinedByEvents) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k0", Out{t});
  g.node(g.For("k1", In{t})).device = 1;
  EXPECT_EQ(CommandsOf(PlanOf(g, Devices(2))), "k0@0, record 0, wait 0@1, peer copy t@1, k1@1");
}

TEST(Reduce, PredecessorsAreThoseNotImplied) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  g.For("k0", Out{t}, Out{u});
  g.For("k1", Change{t});
  g.For("k2", In{t}, In{u});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(plan.nodes[2].preds, (absl::InlinedVector<NodeId, 4>{1}));
}

// 40 host nodes that know nothing of each other, and one after all: more than the clocks have columns for.
TEST(Reduce, ManyIndependentHostNodesStayOrderedWhereDeclared) {
  ModelBuilder g;
  std::vector<int32_t> parts;
  for (int i = 0; i < 40; ++i) parts.push_back(g.Scratch("t" + std::to_string(i), 300));
  for (int i = 0; i < 40; ++i) g.Host("h" + std::to_string(i), Out{parts[i]});
  for (int i = 0; i < 40; ++i) g.For("k" + std::to_string(i), Change{parts[i]});
  for (int i = 0; i < 40; ++i) g.Host("r" + std::to_string(i), In{parts[i]});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CheckShape(g.model, Devices(1), plan), "");
  EXPECT_EQ(CheckOrder(g.model, plan), "");
  EXPECT_EQ(RemoveEachEventWait(g.model, plan).missed, "");
  for (uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(Simulate(g.model, plan, seed), "") << "seed " << seed;
}

TEST(Finish, JoinsAllLanesAndTheShortWayOnlyThoseNotCovered) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Output("y", 4, kPinned);
  g.For("k", In{x}, Out{y});
  g.For("apart");
  const Plan plan = PlanOf(g);
  // Upload and k are covered by the download's lane, "apart" is not.
  EXPECT_EQ(plan.short_epilogue_begin - plan.epilogue_begin, 4) << "two records, two waits";
  EXPECT_EQ(plan.epilogue_end - plan.short_epilogue_begin, 3) << "record, wait, and the done event";
  EXPECT_EQ(CheckFinish(plan), "");
}

}  // namespace
}  // namespace penstock::graph::reduce_waits_test
