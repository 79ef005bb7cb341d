// Which nodes go to which device, and why: graphs whose best placement is known, and random small ones against every
// placement there is.
#include "graph/place/choose_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/place/figures.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/model_text.h"
#include "tests/support/status.h"

namespace penstock::graph::choose_placement_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Candidate = PlacementReport::Candidate;

// Devices on which a byte in a microsecond is copied or touched, and nothing else costs anything.
MachineFigures SlowBytes(int devices) {
  MachineFigures figures{.devices = {}, .submit_us = 1e-6, .crossing_us = 1e-6};
  for (int d = 0; d < devices; ++d) {
    figures.devices.push_back({.name = "host:" + std::to_string(d),
                               .memory = 1e-3,
                               .fp32 = 1,
                               .upload = 1e-3,
                               .download = 1e-3,
                               .copy_us = 1e-6,
                               .stream_node_us = 1e-6});
  }
  figures.peers.assign(static_cast<size_t>(devices), std::vector<double>(static_cast<size_t>(devices), 1e-3));
  return figures;
}

struct Chosen : PlacedPlan {
  PlacementReport report;
};
Chosen Choose(const ModelBuilder& g, const PlanOptions& options, const MachineFigures& figures) {
  absl::StatusOr<PlacedPlan> placed = ChoosePlacement(g.model, options, {.figures = &figures});
  EXPECT_TRUE(placed.ok()) << placed.status();
  if (!placed.ok()) return {{}, {.graph = "", .devices = {}, .candidates = std::vector<Candidate>(3), .nodes = {}}};
  std::vector<std::string> names;
  for (const PlanDevice& device : options.devices) names.push_back(device.name);
  PlacementReport report = ReportPlacement(placed->plan, g.model, names, placed->candidates);
  return {*std::move(placed), std::move(report)};
}

std::vector<int> DevicesOf(const PlacementReport& report) {
  std::vector<int> devices;
  for (const PlacementReport::Node& node : report.nodes) devices.push_back(node.device);
  return devices;
}

const Candidate& Taken(const PlacementReport& report) {
  const auto taken = std::find_if(report.candidates.begin(), report.candidates.end(),
                                  [](const Candidate& candidate) { return candidate.taken; });
  static const Candidate kNone{.name = "none"};
  EXPECT_NE(taken, report.candidates.end());
  return taken != report.candidates.end() ? *taken : kNone;
}

// Chains of nodes, each on a buffer of its own of 100 bytes, side by side.
void AddChains(ModelBuilder& g, int chains, int nodes) {
  for (int c = 0; c < chains; ++c) {
    const std::string name = std::to_string(c);
    const int32_t buffer = g.Scratch("chain " + name, {25});
    g.For("first " + name, Out{buffer});
    for (int n = 1; n < nodes; ++n) g.For("node " + name + "." + std::to_string(n), Change{buffer});
  }
}

TEST(ChoosePlacement, SpreadsChainsThatHaveNothingToDoWithEachOther) {
  ModelBuilder g;
  AddChains(g, 4, 5);
  const Chosen placed = Choose(g, Devices(4), SlowBytes(4));
  const std::vector<int> devices = DevicesOf(placed.report);
  std::set<int> used;
  for (size_t chain = 0; chain < 4; ++chain) {
    used.insert(devices[5 * chain]);
    for (size_t n = 0; n < 5; ++n) EXPECT_EQ(devices[5 * chain + n], devices[5 * chain]);
  }
  EXPECT_EQ(used.size(), 4U);
  const Candidate& taken = Taken(placed.report);
  EXPECT_EQ(taken.name, "HEFT");
  EXPECT_NEAR(taken.gain, 0.75, 1e-4);
  EXPECT_NEAR(taken.makespan_us, 900, 0.1);  // the first writes 100 bytes, and four read and write them
  EXPECT_NEAR(placed.report.candidates[0].makespan_us, 3600, 0.1);
  EXPECT_EQ(taken.between_bytes, 0);
  ASSERT_EQ(taken.work_us.size(), 4U);
  for (const double us : taken.work_us) EXPECT_NEAR(us, 900, 0.1);
  EXPECT_THAT(placed.report.Text(), HasSubstr("HEFT: taken: it is the fastest\n    900.0 us a run (gain 75.0 %)"));
}

