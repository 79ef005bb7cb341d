#include "src/driver/node_op.h"

#include <gtest/gtest.h>

namespace penstock::driver::node_op_test {
namespace {

// Whose edges are others (cuda_graph.h).
TEST(NodeOpTest, AKernelThatAwaitsTakesNoOthersPlace) {
  KernelOp plain, awaits;
  awaits.awaits = true;
  EXPECT_EQ(CheckReplacement(ShapeOf(&plain), &plain), absl::OkStatus());
  EXPECT_EQ(CheckReplacement(ShapeOf(&awaits), &awaits), absl::OkStatus());
  EXPECT_EQ(CheckReplacement(ShapeOf(&plain), &awaits).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckReplacement(ShapeOf(&awaits), &plain).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::driver::node_op_test
