// A runtime with four devices, an executable on each and a pipeline over them all, with nothing in flight, sleeps: its
// threads use less than a millisecond of CPU in a second, and on host devices the process has no others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "penstock/status_macros.h"
#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/world.h"
#include "tests/support/environment.h"
#include "tests/support/sanitized.h"

namespace penstock::test_support::idle_test {
namespace {

// How long it is looked at: the environment's PENSTOCK_IDLE_SECONDS, or 4. CPU time allowed for each second: 1 ms.
int Seconds() { return static_cast<int>(FromEnvironment("PENSTOCK_IDLE_SECONDS", 4)); }

// CPU time by threads: those of the library and the program's own, or of others, which the CUDA driver starts.
struct CpuMs {
  double ours = 0, others = 0;
};

double MsOfThread(pid_t thread) {
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);  // as the kernel numbers them
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;  // it has ended
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

CpuMs Used() {
  CpuMs used;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    const bool ours = thread == getpid() || name.rfind("ps-", 0) == 0;
    (ours ? used.ours : used.others) += MsOfThread(thread);
  }
  return used;
}

// Some items have been through each device, and the last one has been taken out.
absl::StatusOr<Pipeline<int32_t>> MakeIdlePipeline(Runtime& runtime, std::vector<int32_t>& numbers) {
  Graph graph("one");
  const auto x = graph.Output<int32_t>("x", 1);
  graph.Fill("fill", x, 1);
  PENSTOCK_ASSIGN_OR_RETURN(const Executable executable, runtime.Compile(graph, {.devices = runtime.all_devices()}));
  Stages<int32_t> stages;
  stages.Host("before", [](int32_t&) {}, {.workers = 2});
  stages.Run("one", executable,
             [&numbers, x](Item<int32_t>& item) { item.Set(x, std::span(&numbers.at(item.value()), 1)); });
  stages.Host("after", [](int32_t&) {});
  PENSTOCK_ASSIGN_OR_RETURN(auto pipe, Pipeline<int32_t>::Create(std::move(stages)));
  for (int32_t n = 0; n < static_cast<int32_t>(numbers.size()); ++n) {
    PENSTOCK_RETURN_IF_ERROR(pipe.Push(int32_t{n}));
    PENSTOCK_RETURN_IF_ERROR(pipe.Pop().status());
  }
  return pipe;
}

// Whether the threads have slept for some seconds.
bool IsQuiet(bool others_may_work) {
  const CpuMs before = Used();
  std::this_thread::sleep_for(std::chrono::seconds(Seconds()));  // what is measured
  const CpuMs after = Used();
  const double ours = after.ours - before.ours, others = after.others - before.others;
  const int most = Seconds();
  std::printf("%.3f ms of CPU in %d s; other threads of the process %.3f ms\n", ours, most, others);
  return ours < most && (others_may_work || others < most);
}

// On a machine with much else to do, threads may be late with what they do last: so it may take some tries.
const Scenario kIdle("idle", [](const std::string& devices) -> int {
  World world(devices);
  world.Start("nothing");
  std::vector<int32_t> numbers(100, 0);
  const auto pipe = MakeIdlePipeline(world.runtime(), numbers);
  if (!pipe.ok() || numbers != std::vector<int32_t>(100, 1)) return 2;
  const bool known = devices.rfind("cuda", 0) == 0;  // whose threads the others may be
  for (int tries = 0; tries < 3; ++tries) {
    if (IsQuiet(known)) return 0;
  }
  return 1;
});

class Idle : public ::testing::TestWithParam<std::string> {};

TEST_P(Idle, UsesLessThanAMillisecondASecond) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has work of its own";
  const ChildResult child = RunInChild(kIdle, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 0") << child;
  std::printf("%s: %s", GetParam().c_str(), child.output.c_str());
}

INSTANTIATE_TEST_SUITE_P(Host, Idle, ::testing::Values("host:4"), [](const auto&) { return "four_devices"; });
INSTANTIATE_TEST_SUITE_P(Cuda, Idle, ::testing::Values("cuda"), [](const auto&) { return "all_devices"; });

}  // namespace
}  // namespace penstock::test_support::idle_test
