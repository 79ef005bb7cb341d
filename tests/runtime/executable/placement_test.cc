// Automatic placement through the public interface: what Compile refuses, and what its report says.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "penstock/penstock.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::placement_test {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr int64_t kN = 16;

struct Twice {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] *= 2; }
};

// Chains that say that they compute much: a host device is assumed to do 10 GFLOP/s.
Graph Chains(int chains) {
  Graph graph("chains");
  for (int c = 0; c < chains; ++c) {
    const auto x = graph.InOut<int32_t>(Name("x", c), kN);
    for (int n = 0; n < 3; ++n) {
      graph.ParallelFor("node " + std::to_string(c) + "." + std::to_string(n), kN, Twice{}, ReadWrite(x)).Flops(1e7);
    }
  }
  return graph;
}

TEST(ExecutablePlacement, IsOneDeviceUnlessAskedFor) {
  Runtime runtime = HostRuntime(2, "host:2");
  const auto exec = runtime.Compile(Chains(2), {.device = 1});
  ASSERT_OK(exec.status());
  const PlacementReport report = exec->placement_report();
  EXPECT_TRUE(report.candidates.empty());
  EXPECT_EQ(report.devices, (std::vector<std::string>{"host:0", "host:1"}));
  ASSERT_EQ(report.nodes.size(), 6U);
  EXPECT_EQ(report.nodes[0].name, "node 0.0");
  EXPECT_THAT(report.nodes, Each(Field(&PlacementReport::Node::device, 1)));
  EXPECT_EQ(report.Text(), "placement of graph 'chains'; nodes: host:1 6\n");
  EXPECT_TRUE(Executable().placement_report().nodes.empty());
}

TEST(ExecutablePlacement, TellsWhatItComparedAndTook) {
  Runtime runtime = HostRuntime(2, "host:2");
  const auto exec = runtime.Compile(Chains(2), {.placement = Placement::kAutomatic});
  ASSERT_OK(exec.status());
  const PlacementReport report = exec->placement_report();
  ASSERT_EQ(report.candidates.size(), 3U);
  EXPECT_EQ(report.candidates[2].name, "HEFT");
  EXPECT_TRUE(report.candidates[2].taken);
  EXPECT_NEAR(report.candidates[2].gain, 0.5, 0.02);
  EXPECT_NEAR(report.candidates[2].work_us[0], 3 * (1000 + 5), 0.1);
  EXPECT_EQ(report.candidates[2].host_bytes, 4 * kN * 4);
  for (size_t n = 0; n < 6; ++n) EXPECT_EQ(report.nodes[n].device, report.nodes[n < 3 ? 0 : 3].device);
  EXPECT_NE(report.nodes[0].device, report.nodes[3].device);
  EXPECT_THAT(report.Text(), HasSubstr("placement of graph 'chains'; nodes: host:0 3, host:1 3\n"));
  EXPECT_THAT(report.Text(), HasSubstr("\n  HEFT: taken: it is the fastest\n"));
}

TEST(ExecutablePlacement, FollowsTheFiguresThatItIsGiven) {
  Runtime runtime = HostRuntime(2, "host:2");
  MachineFigures fast{.devices = {{.name = "host:0", .fp32 = 1e9}, {.name = "host:1", .fp32 = 1e9}}};
  const auto figures = std::make_shared<const MachineFigures>(fast);
  auto exec = runtime.Compile(Chains(2), {.placement = Placement::kAutomatic, .figures = figures});
  ASSERT_OK(exec.status());
  EXPECT_TRUE(exec->placement_report().candidates[0].taken) << exec->placement_report().Text();
  const auto refused = [&](MachineFigures wrong) {
    const auto of = std::make_shared<const MachineFigures>(std::move(wrong));
    const absl::Status status =
        runtime.Compile(Chains(2), {.placement = Placement::kAutomatic, .figures = of}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Text(status);
  };
  EXPECT_THAT(
      refused({.devices = {{.name = "host:0"}}}),
      HasSubstr("graph 'chains': CompileOptions::figures: MachineFigures: there are 1 devices and the runtime has 2"));
  EXPECT_THAT(refused({.devices = {{.name = "cuda:0"}, {.name = "host:1"}}}),
              HasSubstr("a device is named 'cuda:0' where the runtime has 'host:0'"));
}

TEST(ExecutablePlacement, RefusesSeveralDevicesThatTakeWholeRunsAndRunsInOrder) {
  Runtime runtime = HostRuntime(2, "host:2");
  absl::Status status =
      runtime.Compile(Chains(2), {.devices = runtime.all_devices(), .placement = Placement::kAutomatic}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("CompileOptions::placement is kAutomatic and CompileOptions::devices names 2"));
  EXPECT_OK(runtime.Compile(Chains(2), {.devices = {1}, .placement = Placement::kAutomatic}).status());
  status = runtime.Compile(Chains(2), {.placement = Placement::kAutomatic, .in_order = true}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("placement is kAutomatic and in_order is set"));
}

struct FewerThan {
  int32_t most;
  PENSTOCK_HOST_DEVICE bool operator()(const int32_t* x) const { return *x < most; }
};
struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { ++x[i]; }
};

// A construct stays on the default device with all that is in it.
TEST(ExecutablePlacement, KeepsConstructsTogether) {
  Runtime runtime = HostRuntime(2, "host:2");
  Graph graph = Chains(2);
  const auto count = graph.InOut<int32_t>("count", 1);
  graph.While("loop", When(FewerThan{3}, Read(count)), {.max = 8},
              [&](Graph& body) { body.ParallelFor("more", 1, AddOne{}, ReadWrite(count)).Flops(1e9); });
  const auto exec = runtime.Compile(graph, {.device = 1, .placement = Placement::kAutomatic});
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->placement_report().nodes.back().name, "loop");
  EXPECT_EQ(exec->placement_report().nodes.back().device, 1);
}

}  // namespace
}  // namespace penstock::placement_test
