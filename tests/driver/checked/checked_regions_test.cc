// Regions that the checked driver sees on a host device: its edges order the operations of a region, and the edges of
// its node order them with those of other nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/driver/checked/checked_driver.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/driver/checked/checked_fixture.h"

namespace penstock::driver::checked::checked_regions_test {
namespace {

using conformance::PackedArgs;
using testing::AllOf;
using testing::HasSubstr;
using Edge = RegionOp::Edge;
using After = std::vector<int32_t>;

class CheckedRegionTest : public CheckedFixture {
 protected:
  void SetUp() override {
    CheckedFixture::SetUp();
    graph_ = *driver_->CreateGraph(0);
  }
  void TearDown() override {
    EXPECT_EQ(Violation(), "") << "which the test has not looked at";
    Finish(stream_);
    for (const GraphExec exec : execs_) driver_->DestroyExec(exec);
    driver_->DestroyGraph(graph_);
    CheckedFixture::TearDown();
  }
  // Fills bytes of the device block for plan node `node`.
  FillOp Fill(size_t from, size_t bytes, int32_t node) {
    return {.dst = device_ + from, .count = bytes, .tag = {nullptr, node}};
  }
  absl::Status TryAdd(const After& after, const NodeOp& op) { return driver_->AddNode(graph_, after, op, {}).status(); }
  absl::Status AddRegion(const After& after, const std::vector<NodeOp>& ops, const std::vector<Edge>& edges) {
    const RegionOp region{.ops = ops, .edges = edges};
    return TryAdd(after, &region);
  }
  // An exec until the test ends.
  GraphExec Instantiate() { return execs_.emplace_back(*driver_->Instantiate(graph_)); }
  absl::Status LaunchNew() { return driver_->LaunchGraph(Instantiate(), stream_); }

