// Plans as graphs on one lane: where graphs begin and end, what is recorded and waited for, and on which lane.
#include "graph/plan/graph_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::graph_schedule_test {
namespace {

// "k", or "upload x0 (5)" for a batch.
std::string NodeText(const Plan& plan, int32_t first) {
  const auto n = static_cast<size_t>(first);
  size_t end = n + 1;
  while (plan.nodes[n].batch >= 0 && end < plan.nodes.size() && plan.nodes[end].batch == first) ++end;
  return plan.nodes[n].name + (end > n + 1 ? " (" + std::to_string(end - n) + ")" : "");
}

// "{k0, k1, k2 after 0 1}", by places in the graph.
std::string GraphText(const Plan& plan, const GraphPart& graph) {
  std::string text;
  for (size_t i = 0; i < graph.entries.size(); ++i) {
    text += (i > 0 ? ", " : "{") + NodeText(plan, graph.entries[i].node);
    const char* after = " after ";
    for (const int32_t p : graph.preds[static_cast<int32_t>(i)]) {
      text += after + std::to_string(p);
      after = " ";
    }
  }
  return text + "}";
}

std::string CommandText(const Plan& plan, const ModelBuilder& g, const GraphSchedule& schedule, const Command& c) {
  const auto arg = static_cast<size_t>(c.arg);
  const auto name = [&](int32_t buffer) { return std::string(g.model.buffers[buffer].name.view()); };
  switch (c.op) {
    case Command::Op::kNode: return NodeText(plan, c.arg);
    case Command::Op::kRecord: return "record " + std::to_string(c.arg);
    case Command::Op::kWait: return "wait " + std::to_string(c.arg);
    case Command::Op::kStateWait: return "wait for " + name(plan.states[arg].buffer);
    case Command::Op::kStateWrite: return "write " + name(plan.states[arg].buffer);
    case Command::Op::kStateDone: return "done with " + name(plan.states[arg].buffer);
    case Command::Op::kWaitExternal: return "await " + name(plan.external_deps[arg].buffer);
    case Command::Op::kGraph: return GraphText(plan, schedule.graphs[arg]);
  }
  return "";
}

// The commands of the segments: "{k0, k1 after 0}; record 0 | k2".
std::string TextOf(const Plan& plan, const ModelBuilder& g, const GraphSchedule& schedule) {
  std::string text;
  int32_t at = 0;
  for (const Segment& segment : schedule.segments) {
    EXPECT_EQ(segment.kind, Segment::Kind::kGraph);
    EXPECT_EQ(segment.begin, at) << "segments stand side by side";
    at = segment.end;
    text += text.empty() ? "" : " | ";
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      text += (c > segment.begin ? "; " : "") + CommandText(plan, g, schedule, schedule.commands[c]);
    }
  }
  EXPECT_EQ(schedule.epilogue_begin, at);
  for (const Command& c : schedule.commands) EXPECT_EQ(c.lane, schedule.lane);
  return text;
}

Table<NodeId, bool> Refuse(const Plan& plan, const std::set<std::string>& names) {
  Table<NodeId, bool> refused(plan.nodes.size());
  for (size_t n = 0; n < refused.size(); ++n) refused[n] = names.contains(plan.nodes[n].name);
  return refused;
}

std::string ScheduleOf(const ModelBuilder& g, const std::set<std::string>& refused = {}, double least_us = 0) {
  const Plan plan = PlanOf(g);
  return TextOf(plan, g, MakeGraphSchedule(plan, Refuse(plan, refused), {}, least_us));
}

// a, b and c in a row.
ModelBuilder Chain() {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("a", Out{t});
  g.For("b", Change{t});
  g.For("c", Change{t});
  return g;
}

TEST(GraphSchedule, AGraphTakesAWholeSegmentOfAllLanes) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Output("y", 4, kPinned);
  g.For("k", In{x}, Out{y});
  EXPECT_EQ(ScheduleOf(g), "{upload x, k after 0, download y after 1}");
}

TEST(GraphSchedule, EdgesAreThoseThatNoPathImplies) { EXPECT_EQ(ScheduleOf(Chain()), "{a, b after 0, c after 1}"); }