// Small copies of a graph are batches, of which a plan has as many nodes as copies.
TEST(ChoosePlacement, ScoresGraphsWithBatches) {
  ModelBuilder g;
  for (int c = 0; c < 8; ++c) {
    const std::string name = std::to_string(c);
    const int32_t in = g.Input("in " + name, {25}, kPinned), middle = g.Scratch("middle " + name, {25});
    g.For("first " + name, In{in}, Out{middle});
    g.For("second " + name, In{middle}, Out{g.Output("out " + name, {25}, kPinned)});
  }
  const PlanOptions options = Devices(2, /*cuda=*/true);
  const Plan plan = PlanOf(g, options);
  const auto is_in_batch = [](const PlanNode& node) { return node.batch >= 0; };
  ASSERT_GE(std::count_if(plan.nodes.begin(), plan.nodes.end(), is_in_batch), 16) << "batches of both directions";
  const absl::StatusOr<PlacedPlan> placed = ChoosePlacement(g.model, options, {.as_graph = true});
  ASSERT_TRUE(placed.ok()) << placed.status();
  for (const Candidate& candidate : placed->candidates) {
    EXPECT_THAT(candidate.why, ::testing::Not(HasSubstr("simulation"))) << candidate.name;
    const bool is_scored = candidate.why.find("places all nodes as") == std::string::npos;
    EXPECT_EQ(candidate.makespan_us > 0, is_scored) << candidate.name << ": " << candidate.why;
  }
}

TEST(ChoosePlacement, LeavesAloneWhatGainsNothing) {
  ModelBuilder g;
  AddChains(g, 1, 8);
  const Chosen placed = Choose(g, Devices(2), SlowBytes(2));
  EXPECT_TRUE(placed.placement.empty());
  EXPECT_EQ(placed.plan, PlanOf(g, Devices(2)));
  EXPECT_EQ(Taken(placed.report).name, "one device");
  for (size_t c = 1; c < 3; ++c) {
    EXPECT_THAT(placed.report.candidates[c].why, HasSubstr("it places all nodes as one device does"));
  }
}

// Two chains of 104 and 5 us: the second device saves less than 5 %, or 10 of 114.
TEST(ChoosePlacement, AsksForOneInTwenty) {
  const auto taken_for = [](double other, double crossing_us = 1e-6) {
    ModelBuilder g;
    AddChains(g, 2, 1);
    PlanOptions options = Devices(2);
    options.costs = {104, other};
    MachineFigures figures = SlowBytes(2);
    figures.crossing_us = crossing_us;
    const Chosen placed = Choose(g, options, figures);
    return Taken(placed.report).name + ", " + placed.report.candidates[2].why;
  };
  EXPECT_EQ(taken_for(5), "one device, left out: it gains less than 5 %");
  EXPECT_EQ(taken_for(10), "HEFT, taken: it is the fastest");
  EXPECT_EQ(taken_for(10, 6),
            "one device, left out: it gains less than 5 %");  // the end of the other device is seen later
}

// One device runs short kernels side by side, whose launches are most of what they take.
TEST(ChoosePlacement, LeavesShortKernelsOnOneDevice) {
  const auto taken_for = [](double us) {
    ModelBuilder g;
    AddChains(g, 4, 2);
    PlanOptions options = Devices(4);
    options.costs.assign(8, us);
    MachineFigures figures = SlowBytes(4);
    for (MachineFigures::Device& device : figures.devices) device.stream_node_us = 5;
    return Taken(Choose(g, options, figures).report).name;
  };
  EXPECT_EQ(taken_for(9), "one device");
  EXPECT_EQ(taken_for(11), "HEFT");
}

