// PENSTOCK_ON_CUDA in a file without CUDA: what it names need not exist, host devices run the fallback, and another
// device tells why it cannot.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/passes_for_cuda.h"
#include "tests/support/status.h"

namespace penstock::runtime::on_cuda_test {
namespace {

// Declares y = 7 by a callable that no compiler without CUDA could read.
struct Declared {
  Graph graph{"seven"};
  BufferHandle<int32_t> y = graph.Output<int32_t>("y", 4);

  Declared() {
    graph
        .Launch("set", PENSTOCK_ON_CUDA([](LaunchContext& launch, int32_t* to) { NoSuchLibrary(launch, to, 7); }),
                Write(y))
        .HostFallback([](int32_t* to) {
          for (int i = 0; i < 4; ++i) to[i] = 7;
        });
  }
};

absl::Status RunIt(Runtime& runtime, std::vector<int32_t>& y) {
  const Declared declared;
  absl::StatusOr<Executable> exec = runtime.Compile(declared.graph, {.slots = 1});
  if (!exec.ok()) return exec.status();
  absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(declared.y, y));
  return run.ok() ? run->Wait() : run.status();
}

TEST(OnCudaTest, OnHostDevicesTheFallbackRuns) {
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  std::vector<int32_t> y(4);
  EXPECT_OK(RunIt(*runtime, y));
  EXPECT_EQ(y, std::vector<int32_t>(4, 7));
}

TEST(OnCudaTest, OnOtherDevicesTheNodeSaysThatItWasCompiledWithoutCuda) {
  const ScopedDriverHook hook{{.wrap = [](std::unique_ptr<driver::Driver> driver) {
    return std::make_unique<driver::PassesForCuda>(std::move(driver));
  }}};
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  std::vector<int32_t> y(4);
  const absl::Status refused = RunIt(*runtime, y);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(refused.ToString().find("graph 'seven' node 'set' ("), std::string::npos) << refused;
  EXPECT_NE(refused.ToString().find("compiled without CUDA"), std::string::npos) << refused;
}

}  // namespace
}  // namespace penstock::runtime::on_cuda_test
