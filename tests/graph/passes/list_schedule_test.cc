// Order, segments and lanes: what is submitted when and where.
#include <gtest/gtest.h>

#include <string>

#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::list_schedule_test {
namespace {

std::string NamesOf(const Plan& plan) {
  std::string names;
  for (const PlanNode& node : plan.nodes) names += (names.empty() ? "" : ", ") + node.name;
  return names;
}
const PlanNode& NodeOf(const Plan& plan, const std::string& name) { return plan.nodes[Find(plan, name)]; }
const Lane& LaneOf(const Plan& plan, const std::string& name) { return plan.lanes[NodeOf(plan, name).lane]; }

TEST(Order, LongestRemainingPathFirst) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4);
  g.For("short", Out{s});
  g.For("long0", Out{t});
  g.For("long1", Change{t});
  g.For("long2", Change{t});
  EXPECT_EQ(NamesOf(PlanOf(g)), "long0, long1, short, long2");
}

TEST(Order, TiesGoByName) {
  ModelBuilder g;
  for (const char* name : {"c", "a", "d", "b"}) g.For(name);
  EXPECT_EQ(NamesOf(PlanOf(g)), "a, b, c, d");
}

TEST(Order, CostsAreAnInput) {
  ModelBuilder g;
  for (const char* name : {"a", "b", "c"}) g.For(name);
  PlanOptions options = Devices(1);
  options.costs = {1, -1, 1000};  // the second has its default of 10
  EXPECT_EQ(NamesOf(PlanOf(g, options)), "c, b, a");
}

TEST(Order, UploadsOfLongChainsComeFirst) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Input("y", 4, kPinned);
  g.For("short", In{x});
  const int32_t t = g.Scratch("t", 4);
  g.For("long0", In{y}, Out{t});
  g.For("long1", Change{t});
  EXPECT_EQ(NamesOf(PlanOf(g)), "upload y, upload x, long0, short, long1");
}

TEST(Segments, AHostNodeCutsWhatDependsOnIt) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k0", Out{t});
  g.Host("h", Change{t});
  g.For("k1", Change{t});
  g.For("free");
  const Plan plan = PlanOf(g);
  EXPECT_EQ(NamesOf(plan), "k0, download t, free, h, upload t, k1");
  ASSERT_EQ(plan.segments.size(), 2u);
  EXPECT_EQ(NodeOf(plan, "free").segment, 0);
  EXPECT_EQ(NodeOf(plan, "k1").segment, 1);
  EXPECT_TRUE(plan.segments[0].after_hosts.empty());
  EXPECT_EQ(plan.segments[1].after_hosts, (std::vector<HostStepId>{0}));
  ASSERT_EQ(plan.host_steps.size(), 1u);
  EXPECT_EQ(plan.host_steps[0].after_segment, 0);
  EXPECT_EQ(plan.host_steps[0].after_events.size(), 1u);
}

TEST(Segments, AChainOfHostNodesCutsOnce) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4, kPinned), t = g.Scratch("t", 4, kPinned);
  g.Host("h0", Out{s});
  g.Host("h1", In{s}, Out{t});
  g.For("k0", In{s});
  g.For("k1", In{t});
  EXPECT_EQ(PlanOf(g).segments.size(), 1u);
}

TEST(Place, APinWinsOverTheDefaultDevice) {
  ModelBuilder g;
  g.node(g.For("pinned")).device = 0;
  g.For("free");
  PlanOptions options = Devices(2);
  options.default_device = 1;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(NodeOf(plan, "pinned").device, 0);
  EXPECT_EQ(NodeOf(plan, "free").device, 1);
}

TEST(Segments, AGraphOfHostNodesHasNone) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.Host("a", Change{x});
  g.Host("b", Change{x});
  const Plan plan = PlanOf(g);
  EXPECT_TRUE(plan.segments.empty());
  EXPECT_TRUE(plan.commands.empty());
  EXPECT_TRUE(plan.done_events.empty());
  ASSERT_EQ(plan.host_steps.size(), 2u);
  EXPECT_EQ(plan.host_steps[1].after_hosts, (std::vector<HostStepId>{0}));
  EXPECT_EQ(plan.host_steps[1].after_segment, -1);
}

TEST(Lanes, AChainStaysOnItsLane) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.Fill("f", t);
  for (const char* name : {"a", "b", "c"}) g.For(name, Change{t});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(plan.lanes.size(), 1u);
  EXPECT_EQ(plan.commands.size(), 5u) << "four nodes and the record of the done event";
}

TEST(Lanes, IndependentChainsRunSideBySide) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4);
  g.For("s0", Out{s});
  g.For("t0", Out{t});
  g.For("s1", Change{s});
  g.For("t1", Change{t});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(NodeOf(plan, "s0").lane, NodeOf(plan, "s1").lane);
  EXPECT_EQ(NodeOf(plan, "t0").lane, NodeOf(plan, "t1").lane);
  EXPECT_NE(NodeOf(plan, "s0").lane, NodeOf(plan, "t0").lane);
}

TEST(Lanes, OnlyOneStepInheritsALane) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k", Out{t});
  g.For("left", In{t});
  g.For("right", In{t});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(NodeOf(plan, "left").lane, NodeOf(plan, "k").lane);
  EXPECT_NE(NodeOf(plan, "right").lane, NodeOf(plan, "k").lane);
}

