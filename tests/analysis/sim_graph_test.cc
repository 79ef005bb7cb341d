// What a simulation takes from a profile. Most profiles here are themselves the spans of a simulation, so that what
// must be found in them is known.
#include "src/analysis/sim_graph.h"

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/analysis/what_if.h"

namespace penstock::analysis::sim_graph_test {
namespace {

using graph::SimOptions;
using graph::SimResource;
using graph::SimSpan;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr int64_t kExecutable = 7;

// Stage in, upload, kernel, download, unstage.
Profile::Graph FiveNodes() {
  Profile::Graph graph;
  graph.executable = kExecutable;
  graph.name = "smooth";
  graph.slots = 3;
  graph.slot_device_bytes = 1000;
  graph.slot_pinned_bytes = 20;
  const auto add = [&](const char* name, const char* kind, int device, int lane, std::vector<int> after) {
    graph.nodes.push_back({.name = name,
                           .kind = kind,
                           .where = "",
                           .device = device,
                           .lane = lane,
                           .after = std::move(after),
                           .read_bytes = 1'000'000,
                           .written_bytes = 1'000'000});
  };
  add("stage x", "stage in", -1, -1, {});
  add("upload x", "upload", 0, 0, {0});
  add("smooth", "parallel for", 0, 1, {1});
  add("download y", "download", 0, 2, {2});
  add("unstage y", "stage out", -1, -1, {3});
  graph.report.mode = Mode::kGraph;
  return graph;
}

SpanKind KindOf(SimResource resource) {
  switch (resource) {
    case SimResource::kUpload: return SpanKind::kUpload;
    case SimResource::kDownload: return SpanKind::kDownload;
    case SimResource::kPeer:
    case SimResource::kKernel: return SpanKind::kKernel;
    default: return SpanKind::kHost;
  }
}

// A profile with the spans of simulated runs: on a device a span begins when the node could begin, as in real ones.
Profile ProfileOf(const Profile::Graph& graph, const graph::SimResult& result) {
  Profile profile;
  for (const char* device : {"cuda:0", "cuda:1"}) profile.devices.emplace_back().name = device;
  profile.graphs.push_back(graph);
  profile.graphs[0].launches = static_cast<int64_t>(result.ended_us.size());
  const auto add = [&](Span span) {
    span.executable = kExecutable;
    profile.spans.push_back(std::move(span));
  };
  for (const SimSpan& s : result.spans) {
    if (s.node < 0 && s.resource != SimResource::kLaunch) continue;
    const bool on_device = s.node >= 0 && graph.nodes[static_cast<size_t>(s.node)].device >= 0;
    add({.name = "a span",
         .track = "track " + std::to_string(s.place),
         .kind = s.node < 0 ? SpanKind::kSubmit : KindOf(s.resource),
         .begin_us = on_device ? s.ready_us : s.begin_us,
         .end_us = s.end_us,
         .run = s.run,
         .device = on_device ? graph.nodes[static_cast<size_t>(s.node)].device : -1,
         .node = s.node,
         .slot = s.slot});
  }
  for (size_t r = 0; r < result.ended_us.size(); ++r) {
    add({.name = "run",
         .track = "runs",
         .kind = SpanKind::kRun,
         .begin_us = result.launched_us[r],
         .end_us = result.ended_us[r],
         .run = static_cast<int64_t>(r)});
  }
  return profile;
}

SimulatedGraph Made(const Profile& profile) {
  auto made = SimulatedGraphOf(profile, 0, nullptr);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : SimulatedGraph{};
}

// As the profile has it, with these costs.
graph::SimGraph WithCosts(const Profile::Graph& graph, const std::vector<double>& us) {
  graph::SimGraph made;
  made.devices.resize(1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Profile::Node& from = graph.nodes[n];
    const SimResource resource = from.device < 0           ? SimResource::kWorker
                                 : from.kind == "upload"   ? SimResource::kUpload
                                 : from.kind == "download" ? SimResource::kDownload
                                                           : SimResource::kKernel;
    graph::SimNode& to = made.nodes.emplace_back();
    to.resource = resource;
    to.on_host = from.device < 0;
    to.device = from.device;
    to.lane = from.lane;
    to.us = us[n];
    to.after.assign(from.after.begin(), from.after.end());
  }
  return made;
}

double RunMicros(const graph::SimGraph& graph, const SimOptions& options) {
  const auto result = graph::Simulate(graph, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->run_us : 0;
}

TEST(SimulatedGraph, FindsCostsAndSpeedOfSimulatedRunsAgain) {
  const Profile::Graph graph = FiveNodes();
  // The bound: an engine, the kernels, the workers, the launches, the application.
  for (const auto& [costs, between] : {std::pair(std::vector<double>{5, 40, 20, 10, 5}, 0.0),
                                       {{5, 10, 50, 30, 5}, 0.0},
                                       {{60, 10, 5, 10, 60}, 0.0},
                                       {{1, 2, 1, 2, 1}, 0.0},
                                       {{1, 2, 3, 4, 1}, 100.0}}) {
    SCOPED_TRACE(testing::PrintToString(costs));
    SimOptions options{.runs = 80, .slots = 3, .as_graphs = true, .workers = 2};
    options.launch_us = 12;
    options.between_us = between;
    options.completion_us = 4;
    const graph::SimGraph original = WithCosts(graph, costs);
    const auto result = graph::Simulate(original, options);
    ASSERT_TRUE(result.ok());
    SimulatedGraph made = Made(ProfileOf(graph, *result));
    for (size_t n = 0; n < costs.size(); ++n) {
      EXPECT_THAT(made.graph.nodes[n].us, DoubleNear(costs[n], 1e-3)) << n;
      EXPECT_EQ(made.sources[n], CostSource::kMeasured);
    }
    EXPECT_THAT(made.run_us, DoubleNear(result->run_us, result->run_us * 0.01));
    made.options.runs = 80;
    EXPECT_THAT(RunMicros(made.graph, made.options), DoubleNear(made.run_us, made.run_us * 0.02));
    // More slots, too: the profile with three slots says what one would give.
    const auto one = WithChanges(made, graph, {.slots = 1});
    options.slots = 1;
    EXPECT_THAT(RunMicros(one->graph, one->options), DoubleNear(RunMicros(original, options), result->run_us * 0.1));
  }
}

TEST(SimulatedGraph, TakesTheTimeOfOtherWorkOutOfSpansThatBeginWithTheirReadiness) {
  Profile profile;
  profile.devices.emplace_back().name = "cuda:0";
  profile.graphs.push_back(FiveNodes());
  // Two uploads of 10 us, the second ready with the first; and one of another graph before both.
  const auto upload = [&](int64_t executable, int64_t run, double begin, double end) {
    profile.spans.push_back({.name = "a span",
                             .track = "a track",
                             .kind = SpanKind::kUpload,
                             .begin_us = begin,
                             .end_us = end,
                             .run = run,
                             .device = 0,
                             .executable = executable,
                             .node = 1});
  };
  upload(3, 0, 100, 130);
  upload(kExecutable, 4, 110, 140);
  upload(kExecutable, 5, 110, 150);
  const SimulatedGraph made = Made(profile);
  EXPECT_THAT(made.graph.nodes[1].us, DoubleNear(10, 1e-9));
}

// Two bands that exchange their edges: while a copy goes on, the device computes the inside.
TEST(SimulatedGraph, FindsLinksAndCrossingsOfSimulatedRunsAgain) {
  constexpr int kSteps = 4;
  Profile::Graph graph;
  graph.executable = kExecutable;
  graph.name = "bands";
  graph.slots = 1;
  graph.report.mode = Mode::kGraph;
  graph::SimGraph bands;
  bands.devices.resize(2);
  const auto add = [&](const char* kind, int device, std::vector<int> after, double us) {
    graph.nodes.push_back({.name = kind, .kind = kind, .where = "", .device = device, .lane = -1, .after = after});
    graph::SimNode& node = bands.nodes.emplace_back();
    const bool copies = std::string_view(kind) == "peer copy";
    node.resource = copies ? SimResource::kPeer : SimResource::kKernel;
    node.device = device;
    node.from = copies ? 1 - device : -1;
    node.us = us;
    node.after.assign(after.begin(), after.end());
    return static_cast<int>(graph.nodes.size()) - 1;
  };
  std::vector<int> inside[2], halo[2];
  halo[1] = {add("peer copy", 1, {}, 30)};  // of a State: there are two devices
  for (int step = 0; step < kSteps; ++step) {
    int edge[2];
    for (const int d : {0, 1}) {
      std::vector<int> after = inside[d];
      after.insert(after.end(), halo[d].begin(), halo[d].end());
      edge[d] = add("parallel for", d, after, 3);
    }
    for (const int d : {0, 1}) halo[d] = {add("peer copy", d, {edge[1 - d]}, 5)};
    for (const int d : {0, 1}) inside[d] = {add("parallel for", d, {edge[d]}, d == 0 ? 20 : 9)};
  }
  const SimOptions options{.runs = 40, .slots = 1, .as_graphs = true, .launch_us = 3, .start_us = 2, .crossing_us = 6};
  const auto result = graph::Simulate(bands, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const SimulatedGraph made = Made(ProfileOf(graph, *result));
  EXPECT_NEAR(made.options.crossing_us, 6, 0.1);
  for (size_t n = 0; n < bands.nodes.size(); ++n) {
    EXPECT_EQ(made.graph.nodes[n].resource, bands.nodes[n].resource) << n;
    EXPECT_EQ(made.graph.nodes[n].from, bands.nodes[n].from) << n;
    EXPECT_NEAR(made.graph.nodes[n].us, bands.nodes[n].us, 0.1) << n;
  }
  EXPECT_EQ(made.graph.devices[0].kernels, 1);
  EXPECT_NEAR(RunMicros(made.graph, made.options), made.run_us, 0.02 * made.run_us);
  EXPECT_NEAR(made.run_us, result->run_us, 0.01 * result->run_us);
}

// A hostcall that a kernel waits for has the kernel's device, and takes a thread of the host.
TEST(SimulatedGraph, CountsNoHostcallAsAKernel) {
  Profile profile;
  profile.devices.emplace_back().name = "cuda:0";
  profile.graphs.push_back(FiveNodes());
  for (int run = 0; run < 8; ++run) {
    for (const SpanKind kind : {SpanKind::kKernel, SpanKind::kHost}) {
      profile.spans.push_back({.name = "a span",
                               .track = "a track",
                               .kind = kind,
                               .begin_us = run * 200.0,
                               .end_us = run * 200.0 + (kind == SpanKind::kKernel ? 100 : 95),
                               .run = run,
                               .device = 0,
                               .executable = kExecutable,
                               .node = kind == SpanKind::kKernel ? 2 : 1});
    }
  }
  EXPECT_EQ(Made(profile).graph.devices[0].kernels, 1);
}

TEST(SimulatedGraph, RunsAsManyKernelsAtATimeAsThereWere) {
  Profile profile;
  profile.devices.emplace_back().name = "cuda:0";
  profile.graphs.push_back(FiveNodes());
  for (int run = 0; run < 8; ++run) {
    for (int side = 0; side < 3; ++side) {
      profile.spans.push_back({.name = "a span",
                               .track = "a track",
                               .kind = SpanKind::kKernel,
                               .begin_us = run * 100.0,
                               .end_us = run * 100.0 + 90 + side,
                               .run = run,
                               .device = 0,
                               .executable = side == 0 ? kExecutable : 3,
                               .node = 2});
    }
  }
  const SimulatedGraph made = Made(profile);
  EXPECT_EQ(made.graph.devices[0].kernels, 3);
  EXPECT_THAT(made.graph.nodes[2].us, DoubleNear(90, 1e-9));
}

TEST(SimulatedGraph, NodesWithoutSpansHaveNothingToDo) {
  const Profile::Graph graph = FiveNodes();
  const auto result = graph::Simulate(WithCosts(graph, {5, 10, 20, 10, 5}), {.runs = 10, .slots = 1});
  ASSERT_TRUE(result.ok());
  Profile profile = ProfileOf(graph, *result);
  std::erase_if(profile.spans, [](const Span& span) { return span.node == 0; });
  const SimulatedGraph made = Made(profile);
  EXPECT_EQ(made.sources[0], CostSource::kNothing);
  EXPECT_EQ(made.graph.nodes[0].resource, SimResource::kNothing);
  EXPECT_EQ(made.graph.nodes[0].Cost(), 0);
}

TEST(SimulatedGraph, TakesBytesAndBandwidthsWhereNothingHasRun) {
  Profile profile;
  profile.devices.emplace_back().name = "cuda:0";
  profile.graphs.push_back(FiveNodes());
  const auto unknown = SimulatedGraphOf(profile, 0, nullptr);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("'smooth'"));

  Machine machine;
  machine.host_copy = 20;
  machine.devices.push_back({.name = "cuda:0",
                             .description = "",
                             .upload = 50,
                             .download = 40,
                             .upload_both_ways = 40,
                             .download_both_ways = 40,
                             .memory = 2000,
                             .copy_us = 3,
                             .graph_node_us = 1.5});
  const auto made = SimulatedGraphOf(profile, 0, &machine);
  ASSERT_TRUE(made.ok());
  const auto cost = [&](size_t n) { return made->graph.nodes[n].Cost(); };
  EXPECT_THAT(cost(0), DoubleNear(2e6 / 20e3, 1e-9));
  EXPECT_THAT(cost(1), DoubleNear(3 + 1e6 / 50e3, 1e-9));
  EXPECT_THAT(cost(2), DoubleNear(1.5 + 2e6 / 2000e3, 1e-9));
  EXPECT_THAT(cost(3), DoubleNear(3 + 1e6 / 40e3, 1e-9));
  // What computes for longer than it moves bytes takes as long as that.
  profile.graphs[0].nodes[2].flops = 3e9;
  machine.devices[0].fp32 = 50'000;
  const auto computing = SimulatedGraphOf(profile, 0, &machine);
  ASSERT_TRUE(computing.ok());
  EXPECT_THAT(computing->graph.nodes[2].Cost(), DoubleNear(1.5 + 3e9 / 50e6, 1e-9));
  EXPECT_EQ(made->sources[1], CostSource::kEstimated);
  EXPECT_THAT(made->graph.devices[0].upload_slowdown, DoubleNear(1.25, 1e-9));
  EXPECT_EQ(made->graph.devices[0].download_slowdown, 1);
}

TEST(SimulatedGraph, SurvivesSpansThatMakeNoSense) {
  Profile profile;
  profile.devices.emplace_back().name = "cuda:0";
  profile.graphs.push_back(FiveNodes());
  for (const double us : {0.0, -1e300, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    for (const int node : {-1, 2, 5}) {
      for (const SpanKind kind :
           {SpanKind::kKernel, SpanKind::kHost, SpanKind::kSubmit, SpanKind::kWait, SpanKind::kRun}) {
        profile.spans.push_back({.name = "a span",
                                 .track = "a track",
                                 .kind = kind,
                                 .begin_us = us,
                                 .end_us = 5,
                                 .run = 1,
                                 .executable = kExecutable,
                                 .node = node});
        profile.spans.push_back({.name = "a span",
                                 .track = "a track",
                                 .kind = kind,
                                 .begin_us = 3,
                                 .end_us = us,
                                 .run = 2,
                                 .executable = kExecutable,
                                 .node = node});
      }
    }
  }
  profile.spans.push_back({.name = "a span",
                           .track = "a track",
                           .kind = SpanKind::kKernel,
                           .end_us = 5,
                           .run = 2,
                           .executable = kExecutable,
                           .node = 2});
  const SimulatedGraph made = Made(profile);
  EXPECT_TRUE(graph::Simulate(made.graph, made.options).ok());
}

TEST(WithChanges, ScalesNodesAndSetsBandwidthsSlotsAndMode) {
  const Profile::Graph graph = FiveNodes();
  SimulatedGraph simulated{.graph = WithCosts(graph, {5, 10, 20, 10, 5}), .options = {.slots = 3, .as_graphs = true}};
  simulated.options.in_flight = 3;
  const auto changed =
      WithChanges(simulated, graph, {.slots = 5, .as_graphs = false, .upload_gbs = 50, .scale = {{"smooth", 0.25}}});
  ASSERT_TRUE(changed.ok());
  EXPECT_THAT(changed->graph.nodes[1].Cost(), DoubleNear(1e6 / 50e3, 1e-9));
  EXPECT_THAT(changed->graph.nodes[2].Cost(), DoubleNear(5, 1e-9));
  EXPECT_THAT(changed->graph.nodes[3].Cost(), DoubleNear(10, 1e-9));
  EXPECT_EQ(changed->options.slots, 5);
  EXPECT_EQ(changed->options.in_flight, 5);
  EXPECT_FALSE(changed->options.as_graphs);
  EXPECT_GT(changed->options.node_us, 0);
  const auto missing = WithChanges(simulated, graph, {.scale = {{"smoth", 2}}});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
}

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x[i]; }
};

TEST(SimulatedGraph, IsMadeOfTheProfileOfARuntime) {
  auto runtime = Runtime::Create({.devices = "host", .workers = 2, .host_device_threads = 1, .profile_spans = 10'000});
  ASSERT_TRUE(runtime.ok());
  Graph graph("add");
  const auto x = graph.InOut<int32_t>("x", 1000);
  graph.ParallelFor("add one", 1000, AddOne{}, ReadWrite(x));
  graph.Host("look", [](std::span<const int32_t>) {}, Read(x));
  auto exec = runtime->Compile(graph, {.slots = 2});
  ASSERT_TRUE(exec.ok()) << exec.status();
  std::vector<int32_t> memory(1000);
  for (int run = 0; run < 20; ++run) ASSERT_TRUE(exec->Launch(exec->bindings().Set(x, memory))->Wait().ok());
  const Profile profile = runtime->Profile();
  const SimulatedGraph made = Made(profile);
  EXPECT_EQ(made.measured_runs, 15);
  EXPECT_EQ(made.options.in_flight, 1);  // each run was waited for
  const auto result = graph::Simulate(made.graph, made.options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->run_us, 0);
}

}  // namespace
}  // namespace penstock::analysis::sim_graph_test
