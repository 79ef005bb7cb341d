// The application's signals are its own: no thread of the library's takes one.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/launch_context.h"
#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/process/child.h"
#include "tests/process/devices.h"
#include "tests/process/must.h"
#include "tests/process/own_threads.h"
#include "tests/support/kernels.h"

namespace penstock::test_support::signals_test {
namespace {

constexpr int64_t kMany = int64_t{1} << 18;

// All that can be blocked but 32 and 33, which are the C library's, those that tell of a thread's own mistakes, and
// SIGPROF.
std::string WantedMask() {
  uint64_t blocked = ~uint64_t{0};
  for (const int open :
       {SIGKILL, SIGSTOP, 32, 33, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
    blocked &= ~(uint64_t{1} << (open - 1));
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016lx", static_cast<unsigned long>(blocked));
  return text;
}

// A program in which every kind of thread is there, the last one held.
const Scenario kMasks("signal masks", [](const std::string& devices) -> int {
  RuntimeOptions options{.devices = devices, .workers = 2, .host_device_threads = 2, .submission_threads = 1};
  options.polling_cores = {sched_getcpu()};
  Runtime runtime = Must(Runtime::Create(options));
  std::vector<HostBuffer<std::byte>> fills_a_slab;  // so that the pool pins the next
  fills_a_slab.push_back(Must(runtime.MakeHostBuffer<std::byte>(int64_t{30} << 20)));
  Graph graph("all");
  auto x = graph.InOut<int32_t>("x", kMany);  // not pinned: through the ring
  graph.ParallelFor("add", kMany, AddOne{}, ReadWrite(x));
  auto y = graph.InOut<int32_t>("y", 4, kPinned);
  graph.ParallelFor("add there", 4, AddOne{}, ReadWrite(y));
  graph.Host("asked", [](std::span<int32_t>) {}, ReadWrite(y)).Inline();
  Executable executable = Must(runtime.Compile(graph));
  std::vector<int32_t> memory(kMany);
  auto pinned = Must(runtime.MakeHostBuffer<int32_t>(4));
  Bindings io = executable.bindings();
  io.Set(x, memory).Set(y, pinned);
  if (const absl::Status ran = Must(executable.Launch(io)).Wait(); !ran.ok())
    std::printf("%s\n", ran.ToString().c_str());
  std::atomic<bool> inside{false}, release{false};
  Stages<int32_t> stages;
  stages.Host("held", [&](int32_t&) {
    inside = true;
    inside.notify_all();
    release.wait(false);
  });
  stages.Run("all", executable, [&](Item<int32_t>& item) { item.Set(x, memory).Set(y, pinned); });
  PipelineOptions piping;
  piping.progress = [](const PipelineStats&) {};
  auto pipeline =
      std::make_unique<Pipeline<int32_t>>(Must(Pipeline<int32_t>::Create(std::move(stages), std::move(piping))));
  (void)pipeline->TryPush(1);
  inside.wait(false);
  std::atomic<bool> dropped{false};
  Must(executable.Launch(io)).OnDone([&](const absl::Status&) {
    pipeline.reset();
    dropped = true;
    dropped.notify_all();
  });
  dropped.wait(false);  // by a thread that waits for the stage
  std::vector<OwnThread> threads;
  const auto ends = [](const OwnThread& thread) { return thread.name.rfind("ps-end", 0) == 0; };
  do threads = OwnThreads();  // a thread that has just begun has its creator's name, and the C library's mask
  while (std::none_of(threads.begin(), threads.end(), ends));
  std::map<std::string, int> kinds;
  for (const OwnThread& thread : threads) {
    ++kinds[thread.name.substr(0, thread.name.find_first_of("/0123456789"))];
    if (thread.blocked != WantedMask()) std::printf("%s blocks %s\n", thread.name.c_str(), thread.blocked.c_str());
  }
  for (const char* kind : {"ps-worker", "ps-stage", "ps-completion", "ps-poller", "ps-watchdog", "ps-polling",
                           "ps-submit", "ps-pool", "ps-held", "ps-pipeline", "ps-end"}) {
    if (kinds[kind] == 0) std::printf("there is no %s\n", kind);
  }
  if (devices.rfind("host", 0) == 0 && kinds["ps-"] < 4) std::printf("there are no threads of host devices\n");
  release = true;
  release.notify_all();
  do threads = OwnThreads();  // the pipeline uses what is on this stack until its end
  while (std::any_of(threads.begin(), threads.end(), ends));
  return 0;
});

// A server, as in any text book: it makes what it needs, then waits for the signal that ends it.
const Scenario kServer("server", [](const std::string& devices) -> int {
  const Runtime runtime = Must(Runtime::Create({.devices = devices}));
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  kill(getpid(), SIGTERM);
  int got = 0;
  sigwait(&ends, &got);
  return got == SIGTERM ? 0 : 1;
});

class Signals : public ::testing::TestWithParam<std::string> {};

TEST_P(Signals, AreBlockedInEveryThreadOfOurs) {
  const ChildResult child = RunInChild(kMasks, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 0") << child;
  EXPECT_EQ(child.output, "");
}

TEST_P(Signals, AreLeftToTheServerThatWaitsForThem) {
  const ChildResult child = RunInChild(kServer, GetParam());
  if (DeviceMissing(child)) GTEST_SKIP() << child;
  EXPECT_EQ(child.ended, "exit 0") << child;
}

INSTANTIATE_TEST_SUITE_P(Host, Signals, ::testing::Values("host:2"), [](const auto&) { return "two_devices"; });
INSTANTIATE_TEST_SUITE_P(Cuda, Signals, ::testing::Values("cuda:0"), [](const auto&) { return "a_device"; });

}  // namespace
}  // namespace penstock::test_support::signals_test
