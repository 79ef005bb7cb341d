// fork after the runtime has started, with every kind of work in flight: the copy's calls are refused, it ends in every
// way without waiting for threads that it does not have, and the parent never notices.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/row.h"
#include "tests/process/world.h"
#include "tests/support/sanitized.h"

namespace penstock::test_support::fork_test {
namespace {

constexpr int kCode = 5;
constexpr int kForks = kSanitized ? 6 : 20;  // each at another moment of what the other threads do

void ExpectRefused(const char* what, const absl::Status& status) {
  if (status.code() == absl::StatusCode::kFailedPrecondition &&
      status.message().find("this process was forked") != absl::string_view::npos) {
    return;
  }
  std::printf("in the copy, %s: %s\n", what, status.ToString().c_str());
}

void ExpectEverythingRefused(World& world, State<int>& state, const Transfer& transfer) {
  int one = 0;
  ExpectRefused("StartRead", state.StartRead(std::span(&one, 1)).status());
  ExpectRefused("Transfer::Wait", transfer.Wait());
  ExpectRefused("Transfer::status", transfer.status());
  if (!transfer.done()) std::printf("in the copy, the transfer is not done\n");
  ExpectRefused("Launch", world.RunOnce());
  ExpectRefused("TryLaunch", world.executable().TryLaunch(world.executable().bindings()).status());
  Graph graph("late");
  ExpectRefused("Compile", world.runtime().Compile(graph).status());
  ExpectRefused("MakeHostBuffer", world.runtime().MakeHostBuffer<int>(1).status());
  ExpectRefused("Shutdown", world.runtime().Shutdown());
  penstock::Run run = world.run();
  if (run.done() && run.status().message().find("default-constructed") != absl::string_view::npos) return;
  ExpectRefused("Wait", run.Wait());
  if (!run.done()) std::printf("in the copy, the run is not done\n");
  ExpectRefused("status", run.status());
  absl::Status seen;
  run.OnDone([&](const absl::Status& status) { seen = status; });
  ExpectRefused("OnDone", seen);
}

// In the copy. Returns for "return".
void End(const std::string& end, World* world) {
  if (end == "destroyed") {
    world->ForgetThread();
    delete world;
  }
  std::fflush(stdout);
  if (end == "exit" || end == "destroyed") std::exit(kCode);
  if (end == "quick_exit") std::quick_exit(kCode);
  if (end == "_exit") _exit(kCode);
}

const Scenario kForksInFlight("forks", [](const std::string& text) -> int {
  const Row row(text);
  static World* world = new World(row.devices);
  State<int> state = *world->runtime().MakeState<int>("state", 1);
  int one = 0;
  const Transfer transfer = *state.StartRead(std::span(&one, 1));
  world->Start(row.work);
  for (int i = 0; i < kForks; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      ExpectEverythingRefused(*world, state, transfer);
      End(row.end, world);
      return kCode;
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kCode) std::printf("the copy ended with %d\n", status);
  }
  world->Release();
  if (row.work != "launching") {
    if (const absl::Status ended = world->Join(); !ended.ok()) std::printf("%s\n", ended.ToString().c_str());
  }
  if (const absl::Status run = world->RunOnce(); !run.ok()) std::printf("%s\n", run.ToString().c_str());
  if (const absl::Status down = world->runtime().Shutdown(); !down.ok()) std::printf("%s\n", down.ToString().c_str());
  (void)world->Join();
  delete world;
  return 3;
});

class Fork : public ::testing::TestWithParam<std::string> {};

TEST_P(Fork, LeavesTheParentUnharmedAndTheCopyEnds) {
  const ChildResult child = RunInChild(kForksInFlight, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 3") << child;
  EXPECT_EQ(child.output, "");
}

std::vector<std::string> AllRows(const std::string& devices) {
  return CsrRows(devices, {"return", "exit", "quick_exit", "_exit", "destroyed"}, kInFlight);
}

INSTANTIATE_TEST_SUITE_P(Host, Fork, ::testing::ValuesIn(AllRows("host:2")), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Cuda, Fork, ::testing::ValuesIn(AllRows("cuda")), NameOfRow);

const Scenario kRunsOnHostDevicesInTheCopy("runs on host devices in the copy", [](const std::string&) -> int {
  World before("host:1");
  before.Start("nothing");
  const pid_t pid = fork();
  if (pid == 0) {
    World after("host:2");
    return after.RunOnce().ok() ? kCode : 1;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
});

TEST(ForkTest, ACopyMayMakeARuntimeOfItsOwnOnHostDevices) {
  // ThreadSanitizer ends a copy that starts threads, unless told otherwise.
  const char* options = std::getenv("TSAN_OPTIONS");
  const std::string tsan = std::string("TSAN_OPTIONS=") + (options == nullptr ? "" : options) + ":die_after_fork=0";
  const ChildResult child = RunInChild(kRunsOnHostDevicesInTheCopy, "", {.environment = {tsan}});
  EXPECT_EQ(child.ended, "exit 5") << child;
}

}  // namespace
}  // namespace penstock::test_support::fork_test
