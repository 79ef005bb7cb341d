// A runtime's pinned memory: its gauges, its budget, whom MakeHostBuffer waits for when that is spent, and where the
// memory is taken from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/test_hook.h"
#include "tests/memory/pinned_only_driver.h"
#include "tests/support/held_graph.h"
#include "tests/support/pci_driver.h"

namespace penstock::pinned_memory_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBudget = 1 << 20;
constexpr int64_t kMost = 600 << 10;  // two of them do not fit

// x stays with the run until the latch is opened; it is bound to pool memory.
struct Holding {
  Graph graph{"holding"};
  BufferHandle<char> first = graph.Input<char>("first", 1);
  BufferHandle<char> x = graph.InOut<char>("x", kMost, Where::kPinned);
  driver::Latch latch;
  Holding() {
    graph.Host("hold", [this](std::span<const char>, std::span<char>) { latch.Arrive(); }, Read(first), ReadWrite(x));
  }
};

class PinnedMemory : public testing::Test {
 protected:
  void SetUp() override {
    const runtime::ScopedDriverHook hook({.pinned = {.slab_bytes = 256 << 10}});
    runtime_.emplace(*Runtime::Create({.devices = "host",
                                       .workers = 2,
                                       .host_device_threads = 1,
                                       .staging = {.from_bytes = kBudget},  // all of it goes through the slots
                                       .pinned_bytes = kBudget}));
    executable_.emplace(*runtime_->Compile(holding_.graph, {.slots = 1}));
    io_ = executable_->bindings();
    io_.Set(holding_.first, first_);
  }
  void TearDown() override { holding_.latch.Open(); }

  // A run in flight with a buffer of most of the budget, which `buffer` has before.
  penstock::Run Launch(const HostBuffer<char>& buffer) {
    io_.Set(holding_.x, buffer);
    penstock::Run run = *executable_->Launch(io_);
    EXPECT_TRUE(holding_.latch.AwaitArrived());
    return run;
  }
  penstock::Run LaunchWithItsOwn() {
    penstock::Run run = Launch(*runtime_->MakeHostBuffer<char>(kMost));
    io_.ClearBuffers();
    return run;
  }
  // Of its keep-alives the first holds up the second, which is most of the budget, when the run has drained.
  penstock::Run LaunchHeldUpAtItsEnd(driver::Latch& letting_go) {
    {
      const HostBuffer<char> buffer = *runtime_->MakeHostBuffer<char>(kMost);
      io_.Set(holding_.x, buffer);
    }
    io_.Set(holding_.first, first_,
            std::shared_ptr<void>(&letting_go, [](void* l) { static_cast<driver::Latch*>(l)->Arrive(); }));
    penstock::Run run = *executable_->Launch(io_);
    EXPECT_TRUE(holding_.latch.AwaitArrived());
    return run;
  }
  absl::Status Make(Deadline deadline = {}) { return runtime_->MakeHostBuffer<char>(kMost, deadline).status(); }
  std::future<absl::Status> MakeInBackground() {
    const int64_t before = runtime_->pinned_memory().waits;
    auto made = std::async(std::launch::async, [this] { return Make(); });
    while (runtime_->pinned_memory().waits == before) std::this_thread::yield();
    return made;
  }

  Holding holding_;
  std::vector<char> first_ = std::vector<char>(1);
  std::optional<Runtime> runtime_;
  std::optional<Executable> executable_;
  Bindings io_;
};

TEST_F(PinnedMemory, GaugesTellWhatIsUsed) {
  EXPECT_EQ(runtime_->pinned_memory().slabs, 0);
  {
    const auto a = *runtime_->MakeHostBuffer<int32_t>(100), b = *runtime_->MakeHostBuffer<int32_t>(1000);
    const PinnedGauges now = runtime_->pinned_memory();
    EXPECT_EQ(now.in_use, 512 + 4096);  // in units of 256
    EXPECT_EQ(now.reserved, 256 << 10);
    EXPECT_EQ(now.slabs, 1);
    EXPECT_EQ(now.waits, 1);
    EXPECT_EQ(now.budget, kBudget);
  }
  EXPECT_EQ(runtime_->pinned_memory().in_use, 0);
  EXPECT_EQ(runtime_->pinned_memory().peak, 512 + 4096);
  EXPECT_EQ(runtime_->pinned_memory().reserved, 256 << 10);
  const Runtime moved = *std::move(runtime_);
  EXPECT_EQ(runtime_->pinned_memory().budget, 0);
  runtime_.reset();
}