  Graph graph_;
  std::vector<GraphExec> execs_;
};

// --- inside of a region ---

TEST_F(CheckedRegionTest, OperationsOfARegionOnTheSameMemoryNeedAnEdge) {
  const FillOp first = Fill(0, 64, 11), apart = Fill(64, 64, 12), second = Fill(32, 16, 13);
  ASSERT_OK(AddRegion({}, {&first, &apart, &second}, {{0, 1}}));
  const absl::Status refused = LaunchNew();
  EXPECT_THAT(Text(refused), AllOf(HasSubstr("child node 2 of graph node 0 of operation 1 of exec 1 for node 13"),
                                   HasSubstr("child node 0 of graph node 0 of operation 1 of exec 1 for node 11")));
  ExpectRefused(refused, "ordered accesses", "no edge orders them");
}

TEST_F(CheckedRegionTest, EdgesOrderOperationsOfARegionAlsoThroughOthers) {
  const FillOp first = Fill(0, 64, 11), apart = Fill(64, 64, 12), second = Fill(32, 16, 13);
  ASSERT_OK(AddRegion({}, {&first, &apart, &second}, {{0, 1}, {1, 2}}));
  ASSERT_OK(AddRegion({0}, {&first, &second}, {{0, 1}}));
  ASSERT_OK(LaunchNew());
}

TEST_F(CheckedRegionTest, KernelsOfARegionAreAskedForTheirUses) {
  const Uses writes({{.data = device_, .width = 64, .writes = true}});
  PackedArgs args;
  args.Add(device_);
  KernelOp kernel = args.op();
  kernel.range = &DoNothing;
  kernel.rows = 1;
  kernel.uses = &writes;
  kernel.tag.node = 12;
  const FillOp fill = Fill(32, 64, 11);
  ASSERT_OK(AddRegion({}, {&fill, &kernel}, {}));
  ExpectRefused(LaunchNew(), "ordered accesses", "child node 1 of graph node 0 of operation 1 of exec 1 for node 12");
}

// --- beside other nodes ---

TEST_F(CheckedRegionTest, ARegionAndANodeOnTheSameMemoryNeedAnEdge) {
  const FillOp apart = Fill(0, 64, 11), inner = Fill(64, 64, 12), other = Fill(96, 64, 13);
  ASSERT_OK(AddRegion({}, {&apart, &inner}, {}));
  ASSERT_OK(TryAdd({}, &other));
  ExpectRefused(LaunchNew(), "ordered accesses", "child node 1 of graph node 0 of operation 1 of exec 1 for node 12");
  driver_->DestroyGraph(graph_);
  graph_ = *driver_->CreateGraph(0);
  ASSERT_OK(AddRegion({}, {&apart, &inner}, {}));
  ASSERT_OK(TryAdd({0}, &other));
  ASSERT_OK(LaunchNew());
}

TEST_F(CheckedRegionTest, ALaunchCountsAsWhatItsRegionsDo) {
  const FillOp fill = Fill(0, 64, 11);
  const CopyOp copy{.kind = CopyKind::kDeviceToDevice, .dst = device_ + 64, .src = device_, .width = 16};
  ASSERT_OK(AddRegion({}, {&fill, &copy}, {{0, 1}}));
  const Totals before = witness_->totals();
  ASSERT_OK(LaunchNew());
  EXPECT_EQ(witness_->totals() - before, (Totals{.inside = {1, 16}, .fills = {1, 64}}));
}

// --- what is set ---

TEST_F(CheckedRegionTest, WhatIsSetCountsUnderTheSameEdges) {
  const FillOp left = Fill(0, 64, 11), right = Fill(64, 64, 12), both = Fill(32, 64, 13);
  ASSERT_OK(AddRegion({}, {&left, &right, &right}, {{1, 2}}));
  const GraphExec exec = Instantiate();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  const auto set = [&](const std::vector<NodeOp>& ops, const std::vector<Edge>& edges) {
    const RegionOp region{.ops = ops, .edges = edges};
    return driver_->SetNode(exec, 0, &region);
  };
  ASSERT_OK(set({&right, &left, &left}, {{1, 2}}));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(set({&right, &left, &both}, {{1, 2}}));
  ExpectRefused(driver_->LaunchGraph(exec, stream_), "ordered accesses", "child node 2 of graph node 0");
  ASSERT_OK(driver_->EnableNode(exec, 0, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
}

TEST_F(CheckedRegionTest, ARegionKeepsTheNumberOfItsOperationsAndTheirEdges) {
  const FillOp left = Fill(0, 64, 11), right = Fill(64, 64, 12);
  ASSERT_OK(AddRegion({}, {&left, &right}, {{0, 1}}));
  const GraphExec exec = Instantiate();
  const std::vector<NodeOp> ops = {&left, &right, &left};
  const std::vector<Edge> edges = {{0, 1}, {1, 2}};
  const RegionOp more{.ops = ops, .edges = edges};
  const RegionOp other{.ops = {ops.data(), 2}, .edges = {}};
  EXPECT_EQ(driver_->SetNode(exec, 0, &more).code(), absl::StatusCode::kInvalidArgument) << "by the driver below";
  ExpectRefused(driver_->SetNode(exec, 0, &other), "a region keeps its order",
                "node 0 of exec 1 is given other edges between its operations");
}

TEST_F(CheckedRegionTest, AChildHasTheOperationsOfItsRegions) {
  const FillOp first = Fill(0, 64, 11), second = Fill(32, 16, 13);
  const Graph child = *driver_->CreateGraph(0);
  const std::vector<NodeOp> ops = {&first, &second};
  const Edge edge{0, 1};
  const RegionOp ordered{.ops = ops, .edges = {&edge, 1}};
  ASSERT_OK(driver_->AddNode(child, {}, &ordered, {}).status());
  ASSERT_OK(driver_->AddChild(graph_, {}, child).status());
  ASSERT_OK(LaunchNew());
  const RegionOp unordered{.ops = ops, .edges = {}};
  ASSERT_OK(driver_->AddNode(child, After{0}, &unordered, {}).status());
  ASSERT_OK(driver_->AddChild(graph_, After{0}, child).status());
  ExpectRefused(LaunchNew(), "ordered accesses", "child node 3 of graph node 1 of operation 1 of exec 2 for node 13");
  driver_->DestroyGraph(child);
}

// What the driver below refuses is no violation.
TEST_F(CheckedRegionTest, WhatNoRegionHasIsRefused) {
  const FillOp fill = Fill(0, 64, 11);
  for (const Edge edge : {Edge{0, 0}, Edge{1, 0}, Edge{0, 2}, Edge{-1, 1}}) {
    EXPECT_EQ(AddRegion({}, {&fill, &fill}, {edge}).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(AddRegion({}, {}, {}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::driver::checked::checked_regions_test