TEST(GraphSchedule, NodesThatShareBytesAreJoined) {
  ModelBuilder g;
  g.For("k0", Out{g.Scratch("t", 64)});
  g.For("k1", Out{g.Scratch("u", 64)});
  PlanOptions options = Devices(1);
  options.max_lanes = 1;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(TextOf(plan, g, MakeGraphSchedule(plan, Refuse(plan, {}))), "{k0, k1 after 0}");
}

TEST(GraphSchedule, AWideGraphBecomesChains) {
  for (const auto& [count, chains] : {std::pair(256, 256), std::pair(600, 256), std::pair(1100, 128)}) {
    ModelBuilder g;
    for (int32_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      g.For("k" + number, In{g.Input("x" + number, 4, kPinned)}, Out{g.Output("y" + number, 4, kPinned)});
    }
    PlanOptions options = Devices(1);
    options.max_lanes = count;  // so that lanes order nothing, and no bytes are used in turn
    const Plan plan = PlanOf(g, options);
    const GraphSchedule schedule = MakeGraphSchedule(plan, Refuse(plan, {}));
    ASSERT_EQ(schedule.graphs.size(), 1u);
    const GraphPart& part = schedule.graphs[GraphId(0)];
    int after_kernels = 0;
    for (int32_t v = 0; v < part.preds.rows(); ++v) {
      const auto is_kernel = [&](int32_t of) {
        return plan.nodes[part.entries[static_cast<size_t>(of)].node].kind == PlanKind::kParallelFor;
      };
      const auto kernels = std::count_if(part.preds[v].begin(), part.preds[v].end(), is_kernel);
      after_kernels += is_kernel(v) ? static_cast<int>(kernels) : 0;
      const bool may_begin =
          plan.nodes[part.entries[static_cast<size_t>(v)].node].kind != PlanKind::kUpload || part.preds[v].empty();
      EXPECT_TRUE(may_begin) << "a copy waits for a kernel";
    }
    EXPECT_EQ(after_kernels, count - chains);
  }
}

TEST(GraphSchedule, TheChainsOfAWideGraphAreThoseOfEachDevice) {
  constexpr int32_t kOfEach = 300, kChains = 256;
  ModelBuilder g;
  for (int32_t i = 0; i < 2 * kOfEach; ++i) {
    const std::string number = std::to_string(i);
    g.For("k" + number, Out{g.Output("y" + number, 4, kPinned)});
    g.model.nodes[g.model.nodes.next() - 1].device = i / kOfEach;
  }
  PlanOptions options = Devices(2);
  options.max_lanes = kOfEach;
  const Plan plan = PlanOf(g, options);
  const GraphSchedule schedule = MakeGraphSchedule(plan, Refuse(plan, {}));
  ASSERT_EQ(schedule.graphs.size(), 1u);
  const GraphPart& part = schedule.graphs[GraphId(0)];
  const auto node_of = [&](int32_t of) -> const PlanNode& {
    return plan.nodes[part.entries[static_cast<size_t>(of)].node];
  };
  int after[2] = {0, 0};
  for (int32_t v = 0; v < part.preds.rows(); ++v) {
    if (node_of(v).kind != PlanKind::kParallelFor) continue;
    for (const int32_t p : part.preds[v]) {
      EXPECT_EQ(node_of(p).device, node_of(v).device) << "a chain goes from device to device";
      ++after[static_cast<size_t>(node_of(v).device)];
    }
  }
  EXPECT_EQ(after[0], kOfEach - kChains);
  EXPECT_EQ(after[1], kOfEach - kChains);
}

TEST(GraphSchedule, ARefusedNodeIsSubmittedBetweenGraphs) {
  EXPECT_EQ(ScheduleOf(Chain(), {"b"}), "{a}; b; {c}");
  EXPECT_EQ(ScheduleOf(Chain(), {"a"}), "a; {b, c after 0}");
  EXPECT_EQ(ScheduleOf(Chain(), {"b", "c"}), "{a}; b; c");
  EXPECT_EQ(ScheduleOf(Chain(), {"a", "b", "c"}), "a; b; c");
}

