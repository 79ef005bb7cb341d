// A fatal device error in a process of its own: a kernel that writes through a null pointer on CUDA, a driver that
// plays dead on host devices. Everything in flight ends with it, everything after is refused, and the process ends
// cleanly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/world.h"
#include "tests/support/kernels.h"

namespace penstock::test_support::fault_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kN = 64;

// On host devices the driver dies instead.
struct NullWrite {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, [[maybe_unused]] int32_t* null, int32_t* x) const {
#if defined(__CUDA_ARCH__)
    null[i] = 1;
#endif
    x[i] += 1;
  }
};

void Print(const char* what, const absl::Status& status) { std::printf("%s: %s\n", what, status.ToString().c_str()); }

const Scenario kFault("fault", [](const std::string& devices) -> int {
  const auto witness = std::make_shared<driver::checked::CallRecorder>();
  const bool injected = devices != "cuda";
  const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [&](std::unique_ptr<driver::Driver> driver) {
                                          return injected
                                                     ? driver::checked::CreateCheckedDriver(std::move(driver), witness)
                                                     : std::move(driver);
                                        }});
  World world(devices);  // ends the process where there is no such device
  world.Start("launching");
  Graph graph("g");
  auto x = graph.InOut<int32_t>("x", kN, kPinned);
  graph.ParallelFor("before", kN, AddOne{}, ReadWrite(x));
  graph.ParallelFor("null write", kN, NullWrite{}, static_cast<int32_t*>(nullptr), ReadWrite(x));
  graph.ParallelFor("after", kN, AddOne{}, ReadWrite(x));
  Executable exec = *world.runtime().Compile(graph);
  HostBuffer<int32_t> memory = *world.runtime().MakeHostBuffer<int32_t>(kN);
  Bindings io = exec.bindings();
  if (injected) witness->DieAtNth(driver::checked::CallKind::kRecord, 3);
  absl::Status fatal;
  for (int i = 0; fatal.ok() && i < 100; ++i) {
    const absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(x, memory));
    fatal = run.ok() ? run->Wait() : run.status();
  }
  Print("run", fatal);
  Print("thread", world.Join());
  Print("launch", exec.Launch(io).status());
  Print("compile", world.runtime().Compile(graph).status());
  Print("shutdown", world.runtime().Shutdown());
  return 3;
});

class Fault : public ::testing::TestWithParam<std::string> {};

TEST_P(Fault, EndsAllAndTheProcessEndsCleanly) {
  const ChildResult child = RunInChild(kFault, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 3") << child;
  EXPECT_THAT(child.output, AllOf(HasSubstr("\nlaunch: INTERNAL: refused after a fatal device error: graph '"),
                                  HasSubstr("\ncompile: INTERNAL: refused after a fatal device error: graph '"),
                                  HasSubstr("\nthread: INTERNAL: "), HasSubstr("\nshutdown: OK\n")));
  if (GetParam() == "cuda") {
    EXPECT_THAT(child.output, AllOf(HasSubstr("run: INTERNAL: graph 'g'"), HasSubstr("(cudaErrorIllegalAddress, 700)"),
                                    HasSubstr("not known done: ")));
  } else {  // the call that fails may be the other thread's, before this run is launched, or has submitted anything
    EXPECT_THAT(child.output, AllOf(HasSubstr("injected fatal fault"),
                                    AnyOf(HasSubstr("run: INTERNAL: refused after a fatal device error: graph 'add'"),
                                          AllOf(HasSubstr("run: INTERNAL: graph 'g'"),
                                                AnyOf(HasSubstr("not known done: "), HasSubstr("not submitted: "),
                                                      HasSubstr("graph 'g' buffer 'x'"))))));
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Fault, ::testing::Values("host:1"), [](const auto&) { return "injected"; });
INSTANTIATE_TEST_SUITE_P(Cuda, Fault, ::testing::Values("cuda"), [](const auto&) { return "null_write"; });

// On CUDA only: on host devices SynchronousTest injects it.
TEST(CudaFaultTest, SynchronousNodesNameTheNullWrite) {
  const ChildResult child = RunInChild(kFault, "cuda", {.environment = {"PENSTOCK_SYNC=1"}});
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 3") << child;
  EXPECT_THAT(child.output, HasSubstr("graph 'g' node 'null write' ("));
}

}  // namespace
}  // namespace penstock::test_support::fault_test
