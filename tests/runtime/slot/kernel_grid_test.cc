// The grids that kernels are launched with.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "src/runtime/slot/kernel_grid.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/mode_scope.h"
#include "tests/support/status.h"

namespace penstock::runtime::kernel_grid_test {
namespace {

using Size = std::array<uint32_t, 3>;

struct Seen {
  std::vector<Size> grids, blocks;
};

class SeesGrids final : public driver::ForwardingDriver {
 public:
  SeesGrids(std::unique_ptr<driver::Driver> driver, Seen* seen) : ForwardingDriver(std::move(driver)), seen_(seen) {}
  absl::Status Launch(driver::Stream stream, const driver::KernelOp& op) override {
    seen_->grids.push_back(op.grid);
    seen_->blocks.push_back(op.block);
    return ForwardingDriver::Launch(stream, op);
  }

 private:
  Seen* const seen_;
};

TEST(KernelGrid, OfASmallParallelForHasAThreadForEachElement) {
  EXPECT_EQ(GridOf({1, 1, 1}, 1).grid, (Size{1, 1, 1}));
  EXPECT_EQ(GridOf({1, 1, 257}, 1).grid, (Size{2, 1, 1}));
  EXPECT_EQ(GridOf({1, 1, 4095 * 256}, 1).grid, (Size{4095, 1, 1}));
  EXPECT_EQ(GridOf({1, 1, 257}, 1).block, (Size{256, 1, 1}));
  EXPECT_EQ(GridOf({1, 9, 500}, 2).grid, (Size{4, 9, 1}));
  EXPECT_EQ(GridOf({1, 9, 500}, 2).block, (Size{128, 1, 1}));
  EXPECT_EQ(GridOf({7, 9, 60}, 3).grid, (Size{1, 5, 7}));
  EXPECT_EQ(GridOf({7, 9, 60}, 3).block, (Size{64, 2, 1}));
  EXPECT_EQ(GridOf({1, 9, 129}, 2).block, (Size{32, 4, 1})) << "wider ones would leave many threads idle";
  EXPECT_EQ(GridOf({1, 300, 3}, 2).block, (Size{4, 32, 1}));
  EXPECT_EQ(GridOf({1, 300, 1}, 2).block, (Size{1, 128, 1}));
}

// 2048 blocks of lines are left, or 1024 of tiles, and no thread has more than 8 elements.
TEST(KernelGrid, OfALargeParallelForHasSeveralElementsAThread) {
  EXPECT_EQ(GridOf({1, 1, 4096 * 256}, 1).grid, (Size{2048, 1, 1})) << "2 each";
  EXPECT_EQ(GridOf({1, 1, int64_t{1} << 30}, 1).grid, (Size{1 << 19, 1, 1})) << "8 each";
  EXPECT_EQ(GridOf({1, 512, 512}, 2).grid, (Size{4, 256, 1})) << "2 each, one below the other";
  EXPECT_EQ(GridOf({1, 8192, 8192}, 2).grid, (Size{64, 1024, 1})) << "8 each";
  EXPECT_EQ(GridOf({3, 2, 65536}, 3).grid, (Size{512, 1, 3})) << "3 each: 2 down";
  EXPECT_EQ(GridOf({1, 2, 1 << 21}, 2).grid, (Size{1 << 12, 1, 1})) << "2 down, 4 across";
}

TEST(KernelGrid, KeepsToTheLimitsOfCuda) {
  EXPECT_EQ(GridOf({1, int64_t{1} << 30, 1}, 2).grid, (Size{1, 65535, 1}));
  EXPECT_EQ(GridOf({1 << 20, 1, 1}, 3).grid, (Size{1, 1, 65535}));
  EXPECT_EQ(GridOf({1, 1, int64_t{1} << 50}, 1).grid, (Size{(uint32_t{1} << 31) - 1, 1, 1}));
}

TEST(KernelGrid, ThreadsAreAtLeastAsManyAsAskedForInWholeBlocks) {
  const ModeScope mode("stream");
  Seen seen;
  const ScopedDriverHook hook({.wrap = [&](auto host) { return std::make_unique<SeesGrids>(std::move(host), &seen); }});
  Runtime runtime = *Runtime::Create({.devices = "host"});
  Graph graph("g");
  const auto n = graph.Param<int32_t>("n", AtMost(1000));
  const auto kernel = +[](int32_t) {};
  graph.Kernel("default", kernel, Threads(n), n).HostFallback([](int32_t) {});
  Executable exec = *runtime.Compile(graph, {.slots = 1});
  for (const int32_t threads : {1, 255, 256, 257, 1000, 0}) {
    ASSERT_OK(exec.Launch(exec.bindings().Set(n, threads))->Wait());
  }
  EXPECT_EQ(seen.grids, (std::vector<Size>{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {2, 1, 1}, {4, 1, 1}}));
  for (const Size& block : seen.blocks) EXPECT_EQ(block, (Size{256, 1, 1}));
}

}  // namespace
}  // namespace penstock::runtime::kernel_grid_test
