// Which task goes to which device: a published example, random graphs whose schedules are checked rule by rule, and
// small ones against every assignment there is.
#include "graph/place/assign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/status.h"

namespace penstock::graph::assign_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlaceGraph GraphOf(int32_t devices, std::vector<std::vector<double>> costs) {
  PlaceGraph graph;
  graph.devices.resize(static_cast<size_t>(devices));
  graph.links.resize(static_cast<size_t>(devices) * static_cast<size_t>(devices));
  graph.tasks.resize(costs.size());
  for (const std::vector<double>& row : costs) graph.costs.insert(graph.costs.end(), row.begin(), row.end());
  return graph;
}

// Figure 3 of the paper: ten tasks on three processors; a transfer takes as many units as an edge says.
PlaceGraph Published() {
  PlaceGraph graph = GraphOf(3, {{14, 16, 9},
                                 {13, 19, 18},
                                 {11, 13, 19},
                                 {13, 8, 17},
                                 {12, 13, 10},
                                 {13, 16, 9},
                                 {7, 15, 11},
                                 {5, 11, 14},
                                 {18, 12, 20},
                                 {21, 7, 16}});
  for (PlaceLink& link : graph.links) link.gbs = 1e-3;  // a byte in a microsecond
  const int edges[][3] = {{1, 2, 18}, {1, 3, 12}, {1, 4, 9},   {1, 5, 11},  {1, 6, 14},
                          {2, 8, 19}, {2, 9, 16}, {3, 7, 23},  {4, 8, 27},  {4, 9, 23},
                          {5, 9, 13}, {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}};
  for (const auto& [from, to, bytes] : edges) {
    graph.tasks[static_cast<size_t>(to - 1)].inputs.push_back({from - 1, bytes});
  }
  return graph;
}

// What the paper's figure 4 (a) shows: who runs where, and the end at 80.
TEST(AssignByHeft, GivesThePublishedSchedule) {
  const absl::StatusOr<Assignment> heft = AssignByHeft(Published());
  ASSERT_OK(heft.status());
  EXPECT_THAT(heft->device, ElementsAre(2, 0, 2, 1, 2, 1, 2, 0, 1, 1));
  EXPECT_THAT(heft->begin_us, ElementsAre(0, 27, 9, 18, 28, 26, 38, 57, 56, 73));
  EXPECT_DOUBLE_EQ(heft->makespan_us, 80);
}

TEST(AssignByHeft, PutsATaskIntoAGapThatIsLongEnough) {
  // Task 1 waits for task 0 for 10 us. Task 2 fits in front of it, task 3 does not.
  PlaceGraph graph = GraphOf(2, {{10, kCannotRun}, {kCannotRun, 50}, {kCannotRun, 20}, {kCannotRun, 11}});
  for (PlaceLink& link : graph.links) link.us = 20;
  graph.tasks[1].inputs = {{0, 0}};
  const absl::StatusOr<Assignment> heft = AssignByHeft(graph);
  ASSERT_OK(heft.status());
  EXPECT_THAT(heft->begin_us, ElementsAre(0, 30, 0, 80));
}

TEST(Assign, KeepsWhatIsStatedAndWhatFits) {
  PlaceGraph graph = GraphOf(2, {{1, 9}, {1, 9}, {1, 9}});
  graph.tasks[0].device = 1;
  graph.tasks[1].bytes = graph.tasks[2].bytes = 60;
  graph.devices[0].memory_bytes = 100;
  for (const absl::StatusOr<Assignment>& found :
       {AssignToOne(graph, 0), AssignByAffinity(graph, 0), AssignByHeft(graph)}) {
    ASSERT_OK(found.status());
    EXPECT_THAT(found->device, ElementsAre(1, 0, 1));
  }
  graph.devices[1].memory_bytes = 59;
  for (const absl::StatusOr<Assignment>& found :
       {AssignToOne(graph, 0), AssignByAffinity(graph, 0), AssignByHeft(graph)}) {
    EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Text(found.status()),
                HasSubstr("task 2 needs 60 bytes of memory; the devices that it may have are left with at most 59"));
  }
}

