// What is current on the caller's thread: after a launch, whatever was before, also where a run has lanes on several
// devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/runtime/core/test_hook.h"
#include "tests/support/forwarding_driver.h"
#include "tests/support/held_graph.h"

namespace penstock::runtime::current_device_test {
namespace {

thread_local std::vector<int> current;  // as CUDA's stack of contexts

class Stacked : public driver::ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;
  int MakeCurrent(int device) override {
    if (!current.empty() && current.back() == device) return 0;
    current.push_back(device);
    return 1;
  }
  void RestoreCurrent(int token) override {
    if (token != 0) current.pop_back();
  }
};

TEST(CurrentDevice, IsPutBackWhereARunHasLanesOnTwoDevices) {
  const ScopedDriverHook hook(
      {.wrap = [](std::unique_ptr<driver::Driver> driver) { return std::make_unique<Stacked>(std::move(driver)); }});
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host:2"});
  ASSERT_EQ(runtime.status(), absl::OkStatus());
  Graph graph("two devices");
  const auto x = graph.InOut<int32_t>("x", 8, kPinned);  // no worker has a part in it
  for (int n = 0; n < 3; ++n) {
    graph.ParallelFor("node " + std::to_string(n), 8, [](int64_t i, int32_t* v) { ++v[i]; }, ReadWrite(x)).On(n % 2);
  }
  absl::StatusOr<Executable> exec = runtime->Compile(graph);
  ASSERT_EQ(exec.status(), absl::OkStatus());
  absl::StatusOr<HostBuffer<int32_t>> memory = runtime->MakeHostBuffer<int32_t>(8);
  ASSERT_EQ(memory.status(), absl::OkStatus());
  std::fill(memory->span().begin(), memory->span().end(), 0);
  Bindings io = exec->bindings();
  io.Set(x, *memory);
  current.clear();
  auto run = exec->Launch(io);
  ASSERT_EQ(run.status(), absl::OkStatus());
  EXPECT_EQ(run->Wait(), absl::OkStatus());
  EXPECT_EQ(current, std::vector<int>());
  for (const int32_t value : memory->span()) EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace penstock::runtime::current_device_test
