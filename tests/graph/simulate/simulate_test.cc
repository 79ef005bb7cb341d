// The simulator against closed forms, and what it refuses.
#include "graph/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"

namespace penstock::graph::simulate_test {
namespace {

using ::testing::DoubleEq;
using ::testing::HasSubstr;

SimNode Kernel(double us, std::vector<int32_t> after = {}, int32_t lane = -1) {
  SimNode node{.lane = lane, .us = us};
  node.after.assign(after.begin(), after.end());
  return node;
}

SimNode Copy(SimResource direction, double us, std::vector<int32_t> after = {}, int32_t lane = -1) {
  SimNode node = Kernel(us, std::move(after), lane);
  node.resource = direction;
  return node;
}

SimNode HostStep(double us, std::vector<int32_t> after = {}) {
  SimNode node = Copy(SimResource::kWorker, us, std::move(after));
  node.on_host = true;
  node.device = -1;
  return node;
}

SimGraph GraphOf(std::vector<SimNode> nodes, SimDevice device = {}) {
  return {.nodes = std::move(nodes), .devices = {device}, .memory = {}, .states = {}};
}

// Upload, kernel, download.
SimGraph ThreeStages(double up, double compute, double down) {
  return GraphOf(
      {Copy(SimResource::kUpload, up, {}, 0), Kernel(compute, {0}, 1), Copy(SimResource::kDownload, down, {1}, 2)});
}

SimResult Simulated(const SimGraph& graph, const SimOptions& options) {
  auto result = Simulate(graph, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SimResult{};
}

SimOptions Once() { return {.runs = 1, .slots = 1}; }

const SimSpan& SpanOf(const SimResult& result, int32_t node, int32_t run = 0) {
  return *std::find_if(result.spans.begin(), result.spans.end(),
                       [&](const SimSpan& s) { return s.node == node && s.run == run; });
}

TEST(Simulate, AChainTakesTheSumOfItsNodes) {
  const SimGraph graph = GraphOf({Kernel(3), Kernel(4, {0}), Kernel(5, {1})});
  SimOptions options = Once();
  options.launch_us = 2;
  options.start_us = 1;
  options.completion_us = 6;
  options.stream_latency_us = 0.5;
  options.node_us = 10;  // node 2 is submitted when the others have ended
  EXPECT_THAT(Simulated(graph, options).makespan_us, DoubleEq(2 + 3 * 10 + 1 + 5.5 + 6));
  options.as_graphs = true;
  options.graph_us = 7;
  options.graph_latency_us = 0.25;
  EXPECT_THAT(Simulated(graph, options).makespan_us, DoubleEq(2 + 7 + 1 + 3 + 4 + 5 + 3 * 0.25 + 6));
}

TEST(Simulate, BytesTakeTheirTimeAtABandwidth) {
  SimNode copy = Copy(SimResource::kUpload, 5);
  copy.bytes = 1'000'000;
  copy.gbs = 50;
  EXPECT_THAT(Simulated(GraphOf({copy}), Once()).makespan_us, DoubleEq(5 + 20));
}

TEST(Simulate, EqualKernelsGoThroughAsManyPlacesAsTheDeviceHas) {
  for (const int32_t places : {1, 2, 3, 7, 8}) {
    const SimGraph graph = GraphOf(std::vector<SimNode>(7, Kernel(10)), {.kernels = places});
    const SimResult result = Simulated(graph, Once());
    EXPECT_THAT(result.makespan_us, DoubleEq(10 * ((7 + places - 1) / places)));
    EXPECT_THAT(result.uses.back().busy_us, DoubleEq(70));
  }
}

TEST(Simulate, NodesOfALaneRunOneByOneOnStreamsAndSideBySideInGraphs) {
  const SimGraph graph = GraphOf({Kernel(10, {}, 0), Kernel(10, {}, 0)}, {.kernels = 2});
  SimOptions options = Once();
  const SimResult streams = Simulated(graph, options);
  EXPECT_THAT(streams.makespan_us, DoubleEq(20));
  EXPECT_EQ(SpanOf(streams, 1).wait, SimWait::kLane);
  options.as_graphs = true;
  EXPECT_THAT(Simulated(graph, options).makespan_us, DoubleEq(10));
}

TEST(Simulate, APipelineTakesItsLongestStageARunWithEnoughSlotsAndAllOfThemWithOne) {
  for (const auto& [up, compute, down] : {std::tuple(8, 5, 3), std::tuple(2, 9, 4), std::tuple(1, 2, 6)}) {
    const SimGraph graph = ThreeStages(up, compute, down);
    EXPECT_THAT(Simulated(graph, {.runs = 40, .slots = 1}).run_us, DoubleEq(up + compute + down));
    EXPECT_THAT(Simulated(graph, {.runs = 40, .slots = 3}).run_us, DoubleEq(std::max({up, compute, down})));
  }
}

TEST(Simulate, CopiesSlowEachOtherDownWhileBothDirectionsAreBusy) {
  const SimGraph graph = GraphOf({Copy(SimResource::kUpload, 8), Copy(SimResource::kDownload, 20)},
                                 {.upload_slowdown = 2, .download_slowdown = 4});
  const SimResult result = Simulated(graph, Once());
  EXPECT_THAT(SpanOf(result, 0).end_us, DoubleEq(16));
  EXPECT_THAT(SpanOf(result, 1).end_us, DoubleEq(16 + (20 - 16 / 4)));  // alone again from 16 on
}

TEST(Simulate, ALaunchWaitsForASlot) {
  const SimGraph graph = GraphOf({Kernel(10)});
  const SimResult result = Simulated(graph, {.runs = 5, .slots = 2, .launch_us = 1});
  const std::vector<double> launched{0, 1, 11, 21, 31};
  EXPECT_EQ(result.launched_us, launched);
  EXPECT_THAT(result.makespan_us, DoubleEq(51));
  const auto third =
      std::find_if(result.spans.begin(), result.spans.end(), [](const SimSpan& s) { return s.node < 0 && s.run == 2; });
  EXPECT_EQ(third->wait, SimWait::kSlot);
  EXPECT_EQ(result.spans[static_cast<size_t>(third->waited_for)].run, 0);
}

TEST(Simulate, TheApplicationSetsThePaceIfItIsTheSlowest) {
  const SimGraph graph = GraphOf({Kernel(10)});
  EXPECT_THAT(Simulated(graph, {.runs = 20, .slots = 4, .period_us = 25}).run_us, DoubleEq(25));
  EXPECT_THAT(Simulated(graph, {.runs = 20, .slots = 4, .between_us = 30}).run_us, DoubleEq(30));
  EXPECT_THAT(Simulated(graph, {.runs = 20, .slots = 4, .threads = 2, .between_us = 30}).run_us, DoubleEq(15));
  // It waits for each run, and only then goes on.
  EXPECT_THAT(Simulated(graph, {.runs = 20, .slots = 4, .in_flight = 1, .between_us = 30}).run_us, DoubleEq(40));
}

TEST(Simulate, WhatFollowsAHostStepIsSubmittedByTheWorkerThatEndedIt) {
  const SimGraph graph = GraphOf({Kernel(10), HostStep(20, {0}), Kernel(30, {1}), HostStep(5)});
  SimOptions options = Once();
  options.launch_us = 1;
  options.node_us = 2;
  options.completion_us = 4;
  const SimResult result = Simulated(graph, options);
  EXPECT_THAT(SpanOf(result, 3).begin_us, DoubleEq(3));  // when the launch has submitted the first segment
  EXPECT_THAT(SpanOf(result, 1).begin_us, DoubleEq(3 + 10 + 4));
  EXPECT_THAT(SpanOf(result, 2).begin_us, DoubleEq(17 + 20 + 2));
  EXPECT_EQ(SpanOf(result, 2).wait, SimWait::kSubmission);
  EXPECT_THAT(result.makespan_us, DoubleEq(39 + 30 + 4));
}

TEST(Simulate, RunsTouchAStateOneAfterTheOther) {
  SimGraph graph = GraphOf({Kernel(10), Kernel(5, {0}), Kernel(10, {1})}, {.kernels = 8});
  const SimOptions options{.runs = 40, .slots = 8};
  EXPECT_THAT(Simulated(graph, options).run_us, DoubleEq(25.0 / 8));
  graph.states = {{1}};
  const SimResult result = Simulated(graph, options);
  EXPECT_THAT(result.run_us, DoubleEq(5));
  EXPECT_EQ(SpanOf(result, 1, 1).wait, SimWait::kState);
}

TEST(Simulate, LinksAndCrossingsCountBetweenDevices) {
  SimNode copy = Copy(SimResource::kPeer, 10, {0});
  copy.device = 1;
  copy.from = 0;
  SimNode there = Kernel(5, {1});
  there.device = 1;
  SimGraph graph = GraphOf({Kernel(5), copy, there});
  graph.devices.resize(2);
  SimOptions options = Once();
  options.crossing_us = 6;
  EXPECT_THAT(Simulated(graph, options).makespan_us, DoubleEq(5 + 6 + 10 + 5));
  std::swap(graph.nodes[1].device, graph.nodes[1].from);
  EXPECT_THAT(Simulated(graph, options).makespan_us, DoubleEq(5 + 10 + 6 + 5));
}

TEST(Simulate, ALaunchTakesLongerForEachEdgeToAnotherDevice) {
  SimGraph graph = GraphOf({Kernel(5), Kernel(5), Kernel(5, {0, 1}), Kernel(5, {2})});
  graph.devices.resize(2);
  graph.nodes[2].device = 1;  // two edges lead there, and one back
  SimOptions options = Once();
  options.as_graphs = true;
  options.graph_us = 4;
  options.crossing_submit_us = 2;
  EXPECT_THAT(SpanOf(Simulated(graph, options), 0).begin_us, DoubleEq(4 + 3 * 2));
  graph.nodes[2].graph = graph.nodes[3].graph = 1;  // one of the edges is in a graph
  EXPECT_THAT(SpanOf(Simulated(graph, options), 0).begin_us, DoubleEq(4));
  // On streams each node is submitted once what it waits for has been awaited.
  options.as_graphs = false;
  options.node_us = 1;
  const SimResult streams = Simulated(graph, options);
  EXPECT_THAT(SpanOf(streams, 0).begin_us, DoubleEq(1));
  EXPECT_THAT(SpanOf(streams, 2).begin_us, DoubleEq(11));  // after the two kernels, of which one waited for the other
  EXPECT_THAT(streams.spans.front().end_us, DoubleEq(4 * 1 + 3 * 2));
  graph.nodes[2].crossings = 1;
  EXPECT_THAT(Simulated(graph, options).spans.front().end_us, DoubleEq(4 * 1 + 2 * 2));
}

TEST(Simulate, MemoryIsHeldFromTheFirstUserToTheLast) {
  SimGraph graph = ThreeStages(10, 10, 10);
  graph.memory = {{0, 100, {0, 1}}, {0, 30, {1, 2}}, {-1, 7, {}}};
  const std::vector<SimPeak> one = Simulated(graph, {.runs = 1, .slots = 1}).peaks;
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].bytes, 7);
  EXPECT_EQ(one[1].bytes, 130);
  // Three runs at a time, in three stages: two hold the first, two the second.
  const std::vector<SimPeak> many = Simulated(graph, {.runs = 9, .slots = 3}).peaks;
  EXPECT_EQ(many[0].bytes, 21);
  EXPECT_EQ(many[1].bytes, 2 * 130);
}

TEST(Simulate, TheCriticalPathSaysWhatEachSpanWaitedFor) {
  const SimResult result = Simulated(ThreeStages(2, 9, 4), {.runs = 3, .slots = 3, .launch_us = 1});
  std::vector<std::pair<int32_t, SimWait>> path;
  for (const int32_t s : result.critical_path) {
    const SimSpan& span = result.spans[static_cast<size_t>(s)];
    path.emplace_back(span.node, span.wait);
  }
  const std::vector<std::pair<int32_t, SimWait>> expected{{-1, SimWait::kNothing},    {0, SimWait::kSubmission},
                                                          {1, SimWait::kPredecessor}, {1, SimWait::kResource},
                                                          {1, SimWait::kResource},    {2, SimWait::kPredecessor}};
  EXPECT_EQ(path, expected);
}

TEST(Simulate, RunsWithoutNodesTakeTheirLaunches) {
  const SimResult result = Simulated(GraphOf({}), {.runs = 10, .slots = 2, .launch_us = 3, .completion_us = 9});
  EXPECT_THAT(result.makespan_us, DoubleEq(30));
}

TEST(Simulate, RefusesWhatIsNoGraph) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  const auto refuses = [](const SimGraph& graph, const SimOptions& options, const std::string& why) {
    const auto result = Simulate(graph, options);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(why));
  };
  SimGraph cycle = GraphOf({Kernel(1, {1}), Kernel(1, {0})});
  refuses(cycle, {}, "node 0 follows node 1");
  refuses(GraphOf({Kernel(1, {0})}), {}, "node 0 follows node 0");
  refuses(GraphOf({Kernel(1, {-1})}), {}, "follows node -1");
  for (const double us : {-1.0, kNan, kInfinity}) refuses(GraphOf({Kernel(us)}), {}, "node 0 takes");
  refuses(GraphOf({Kernel(1e11), Kernel(1e11)}), {}, "10^12 us");
  SimGraph backwards = GraphOf({Kernel(1), Kernel(1, {0})});
  backwards.nodes[0].graph = 1;
  refuses(backwards, {}, "node 1 is in graph -1, but follows node 0 of graph 1");
  SimNode copy = Copy(SimResource::kUpload, 0);
  copy.bytes = -1;
  refuses(GraphOf({copy}), {}, "-1 bytes");
  copy = Kernel(1);
  copy.device = 1;
  refuses(GraphOf({copy}), {}, "device 1");
  copy.device = 0;
  copy.resource = SimResource::kPeer;
  refuses(GraphOf({copy}), {}, "from device -1");
  copy.resource = SimResource::kWorker;
  refuses(GraphOf({copy}), {}, "no host step");
  copy.on_host = true;
  copy.resource = SimResource::kUpload;
  refuses(GraphOf({copy}), {}, "host step on a device");
  refuses(GraphOf({Kernel(1)}, {.kernels = 0}), {}, "0 kernels");
  refuses(GraphOf({Kernel(1)}, {.upload_slowdown = 0.5}), {}, "by 0.5");
  refuses(GraphOf({Kernel(1)}, {.upload_slowdown = kNan}), {}, "nan");
  refuses(GraphOf({}), {.runs = 0}, "runs are 0");
  refuses(GraphOf({}), {.slots = 0}, "slots are 0");
  refuses(GraphOf({}), {.slots = -3}, "slots are -3");
  refuses(GraphOf({}), {.workers = 0}, "workers are 0");
  refuses(GraphOf({}), {.threads = 0}, "threads are 0");
  refuses(GraphOf({}), {.in_flight = -1}, "in flight");
  refuses(GraphOf({}), {.launch_us = kNan}, "launch_us is nan");
  refuses(GraphOf({}), {.completion_us = -1}, "completion_us is -1");
  refuses(GraphOf({}), {.crossing_submit_us = -2}, "crossing_submit_us is -2");
  SimNode negative = Kernel(1);
  negative.crossings = -2;
  refuses(GraphOf({negative}), {}, "node 0 waits for -2 events");
  refuses(GraphOf(std::vector<SimNode>(1000, Kernel(1))), {.runs = 10'000}, "simulate fewer runs");
  SimGraph memory = GraphOf({Kernel(1)});
  memory.memory = {{0, 1, {1}}};
  refuses(memory, {}, "node 1");
  memory.memory = {{0, int64_t{1} << 62, {0}}};
  refuses(memory, {}, "bytes");
  SimGraph state = GraphOf({Kernel(1), Kernel(1)});
  state.states = {{1, 0}};
  refuses(state, {}, "ascending");
  state.states = {{2}};
  refuses(state, {}, "node 2");
}

TEST(SteadyRunMicros, CountsWholeRoundsOfTheLastThreeQuarters) {
  EXPECT_THAT(SteadyRunMicros({}, 2), DoubleEq(0));
  EXPECT_THAT(SteadyRunMicros({7}, 2), DoubleEq(7));
  EXPECT_THAT(SteadyRunMicros({7, 9}, 1), DoubleEq(2));
  // Pairs end together, each 10 after the last; the first run is slow.
  EXPECT_THAT(SteadyRunMicros({100, 110, 110, 120, 120, 130, 130, 140}, 2), DoubleEq(5));
}

}  // namespace
}  // namespace penstock::graph::simulate_test
