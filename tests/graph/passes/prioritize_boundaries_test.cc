// What other devices wait for comes first, and copies between devices have lanes of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/graph/oracle/model_builder.h"

namespace penstock::graph::prioritize_boundaries_test {
namespace {

const PlanNode& NodeCalled(const Plan& plan, const std::string& name) { return plan.nodes[Find(plan, name)]; }
const Lane& LaneOfNode(const Plan& plan, const std::string& name) { return plan.lanes[NodeCalled(plan, name).lane]; }

void OnDevice(ModelBuilder& g, int32_t node, int32_t device) { g.node(node).device = device; }

// On each of so many devices: a node which three more follow, declared first, and one whose result the next device
// reads.
ModelBuilder InnerBeforeEdges(int devices) {
  ModelBuilder g;
  std::vector<int32_t> edges;
  for (int d = 0; d < devices; ++d) {
    const std::string of = std::to_string(d);
    const int32_t inner = g.Scratch("i" + of, 4);
    OnDevice(g, g.For("inner" + of, Out{inner}), d);
    for (const char* more : {"more", "and more", "and yet more"}) OnDevice(g, g.For(more + of, Change{inner}), d);
    edges.push_back(g.Scratch("e" + of, 4));
    OnDevice(g, g.For("edge" + of, Out{edges.back()}), d);
  }
  for (int d = 0; d < devices; ++d) {
    const auto left = static_cast<size_t>((d + devices - 1) % devices);
    OnDevice(g, g.For("reads" + std::to_string(d), In{edges[left]}), d);
  }
  return g;
}

// The first nodes of the device.
std::vector<std::string> FirstOnDevice(const Plan& plan, int32_t device, size_t count) {
  std::vector<std::string> names;
  for (const PlanNode& node : plan.nodes) {
    if (node.device == device && names.size() < count) names.push_back(node.name);
  }
  return names;
}

TEST(Boundaries, ComeBeforeLongerPathsOfTheirDevice) {
  const Plan plan = PlanOf(InnerBeforeEdges(2), Devices(2));
  EXPECT_EQ(FirstOnDevice(plan, 0, 3), (std::vector<std::string>{"edge0", "peer copy e1", "inner0"}));
  EXPECT_EQ(FirstOnDevice(plan, 1, 3), (std::vector<std::string>{"edge1", "peer copy e0", "inner1"}));
}

TEST(Boundaries, AndTheirCopiesAreMoreUrgentThanAllElse) {
  const Plan plan = PlanOf(InnerBeforeEdges(3), Devices(3));
  for (const PlanNode& node : plan.nodes) {
    const bool boundary = node.name.starts_with("edge") || node.kind == PlanKind::kPeerCopy;
    EXPECT_EQ(node.priority, boundary ? -1 : 0) << node.name;
    EXPECT_EQ(plan.lanes[node.lane].priority, node.priority) << node.name;
  }
}

// What it costs does not matter.
TEST(Boundaries, ComeFirstWhateverCostsSay) {
  PlanOptions options = Devices(2);
  options.costs = {1000, 1000, 1000, 1000, 1, 1000, 1000, 1000, 1000, 1, 1, 1};
  const Plan plan = PlanOf(InnerBeforeEdges(2), options);
  EXPECT_EQ(FirstOnDevice(plan, 0, 1), (std::vector<std::string>{"edge0"}));
  EXPECT_EQ(FirstOnDevice(plan, 1, 1), (std::vector<std::string>{"edge1"}));
}

TEST(Boundaries, KeepThePrioritiesThatAProgramGives) {
  ModelBuilder g = InnerBeforeEdges(2);
  g.node(0).priority = 7;
  const Plan plan = PlanOf(g, Devices(2));
  EXPECT_EQ(FirstOnDevice(plan, 0, 1), (std::vector<std::string>{"inner0"}));
  for (const PlanNode& node : plan.nodes) EXPECT_EQ(node.priority, node.name == "inner0" ? 7 : 0) << node.name;
}

// Device 1 has one kernel at a time, device 0 has two.
TEST(Boundaries, AreRaisedOnlyWhereTheDeviceHasAChoice) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  g.For("there", Out{s});
  OnDevice(g, g.For("back", In{s}, Out{t}), 1);
  OnDevice(g, g.For("again", In{t}, Out{u}), 1);
  g.For("end", In{u}, In{t});
  g.For("beside");
  const Plan plan = PlanOf(g, Devices(2));
  for (const char* raised : {"there", "peer copy t", "peer copy u"}) EXPECT_EQ(NodeCalled(plan, raised).priority, -1);
  for (const char* kept : {"peer copy s", "back", "again", "end", "beside"}) {
    EXPECT_EQ(NodeCalled(plan, kept).priority, 0) << kept;
  }
}

TEST(Boundaries, OfOneDeviceThereAreNone) {
  ModelBuilder g = InnerBeforeEdges(2);
  for (NodeDecl& node : g.model.nodes) node.device = 0;
  const Plan plan = PlanOf(g, Devices(2));
  for (const PlanNode& node : plan.nodes) EXPECT_EQ(node.priority, 0) << node.name;
  EXPECT_EQ(plan.nodes[NodeId(0)].name, "inner0");
}

// Steps of a stencil over three devices, the inner parts declared first: whenever a boundary step could be submitted,
// no other is.
TEST(Boundaries, NoOtherStepIsSubmittedWhileOneIsReady) {
  constexpr int kDevices = 3, kSteps = 5;
  ModelBuilder g;
  const auto name = [](const char* what, int step, int d) { return what + std::to_string(step) + std::to_string(d); };
  std::vector<int32_t> inner, edge;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<int32_t> new_inner, new_edge;
    for (int d = 0; d < kDevices; ++d) {
      new_inner.push_back(g.Scratch(name("i", step, d), 4));
      new_edge.push_back(g.Scratch(name("e", step, d), 4));
    }
    for (int d = 0; d < kDevices; ++d) {
      const auto at = static_cast<size_t>(d);
      const size_t left = (at + kDevices - 1) % kDevices, right = (at + 1) % kDevices;
      const auto own = [&](const char* what, int32_t to) {
        OnDevice(g,
                 step == 0 ? g.For(name(what, step, d), Out{to})
                           : g.For(name(what, step, d), In{inner[at]}, In{edge[at]}, Out{to}),
                 d);
      };
      own("inner", new_inner[at]);
      own("edge", new_edge[at]);
      if (step == 0) continue;
      OnDevice(g, g.For(name("halo", step, d), In{edge[left]}, In{edge[right]}, Change{new_edge[at]}), d);
    }
    inner = new_inner, edge = new_edge;
  }
  const Plan plan = PlanOf(g, Devices(kDevices));
  std::vector<bool> done(plan.nodes.size());
  int boundaries = 0;
  for (const NodeId n : plan.nodes.ids()) {
    const bool chosen = plan.nodes[n].priority == -1;
    boundaries += chosen;
    for (const NodeId other : plan.nodes.ids()) {
      const PlanNode& node = plan.nodes[other];
      const bool ready = !done[static_cast<size_t>(other)] &&
                         std::all_of(node.preds.begin(), node.preds.end(),
                                     [&](NodeId p) { return bool{done[static_cast<size_t>(p)]}; });
      EXPECT_TRUE(chosen || !ready || node.priority != -1) << plan.nodes[n].name << " before " << node.name;
    }
    done[static_cast<size_t>(n)] = true;
  }
  EXPECT_EQ(boundaries, kDevices * (kSteps - 1) * 3) << "a kernel and two copies of each step but the last";
}