TEST_F(PinnedMemory, WithoutRunsInFlightNobodyIsWaitedFor) {
  const auto most = *runtime_->MakeHostBuffer<char>(kMost);
  const absl::Status refused = Make();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused),
              AllOf(HasSubstr("614400 bytes asked for"), HasSubstr("614400 in use"), HasSubstr("a budget of 1048576")));
}

TEST_F(PinnedMemory, ARunThatHoldsABufferOfItsOwnIsWaitedFor) {
  const penstock::Run run = LaunchWithItsOwn();
  std::future<absl::Status> made = MakeInBackground();
  holding_.latch.Open();
  EXPECT_OK(made.get());
  EXPECT_OK(run.Wait());
}

TEST_F(PinnedMemory, ARunDoesNotGiveBackWhatItsUserStillHas) {
  ASSERT_OK(runtime_->MakeHostBuffer<char>(1).status());  // which is gone, and no run's
  const auto buffer = *runtime_->MakeHostBuffer<char>(kMost);
  const penstock::Run run = Launch(buffer);
  EXPECT_EQ(Make().code(), absl::StatusCode::kResourceExhausted);
}

// Bindings that still have a buffer when the last run has ended: nothing is to come back.
TEST_F(PinnedMemory, WhatBindingsKeepIsRefusedWhenTheRunsHaveEnded) {
  const penstock::Run run = Launch(*runtime_->MakeHostBuffer<char>(kMost));
  std::future<absl::Status> made = MakeInBackground();
  holding_.latch.Open();
  EXPECT_EQ(made.get().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_OK(run.Wait());
}

TEST_F(PinnedMemory, TheDeadlinePassesWithTheNumbers) {
  const penstock::Run run = LaunchWithItsOwn();
  const absl::Status late = Make(std::chrono::milliseconds(1));
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(late),
              AllOf(HasSubstr("614400 bytes asked for"), HasSubstr("before the deadline of MakeHostBuffer")));
}