TEST(GraphSchedule, AGraphEndsWhereItsSegmentDoes) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4, kPinned), t = g.Scratch("t", 4);
  g.For("k0", Out{t});
  g.Host("h", Out{s});
  g.After(1, 0);
  g.For("k1", In{s}, In{t});
  g.For("k2", In{t}, In{s});
  const Plan plan = PlanOf(g);
  const GraphSchedule schedule = MakeGraphSchedule(plan, Refuse(plan, {}));
  EXPECT_EQ(TextOf(plan, g, schedule), "{k0}; record 0 | {upload s, k1 after 0, k2 after 0}");
  ASSERT_EQ(schedule.segments.size(), 2u);
  EXPECT_EQ(schedule.segments[0].after_hosts, std::vector<HostStepId>());
  EXPECT_EQ(schedule.segments[1].after_hosts, std::vector<HostStepId>{0});
}

// The host node waits for k0 alone, of which it reads what is downloaded.
ModelBuilder ReadOnTheWay() {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4), u = g.Scratch("u", 4), y = g.Output("y", 4, kPinned);
  g.node(g.For("k0", Out{t})).priority = -1;  // the first
  g.For("k1", Out{u});
  g.For("k2", Change{u});
  g.Host("h", In{t}, Out{y});
  return g;
}

TEST(GraphSchedule, WhatAHostStepLooksAtIsRecordedAfterTheGraph) {
  EXPECT_EQ(ScheduleOf(ReadOnTheWay()), "{k0, download t after 0, k1, k2 after 2}; record 1");
}

TEST(GraphSchedule, WhatAHostStepLooksAtIsRecordedAfterANodeOnItsOwnAtOnce) {
  EXPECT_EQ(ScheduleOf(ReadOnTheWay(), {"download t"}), "{k0}; download t; record 1; {k1, k2 after 0}");
}

TEST(GraphSchedule, ARecordIsAfterTheGraphOfItsNodeThoughMoreGraphsFollow) {
  EXPECT_EQ(ScheduleOf(ReadOnTheWay(), {"k1"}), "{k0, download t after 0}; record 1; k1; {k2}");
}

TEST(GraphSchedule, RecordsAfterOneGraphStandInTheOrderOfTheirNodes) {
  ModelBuilder g;
  for (const char* name : {"0", "1"}) {
    const int32_t t = g.Scratch(std::string("t") + name, Extent(1 << 20));
    g.For(std::string("k") + name, Out{t});
    g.Host(std::string("h") + name, In{t});
  }
  EXPECT_EQ(ScheduleOf(g), "{k0, k1, download t0 after 0, download t1 after 1}; record 2; record 3");
}

TEST(GraphSchedule, AStateIsWrittenAndDoneBetweenGraphs) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), w = g.State("w", 4);
  g.For("1st", In{x});
  g.For("add", In{x}, Change{w});
  g.For("after", In{x});
  EXPECT_EQ(ScheduleOf(g), "{upload x, 1st after 0}; wait for w; write w; {add}; record 1; done with w; {after}");
}

// Each kernel counts as 10 us.
TEST(GraphSchedule, AShortGraphGoesOnThoughAStateIsWritten) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kDevice), v = g.State("v", 4), w = g.State("w", 4);
  g.For("a", In{x}, Change{v});
  g.For("b", In{x});
  g.For("c", In{x}, Change{w});
  g.For("d", In{x});
  const std::string whole =
      "wait for v; await x; write v; wait for w; write w; {a, b, c, d}; record 0; done with v; record 1; done with w";
  EXPECT_EQ(ScheduleOf(g, {}, kLeastGraphUs), whole);
  EXPECT_EQ(ScheduleOf(g, {}, 30.5), whole);
  EXPECT_EQ(ScheduleOf(g, {}, 20),
            "wait for v; await x; write v; {a, b}; record 0; done with v; wait for w; write w; {c, d}; record 1; done "
            "with w");
}

