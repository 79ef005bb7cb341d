// Where no kernel may wait for the host: launches that block, and profilers that run a kernel twice. Host nodes part
// the run there, and the submission_report says why.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/launch_context.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/environment.h"
#include "tests/support/held_graph.h"
#include "tests/support/mode_scope.h"
#include "tests/support/passes_for_cuda.h"

namespace penstock::hostcalls_refused_test {
namespace {

// The notes of an executable with a Host node between two others, which a run has been made of.
std::vector<std::string> Notes() {
  const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [](auto behind) {
                                          return std::make_unique<driver::PassesForCuda>(std::move(behind));
                                        }});
  auto runtime = Runtime::Create({.devices = "host", .workers = 1});
  EXPECT_OK(runtime.status());
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4);
  int calls = 0;
  g.Launch("before", [&](LaunchContext&, int32_t*) { ++calls; }, ReadWrite(x));
  g.Host("asked", [&](std::span<int32_t>) { ++calls; }, ReadWrite(x)).Inline();
  g.Launch("behind", [&](LaunchContext&, int32_t*) { ++calls; }, ReadWrite(x));
  auto exec = runtime->Compile(g);
  EXPECT_OK(exec.status());
  std::vector<int32_t> memory(4);
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(x, memory));
  EXPECT_OK(run.status());
  EXPECT_OK(run->Wait(std::chrono::seconds(60)));
  EXPECT_EQ(calls, 3);
  return exec->submission_report().notes;
}

TEST(AsksRefused, WhereLaunchesBlock) {
  EXPECT_EQ(Notes(), std::vector<std::string>());
  {
    const EnvironmentScope off("CUDA_LAUNCH_BLOCKING", "0");
    EXPECT_EQ(Notes(), std::vector<std::string>());
  }
  const EnvironmentScope on("CUDA_LAUNCH_BLOCKING", "1");
  EXPECT_EQ(Notes(), std::vector<std::string>{"Host nodes part the run on host:0: CUDA_LAUNCH_BLOCKING is set"});
}

struct AddOne {
  void operator()(int64_t i, int32_t* x) const { ++x[i]; }
};

TEST(AsksRefused, GraphsAreUsedNevertheless) {
  const EnvironmentScope on("CUDA_LAUNCH_BLOCKING", "1");
  const ModeScope graphs("graph");
  auto runtime = Runtime::Create({.devices = "host", .workers = 1});
  ASSERT_OK(runtime.status());
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4);
  g.ParallelFor("before", 4, AddOne{}, ReadWrite(x));
  g.Host("asked", [](std::span<int32_t>) {}, ReadWrite(x)).Inline();
  g.ParallelFor("after", 4, AddOne{}, ReadWrite(x));
  auto exec = runtime->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  EXPECT_EQ(exec->submission_report().mode, Mode::kGraph) << exec->submission_report().Text();
  EXPECT_GE(exec->submission_report().graphs, 2) << "before the node and after it";
}

TEST(AsksRefused, WhereAProfilerRunsAKernelTwice) {
  const EnvironmentScope on("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "/somewhere");
  EXPECT_EQ(Notes(), std::vector<std::string>{"Host nodes part the run on host:0: a profiler replays kernels"});
}

}  // namespace
}  // namespace penstock::hostcalls_refused_test