// A fork whose join needs all: 100 us in front and two of 300 us. One of these begins 40 us later on the other device;
// the join is there too, since what it needs of the first one is there by then.
TEST(ChoosePlacement, CountsWhatCrosses) {
  ModelBuilder g;
  const int32_t from = g.Scratch("from", {10}), left = g.Scratch("left", {10}), right = g.Scratch("right", {10});
  g.For("fork", Out{from});
  g.For("left", In{from}, Out{left});
  g.For("right", In{from}, Out{right});
  g.For("join", In{left}, In{right}, Out{from});
  PlanOptions options = Devices(2);
  options.costs = {100, 300, 300, 100};
  const Chosen placed = Choose(g, options, SlowBytes(2));
  const Candidate& taken = Taken(placed.report);
  EXPECT_EQ(taken.name, "HEFT");
  EXPECT_NEAR(taken.makespan_us, 100 + 40 + 2.3 + 300 + 100, 0.1);
  EXPECT_NEAR(placed.report.candidates[0].makespan_us, 800, 0.1);
  EXPECT_EQ(taken.between_bytes, 80);
}

TEST(ChoosePlacement, IsNotAskedWhereThereIsNothingToPlace) {
  ModelBuilder g;
  AddChains(g, 2, 2);
  EXPECT_TRUE(Choose(g, Devices(1), SlowBytes(1)).report.candidates.empty());
  PlanOptions options = Devices(2);
  options.devices[1].is_cuda = true;  // of another kind
  EXPECT_TRUE(Choose(g, options, SlowBytes(2)).report.candidates.empty());
  options = Devices(2);
  options.devices[1].limits.shared_bytes = 1;  // it cannot do all that the other can
  EXPECT_TRUE(Choose(g, options, SlowBytes(2)).report.candidates.empty());
  for (NodeDecl& node : g.model.nodes) node.device = 1;
  const Chosen placed = Choose(g, Devices(2), SlowBytes(2));
  EXPECT_TRUE(placed.report.candidates.empty());
  EXPECT_THAT(DevicesOf(placed.report), Each(1));
  EXPECT_EQ(placed.plan, PlanOf(g, Devices(2)));
}

TEST(ChoosePlacement, KeepsPinsHostNodesConstructsAndHomes) {
  ModelBuilder g;
  AddChains(g, 3, 2);
  g.node(0).device = g.node(1).device = 1;
  const int32_t state = g.State("state", {1000}, 1), bound = g.InOut("bound", {1000}, kDevice), x = g.Scratch("x", {1});
  g.For("of the state", Change{state});
  g.For("of bound memory", Change{bound});
  g.Control("construct", Out{x});
  g.Host("host", In{x});
  const Chosen placed = Choose(g, Devices(2), SlowBytes(2));
  EXPECT_EQ(Taken(placed.report).name, "HEFT");
  const std::vector<int> devices = DevicesOf(placed.report);
  EXPECT_THAT(std::vector<int>(devices.begin(), devices.begin() + 2), Each(1));
  EXPECT_THAT(std::vector<int>(devices.begin() + 6, devices.end()), ElementsAre(1, 0, 0, -1));
  for (const Instance& instance : placed.plan.instances) {
    if (instance.space == Space::kState) {
      EXPECT_EQ(instance.device, 1);
    }
    if (instance.space == Space::kBound && instance.device >= 0) {
      EXPECT_EQ(instance.device, 0);
    }
  }
}

// The home of bound memory is that of the default device even if all that use it are placed elsewhere.
TEST(Place, LeavesBoundDeviceMemoryWhereUsersBindIt) {
  ModelBuilder g;
  const int32_t bound = g.InOut("bound", {10}, kDevice);
  g.For("node", Change{bound});
  PlanOptions options = Devices(2);
  options.placement = {1};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(plan.nodes[Find(plan, "node")].device, 1);
  for (const Instance& instance : plan.instances) {
    EXPECT_EQ(instance.device, instance.space == Space::kBound ? 0 : 1);
  }
}

