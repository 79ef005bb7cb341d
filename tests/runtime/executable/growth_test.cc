// What long graphs cost an export and a compilation: on a small stack, and in time at all.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/kernels.h"
#include "tests/support/mode_scope.h"
#include "tests/support/null_driver.h"
#include "tests/support/small_stack.h"
#include "tests/support/status.h"

namespace penstock::growth_test {
namespace {

// Counts the host nodes of graphs.
class CountingDriver final : public runtime::NullDriver {
 public:
  absl::StatusOr<int32_t> AddHost(driver::Graph, std::span<const int32_t> after, const driver::HostCall&) override {
    EXPECT_LE(after.size(), 1u);
    return host_nodes++;
  }
  void* NativeGraph(driver::Graph) override { return this; }

  int32_t host_nodes = 0;
};

class GrowthTest : public testing::Test {
 protected:
  void SetUp() override {
    runtime::DriverHook hook;
    hook.wrap = [this](std::unique_ptr<driver::Driver>) {
      auto counting = std::make_unique<CountingDriver>();
      driver_ = counting.get();
      return counting;
    };
    const runtime::ScopedDriverHook scope(hook);
    auto made = Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1});
    ASSERT_OK(made.status());
    runtime_ = std::make_unique<Runtime>(*std::move(made));
  }

  std::unique_ptr<Runtime> runtime_;
  CountingDriver* driver_ = nullptr;
};

// With a frame a node it would end the process: 256 KiB are 13 bytes a node.
TEST_F(GrowthTest, ALongChainOfHostNodesIsExportedOnASmallStack) {
  constexpr int32_t kNodes = 20000;
  Graph g("chain");
  const auto x = g.InOut<int32_t>("x", 4);
  for (int i = 0; i < kNodes; ++i) {
    g.Host("host " + std::to_string(i), [](std::span<int32_t>) {}, ReadWrite(x));
  }
  g.ParallelFor("kernel, whose segment waits for the last of them", 4, AddOne{}, ReadWrite(x));
  const ModeScope mode("graph");
  OnSmallStack([&] {
    auto exec = runtime_->Compile(g, {.slots = 1});
    ASSERT_OK(exec.status());
    std::vector<int32_t> memory(4);
    const auto exported = exec->Export(exec->bindings().Set(x, memory));
    ASSERT_OK(exported.status());
    EXPECT_EQ(driver_->host_nodes, kNodes);
  });
}

// A chain of copies whose results nobody reads, each after the two before it: as many ways lead back through them as
// there are sums of ones and twos.
TEST_F(GrowthTest, DroppedCopiesPassOnWhatTheyWaitForOnce) {
  Graph g("dropped");
  const auto x = g.InOut<int32_t>("x", 4);
  NodeRef first = g.ParallelFor("kernel", 4, AddOne{}, ReadWrite(x));
  std::vector<NodeRef> before = {first, first};
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i);
    const auto to = g.Buffer<int32_t>("to " + name, 4);
    NodeRef copy = g.Copy("copy " + name, x, to).After(before[0]).After(before[1]);
    before = {before[1], copy};
  }
  const auto y = g.InOut<int32_t>("y", 4);
  g.ParallelFor("last", 4, AddOne{}, ReadWrite(y)).After(before[1]);
  const auto exec = runtime_->Compile(g, {.slots = 1, .mode = Mode::kStream});
  ASSERT_OK(exec.status());
}

}  // namespace
}  // namespace penstock::growth_test
