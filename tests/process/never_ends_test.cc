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

namespace penstock::testing {
namespace {

using std::chrono::milliseconds;

struct Words {
  int32_t arrived, released;
};
struct Forever {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, Words* words, int32_t* x) const {
#if defined(__CUDA_ARCH__)
    volatile Words* w = words;
    w->arrived = 1;
    while (w->released == 0) {
    }
#else
    __atomic_store_n(&words->arrived, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&words->released, __ATOMIC_ACQUIRE) == 0) std::this_thread::sleep_for(milliseconds(10));
#endif
    x[0] += 1;
  }
};

void Print(const char* what, const absl::Status& status) { std::printf("%s: %s\n", what, status.ToString().c_str()); }

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::printf("%s\n", value.status().ToString().c_str());
  std::_Exit(value.status().code() == absl::StatusCode::kNotFound ? 77 : 78);
}

// "host:2/exit/kernel"; "drop": without a Shutdown
const Scenario kNeverEnds("never ends", [](const std::string& row) -> int {
  const size_t first = row.find('/'), second = row.find('/', first + 1);
  const std::string end = row.substr(first + 1, second - first - 1), work = row.substr(second + 1);
  {
    const auto log = [](LogLevel, std::string_view text) { std::printf("log: %s\n", std::string(text).c_str()); };
    Runtime runtime =
        Must(Runtime::Create({.devices = row.substr(0, first), .workers = 2, .host_device_threads = 2, .log = log}));
    HostBuffer<Words> words = Must(runtime.MakeHostBuffer<Words>(1));
    words[0] = {};
    Graph graph("endless");
    auto x = graph.InOut<int32_t>("x", 4);
    if (work == "kernel") {
      graph.ParallelFor("forever", 1, Forever{}, words.data(), ReadWrite(x));
    } else {
      Words* at = words.data();
      graph.Host("forever", [at](std::span<int32_t> v) { Forever()(0, at, v.data()); }, ReadWrite(x));
    }
    Executable executable = Must(runtime.Compile(graph, {.slots = 1}));
    auto memory = Must(runtime.MakeHostBuffer<int32_t>(4));
    Bindings io = executable.bindings();
    const bool drop = end == "drop";
    const penstock::Run run =
        Must(executable.Launch(io.Set(x, memory), drop ? Deadline(std::chrono::seconds(2)) : Deadline()));
    while (__atomic_load_n(&words[0].arrived, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
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
  if (end == "exit") std::exit(3);
  if (end == "quick_exit") std::quick_exit(3);
  if (end == "_exit") _exit(3);
  return 3;
});

constexpr char kExpected[] =
    "wait: DEADLINE_EXCEEDED: Run::Wait: the deadline passed before the run ended; the run goes on\n"
    "launch: DEADLINE_EXCEEDED: graph 'endless': all 1 slots are taken and none came free before the deadline of "
    "Launch; nothing was started\n"
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

std::vector<std::string> Rows(const std::string& devices) {
  std::vector<std::string> rows;
  for (const char* end : {"return", "exit", "quick_exit", "_exit", "drop"}) {
    for (const char* work : {"kernel", "host node"}) rows.push_back(devices + "/" + end + "/" + work);
  }
  return rows;
}

std::string NameOfRow(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(info.param.find('/') + 1);
  for (char& c : name) {
    if (c == ' ' || c == '/') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Host, NeverEnds, ::testing::ValuesIn(Rows("host:2")), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Cuda, NeverEnds, ::testing::ValuesIn(Rows("cuda")), NameOfRow);

}  // namespace
}  // namespace penstock::testing