TEST_F(PinnedMemory, WhatExceedsTheBudgetIsNotWaitedFor) {
  const penstock::Run run = LaunchWithItsOwn();
  EXPECT_EQ(runtime_->MakeHostBuffer<char>(kBudget + 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PinnedMemory, AnAbandonedRunIsNotWaitedFor) {
  {
    const HostBuffer<char> buffer = *runtime_->MakeHostBuffer<char>(kMost);
    io_.Set(holding_.x, buffer);
  }
  for (auto deadline = std::chrono::milliseconds(1); holding_.latch.arrived() == 0; deadline *= 2) {
    const auto run = executable_->Launch(io_, deadline);
    EXPECT_EQ((run.ok() ? run->Wait() : run.status()).code(), absl::StatusCode::kDeadlineExceeded);
  }
  io_.ClearBuffers();
  EXPECT_EQ(Make().code(), absl::StatusCode::kResourceExhausted);
  holding_.latch.Open();
  EXPECT_OK(runtime_->Shutdown());
}

TEST_F(PinnedMemory, AShutdownEndsTheWait) {
  const penstock::Run run = LaunchWithItsOwn();
  std::future<absl::Status> made = MakeInBackground();
  auto shut = std::async(std::launch::async, [this] { return runtime_->Shutdown(); });
  EXPECT_EQ(made.get().code(), absl::StatusCode::kFailedPrecondition);
  holding_.latch.Open();
  EXPECT_OK(shut.get());
}

TEST_F(PinnedMemory, HostNodesDoNotWait) {
  const penstock::Run run = LaunchWithItsOwn();
  Graph graph("asks");
  auto x = graph.InOut<char>("x", 1);
  absl::Status inside;
  graph.Host("ask", [&](std::span<char>) { inside = Make(); }, ReadWrite(x));
  Executable hostcalls = *runtime_->Compile(graph, {.slots = 1});
  std::vector<char> value(1);
  Bindings io = hostcalls.bindings();
  EXPECT_OK(hostcalls.Launch(io.Set(x, value))->Wait());
  EXPECT_EQ(inside.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PinnedMemory, ARunIsWaitedForUntilItsKeepAlivesAreGone) {
  driver::Latch letting_go;
  const penstock::Run run = LaunchHeldUpAtItsEnd(letting_go);
  io_.ClearBuffers();
  holding_.latch.Open();
  ASSERT_TRUE(letting_go.AwaitArrived());  // before Wait, which may be what ends a run
  EXPECT_OK(run.Wait());
  std::future<absl::Status> made = MakeInBackground();
  letting_go.Open();
  EXPECT_OK(made.get());
}

// The wait begins behind the run's end, and nothing comes of it: bindings have the memory.
TEST_F(PinnedMemory, AWaitForKeepAlivesIsRefusedWhenTheyAreGone) {
  driver::Latch letting_go;
  const penstock::Run run = LaunchHeldUpAtItsEnd(letting_go);
  io_.Set(holding_.first, first_);
  holding_.latch.Open();
  ASSERT_TRUE(letting_go.AwaitArrived());  // before Wait, which may be what ends a run
  EXPECT_OK(run.Wait());
  std::future<absl::Status> made = MakeInBackground();
  letting_go.Open();
  EXPECT_EQ(made.get().code(), absl::StatusCode::kResourceExhausted);
}

// Memory that no HostBuffer had comes back to the pool.
TEST(PinnedMemoryCore, AnyBlockThatReturnsEndsTheWait) {
  const auto core = *runtime::RuntimeCore::Create(
      {.devices = "host", .workers = 1, .host_device_threads = 1, .pinned_bytes = kBudget});
  auto block = std::make_optional(*core->device_set().pinned(0).Allocate(kMost));
  core->memory().BlockLeft();  // so that there is something to wait for
  ASSERT_OK(core->RunStarted());
  auto made = std::async(std::launch::async, [&] { return core->memory().AllocateHost(kMost, {}).status(); });
  while (core->device_set().pinned_gauges().waits < 2) std::this_thread::yield();
  block.reset();
  EXPECT_OK(made.get());
  core->RunDrained();
  core->memory().LeftBlockReturned();
  EXPECT_OK(core->Shutdown({}));
}

TEST_F(PinnedMemory, ShutdownEndsThePoolsThread) {
  const int others = memory::PoolThreads();  // of runtimes that other tests have leaked on purpose
  const auto buffer = *runtime_->MakeHostBuffer<char>(250 << 10);  // of a slab of 256 KiB
  while (memory::PoolThreads() != others + 1) std::this_thread::yield();  // it names itself
  EXPECT_OK(runtime_->Shutdown());
  EXPECT_EQ(memory::PoolThreads(), others);
}

TEST_F(PinnedMemory, APlanOverTheBudgetIsRefusedAtCompile) {
  Graph graph("staged");
  auto x = graph.Input<char>("x", kBudget / 2);
  auto y = graph.Output<char>("y", kBudget / 2);
  auto d = graph.Buffer<char>("d", kBudget / 2), e = graph.Buffer<char>("e", kBudget / 2);
  graph.Copy("in", x, d);
  graph.Host("change", [](std::span<const char>, std::span<char>) {}, Read(d), Write(e));
  graph.Copy("out", e, y);
  const absl::Status refused = runtime_->Compile(graph, {.slots = 3}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused), AllOf(HasSubstr("pinned memory"), HasSubstr("1048576")));
}

// Notes the kernel's memory policy while it allocates.
class NotingDriver : public runtime::PciDriver {
 public:
  using PciDriver::PciDriver;
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override {
    syscall(SYS_get_mempolicy, &mode, &nodes, sizeof nodes * 8, nullptr, 0);
    return NullDriver::AllocatePinned(bytes);
  }
  static inline thread_local int mode = -1;
  static inline thread_local unsigned long nodes = 0;
};

struct Nothing {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, char*) const {}
};

absl::StatusOr<Runtime> OnTwoNodes(std::vector<std::string> bus_ids, std::string* log = nullptr) {
  absl::StatusOr<memory::Topology> two = memory::Topology::OfXml(runtime::kTwoNodes);
  if (!two.ok()) return two.status();
  const runtime::ScopedDriverHook hook({.wrap = [&](auto) { return std::make_unique<NotingDriver>(bus_ids); },
                                        .topology = std::make_shared<const memory::Topology>(*std::move(two))});
  return Runtime::Create(
      {.devices = "host", .workers = 1, .log_level = LogLevel::kInfo, .log = [log](LogLevel, std::string_view text) {
         if (log != nullptr) log->append(text).append("\n");
       }});
}

// Node 0 is on every computer.
TEST(PinnedMemoryNodes, HostBuffersComeFromTheNodeOfTheFirstDevice) {
  absl::StatusOr<Runtime> runtime = OnTwoNodes({"0000:3B:00.0", "0000:AF:00.0"});
  ASSERT_OK(runtime.status());
  NotingDriver::mode = -1;
  ASSERT_OK(runtime->MakeHostBuffer<char>(1).status());
  if (NotingDriver::mode == -1) GTEST_SKIP() << "no memory policies here";
  EXPECT_TRUE(NotingDriver::mode == MPOL_PREFERRED || NotingDriver::mode == MPOL_PREFERRED_MANY) << NotingDriver::mode;
  EXPECT_EQ(NotingDriver::nodes, 1u);
}

TEST(PinnedMemoryNodes, SlotsHaveTheirMemoryOnTheNodeOfTheirDevice) {
  absl::StatusOr<Runtime> runtime = OnTwoNodes({"0000:AF:00.0", "0000:3B:00.0"});
  ASSERT_OK(runtime.status());
  Graph graph("g");
  graph.ParallelFor("k", 4, Nothing{}, ReadWrite(graph.InOut<char>("x", 4)));
  NotingDriver::mode = -1;
  ASSERT_OK(runtime->Compile(graph, {.device = 1}).status());
  if (NotingDriver::mode == -1) GTEST_SKIP() << "no memory policies here";
  EXPECT_TRUE(NotingDriver::mode == MPOL_PREFERRED || NotingDriver::mode == MPOL_PREFERRED_MANY) << NotingDriver::mode;
  EXPECT_EQ(NotingDriver::nodes, 1u);
}

TEST(PinnedMemoryNodes, WhatTheSystemRefusesIsLoggedAndDone) {
  std::string log;
  absl::StatusOr<Runtime> runtime = OnTwoNodes({"0000:af:00.0"}, &log);
  ASSERT_OK(runtime.status());
  unsigned long second = 2;
  if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, &second, 64) == 0) {
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
    GTEST_SKIP() << "this computer has a second node";
  }
  EXPECT_OK(runtime->MakeHostBuffer<char>(1).status());
  EXPECT_THAT(log, HasSubstr("pinned memory is taken from any node: memory cannot be taken from NUMA node 1"));
}

TEST(PinnedMemoryNodes, DevicesThatAreNowhereLeaveThePolicyAlone) {
  std::string log;
  absl::StatusOr<Runtime> runtime = OnTwoNodes({"0000:01:00.0"}, &log);
  ASSERT_OK(runtime.status());
  NotingDriver::mode = -1;
  ASSERT_OK(runtime->MakeHostBuffer<char>(1).status());
  if (NotingDriver::mode == -1) GTEST_SKIP() << "no memory policies here";
  EXPECT_EQ(NotingDriver::mode, MPOL_DEFAULT);
  EXPECT_EQ(log, "");
}

}  // namespace
}  // namespace penstock::pinned_memory_test