// What is left would wait for the whole graph, and runs that follow gain little.
TEST(GraphSchedule, AStateThatIsDoneNearTheEndPartsNoGraph) {
  for (const int writes : {8, 9}) {
    ModelBuilder g;
    const int32_t x = g.Input("x", 4, kDevice), v = g.State("v", 4);
    std::string nodes = "w0";
    for (int w = 0; w < writes; ++w) {
      g.For("w" + std::to_string(w), In{x}, Change{v});
      if (w > 0) nodes += ", w" + std::to_string(w) + " after " + std::to_string(w - 1);
    }
    g.After(g.For("last", In{x}), writes - 1);
    const std::string begin = "wait for v; await x; write v; {" + nodes;
    EXPECT_EQ(ScheduleOf(g, {}, 10), writes == 8 ? begin + "}; record 0; done with v; {last}"
                                                 : begin + ", last after 8}; record 0; done with v");
  }
}

TEST(GraphSchedule, AStateIsWaitedForOnceThoughLanesOfThePlanEachDo) {
  ModelBuilder g;
  const int32_t w = g.State("w", 4);
  g.For("a", In{w});
  g.For("b", In{w});
  g.For("c", Change{w});
  EXPECT_EQ(ScheduleOf(g), "wait for w; {a, b}; write w; {c}; record 1; done with w") << "the second wait cuts nothing";
}

// The wait before the whole graph, the end behind it, and behind what the end looks at.
TEST(GraphSchedule, AStateThatIsOnlyReadPartsNoGraph) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), v = g.State("v", 4), w = g.State("w", 4), y = g.Output("y", 4, kPinned);
  const int32_t t = g.Scratch("t", 4);
  g.For("a", In{x}, In{v}, Out{t});
  g.For("b", In{t}, In{w}, Out{y});
  EXPECT_EQ(
      ScheduleOf(g),
      "wait for v; wait for w; {upload x, a after 0, b after 1, download y after 2}; record 1; done with v; record "
      "2; done with w");
}

TEST(GraphSchedule, AStateThatIsOnlyReadIsDoneBeforeTheNextGraph) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), v = g.State("v", 4), w = g.State("w", 4);
  g.For("a", In{x}, In{v});
  g.For("b", In{x}, Change{w});
  const std::string rest = "record 1; done with v; wait for w; write w; {b}; record 2; done with w";
  EXPECT_EQ(ScheduleOf(g), "wait for v; {upload x, a after 0}; " + rest);
  EXPECT_EQ(ScheduleOf(g, {"a"}), "wait for v; {upload x}; a; " + rest);
}

TEST(GraphSchedule, EachStateAndEachArrivalIsWaitedFor) {
  ModelBuilder g;
  const int32_t v = g.State("v", 4), w = g.State("w", 4), x = g.Input("x", 4, kDevice);
  g.For("a", In{v});
  g.For("b", In{w});
  g.For("c", In{x});
  EXPECT_EQ(ScheduleOf(g), "wait for v; wait for w; await x; {a, b, c}; record 0; done with v; record 1; done with w");
}

TEST(GraphSchedule, ArrivalsAreAwaitedOnceAndPartNoGraph) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kDevice), y = g.Output("y", 4, kDevice);
  const int32_t first = g.For("first");
  g.After(g.For("a", In{x}), first);
  g.After(g.For("b", In{x}), first);
  g.For("c", In{x}, Out{y});
  g.After(3, 1);
  EXPECT_EQ(ScheduleOf(g), "await x; await y; {first, a after 0, b after 0, c after 1}");
}

// Five uploads at once, and a kernel that reads two of them.
ModelBuilder Uploads() {
  ModelBuilder g;
  std::vector<int32_t> x;
  for (int i = 0; i < 5; ++i) x.push_back(g.Input("x" + std::to_string(i), 4, kPinned));
  const int32_t t = g.Scratch("t", 4);
  g.For("k", Out{t});
  for (size_t i = 1; i < x.size(); ++i) g.For("k" + std::to_string(i), In{x[0]}, In{x[i]}, Change{t});
  return g;
}

TEST(GraphSchedule, ABatchIsOneNode) {
  EXPECT_EQ(ScheduleOf(Uploads()), "{upload x0 (5), k, k1 after 0 1, k2 after 2, k3 after 3, k4 after 4}");
}