TEST(PeerLanes, HoldCopiesApartFromKernelsHoweverFewThereAre) {
  PlanOptions options = Devices(2);
  options.max_lanes = 1;
  const Plan plan = PlanOf(InnerBeforeEdges(2), options);
  for (const char* copy : {"peer copy e0", "peer copy e1"}) {
    EXPECT_EQ(LaneOfNode(plan, copy).kind, LaneKind::kPeer);
    EXPECT_EQ(LaneOfNode(plan, copy).priority, 0);
  }
  for (const char* kernel : {"inner0", "edge0", "more0"}) {
    EXPECT_EQ(LaneOfNode(plan, kernel), (Lane{0, LaneKind::kCompute, 0})) << kernel;
  }
}

// As far as priorities allow.
TEST(PeerLanes, PassToTheKernelThatFollows) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 4), t = g.Scratch("t", 4);
  g.For("there", Out{s});
  OnDevice(g, g.For("back", In{s}, Out{t}), 1);
  g.For("end", In{t});
  const Plan plan = PlanOf(g, Devices(2));
  EXPECT_EQ(NodeCalled(plan, "back").lane, NodeCalled(plan, "peer copy s").lane);
  EXPECT_EQ(NodeCalled(plan, "end").lane, NodeCalled(plan, "peer copy t").lane);
  EXPECT_EQ(plan.lanes.size(), 3u);
}

int PeerLanesOf(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.lanes.begin(), plan.lanes.end(),
                                        [](const Lane& lane) { return lane.kind == LaneKind::kPeer; }));
}

TEST(PeerLanes, AreEightAtMostAndNoMoreThanOfKernels) {
  ModelBuilder g;
  for (int c = 0; c < 20; ++c) {
    const int32_t s = g.Scratch("s" + std::to_string(c), 4);
    g.For("writes " + std::to_string(c), Out{s});
    OnDevice(g, g.For("reads " + std::to_string(c), In{s}), 1);
  }
  PlanOptions options = Devices(2);
  for (const int most : {2, 7, 8, 30}) {
    options.max_lanes = most;
    EXPECT_EQ(PeerLanesOf(PlanOf(g, options)), std::min(most, 8)) << most;
  }
  EXPECT_TRUE(PlanOf(g, options).shared_lanes.empty()) << "only kernels want more of max_lanes";
}

// Each copy follows the last one from far.
TEST(PeerLanes, AreTakenAgainByLaterCopies) {
  const auto plan = [](int nodes) {
    ModelBuilder g;
    const int32_t x = g.Scratch("x", 4);
    for (int n = 0; n < nodes; ++n) {
      OnDevice(g, n == 0 ? g.For("n0", Out{x}) : g.For("n" + std::to_string(n), Change{x}), n % 2);
    }
    return PlanOf(g, Devices(2));
  };
  EXPECT_EQ(plan(100).lanes.size(), plan(10).lanes.size());
  EXPECT_LE(plan(100).lanes.size(), 4u);
}

}  // namespace
}  // namespace penstock::graph::prioritize_boundaries_test