TEST(Assign, TasksTakeAllPlacesOfADevice) {
  PlaceGraph graph = GraphOf(1, std::vector<std::vector<double>>(7, {10}));
  graph.devices[0].places = 3;
  for (const absl::StatusOr<Assignment>& found :
       {AssignToOne(graph, 0), AssignByAffinity(graph, 0), AssignByHeft(graph)}) {
    ASSERT_OK(found.status());
    EXPECT_DOUBLE_EQ(found->makespan_us, 30);
  }
}

TEST(AssignToOne, KeepsAllOnTheDevice) {
  const absl::StatusOr<Assignment> one = AssignToOne(Published(), 1);
  ASSERT_OK(one.status());
  EXPECT_EQ(std::count(one->device.begin(), one->device.end(), 1), 10);
  EXPECT_DOUBLE_EQ(one->makespan_us, 16 + 19 + 13 + 8 + 13 + 16 + 15 + 11 + 12 + 7);
}

TEST(AssignByAffinity, GoesWhereTheMostBytesAre) {
  PlaceGraph graph = GraphOf(3, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, kCannotRun}});
  graph.tasks[0].device = 0;
  graph.tasks[1].device = 2;
  graph.tasks[2].inputs = {{0, 10}, {1, 11}};
  graph.tasks[4].inputs = {{0, 10}, {1, 11}};
  const absl::StatusOr<Assignment> found = AssignByAffinity(graph, 1);
  ASSERT_OK(found.status());
  EXPECT_THAT(found->device, ElementsAre(0, 2, 2, 1, 0));
  // More than 64 bits can count.
  graph.tasks[3].inputs = {{1, INT64_MAX}, {2, INT64_MAX}, {0, INT64_MAX}};
  EXPECT_EQ(AssignByAffinity(graph, 1)->device[3], 0);
}

// Three processors of two kinds, and the same with a kind for each.
TEST(Assign, DevicesOfAKindHaveTheSameCosts) {
  PlaceGraph each = Published();
  for (size_t t = 0; t < each.tasks.size(); ++t) each.costs[3 * t + 1] = each.costs[3 * t];
  PlaceGraph kinds = each;
  kinds.kinds = 2;
  kinds.devices[2].kind = 1;
  kinds.costs.clear();
  for (size_t t = 0; t < each.tasks.size(); ++t) {
    kinds.costs.insert(kinds.costs.end(), {each.costs[3 * t], each.costs[3 * t + 2]});
  }
  EXPECT_EQ(AssignByHeft(kinds)->begin_us, AssignByHeft(each)->begin_us);
  EXPECT_EQ(AssignByHeft(kinds)->device, AssignByHeft(each)->device);
  EXPECT_EQ(AssignToOne(kinds, 2)->makespan_us, AssignToOne(each, 2)->makespan_us);
}