TEST(ChoosePlacement, LeavesOutWhatDoesNotFit) {
  ModelBuilder g;  // four buffers that all live until the end: 2400 bytes with padding to 256
  std::vector<int32_t> buffers;
  for (int b = 0; b < 4; ++b) {
    buffers.push_back(g.Scratch("buffer " + std::to_string(b), {150}));
    g.For("write " + std::to_string(b), Out{buffers.back()});
  }
  for (int b = 0; b < 4; ++b) g.For("use " + std::to_string(b), Change{buffers[static_cast<size_t>(b)]});
  PlanOptions options = Devices(2);
  options.device_bytes = 2000;
  const Chosen placed = Choose(g, options, SlowBytes(2));
  EXPECT_EQ(Taken(placed.report).name, "HEFT") << placed.report.Text();
  EXPECT_EQ(Taken(placed.report).why, "taken: one device has not enough memory");
  EXPECT_THAT(placed.report.candidates[0].why, HasSubstr("left out: graph 'g'"));
  EXPECT_EQ(placed.report.candidates[0].makespan_us, 0);
  ModelBuilder chain;  // neither HEFT nor affinity would leave the device, if they knew no limits
  for (int b = 0; b < 4; ++b) {
    const int32_t buffer = chain.Scratch("buffer " + std::to_string(b), {150});
    if (b == 0) chain.For("write 0", Out{buffer});
    else chain.For("write " + std::to_string(b), In{buffer - 1}, Out{buffer});
  }
  for (int b = 0; b < 4; ++b) {
    const int32_t use = chain.For("use " + std::to_string(b), Change{b});
    chain.After(use, use - 1);
  }
  options.device_bytes = 2400;
  const Chosen limited = Choose(chain, options, SlowBytes(2));
  EXPECT_THAT(limited.report.candidates[0].why, HasSubstr("left out: graph 'g'"));
  EXPECT_EQ(Taken(limited.report).name, "affinity") << limited.report.Text();
  options.device_bytes = 500;
  EXPECT_EQ(ChoosePlacement(g.model, options, {}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Text(ChoosePlacement(g.model, options, {}).status()), Text(MakePlan(g.model, options).status()));
}

// HEFT gives each of the long nodes a device, which leaves neither room for the last one.
TEST(ChoosePlacement, NamesTheNodeThatHasNoRoom) {
  ModelBuilder g;
  for (const auto& [name, size] : {std::pair("long", 400), std::pair("long too", 400), std::pair("wide", 800)}) {
    g.For(name, Out{g.Output(std::string("of ") + name, {size}, kPinned)});
  }
  PlanOptions options = Devices(2);
  options.costs = {9000, 9000, 10};
  options.device_bytes = 4096;
  const Chosen placed = Choose(g, options, SlowBytes(2));
  EXPECT_EQ(Taken(placed.report).name, "affinity") << placed.report.Text();
  EXPECT_THAT(placed.report.candidates[2].why, HasSubstr("left out: node 'wide' needs 3328 bytes of memory"));
}

TEST(ChoosePlacement, CountsCopiesThatThePlanLeavesOutApart) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", {1}), y = g.Scratch("y", {1});
  g.For("writes", Out{x});
  g.Copy("not read", x, y);
  g.Host("host");
  const Chosen placed = Choose(g, Devices(2), SlowBytes(2));
  EXPECT_THAT(placed.report.Text(), HasSubstr("nodes: host:0 1, the host 1, left out 1\n"));
  EXPECT_TRUE(placed.report.nodes[1].left_out);
  EXPECT_FALSE(placed.report.nodes[2].left_out);
}

