#include "src/driver/node_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/driver/region_limits.h"
#include "tests/support/status.h"

namespace penstock::driver::node_op_test {
namespace {

using testing::HasSubstr;

// Whose edges are others (cuda_graph.h).
TEST(NodeOpTest, AKernelThatAwaitsTakesNoOthersPlace) {
  KernelOp plain, awaits;
  awaits.awaits = true;
  EXPECT_EQ(CheckReplacement(ShapeOf(&plain), ShapeOf(&plain)), absl::OkStatus());
  EXPECT_EQ(CheckReplacement(ShapeOf(&awaits), ShapeOf(&awaits)), absl::OkStatus());
  EXPECT_EQ(CheckReplacement(ShapeOf(&plain), ShapeOf(&awaits)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckReplacement(ShapeOf(&awaits), ShapeOf(&plain)).code(), absl::StatusCode::kInvalidArgument);
}

void DoNothing(void* const* /*argv*/, int64_t /*first*/, int64_t /*end*/) {}

// That these cannot be the operations and edges of a region, because of `text`.
void ExpectNoRegion(const std::vector<NodeOp>& ops, const std::vector<RegionOp::Edge>& edges, const char* text) {
  const RegionOp region{.ops = ops, .edges = edges};
  const absl::Status refused = CheckNode(&region);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(Text(refused), HasSubstr(text));
}

TEST(NodeOpTest, ARegionHasWhatItCanRunInsideOfItsDevice) {
  const CopyOp inside{.kind = CopyKind::kDeviceToDevice, .width = 0}, upload{.kind = CopyKind::kHostToDevice};
  const CopyOp download{.kind = CopyKind::kDeviceToHost}, peer{.kind = CopyKind::kPeer};
  const FillOp empty, odd{.pattern_size = 17, .count = 1};
  const KernelOp kernel{.grid = {0, 1, 1}, .range = &DoNothing}, callable;
  const BatchOp batch{.kind = CopyKind::kDeviceToDevice};
  const std::vector<NodeOp> ops = {&inside, &empty, &kernel};
  const std::vector<RegionOp::Edge> edges = {{0, 2}, {1, 2}};
  const RegionOp region{.ops = ops, .edges = edges};
  EXPECT_OK(CheckNode(&region)) << "operations may be empty";

  ExpectNoRegion({}, {}, "cannot be a region of no operations; disable the node instead");
  for (const CopyOp* const copy : {&upload, &download, &peer}) {
    ExpectNoRegion({&kernel, copy}, {}, "a region copies within its device only; make the copy a node of its own");
  }
  ExpectNoRegion({&batch}, {}, "a batch of copies is in no region; make it a node of its own");
  ExpectNoRegion({&callable}, {}, "a region has only kernels over rows; make a callable a node of its own");
  ExpectNoRegion({&region}, {}, "a region is in no other; give one all operations");
  const RegionOp one{.ops = {ops.data() + 1, 1}, .edges = {}};
  EXPECT_OK(CheckNode(&one));
  const NodeOp bad = &odd;
  const RegionOp pattern{.ops = {&bad, 1}, .edges = {}};
  EXPECT_EQ(CheckNode(&pattern).code(), absl::StatusCode::kInvalidArgument);
}

TEST(NodeOpTest, EdgesOfARegionLeadFromEarlierToLaterOperations) {
  const KernelOp kernel{.range = &DoNothing};
  const std::vector<NodeOp> ops = {&kernel, &kernel, &kernel};
  for (const RegionOp::Edge edge : {RegionOp::Edge{2, 1}, {1, 1}, {0, 3}, {-1, 1}}) {
    const std::string text = "operation " + std::to_string(edge.after) +
                             " of a region of 3 cannot come after operation " + std::to_string(edge.before) +
                             "; name an earlier one";
    ExpectNoRegion(ops, {{0, 1}, edge}, text.c_str());
  }
}

// All workers at work fit on half of a device's multiprocessors.
TEST(NodeOpTest, RegionsAtWorkLeaveHalfOfADeviceToOthers) {
  for (int units = 1; units <= 200; ++units) {
    const RegionLimits limits = RegionLimitsOf(units);
    EXPECT_GE(limits.blocks, 1);
    EXPECT_LE(limits.blocks, 8);
    EXPECT_GE(limits.at_once, 1);
    EXPECT_LE(limits.blocks * limits.at_once, std::max(units / 2, 1)) << units;
  }
  EXPECT_EQ(RegionLimitsOf(132).blocks, 8);
  EXPECT_EQ(RegionLimitsOf(132).at_once, 8);
  EXPECT_EQ(RegionLimitsOf(16).blocks, 8);
  EXPECT_EQ(RegionLimitsOf(16).at_once, 1);
}

}  // namespace
}  // namespace penstock::driver::node_op_test
