// Cores that are kept busy looking: who sees the end of what nobody waits for, and which threads there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "penstock/pipeline.h"
#include "penstock/runtime.h"
#include "tests/support/status.h"

namespace penstock::polling_cores_test {
namespace {

using testing::HasSubstr;

int FirstCore() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  return core;
}

std::string NameOfThread() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

std::vector<pid_t> ThreadsCalled(const std::string& wanted) {
  std::vector<pid_t> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == wanted) threads.push_back(std::stoi(task.path().filename()));
  }
  return threads;
}

struct HoldUntil {
  std::atomic<bool>* open;
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int32_t* x) const {
    while (!open->load()) std::this_thread::yield();
    *x = 1;
  }
};

// Which thread lets go of what a run keeps alive that nobody waits for: the one that sees its end.
std::string WhoSeesTheEnd(std::vector<int> cores) {
  std::atomic<bool> open{false};
  std::atomic<const char*> seen{nullptr};
  std::string name;
  {
    Runtime runtime =
        *Runtime::Create({.devices = "host", .host_device_threads = 1, .polling_cores = std::move(cores)});
    Graph graph("held");
    const auto x = graph.Output<int32_t>("x", 1, kDevice);  // else a worker copies
    graph.ParallelFor("hold", 1, HoldUntil{&open}, Write(x));
    Executable executable = *runtime.Compile(graph);
    Bindings io = executable.bindings();
    const DeviceBuffer<int32_t> memory = *runtime.MakeDeviceBuffer<int32_t>(1);
    std::shared_ptr<const void> token(new int, [&name, &seen](const void* kept) {
      name = NameOfThread();
      delete static_cast<const int*>(kept);
      seen.store("seen");
    });
    EXPECT_OK(executable.Launch(io.Set(x, std::span(memory.data(), 1), std::move(token))).status());
    io.ClearBuffers();
    EXPECT_EQ(seen.load(), nullptr);
    open.store(true);
    while (seen.load() == nullptr) std::this_thread::yield();
  }
  return name;
}

TEST(PollingCores, SeeTheEndOfWhatNobodyWaitsFor) {
  EXPECT_EQ(WhoSeesTheEnd({FirstCore()}), "ps-polling");
  EXPECT_EQ(WhoSeesTheEnd({}), "ps-completion");
}

TEST(PollingCores, HaveAThreadEachOnThatCoreAndNoneUnasked) {
  const int core = FirstCore();
  {
    const Runtime runtime = *Runtime::Create({.devices = "host", .polling_cores = {core}});
    std::vector<pid_t> threads;
    while ((threads = ThreadsCalled("ps-polling")).size() != 1) std::this_thread::yield();  // it names itself
    cpu_set_t cores;
    CPU_ZERO(&cores);
    ASSERT_EQ(sched_getaffinity(threads[0], sizeof(cores), &cores), 0);
    EXPECT_EQ(CPU_COUNT(&cores), 1);
    EXPECT_TRUE(CPU_ISSET(core, &cores));
  }
  const Runtime runtime = *Runtime::Create({.devices = "host"});
  EXPECT_THAT(ThreadsCalled("ps-polling"), testing::IsEmpty());
}

TEST(PollingCores, PipelinesAreOnThemToo) {
  Runtime runtime = *Runtime::Create({.devices = "host:2", .host_device_threads = 1, .polling_cores = {FirstCore()}});
  Graph graph("nothing");
  graph.Host("nothing", [] {});
  auto pipe = *Pipeline<int>::Create(runtime, graph);
  for (int n = 0; n < 200; ++n) {
    ASSERT_OK(pipe.Push(int(n)));
    if (n < 4) continue;
    const auto item = pipe.Pop();
    EXPECT_OK(item.status());
    EXPECT_EQ(item.value(), n - 4);
  }
  EXPECT_OK(pipe.Drain());
}

TEST(PollingCores, MistakesAreToldWithWhatToDo) {
  const auto message = [](std::vector<int> cores) {
    const absl::Status status = Runtime::Create({.devices = "host", .polling_cores = std::move(cores)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message({-1}), HasSubstr("names -1; cores count from 0"));
  EXPECT_THAT(message({0, 0}), HasSubstr("RuntimeOptions::polling_cores names 0 twice"));
  EXPECT_THAT(message({100000}), HasSubstr("names 100000; the system has no such core"));
  EXPECT_THAT(message({1000}), HasSubstr("names 1000; the system has no such core"));
  setenv("PENSTOCK_POLLING_CORES", "2;3", 1);
  EXPECT_THAT(message({}), HasSubstr("PENSTOCK_POLLING_CORES is '2;3'"));
  setenv("PENSTOCK_POLLING_CORES", "0,0", 1);
  EXPECT_THAT(message({}), HasSubstr("PENSTOCK_POLLING_CORES names 0 twice"));
  setenv("PENSTOCK_POLLING_CORES", "1000", 1);
  EXPECT_THAT(message({}), HasSubstr("PENSTOCK_POLLING_CORES names 1000; the system has no such core"));
  unsetenv("PENSTOCK_POLLING_CORES");
}

}  // namespace
}  // namespace penstock::polling_cores_test