TEST(ChoosePlacement, TakesOtherDevicesOfTheSameModelOnly) {
  ModelBuilder g;
  for (const char* name : {"a", "b"}) g.For(name, Out{g.Output(name, {100}, kPinned)});
  PlanOptions options = Devices(3);
  options.costs = {9000, 9000};
  for (const int32_t d : {0, 1, 2}) options.devices[d].model = d == 1 ? "other" : "one";
  const Chosen placed = Choose(g, options, SlowBytes(3));
  EXPECT_EQ(std::set<int>({0, 2}), std::set<int>({placed.report.nodes[0].device, placed.report.nodes[1].device}));
  options.devices[2].model = "third";
  EXPECT_TRUE(Choose(g, options, SlowBytes(3)).report.candidates.empty());
}

// Compile tells of three steps for each candidate: its assignment, its plan and its score.
TEST(ChoosePlacement, TellsHowFarItIsAndEndsWhereverItIsToldTo) {
  ModelBuilder g;
  for (const char* name : {"a", "b"}) g.For(name, Out{g.Output(name, {100}, kPinned)});
  PlanOptions options = Devices(2);
  options.costs = {9000, 9000};
  std::vector<int> told;
  int of = 0;
  const auto choose = [&](size_t end) {
    told.clear();
    return ChoosePlacement(g.model, options, {},
                           [&](int done, int total) {
                             told.push_back(done);
                             of = total;
                             return told.size() == end ? absl::CancelledError("enough") : absl::OkStatus();
                           })
        .status();
  };
  EXPECT_OK(choose(0));
  const std::vector<int> all = told;
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "each step once";
  EXPECT_EQ(all.front(), 0);
  EXPECT_EQ(all.back(), of - 1);
  EXPECT_GT(all.size(), static_cast<size_t>(of / 2));
  for (size_t end = 1; end <= all.size(); ++end) {
    EXPECT_EQ(choose(end).code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(told.size(), end);
  }
}

TEST(ChoosePlacement, RefusesWhatIsNoGraphAndFiguresOfAnotherMachine) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", {1});
  g.For("reads", In{x});
  g.For("reads too", In{x});
  EXPECT_EQ(Text(ChoosePlacement(g.model, Devices(2), {}).status()), Text(MakePlan(g.model, Devices(2)).status()));
  const auto refused = [](auto&& change) {
    MachineFigures figures = SlowBytes(2);
    change(figures);
    const absl::Status status = CheckFigures(figures, Devices(2).devices);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Text(status);
  };
  EXPECT_THAT(refused([](MachineFigures& f) { f.devices.pop_back(); }),
              HasSubstr("MachineFigures: there are 1 devices and the runtime has 2"));
  EXPECT_THAT(refused([](MachineFigures& f) { f.devices[1].name = "cuda:1"; }),
              HasSubstr("a device is named 'cuda:1' where the runtime has 'host:1'"));
  EXPECT_THAT(refused([](MachineFigures& f) { f.devices[1].upload = -1; }), HasSubstr("host:1: upload is no figure"));
  EXPECT_THAT(refused([](MachineFigures& f) { f.devices[0].kernels = -1; }), HasSubstr("host:0: kernels is -1"));
  EXPECT_THAT(refused([](MachineFigures& f) { f.peers.pop_back(); }), HasSubstr("peers has 1 rows"));
  EXPECT_THAT(refused([](MachineFigures& f) { f.peers[1].clear(); }), HasSubstr("a row of peers has 0 figures"));
  EXPECT_THAT(refused([](MachineFigures& f) { f.crossing_us = -1; }), HasSubstr("crossing_us is no figure"));
  EXPECT_OK(CheckFigures(SlowBytes(2), Devices(2).devices));
}

