// Workers near devices: a run's tasks go to the workers of its device's node, which run on that node.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/host/worker_pool.h"
#include "src/memory/topology.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/pci_driver.h"
#include "tests/support/status.h"

namespace penstock::worker_groups_test {
namespace {

constexpr char kFirstNode[] = "0000:3B:00.0", kSecondNode[] = "0000:AF:00.0", kNoNode[] = "0000:F0:00.0";

runtime::DriverHook TwoNodes(const std::vector<std::string>& bus_ids) {
  absl::StatusOr<memory::Topology> two = memory::Topology::OfXml(runtime::kTwoNodes);
  EXPECT_TRUE(two.ok()) << two.status();
  return {.wrap = [=](auto) { return std::make_unique<runtime::PciDriver>(bus_ids); },
          .topology = std::make_shared<const memory::Topology>(*std::move(two))};
}

std::vector<int> GroupsOf(const std::vector<std::string>& bus_ids) {
  const runtime::ScopedDriverHook hook(TwoNodes(bus_ids));
  const auto core = runtime::RuntimeCore::Create({.devices = "host"});
  EXPECT_EQ(core.status(), absl::OkStatus());
  std::vector<int> groups;
  for (size_t d = 0; d < bus_ids.size(); ++d) groups.push_back((*core)->GroupOf(static_cast<int>(d)));
  return groups;
}

std::set<int> ProcessorsIn(const cpu_set_t& set) {
  std::set<int> processors;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (CPU_ISSET(p, &set)) processors.insert(p);
  }
  return processors;
}

std::set<int> ProcessorsOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return ProcessorsIn(set);
}

// A run of one host node, on a device.
class Caller {
 public:
  Caller(Runtime& runtime, int device) {
    graph_.Host("h", [this](std::span<char>) { worker_ = host::WorkerPool::CurrentIndex(); }, ReadWrite(x_));
    exec_ = *runtime.Compile(graph_, {.device = device});
  }
  // The worker that has called it.
  int Run() {
    char byte = 0;
    Bindings io = exec_.bindings();
    const absl::Status status = exec_.Launch(io.Set(x_, std::span<char>(&byte, 1)))->Wait();
    EXPECT_EQ(status, absl::OkStatus());
    return worker_;
  }

 private:
  Graph graph_{"g"};
  BufferHandle<char> x_ = graph_.InOut<char>("x", 1);
  Executable exec_;
  int worker_ = -1;
};

TEST(WorkerGroups, ThereIsOneForEachNodeThatDevicesAreNear) {
  EXPECT_EQ(GroupsOf({kFirstNode, kFirstNode}), (std::vector{0, 0}));
  EXPECT_EQ(GroupsOf({kSecondNode, kFirstNode, kSecondNode}), (std::vector{0, 1, 0}));
  EXPECT_EQ(GroupsOf({kFirstNode, kNoNode, kSecondNode, kNoNode}), (std::vector{0, 1, 2, 1}));
  const auto on_host = runtime::RuntimeCore::Create({.devices = "host:3"});
  ASSERT_OK(on_host.status());
  for (int device = 0; device < 3; ++device) EXPECT_EQ((*on_host)->GroupOf(device), 0);
}

// The processors of this process's threads that are called so.
std::map<pid_t, std::set<int>> ProcessorsOfThreads(const std::string& called) {
  std::map<pid_t, std::set<int>> of;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != called) continue;
    cpu_set_t set;
    CPU_ZERO(&set);
    const pid_t thread = std::stoi(task.path().filename());
    sched_getaffinity(thread, sizeof(set), &set);
    of[thread] = ProcessorsIn(set);
  }
  return of;
}

TEST(StagingRings, ThereIsOneForEachNodeAndItsThreadsRunThere) {
  if (ProcessorsOfThisThread() != std::set<int>{0, 1}) GTEST_SKIP() << "described for two processors";
  const runtime::ScopedDriverHook hook(TwoNodes({kSecondNode, kFirstNode, kSecondNode}));
  const auto core = runtime::RuntimeCore::Create({.devices = "host", .staging = {.threads = 1}});
  ASSERT_OK(core.status());
  const std::vector<driver::DeviceRef>& devices = (*core)->devices();
  const std::map<pid_t, std::set<int>> others = ProcessorsOfThreads("ps-stage/0");  // of what tests have leaked
  std::vector<memory::Staging*> rings;
  for (int d = 0; d < 3; ++d) rings.push_back(*(*core)->staging().For(devices[static_cast<size_t>(d)]));
  EXPECT_EQ(rings[0], rings[2]);
  EXPECT_NE(rings[0], rings[1]);
  EXPECT_EQ(*(*core)->staging().For(devices[1]), rings[1]);
  const std::multiset<std::set<int>> near = {{0}, {1}};
  for (std::multiset<std::set<int>> seen; seen != near;) {  // they name and bind themselves
    seen.clear();
    for (const auto& [thread, processors] : ProcessorsOfThreads("ps-stage/0")) {
      if (!others.contains(thread)) seen.insert(processors);
    }
  }
}

// A worker that has just been busy may be so still, and another helps; not for ever.
TEST(WorkerGroups, ARunsTasksGoToWorkersNearItsDevice) {
  const runtime::ScopedDriverHook hook(TwoNodes({kSecondNode, kFirstNode, kSecondNode, kNoNode}));
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host", .workers = 9});
  ASSERT_OK(runtime.status());
  const int groups[] = {0, 1, 0, 2};  // of the devices
  for (int device = 0; device < 4; ++device) {
    Caller caller(*runtime, device);
    int tries = 0;
    while (caller.Run() % 3 != groups[device] && ++tries < 1000) continue;
    EXPECT_LT(tries, 1000) << "device " << device;
  }
}

TEST(WorkerGroups, AsManyAsTheNodeHasProcessorsRunOnIt) {
  if (ProcessorsOfThisThread() != std::set<int>{0, 1}) GTEST_SKIP() << "described for two processors";
  struct Seen {
    std::latch all{4};
    std::vector<std::set<int>> processors = std::vector<std::set<int>>(3);
  } seen;  // longer than the workers
  const runtime::ScopedDriverHook hook(TwoNodes({kSecondNode, kFirstNode}));
  const auto core = runtime::RuntimeCore::Create({.devices = "host", .workers = 3});
  ASSERT_OK(core.status());
  const auto look = [](void* context, int64_t) {
    auto* const into = static_cast<Seen*>(context);
    into->processors.at(static_cast<size_t>(host::WorkerPool::CurrentIndex())) = ProcessorsOfThisThread();
    into->all.arrive_and_wait();
  };
  for (int i = 0; i < 3; ++i) (*core)->workers().Post({look, &seen});
  seen.all.arrive_and_wait();
  EXPECT_EQ(seen.processors, (std::vector<std::set<int>>{{1}, {0}, {0, 1}}));
}

}  // namespace
}  // namespace penstock::worker_groups_test