TEST(GraphSchedule, ABatchIsRefusedWithAnyOfItsNodes) {
  for (const char* name : {"upload x0", "upload x3", "upload x4"}) {
    const ModelBuilder g = Uploads();
    const Plan plan = PlanOf(g);
    const GraphSchedule schedule = MakeGraphSchedule(plan, Refuse(plan, {name}));
    EXPECT_EQ(TextOf(plan, g, schedule), "upload x0 (5); {k, k1 after 0, k2 after 1, k3 after 2, k4 after 3}");
    EXPECT_EQ(schedule.commands[0].count, 5);
  }
}

TEST(GraphSchedule, ABatchComesAfterWhatAnyOfItsNodesDoes) {
  ModelBuilder g;
  for (int i = 0; i < 5; ++i) {
    g.For("k" + std::to_string(i), Out{g.Output("y" + std::to_string(i), 4, kPinned)});
  }
  EXPECT_EQ(ScheduleOf(g), "{k0, k1, k2, k3, k4, download y0 (5) after 0 1 2 3 4}");
}

TEST(GraphSchedule, ARunEndsWithItsDoneEvents) {
  const Plan plan = PlanOf(Uploads());
  const GraphSchedule schedule = MakeGraphSchedule(plan, Refuse(plan, {}));
  ASSERT_EQ(plan.done_events.size(), 1u);
  EXPECT_EQ(schedule.short_epilogue_begin, schedule.epilogue_begin);
  EXPECT_EQ(schedule.epilogue_end, static_cast<int32_t>(schedule.commands.size()));
  ASSERT_EQ(schedule.epilogue_end, schedule.epilogue_begin + 1);
  EXPECT_EQ(schedule.commands.back(), (Command{Command::Op::kRecord, 0, plan.done_events[0]}));
}

TEST(GraphSchedule, TheLaneIsTheMostUrgentOneOfRefusedNodes) {
  ModelBuilder g;
  g.node(g.For("late")).priority = 1;
  g.node(g.For("soon")).priority = -1;
  g.For("too");
  const Plan plan = PlanOf(g);
  const auto lane_of = [&](const char* name) { return plan.nodes[Find(plan, name)].lane; };
  const auto chosen = [&](const std::set<std::string>& refused) {
    return MakeGraphSchedule(plan, Refuse(plan, refused)).lane;
  };
  ASSERT_EQ(plan.lanes.size(), 3u);
  EXPECT_EQ(chosen({}), 0);
  for (const char* name : {"late", "soon", "too"}) EXPECT_EQ(chosen({name}), lane_of(name)) << name;
  EXPECT_EQ(chosen({"late", "too"}), lane_of("too"));
  EXPECT_EQ(chosen({"late", "soon", "too"}), lane_of("soon"));
}

TEST(GraphSchedule, OfLanesOfOnePriorityTheFirstIsTaken) {
  ModelBuilder g;
  for (const char* name : {"a", "b", "c"}) g.For(name);
  const Plan plan = PlanOf(g);
  ASSERT_EQ(plan.lanes.size(), 3u);
  ASSERT_EQ(plan.nodes[1].lane, 1);
  EXPECT_EQ(MakeGraphSchedule(plan, {false, true, true}).lane, 1);
  EXPECT_EQ(MakeGraphSchedule(plan, {true, true, true}).lane, 0);
}

TEST(GraphSchedule, APlanOfHostNodesHasNoLane) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4), y = g.Output("y", 4);
  g.Host("h", In{x}, Out{y});
  const Plan plan = PlanOf(g);
  for (const bool refused : {false, true}) {
    const GraphSchedule schedule = MakeGraphSchedule(plan, Table<NodeId, bool>(plan.nodes.size(), refused));
    EXPECT_EQ(schedule.lane, -1);
    EXPECT_TRUE(schedule.commands.empty() && schedule.segments.empty() && schedule.graphs.empty());
    EXPECT_EQ(schedule.epilogue_end, 0);
  }
}

}  // namespace
}  // namespace penstock::graph::graph_schedule_test