// `join` could follow either; `last` only `wide`.
TEST(Lanes, TheLaneThatFewestCouldFollowIsInherited) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4);
  g.For("narrow", Out{s});
  g.For("wide", Out{t});
  g.For("join", In{s}, In{t});
  g.For("last", In{t});
  PlanOptions options = Devices(1);
  options.costs = {40, 30, 20, 10};  // submitted in this order: `wide` is the latest predecessor
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(NamesOf(plan), "narrow, wide, join, last");
  EXPECT_EQ(NodeOf(plan, "join").lane, NodeOf(plan, "narrow").lane);
  EXPECT_EQ(NodeOf(plan, "last").lane, NodeOf(plan, "wide").lane);
  EXPECT_EQ(plan.lanes.size(), 2u);
}

// `b` is later than `a`, and as many come after it, but of those after `a` one has its lane already.
TEST(Lanes, OnlyStepsWithoutALaneCount) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  g.For("c", Out{u});
  g.For("a", Out{s});
  g.For("b", Out{t});
  g.For("placed", In{u}, In{s});
  g.For("join", In{s}, In{t});
  g.For("last", In{t});
  PlanOptions options = Devices(1);
  options.costs = {60, 50, 40, 30, 20, 10};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(NamesOf(plan), "c, a, b, placed, join, last");
  EXPECT_EQ(NodeOf(plan, "placed").lane, NodeOf(plan, "c").lane);
  EXPECT_EQ(NodeOf(plan, "join").lane, NodeOf(plan, "a").lane);
}

// The same where one after `a` could never have its lane.
TEST(Lanes, OnlyStepsOfOnePriorityCount) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4);
  g.For("a", Out{s});
  g.For("b", Out{t});
  g.For("join", In{s}, In{t});
  g.For("last", In{t});
  g.node(g.For("urgent", In{s})).priority = 1;
  PlanOptions options = Devices(1);
  options.costs = {60, 50, 20, 10, 5};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(NamesOf(plan), "a, b, join, last, urgent");
  EXPECT_EQ(NodeOf(plan, "join").lane, NodeOf(plan, "a").lane);
}

TEST(Lanes, AreCappedAndThenTheLeastLoadedIsTaken) {
  ModelBuilder g;
  for (const char* name : {"a", "b", "c", "d"}) g.For(name);
  PlanOptions options = Devices(1);
  options.max_lanes = 2;
  options.costs = {100, 60, 50, 20};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(NodeOf(plan, "c").lane, NodeOf(plan, "b").lane);
  EXPECT_EQ(NodeOf(plan, "d").lane, NodeOf(plan, "a").lane);
  EXPECT_EQ(plan.shared_lanes[0],
            "host:0: the plan is wider than the 2 compute lanes that max_lanes allows; nodes share them");
}

TEST(Lanes, CopiesHaveALaneADirectionAndDevice) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Input("y", 4, kPinned), z = g.Output("z", 4, kPinned);
  g.For("k", In{x}, In{y}, Out{z});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(NodeOf(plan, "upload x").lane, NodeOf(plan, "upload y").lane);
  EXPECT_EQ(LaneOf(plan, "upload x"), (Lane{0, LaneKind::kUpload, 0}));
  EXPECT_EQ(LaneOf(plan, "download z"), (Lane{0, LaneKind::kDownload, 0}));
  EXPECT_EQ(LaneOf(plan, "k"), (Lane{0, LaneKind::kCompute, 0}));
}

TEST(Lanes, EachDeviceHasItsOwn) {
  ModelBuilder g;
  g.For("a");
  g.node(g.For("b")).device = 1;
  const Plan plan = PlanOf(g, Devices(2));
  EXPECT_EQ(LaneOf(plan, "a").device, 0);
  EXPECT_EQ(LaneOf(plan, "b").device, 1);
  ASSERT_EQ(plan.done_events.size(), 2u);
  EXPECT_EQ(plan.events[plan.done_events[0]].device, 0);
  EXPECT_EQ(plan.events[plan.done_events[1]].device, 1);
}

TEST(Lanes, HaveOnePriorityEach) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("low", Out{t});
  g.node(g.For("high", Change{t})).priority = 5;
  const Plan plan = PlanOf(g);
  EXPECT_EQ(LaneOf(plan, "low").priority, 0);
  EXPECT_EQ(LaneOf(plan, "high").priority, 5);
}

TEST(Lanes, KeepOneFreeForAPriorityStillToCome) {
  ModelBuilder g;
  for (const char* name : {"a", "b", "c"}) g.For(name);
  g.node(g.For("late")).priority = -1;
  PlanOptions options = Devices(1);
  options.max_lanes = 2;
  options.costs = {4, 3, 2, 1};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(LaneOf(plan, "late").priority, -1);
  EXPECT_EQ(NodeOf(plan, "a").lane, NodeOf(plan, "c").lane);
}

TEST(Lanes, MorePrioritiesThanLanesShareTheLast) {
  ModelBuilder g;
  for (const int priority : {1, 2, 3}) g.node(g.For("p" + std::to_string(priority))).priority = priority;
  PlanOptions options = Devices(1);
  options.max_lanes = 2;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(LaneOf(plan, "p1").priority, 1);
  EXPECT_EQ(LaneOf(plan, "p2").priority, 2);
  EXPECT_EQ(NodeOf(plan, "p3").lane, NodeOf(plan, "p2").lane);
  EXPECT_EQ(plan.remarks[0], "host:0: 3 priorities share 2 compute lanes; those over 2 count as equal to it");
}

TEST(Lanes, ACopyLaneIsAsUrgentAsTheMostUrgentOfItsCopies) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Input("y", 4, kPinned), z = g.Input("z", 4, kPinned);
  g.For("a", In{x});
  g.node(g.For("b", In{y})).priority = -3;
  g.node(g.For("c", In{z})).priority = 2;
  EXPECT_EQ(LaneOf(PlanOf(g), "upload x").priority, -3);
}

}  // namespace
}  // namespace penstock::graph::list_schedule_test
