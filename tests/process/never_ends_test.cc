// Work that never ends: every wait with a deadline comes back, everything can be dropped, and the process can exit.
//
// The kernel waits for a word in pinned memory that nobody ever sets. On CUDA it holds its device until the process is
// gone, so each row has a process of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/runtime.h"
#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/must.h"
#include "tests/process/row.h"
#include "tests/support/device_words.h"

namespace penstock::test_support::never_ends_test {
namespace {

using std::chrono::milliseconds;

struct Words {
  int32_t arrived, released;
};
struct Forever {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* words, int32_t* x) const {
    StoreWord(&words->arrived, 1);
    while (LoadWord(&words->released) == 0) {
#if !defined(__CUDA_ARCH__)
      std::this_thread::sleep_for(milliseconds(10));
#endif
    }
    x[0] += 1;
  }
};

void Print(const char* what, const absl::Status& status) { std::printf("%s: %s\n", what, status.ToString().c_str()); }

// "host:2/exit/kernel"; "drop": without a Shutdown
const Scenario kNeverEnds("never ends", [](const std::string& text) -> int {
  const Row row(text);
  {
    const auto log = [](LogLevel, std::string_view said) { std::printf("log: %s\n", std::string(said).c_str()); };
    Runtime runtime =
        Must(Runtime::Create({.devices = row.devices, .workers = 2, .host_device_threads = 2, .log = log}));
    HostBuffer<Words> words = Must(runtime.MakeHostBuffer<Words>(1));
    words[0] = {};
    Graph graph("endless");
    auto x = graph.InOut<int32_t>("x", 4);
    if (row.work == "kernel") {
      graph.ParallelFor("forever", 1, Forever{}, words.data(), ReadWrite(x));
    } else {
      Words* at = words.data();
      graph.Host("forever", [at](std::span<int32_t> v) { Forever()(0, at, v.data()); }, ReadWrite(x));
    }
    Executable executable = Must(runtime.Compile(graph, {.slots = 1}));
    auto memory = Must(runtime.MakeHostBuffer<int32_t>(4));
    Bindings io = executable.bindings();
    const bool drop = row.end == "drop";
    const penstock::Run run =
        Must(executable.Launch(io.Set(x, memory), drop ? Deadline(std::chrono::seconds(2)) : Deadline()));
    while (LoadWord(&words[0].arrived) == 0) std::this_thread::yield();
    static auto* const kept [[maybe_unused]] = new HostBuffer<Words>(std::move(words));  // the kernel looks at it
    if (drop) {  // all of it, without a Shutdown
      Print("run", run.Wait());
      return 3;
    }
    Print("wait", run.Wait(milliseconds(1)));
    Print("launch", executable.Launch(io, milliseconds(1)).status());
    run.Cancel();
    Print("shutdown", runtime.Shutdown(milliseconds(1)));
    Print("run", run.Wait());
    Print("after", executable.Launch(io).status());
  }
  std::printf("dropped\n");
  std::fflush(stdout);
  if (row.end == "exit") std::exit(3);
  if (row.end == "quick_exit") std::quick_exit(3);
  if (row.end == "_exit") _exit(3);
  return 3;
});

constexpr char kExpected[] =
    "wait: DEADLINE_EXCEEDED: Run::Wait: the deadline passed before the run ended; the run goes on\n"
    "launch: DEADLINE_EXCEEDED: graph 'endless': all 1 slots are taken and none came free before the deadline; "
    "nothing was started\n"
    "shutdown: DEADLINE_EXCEEDED: Runtime::Shutdown: 1 runs were still in flight at the deadline; they are abandoned; "
    "the runtime keeps its threads and their memory until they have drained and Shutdown is called again\n"
    "run: DEADLINE_EXCEEDED: graph 'endless': the runtime was shut down before the run's work had drained; it is "
    "abandoned and its slot comes back when the work ends; it had been cancelled before\n"
    "after: FAILED_PRECONDITION: the runtime has been shut down; make a new one\n"
    "log: Runtime::Shutdown: 1 runs were still in flight at the deadline; they are abandoned; the runtime keeps its "
    "threads and their memory until they have drained and Shutdown is called again\n"
    "dropped\n";

constexpr char kDropped[] =
    "run: DEADLINE_EXCEEDED: graph 'endless': the run's deadline passed before its work had drained; it is abandoned "
    "and its slot comes back when the work ends\n"
    "log: Runtime::Shutdown: 1 runs were still in flight at the deadline; they are abandoned; the runtime keeps its "
    "threads and their memory until they have drained and Shutdown is called again\n";

class NeverEnds : public ::testing::TestWithParam<std::string> {};

TEST_P(NeverEnds, NothingWaitsPastItsDeadlineAndTheProcessExits) {
  const ChildResult child = RunInChild(kNeverEnds, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 3") << child;
  EXPECT_EQ(child.output, GetParam().find("/drop/") == std::string::npos ? kExpected : kDropped);
}

std::vector<std::string> AllRows(const std::string& devices) {
  constexpr std::string_view kWorks[] = {"kernel", "host node"};
  return CsrRows(devices, {"return", "exit", "quick_exit", "_exit", "drop"}, kWorks);
}

INSTANTIATE_TEST_SUITE_P(Host, NeverEnds, ::testing::ValuesIn(AllRows("host:2")), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Cuda, NeverEnds, ::testing::ValuesIn(AllRows("cuda")), NameOfRow);

}  // namespace
}  // namespace penstock::test_support::never_ends_test
