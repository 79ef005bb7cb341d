// A graph over several devices: small ones by hand, larger ones with a closed form, and random ones against rules.
#include "graph/place/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/place/assign.h"
#include "graph/simulate/simulate.h"
#include "tests/support/status.h"

namespace penstock::graph::spread_test {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kCrossingUs = 6;
constexpr PlaceLink kLink{2, 100};  // a megabyte in 12 us
constexpr int64_t kMega = 1'000'000;

struct Declared {
  SimGraph graph{.nodes = {}, .devices = {{}}, .memory = {}, .states = {}};
  EdgeBytes bytes;

  // Follows these nodes, of whose results it takes so many bytes each.
  int32_t Add(SimResource resource, double us, const std::vector<std::pair<int32_t, int64_t>>& takes = {}) {
    SimNode& node = graph.nodes.emplace_back();
    node.resource = resource;
    node.us = us;
    node.on_host = resource == SimResource::kWorker;
    if (node.on_host) node.device = -1;
    bytes.emplace_back();
    for (const auto& [from, size] : takes) {
      node.after.push_back(from);
      bytes.back().push_back(size);
    }
    return static_cast<int32_t>(bytes.size()) - 1;
  }
  int32_t Kernel(double us, const std::vector<std::pair<int32_t, int64_t>>& takes = {}) {
    return Add(SimResource::kKernel, us, takes);
  }
};

SpreadTarget Over(int32_t devices, PlaceLink link = kLink) {
  SpreadTarget target{.devices = devices, .crossing_us = kCrossingUs};
  target.links.assign(static_cast<size_t>(devices) * static_cast<size_t>(devices), link);
  return target;
}

SpreadGraph Spread(const Declared& declared, const std::vector<int32_t>& device, const SpreadTarget& target) {
  absl::StatusOr<SpreadGraph> spread = SpreadOver(declared.graph, declared.bytes, device, target);
  EXPECT_OK(spread.status());
  return spread.ok() ? *std::move(spread) : SpreadGraph{};
}

// One run, with submissions that cost nothing.
double Makespan(const SpreadGraph& spread) {
  const auto result = Simulate(spread.graph, {.runs = 1, .slots = 1, .as_graphs = true, .crossing_us = kCrossingUs});
  EXPECT_OK(result.status());
  return result.ok() ? result->makespan_us : -1;
}

TEST(SpreadOver, AChainThatChangesDevicesTakesACrossingAndACopyEachTime) {
  Declared chain;
  chain.Kernel(10);
  chain.Kernel(20, {{0, kMega}});
  chain.Kernel(30, {{1, 3 * kMega}});
  chain.Kernel(40, {{2, kMega}});
  for (SimNode& node : chain.graph.nodes) node.crossings = 0;  // it has none yet
  const SpreadGraph spread = Spread(chain, {0, 1, 0, 0}, Over(2));
  EXPECT_THAT(Makespan(spread), DoubleEq(10 + (6 + 12) + 20 + (6 + 32) + 30 + 40));
  EXPECT_THAT(spread.origin, ElementsAre(0, -1, 1, -1, 2, 3));
  EXPECT_EQ(spread.copies, 2);
  EXPECT_EQ(spread.crossings, 2);
  EXPECT_EQ(spread.copied_bytes, 4 * kMega);
  EXPECT_THAT(Makespan(Spread(chain, {0, 0, 0, 0}, Over(1))), DoubleEq(100));
  const SimOptions once{.runs = 1, .slots = 1, .as_graphs = true, .crossing_submit_us = 2};
  EXPECT_THAT(Simulate(spread.graph, once)->spans.front().end_us, DoubleEq(2 * 2));  // the launch
}

TEST(SpreadOver, CopiesOnceForAllReadersOnADeviceWhatTheyNeedMost) {
  Declared fan;
  fan.Kernel(10);
  for (const int64_t bytes : {2, 5, 3, 4}) fan.Kernel(10, {{0, bytes * kMega}});
  SpreadGraph spread = Spread(fan, {0, 1, 1, 1, 0}, Over(2));
  EXPECT_EQ(spread.copies, 1);
  EXPECT_EQ(spread.copied_bytes, 5 * kMega);
  EXPECT_THAT(Makespan(spread), DoubleEq(10 + 6 + (2 + 50) + 3 * 10));
  spread = Spread(fan, {0, 1, 1, 2, 0}, Over(3));
  EXPECT_EQ(spread.copies, 2);
  EXPECT_EQ(spread.copied_bytes, (5 + 3) * kMega);
  for (auto& bytes : fan.bytes) std::fill(bytes.begin(), bytes.end(), INT64_MAX);
  EXPECT_EQ(Spread(fan, {0, 1, 2, 3, 0}, Over(4)).copied_bytes, INT64_MAX);  // and no more, though there are more
}

TEST(SpreadOver, WhatOnlyComesAfterCrossesWithoutACopy) {
  Declared order;
  order.Kernel(10);
  order.Kernel(10, {{0, 0}});
  const SpreadGraph spread = Spread(order, {0, 1}, Over(2));
  EXPECT_EQ(spread.copies, 0);
  EXPECT_EQ(spread.crossings, 1);
  EXPECT_THAT(Makespan(spread), DoubleEq(10 + 6 + 10));
}

TEST(SpreadOver, CopiesOfTheHostStayWithTheFirstThatReadsOrWrites) {
  Declared graph;
  graph.Add(SimResource::kWorker, 1);
  graph.Add(SimResource::kUpload, 5, {{0, 0}});
  graph.Kernel(10, {{1, kMega}});
  graph.Kernel(10, {{1, kMega}});
  graph.Add(SimResource::kDownload, 7, {{3, kMega}, {2, kMega}});
  graph.Add(SimResource::kWorker, 2, {{4, kMega}});
  const SpreadGraph spread = Spread(graph, {9, 9, 1, 0, 9, 9}, Over(2));
  ASSERT_THAT(spread.origin, ElementsAre(0, 1, 2, -1, 3, -1, 4, 5));
  const std::vector<SimNode>& nodes = spread.graph.nodes;
  EXPECT_EQ(nodes[0].device, -1);
  EXPECT_EQ(nodes[1].device, 1);
  EXPECT_EQ(nodes[3].device, 0);  // the upload's bytes, copied on
  EXPECT_EQ(nodes[3].from, 1);
  EXPECT_EQ(nodes[6].device, 0);  // it follows node 3 first; what node 2 has made comes behind the upload's copy
  EXPECT_THAT(Makespan(spread), DoubleEq(1 + 5 + (6 + 12) + 12 + 7 + 2));
}

TEST(SpreadOver, EachDeviceHasLanesOfItsOwn) {
  Declared graph;
  for (int n = 0; n < 4; ++n) graph.Kernel(10);
  for (SimNode& node : graph.graph.nodes) node.lane = 3;
  graph.graph.devices[0].kernels = 4;
  const SpreadGraph spread = Spread(graph, {0, 1, 1, 0}, Over(2));
  const auto result = Simulate(spread.graph, {.runs = 1, .slots = 1});
  ASSERT_OK(result.status());
  EXPECT_THAT(result->makespan_us, DoubleEq(20));
}

// `width` chains of `length` nodes.
Declared Chains(int width, int length) {
  Declared chains;
  for (int n = 0; n < width * length; ++n) {
    if (n < width) chains.Kernel(10);
    else chains.Kernel(10, {{n - width, kMega}});
  }
  return chains;
}

TEST(Spread, AsManyChainsAsDevicesTakeAsLongAsOne) {
  for (const int devices : {1, 2, 7, 64}) {
    const Declared chains = Chains(devices, 50);
    const SpreadTarget target = Over(devices);
    absl::StatusOr<PlaceGraph> tasks = MakePlaceGraph(chains.graph, chains.bytes, target);
    ASSERT_OK(tasks.status());
    const absl::StatusOr<Assignment> one = AssignToOne(*tasks, 0), heft = AssignByHeft(*tasks);
    DealFirstTasks(*tasks);
    const absl::StatusOr<Assignment> affinity = AssignByAffinity(*tasks, 0);
    ASSERT_TRUE(one.ok() && heft.ok() && affinity.ok());
    EXPECT_THAT(Makespan(Spread(chains, one->device, target)), DoubleEq(500.0 * devices));
    for (const Assignment& spread : {*heft, *affinity}) {
      EXPECT_THAT(Makespan(Spread(chains, spread.device, target)), DoubleEq(500));
      EXPECT_EQ(Spread(chains, spread.device, target).copies, 0);
    }
  }
}

// A grid in bands: each step reads the band of either neighbour, which is there a crossing and a copy later.
TEST(Spread, AStencilOverManyDevicesHasItsClosedForm) {
  constexpr int kBands = 128, kSteps = 40;
  Declared stencil;
  std::vector<int32_t> device;
  for (int n = 0; n < kBands * kSteps; ++n) {
    std::vector<std::pair<int32_t, int64_t>> takes;
    const int band = n % kBands;
    for (int other = std::max(0, band - 1); n >= kBands && other <= std::min(kBands - 1, band + 1); ++other) {
      takes.emplace_back(n - kBands - band + other, other == band ? 8 * kMega : kMega);
    }
    stencil.Kernel(50, takes);
    device.push_back(band);
  }
  const SpreadTarget target = Over(kBands);
  const SpreadGraph spread = Spread(stencil, device, target);
  EXPECT_EQ(spread.copies, 2 * (kBands - 1) * (kSteps - 1));
  EXPECT_THAT(Makespan(spread), DoubleEq(kSteps * 50 + (kSteps - 1) * (6 + 12)));
  // Affinity finds the bands by itself.
  absl::StatusOr<PlaceGraph> tasks = MakePlaceGraph(stencil.graph, stencil.bytes, target);
  ASSERT_OK(tasks.status());
  DealFirstTasks(*tasks);
  const absl::StatusOr<Assignment> affinity = AssignByAffinity(*tasks, 0);
  ASSERT_OK(affinity.status());
  EXPECT_EQ(affinity->device, device);
}

Declared RandomGraph(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  Declared made;
  for (int n = 1 + below(30); n > 0; --n) {
    const SimResource kinds[] = {SimResource::kKernel, SimResource::kKernel,   SimResource::kKernel,
                                 SimResource::kUpload, SimResource::kDownload, SimResource::kWorker};
    std::vector<std::pair<int32_t, int64_t>> takes;
    const auto before = static_cast<int32_t>(made.bytes.size());
    for (int32_t p = std::max(0, before - 8); p < before; ++p) {
      if (below(3) == 0) takes.emplace_back(p, below(3) * kMega);
    }
    made.Add(kinds[below(6)], 1 + below(20), takes);
  }
  return made;
}

// What must hold of any graph that was spread, looked at edge by edge.
void ExpectSpreadRightly(const Declared& declared, const SpreadGraph& spread, const std::vector<int32_t>& device) {
  const std::vector<SimNode>& nodes = spread.graph.nodes;
  std::vector<int32_t> at(declared.bytes.size(), -1);
  std::map<std::pair<int32_t, int32_t>, int64_t> needed;  // by producer and device
  for (int32_t n = 0; n < static_cast<int32_t>(nodes.size()); ++n) {
    if (spread.origin[static_cast<size_t>(n)] >= 0) at[static_cast<size_t>(spread.origin[static_cast<size_t>(n)])] = n;
  }
  for (size_t n = 0; n < declared.bytes.size(); ++n) {
    const SimNode &was = declared.graph.nodes[n], &is = nodes[static_cast<size_t>(at[n])];
    EXPECT_EQ(is.resource, was.resource);
    if (was.resource == SimResource::kKernel) {
      EXPECT_EQ(is.device, device[n]);
    }
    ASSERT_EQ(is.after.size(), was.after.size());
    for (size_t e = 0; e < was.after.size(); ++e) {
      const auto p = static_cast<size_t>(was.after[e]);
      const int64_t bytes = declared.bytes[n][e];
      const SimNode& before = nodes[static_cast<size_t>(at[p])];
      const bool copied = !was.on_host && !before.on_host && before.device != is.device && bytes > 0;
      if (!copied) {
        EXPECT_EQ(is.after[e], at[p]);
        continue;
      }
      int64_t& most = needed[{at[p], is.device}];
      most = std::max(most, bytes);
      const SimNode& copy = nodes[static_cast<size_t>(is.after[e])];
      EXPECT_EQ(copy.resource, SimResource::kPeer);
      EXPECT_EQ(copy.device, is.device);
      EXPECT_EQ(copy.from, before.device);
      EXPECT_THAT(copy.after, ElementsAre(at[p]));
      EXPECT_GE(copy.bytes, bytes);
    }
  }
  int64_t all = 0;
  for (const auto& [key, bytes] : needed) all += bytes;
  EXPECT_EQ(spread.copies, static_cast<int32_t>(needed.size()));
  EXPECT_EQ(spread.copied_bytes, all);
  EXPECT_EQ(nodes.size(), declared.bytes.size() + needed.size());
}

TEST(SpreadOver, KeepsEachEdgeOfRandomGraphs) {
  std::mt19937 random(5);
  for (int seed = 0; seed < 300; ++seed) {
    const Declared declared = RandomGraph(random);
    const int32_t devices = 1 + static_cast<int32_t>(random() % 4);
    const SpreadTarget target = Over(devices);
    std::vector<int32_t> device;
    for (size_t n = 0; n < declared.bytes.size(); ++n) device.push_back(static_cast<int32_t>(random()) % devices);
    for (int32_t& d : device) d = std::abs(d);
    const SpreadGraph spread = Spread(declared, device, target);
    ExpectSpreadRightly(declared, spread, device);
    EXPECT_GT(Makespan(spread), 0);
    absl::StatusOr<PlaceGraph> tasks = MakePlaceGraph(declared.graph, declared.bytes, target);
    ASSERT_OK(tasks.status());
    const absl::StatusOr<Assignment> heft = AssignByHeft(*tasks);
    ASSERT_OK(heft.status());
    ExpectSpreadRightly(declared, Spread(declared, heft->device, target), heft->device);
    ASSERT_FALSE(HasFailure()) << "graph " << seed;
  }
}

TEST(SpreadOver, RefusesWhatDoesNotFit) {
  Declared two;
  two.Kernel(1);
  two.Kernel(1, {{0, 1}});
  const auto refused = [](const Declared& declared, std::vector<int32_t> device, const SpreadTarget& target,
                          const char* why) {
    const absl::Status status = SpreadOver(declared.graph, declared.bytes, device, target).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refused(two, {0, 2}, Over(2), "node 1 is assigned to a device that does not exist");
  refused(two, {-1, 0}, Over(2), "node 0 is assigned");
  refused(two, {0}, Over(2), "not each node has a device");
  refused(two, {0, 0}, Over(0), "no device to spread over");
  SpreadTarget target = Over(2);
  target.links.pop_back();
  refused(two, {0, 0}, target, "not a link from each to each");
  Declared wrong = two;
  wrong.bytes[1][0] = -1;
  refused(wrong, {0, 0}, Over(2), "node 1 has edges");
  wrong.bytes[1].clear();
  refused(wrong, {0, 0}, Over(2), "node 1 has edges");
  wrong = two;
  wrong.graph.nodes[1].after[0] = 1;
  refused(wrong, {0, 0}, Over(2), "node 1 has edges");
  wrong.bytes.clear();
  refused(wrong, {0, 0}, Over(2), "bytes are not those");
  wrong = two;
  wrong.graph.nodes[1].device = 1;
  refused(wrong, {0, 0}, Over(2), "several devices already");
  EXPECT_EQ(MakePlaceGraph(wrong.graph, wrong.bytes, Over(2)).status().code(), absl::StatusCode::kInvalidArgument);
  wrong.graph.nodes[0].device = 1;
  refused(wrong, {0, 0}, Over(2), "a device that does not exist");
  wrong = two;
  wrong.graph.states = {{2}};
  refused(wrong, {0, 0}, Over(2), "a State is touched");
}

}  // namespace
}  // namespace penstock::graph::spread_test