TEST(Assign, RefusesWhatIsNotAGraph) {
  const auto refused = [](auto&& change, const char* why) {
    PlaceGraph wrong = Published();
    change(wrong);
    for (const absl::Status& status :
         {AssignToOne(wrong, 0).status(), AssignByAffinity(wrong, 0).status(), AssignByHeft(wrong).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(Text(status), HasSubstr(why));
    }
  };
  refused([](PlaceGraph& g) { g.tasks[3].inputs = {{3, 1}}; },
          "task 3 takes something from a task that is not before it");
  refused([](PlaceGraph& g) { g.tasks[3].inputs = {{-1, 1}}; }, "not before it");
  refused([](PlaceGraph& g) { g.tasks[3].inputs[0].bytes = -1; }, "task 3 has a size that is negative");
  refused([](PlaceGraph& g) { g.tasks[3].bytes = -1; }, "task 3 has a size that is negative");
  refused([](PlaceGraph& g) { g.tasks[3].device = 3; }, "task 3 states a device that does not exist");
  refused([](PlaceGraph& g) { g.costs[5] = -1; }, "task 1 has a cost that is negative");
  refused(
      [](PlaceGraph& g) {
        g.costs[5] = -1;
        g.name_of = [](int32_t task) { return "node '" + std::string(1, static_cast<char>('a' + task)) + "'"; };
      },
      "node 'b' has a cost that is negative");
  refused([](PlaceGraph& g) { g.costs[5] = NAN; }, "task 1 has a cost");
  refused([](PlaceGraph& g) { g.costs.pop_back(); }, "the numbers of costs and links");
  refused([](PlaceGraph& g) { g.links.pop_back(); }, "the numbers of costs and links");
  refused([](PlaceGraph& g) { g.links[1].us = NAN; }, "a link has a time");
  refused([](PlaceGraph& g) { g.links[1].gbs = -1; }, "a link has a time");
  refused([](PlaceGraph& g) { g.devices[0].places = 0; }, "a device has no place");
  refused([](PlaceGraph& g) { g = {}; }, "there is no device");
  refused([](PlaceGraph& g) { g.kinds = 2; }, "the numbers of costs and links");
  refused([](PlaceGraph& g) { g.kinds = 3, g.devices[1].kind = 3; }, "a device is of a kind that does not exist");
  refused([](PlaceGraph& g) { g.kinds = -1; }, "the numbers of costs and links");
  refused([](PlaceGraph& g) { g.costs[0] = g.costs[1] = g.costs[2] = kCannotRun; }, "task 0 cannot run on any device");
  for (const int32_t device : {-1, 3}) {
    EXPECT_EQ(AssignToOne(Published(), device).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(AssignByAffinity(Published(), device).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Whether a schedule keeps to the rules: each task after its inputs have arrived, as long as it takes, no more at a
// time on a device than it has places, no more bytes than it has.
void ExpectFollowsTheRules(const PlaceGraph& graph, const Assignment& found) {
  double last = 0;
  std::vector<int64_t> bytes(graph.devices.size());
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const PlaceTask& task = graph.tasks[t];
    const int32_t device = found.device[t];
    if (task.device >= 0) {
      EXPECT_EQ(device, task.device);
    }
    EXPECT_NEAR(found.end_us[t] - found.begin_us[t], graph.cost(static_cast<int32_t>(t), device), 1e-9);
    for (const PlaceInput& input : task.inputs) {
      const auto from = static_cast<size_t>(input.from);
      const double transfer =
          found.device[from] == device ? 0 : graph.link(found.device[from], device).Cost(input.bytes);
      EXPECT_GE(found.begin_us[t], found.end_us[from] + transfer);
    }
    int32_t beside = 0;  // tasks that run as this one begins, itself included
    for (size_t o = 0; o < graph.tasks.size(); ++o) {
      beside +=
          found.device[o] == device && found.begin_us[o] <= found.begin_us[t] && found.begin_us[t] < found.end_us[o];
    }
    EXPECT_LE(beside, graph.devices[static_cast<size_t>(device)].places);
    bytes[static_cast<size_t>(device)] += task.bytes;
    last = std::max(last, found.end_us[t]);
  }
  for (size_t d = 0; d < bytes.size(); ++d) EXPECT_LE(bytes[d], graph.devices[d].memory_bytes);
  EXPECT_DOUBLE_EQ(found.makespan_us, last);
}

PlaceGraph RandomGraph(std::mt19937_64& random, int tasks, int devices) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  PlaceGraph graph = GraphOf(
      devices,
      std::vector<std::vector<double>>(static_cast<size_t>(tasks), std::vector<double>(static_cast<size_t>(devices))));
  for (double& cost : graph.costs) cost = below(10) == 0 ? 0 : 1 + below(20);
  for (PlaceLink& link : graph.links) link = {static_cast<double>(below(4)), below(3) == 0 ? 0 : 1e-3 * (1 + below(4))};
  for (PlaceDevice& device : graph.devices) device.places = 1 + below(2);
  for (int t = 0; t < tasks; ++t) {
    PlaceTask& task = graph.tasks[static_cast<size_t>(t)];
    task.bytes = below(10);
    if (below(6) == 0) task.device = below(devices);
    for (int from = std::max(0, t - 6); from < t; ++from) {
      if (below(3) == 0) task.inputs.push_back({from, below(30)});
    }
  }
  graph.devices[0].memory_bytes = below(2) == 0 ? 4 * tasks : INT64_MAX;
  return graph;
}

TEST(Assign, FollowsTheRulesInRandomGraphs) {
  std::mt19937_64 random(1);
  int assigned = 0;
  for (int seed = 0; seed < 300; ++seed) {
    const PlaceGraph graph =
        RandomGraph(random, 1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 4));
    for (const absl::StatusOr<Assignment>& found :
         {AssignToOne(graph, 0), AssignByAffinity(graph, 0), AssignByHeft(graph)}) {
      if (found.status().code() == absl::StatusCode::kResourceExhausted) continue;
      ASSERT_OK(found.status());
      ++assigned;
      ExpectFollowsTheRules(graph, *found);
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(assigned, 700);
}

// The shortest makespan of all assignments and all orders of tasks: each next task begins as early as it can behind
// what its device has. Some optimal schedule has no gap that a task later in its order could use.
double Shortest(const PlaceGraph& graph, std::vector<int32_t>& device, std::vector<double>& end,
                std::vector<double>& free, size_t assigned, double so_far) {
  if (assigned == graph.tasks.size()) return so_far;
  double best = INFINITY;
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const PlaceTask& task = graph.tasks[t];
    if (device[t] >= 0 || std::any_of(task.inputs.begin(), task.inputs.end(), [&](const PlaceInput& input) {
          return device[static_cast<size_t>(input.from)] < 0;
        })) {
      continue;
    }
    for (int32_t d = 0; d < static_cast<int32_t>(graph.devices.size()); ++d) {
      if (task.device >= 0 && task.device != d) continue;
      double begin = free[static_cast<size_t>(d)];
      for (const PlaceInput& input : task.inputs) {
        const auto from = static_cast<size_t>(input.from);
        begin = std::max(begin, end[from] + (device[from] == d ? 0 : graph.link(device[from], d).Cost(input.bytes)));
      }
      const double before = free[static_cast<size_t>(d)];
      device[t] = d;
      end[t] = free[static_cast<size_t>(d)] = begin + graph.cost(static_cast<int32_t>(t), d);
      best = std::min(best, Shortest(graph, device, end, free, assigned + 1, std::max(so_far, end[t])));
      device[t] = -1;
      free[static_cast<size_t>(d)] = before;
    }
  }
  return best;
}

TEST(AssignByHeft, IsNearTheBestOfAllSmallSchedules) {
  std::mt19937_64 random(7);
  double ratios = 0;
  int best = 0;
  constexpr int kGraphs = 100;
  for (int seed = 0; seed < kGraphs; ++seed) {
    PlaceGraph graph = RandomGraph(random, 6, 2);
    for (PlaceDevice& device : graph.devices) device = {};
    const absl::StatusOr<Assignment> heft = AssignByHeft(graph);
    ASSERT_OK(heft.status());
    std::vector<int32_t> device(graph.tasks.size(), -1);
    std::vector<double> end(graph.tasks.size()), free(graph.devices.size());
    const double shortest = Shortest(graph, device, end, free, 0, 0);
    EXPECT_GE(heft->makespan_us, shortest - 1e-9) << "seed " << seed;
    ratios += heft->makespan_us / shortest;
    best += heft->makespan_us <= shortest + 1e-9 ? 1 : 0;
  }
  EXPECT_LE(ratios / kGraphs, 1.15);
  EXPECT_GE(best, kGraphs / 3);
}

}  // namespace
}  // namespace penstock::graph::assign_test
