// The SimGraph of a plan. Plans here are made by hand: an upload with its staging, a kernel, a host node, a peer copy.
#include "graph/simulate/plan_sim_graph.h"

#include <gtest/gtest.h>

#include <vector>

#include "graph/simulate/simulate.h"

namespace penstock::graph::plan_sim_graph_test {
namespace {

enum { kStage, kUploadNode, kKernelNode, kHostNode, kPeerNode };

Plan MadePlan() {
  Plan plan;
  const auto instance = [&](Space space, int device, int64_t bytes) {
    Instance& i = plan.instances.emplace_back();
    i.space = space;
    if (device >= 0) i.device = device;
    i.bytes = bytes;
  };
  instance(Space::kBound, -1, 1000);
  instance(Space::kPinned, -1, 1000);
  instance(Space::kDevice, 0, 1000);
  instance(Space::kState, 0, 64);
  instance(Space::kDevice, 1, 1000);
  plan.instances[1].stages = true;
  const auto node = [&](PlanKind kind, int device, int lane, double cost) -> PlanNode& {
    PlanNode& n = plan.nodes.emplace_back();
    n.kind = kind;
    if (device >= 0) n.device = device, n.lane = lane;
    n.cost = cost;
    return n;
  };
  const auto copy = [](PlanNode& n, int src, int dst) { n.src = src, n.dst = dst; };
  copy(node(PlanKind::kStageIn, -1, -1, 20), 0, 1);
  PlanNode& upload = node(PlanKind::kUpload, 0, 0, 10);
  copy(upload, 1, 2);
  upload.preds.push_back(NodeId(kStage));
  PlanNode& kernel = node(PlanKind::kKernel, 0, 1, 30);
  kernel.decl = 0;
  kernel.uses = {{InstanceId(2), AccessMode::kReadWrite}, {InstanceId(3), AccessMode::kReadWrite}};
  kernel.preds.push_back(NodeId(kUploadNode));
  PlanNode& host = node(PlanKind::kHost, -1, -1, 50);
  host.decl = 1;
  host.preds.push_back(NodeId(kKernelNode));
  PlanNode& peer = node(PlanKind::kPeerCopy, 1, 2, 12);
  copy(peer, 2, 4);
  peer.preds.push_back(NodeId(kHostNode));
  plan.states.push_back({BufferId(0), InstanceId(3), /*written=*/true, {}});
  return plan;
}

TEST(PlanSimGraph, TakesResourcesOrderAndEstimatesFromThePlan) {
  const SimGraph graph = MakeSimGraph(MadePlan(), {.us = {}, .is_pinned = false});
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(graph.devices.size(), 2u);
  EXPECT_EQ(graph.nodes[kStage].resource, SimResource::kWorker);
  EXPECT_TRUE(graph.nodes[kStage].on_host);
  EXPECT_EQ(graph.nodes[kUploadNode].resource, SimResource::kUpload);
  EXPECT_EQ(graph.nodes[kKernelNode].resource, SimResource::kKernel);
  EXPECT_EQ(graph.nodes[kPeerNode].resource, SimResource::kPeer);
  EXPECT_EQ(graph.nodes[kPeerNode].from, 0);
  EXPECT_EQ(graph.nodes[kPeerNode].device, 1);
  const auto result = Simulate(graph, {.runs = 1, .slots = 1});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->makespan_us, 20 + 10 + 30 + 50 + 12);
}

TEST(PlanSimGraph, LeavesOutWhatPinnedMemoryNeedsNot) {
  Plan plan = MadePlan();
  const auto makespan = [&](bool is_pinned) {
    return Simulate(MakeSimGraph(plan, {.us = {}, .is_pinned = is_pinned}), {.runs = 1, .slots = 1})->makespan_us;
  };
  EXPECT_EQ(makespan(true), 10 + 30 + 50 + 12);
  plan.nodes[kUploadNode].when = When::kIfPinned;
  EXPECT_EQ(makespan(false), 20 + 30 + 50 + 12);
}

TEST(PlanSimGraph, PrefersKnownCostsAndBandwidths) {
  PlanCosts costs;
  costs.us = Table<NodeId, double>{-1, -1, 7};
  costs.upload = 0.5;
  costs.host_copy = 0.25;
  costs.copy_us = 3;
  costs.is_pinned = false;
  const SimGraph graph = MakeSimGraph(MadePlan(), costs);
  EXPECT_EQ(graph.nodes[kStage].Cost(), 3 + 4);
  EXPECT_EQ(graph.nodes[kUploadNode].Cost(), 3 + 2);
  EXPECT_EQ(graph.nodes[kKernelNode].Cost(), 7);
  EXPECT_EQ(graph.nodes[kHostNode].Cost(), 50);
  EXPECT_EQ(graph.nodes[kPeerNode].Cost(), 12);
}

TEST(PlanSimGraph, HoldsArenasFromFirstToLastUseAndOrdersRunsByWrittenStates) {
  Plan plan = MadePlan();
  SimGraph graph = MakeSimGraph(plan, {});
  ASSERT_EQ(graph.memory.size(), 3u);
  EXPECT_EQ(graph.memory[0].device, -1);
  EXPECT_EQ(graph.memory[1].users, (std::vector<int32_t>{kUploadNode, kKernelNode, kPeerNode}));
  EXPECT_EQ(graph.memory[2].device, 1);
  EXPECT_EQ(graph.states, (std::vector<std::vector<int32_t>>{{kKernelNode}}));
  plan.states[0].written = false;
  EXPECT_TRUE(MakeSimGraph(plan, {}).states.empty());
}

TEST(PlanSimGraph, CutsGraphsAndOrdersTheirNodesAndStatesAsTheScheduleDoes) {
  Plan plan = MadePlan();
  plan.nodes[kKernelNode].preds.clear();  // as for an edge that only the graph has
  GraphSchedule schedule;
  GraphPart first, second;
  first.entries = {{NodeId(kUploadNode), RegionId()}, {NodeId(kKernelNode), RegionId()}};
  first.preds.Close();
  first.preds.Add(0);
  first.preds.Close();
  second.entries = {{NodeId(kPeerNode), RegionId()}};
  second.preds.Close();
  schedule.graphs = {first, second};
  using Op = Command::Op;
  schedule.commands = {{Op::kStateWait, LaneId(0), 0},
                       {Op::kGraph, LaneId(0), 0},
                       {Op::kStateDone, LaneId(0), 0},
                       {Op::kGraph, LaneId(0), 1}};
  const SimGraph graph = MakeSimGraph(plan, {}, schedule);
  EXPECT_EQ(graph.nodes[kStage].graph, -1);
  EXPECT_EQ(graph.nodes[kUploadNode].graph, 0);
  EXPECT_EQ(graph.nodes[kKernelNode].graph, 0);
  EXPECT_EQ(graph.nodes[kPeerNode].graph, 1);
  EXPECT_EQ(graph.nodes[kKernelNode].after, (decltype(SimNode::after){kUploadNode}));
  EXPECT_EQ(graph.states, (std::vector<std::vector<int32_t>>{{kUploadNode, kKernelNode}}));
}

}  // namespace
}  // namespace penstock::graph::plan_sim_graph_test