TEST(AssumeFigures, FillsWhatIsUnknown) {
  const MachineFigures all = AssumeFigures(nullptr, Devices(2, true).devices);
  EXPECT_EQ(all.devices[1].name, "cuda:1");
  EXPECT_EQ(all.devices[1].upload, 12);
  EXPECT_EQ(all.devices[1].kernels, 1);
  EXPECT_NEAR(all.peers[0][1], 6, 1e-9);  // down and up again
  EXPECT_EQ(PeerLink(all, 0, 1).us, 2 * 10) << "through the host";
  MachineFigures linked = all;
  linked.peers[0][1] = 380;
  EXPECT_EQ(PeerLink(linked, 0, 1).us, 2.3) << "as measured on an H200";
  EXPECT_EQ(PeerLink(linked, 0, 1).gbs, 380);
  EXPECT_EQ(PeerLink(linked, 1, 0).us, 2 * 10);
  EXPECT_OK(CheckFigures(all, Devices(2, true).devices));
  EXPECT_EQ(AssumeFigures(&all, Devices(2, true).devices), all);
  MachineFigures known = SlowBytes(2);
  known.devices[0].memory = 0;
  EXPECT_EQ(AssumeFigures(&known, Devices(2).devices).devices[0].memory, 10);
  EXPECT_EQ(AssumeFigures(&known, Devices(2).devices).devices[0].upload, 1e-3);
}

// Small random graphs of few devices.
class SmallGraph {
 public:
  explicit SmallGraph(uint32_t seed) : random_(seed), options_(Devices(2 + Below(2))) {
    const int nodes = 2 + Below(options_.devices.size() == 2 ? 7 : 5);
    std::vector<int32_t> buffers;
    for (int n = 0; n < nodes; ++n) AddNode(n, buffers);
    for (int n = 0; n < nodes; ++n) options_.costs.push_back(10 + 10 * Below(30));
    options_.default_device = Below(Count());
  }

  const ModelBuilder& g() const { return g_; }
  const PlanOptions& options() const { return options_; }
  int Count() const { return static_cast<int>(options_.devices.size()); }
  MachineFigures figures() const {
    MachineFigures figures = SlowBytes(Count());
    figures.crossing_us = 5;
    return figures;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void AddNode(int n, std::vector<int32_t>& buffers) {
    const int32_t out = g_.Scratch("buffer " + std::to_string(n), {1 + Below(30)});
    const std::string name = "node " + std::to_string(n);
    const auto any = [&] { return buffers[static_cast<size_t>(Below(static_cast<int>(buffers.size())))]; };
    switch (buffers.empty() ? 0 : Below(4)) {
      case 0: g_.For(name, Out{out}); break;
      case 1: g_.For(name, In{any()}, Out{out}); break;
      case 2: g_.For(name, Change{any()}, Out{out}); break;
      default: {
        const int32_t a = any(), b = any();
        if (a == b) g_.For(name, In{a}, Out{out});
        else g_.For(name, In{a}, In{b}, Out{out});
      }
    }
    if (Below(8) == 0) g_.node(n).device = Below(Count());
    buffers.push_back(out);
  }

  std::mt19937 random_;
  ModelBuilder g_;
  PlanOptions options_;
};

double ScoreWith(const SmallGraph& small, const Table<DeclId, DeviceId>& placement) {
  PlanOptions options = small.options();
  options.placement = placement;
  const MachineFigures given = small.figures();
  const MachineFigures all = AssumeFigures(&given, options.devices);
  const absl::StatusOr<PlaceScore> score =
      ScoreOf(PlanOf(small.g(), options), MakePlaceTasks(small.g().model, small.options(), all), all, {});
  EXPECT_OK(score.status());
  return score.ok() ? score->makespan_us : 0;
}

// Over all placements there are.
double Least(const SmallGraph& small) {
  Table<DeclId, DeviceId> placement(small.g().model.nodes.size(), DeviceId(0));
  double least = ScoreWith(small, placement);
  for (;;) {
    size_t n = 0;
    for (; n < placement.size(); ++n) {
      DeviceId& device = placement[n];
      if (small.g().model.nodes[n].device < 0 && device + 1 < small.Count()) {
        device = device + 1;
        break;
      }
      device = 0;
    }
    if (n == placement.size()) return least;
    least = std::min(least, ScoreWith(small, placement));
  }
}

TEST(ChoosePlacement, IsNeverWorseThanOneDeviceAndNotFarFromTheBestThereIs) {
  constexpr uint32_t kGraphs = 60;
  int placed = 0, best = 0;
  double most = 1, sum = 0;
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    const SmallGraph small(seed);
    const MachineFigures figures = small.figures();
    const Chosen chosen = Choose(small.g(), small.options(), figures);
    if (chosen.report.candidates.empty()) continue;
    const double one = ScoreWith(small, {}), own = ScoreWith(small, chosen.placement), least = Least(small);
    double best_of_candidates = one;
    for (const Candidate& candidate : chosen.report.candidates) {
      if (candidate.makespan_us > 0) best_of_candidates = std::min(best_of_candidates, candidate.makespan_us);
    }
    EXPECT_EQ(own, best_of_candidates <= 0.95 * one ? best_of_candidates : one) << seed;
    EXPECT_EQ(Taken(chosen.report).makespan_us, own);
    EXPECT_LE(own, one) << seed;
    EXPECT_GE(own, least) << seed;
    for (const DeclId n : small.g().model.nodes.ids()) {
      const int pin = small.g().model.nodes[n].device;
      if (pin >= 0) {
        EXPECT_EQ(chosen.report.nodes[static_cast<size_t>(n)].device, pin) << seed;
      }
    }
    placed += chosen.placement.empty() ? 0 : 1;
    best += own <= 1.001 * least ? 1 : 0;
    most = std::max(most, own / least);
    sum += own / least;
  }
  std::cout << placed << " of " << kGraphs << " are placed on several devices; " << best
            << " take as long as the best placement, all take " << sum / kGraphs << " times as long on average and "
            << most << " times at most\n";
  EXPECT_GT(placed, static_cast<int>(kGraphs) / 4);
  EXPECT_GT(best, static_cast<int>(kGraphs) / 2);
  EXPECT_LT(most, 1.6);
}

