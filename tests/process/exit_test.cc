// Every way a process ends, with every kind of work in flight: it ends at once, with the code it was given and without
// a word.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/row.h"
#include "tests/process/world.h"
#include "tests/support/sanitized.h"

namespace penstock::test_support::exit_test {
namespace {

constexpr int kCode = 3;

[[noreturn]] void ExitFromHostNode(World& world) {
  Graph graph("exit");
  auto x = graph.InOut<int32_t>("x", 4);
  graph.Host("exit", [](std::span<int32_t>) { std::exit(kCode); }, ReadWrite(x));
  static Executable executable = *world.runtime().Compile(graph);
  static std::vector<int32_t> numbers(4);
  Bindings io = executable.bindings();
  const auto run = executable.Launch(io.Set(x, numbers));
  for (;;) pause();
}

// Takes everything down in good order while the work is still going, or its thread launches on.
int Destroy(World& world) {
  std::thread release([&] { world.Release(); });
  const absl::Status down = world.runtime().Shutdown();
  release.join();
  const absl::Status ended = world.Join();
  if (!down.ok()) std::printf("Shutdown: %s\n", down.ToString().c_str());
  const absl::Status refused = world.RunOnce();
  if (!ended.ok() && ended != refused) std::printf("it ended with %s\n", ended.ToString().c_str());
  if (refused.code() != absl::StatusCode::kFailedPrecondition) {
    std::printf("a launch after Shutdown: %s\n", refused.ToString().c_str());
  }
  return kCode;
}

const Scenario kEnds("ends", [](const std::string& text) -> int {
  const Row row(text);
  static World* world = new World(row.devices);
  world->Start(row.work);
  if (row.end == "exit") std::exit(kCode);
  if (row.end == "quick_exit") std::quick_exit(kCode);
  if (row.end == "_exit") _exit(kCode);
  if (row.end == "exit in a host node") ExitFromHostNode(*world);
  if (row.end == "exit in a thread") {
    std::thread([] { std::exit(kCode); }).detach();
    for (;;) pause();
  }
  if (row.end == "static runtime") {
    static Runtime runtime = std::move(world->runtime());
    static Executable executable = world->executable();
    static penstock::Run run = world->run();
  }
  if (row.end == "destroyed") {
    const int code = Destroy(*world);
    delete world;
    return code;
  }
  return kCode;
});

class Exit : public ::testing::TestWithParam<std::string> {};

TEST_P(Exit, IsCleanAndBounded) {
  if (kSanitized && GetParam().find("static runtime") != std::string::npos) {
    GTEST_SKIP() << "under clang's sanitizers a static Runtime was seen not to learn that the main thread is exiting";
  }
  const ChildResult child = RunInChild(kEnds, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 3") << child;
  EXPECT_EQ(child.output, "");
}

std::vector<std::string> AllRows(const std::string& devices) {
  return CsrRows(devices,
                 {"return", "exit", "quick_exit", "_exit", "exit in a thread", "exit in a host node", "static runtime",
                  "destroyed"},
                 kInFlight);
}

INSTANTIATE_TEST_SUITE_P(Host, Exit, ::testing::ValuesIn(AllRows("host:2")), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Cuda, Exit, ::testing::ValuesIn(AllRows("cuda")), NameOfRow);

}  // namespace
}  // namespace penstock::test_support::exit_test
