// The grids that kernels are launched with.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
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