// What is alike but for its number is treated alike: devices that change their places with the default one change them
// in the result.
TEST(ChoosePlacement, IsTheSameEveryTimeAndForEqualDevices) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const SmallGraph small(seed);
    const MachineFigures figures = small.figures();
    PlanOptions options = small.options();
    options.default_device = 0;
    const Chosen once = Choose(small.g(), options, figures), again = Choose(small.g(), options, figures);
    EXPECT_EQ(once.plan, again.plan);
    EXPECT_EQ(once.placement, again.placement);
    ModelBuilder swapped = small.g();
    for (NodeDecl& node : swapped.model.nodes) node.device = node.device == 0 ? 1 : node.device == 1 ? 0 : node.device;
    options.default_device = 1;
    std::vector<int> devices = DevicesOf(Choose(swapped, options, figures).report);
    for (int& device : devices) device = device == 0 ? 1 : device == 1 ? 0 : device;
    EXPECT_EQ(devices, DevicesOf(once.report)) << seed << ModelText(small.g().model);
  }
}

TEST(StructureHash, TellsPlacementsApart) {
  ModelBuilder g;
  AddChains(g, 2, 2);
  g.node(0).device = 1;
  const auto hash = [&](Table<DeclId, DeviceId> placement) {
    PlanOptions options = Devices(2);
    options.placement = std::move(placement);
    return PlanOf(g, options).structure_hash;
  };
  const uint64_t none = hash({});
  EXPECT_EQ(hash({0, 0, 0, -1}), none);  // where they would be anyway
  EXPECT_EQ(hash({1}), none);  // it has a pin
  EXPECT_NE(hash({-1, 1}), none);
  EXPECT_NE(hash({-1, 1}), hash({-1, -1, 1}));
}

}  // namespace
}  // namespace penstock::graph::choose_placement_test
