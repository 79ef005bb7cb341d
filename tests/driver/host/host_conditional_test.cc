// Conditional nodes of host devices, as far as CUDA cannot do the same: runs that fail, and what loops leave to others.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/detail/decision.h"
#include "src/driver/host/host_driver.h"
#include "src/host/event_count.h"
#include "tests/support/status.h"

namespace penstock::driver::host::host_conditional_test {
namespace {

// One compute thread; a loop of a kernel that counts, does what the test says and decides.
class HostConditionalTest : public testing::Test {  // its kernels use its members
 public:
  void SetUp() override {
    auto driver = CreateHostDriver(
        {.devices = 1, .threads_per_device = 1, .memory_bytes = 1 << 20, .event_count = &event_count_});
    ASSERT_OK(driver.status());
    driver_ = *std::move(driver);
    stream_ = *driver_->CreateStream(0, 0);
    graph_ = *driver_->CreateGraph(0);
    handle_ = *driver_->CreateConditional(graph_);
  }
  void TearDown() override {
    driver_->DestroyExec(exec_);
    driver_->DestroyGraph(graph_);
    driver_->DestroyStream(stream_);
    driver_.reset();
  }

  struct Kernel {
    absl::Status (*call)(HostConditionalTest& test) = nullptr;
    HostConditionalTest* test = nullptr;
  };
  int32_t Add(Graph graph, const std::vector<int32_t>& after, Kernel& kernel, RunFault* fault = nullptr) {
    kernel.test = this;
    const KernelOp op{.call =
                          [](void* callable, void* const* /*argv*/) {
                            Kernel& of = *static_cast<Kernel*>(callable);
                            return of.call(*of.test);
                          },
                      .callable = &kernel,
                      .tag = {fault, 5}};
    const absl::StatusOr<int32_t> node = driver_->AddNode(graph, after, &op, {});
    EXPECT_OK(node.status());
    return node.value_or(-1);
  }
  void Decide(uint32_t value) { detail::Decide({.handle = handle_.bits, .kind = detail::DecisionKind::kPick}, value); }
  void Launch() {
    const absl::StatusOr<GraphExec> exec = driver_->Instantiate(graph_);
    ASSERT_OK(exec.status());
    exec_ = *exec;
    ASSERT_OK(driver_->LaunchGraph(exec_, stream_));
  }
  bool Finish(Stream stream) {
    const Event event = *driver_->CreateEvent(0, false);
    EXPECT_OK(driver_->Record(event, stream));
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    bool done = false;
    while (!done && std::chrono::steady_clock::now() < until) {
      const uint64_t ticket = event_count_.ticket();
      done = driver_->Query(event).value_or(true);
      if (!done) event_count_.Wait(ticket, until);
    }
    driver_->DestroyEvent(event);
    return done;
  }

  penstock::host::EventCount event_count_;
  std::unique_ptr<Driver> driver_;
  Stream stream_;
  Graph graph_;
  GraphExec exec_;
  ConditionalHandle handle_;
  std::atomic<int64_t> rounds_{0}, most_{0};
};

TEST_F(HostConditionalTest, AMillionIterationsNeedNoStack) {
  most_ = 1'000'000;
  Kernel set{[](HostConditionalTest& test) {
    test.Decide(1);
    return absl::OkStatus();
  }};
  Kernel again{[](HostConditionalTest& test) {
    test.Decide(++test.rounds_ < test.most_ ? 1 : 0);
    return absl::OkStatus();
  }};
  Add(graph_, {}, set);
  const ConditionalNode loop = *driver_->AddConditional(graph_, std::vector{0}, handle_, ConditionalKind::kWhile, 1);
  Add(loop.bodies[0], {}, again);
  Launch();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(rounds_, 1'000'000);
}

// What would set the value is skipped from then on.
TEST_F(HostConditionalTest, ALoopOfARunThatHasFailedEnds) {
  RunFault fault;
  Kernel set{[](HostConditionalTest& test) {
    test.Decide(1);
    return absl::OkStatus();
  }};
  Kernel fails{[](HostConditionalTest& test) {
    return ++test.rounds_ == 5 ? absl::DataLossError("the fifth") : absl::OkStatus();
  }};
  Add(graph_, {}, set, &fault);
  const ConditionalNode loop = *driver_->AddConditional(graph_, std::vector{0}, handle_, ConditionalKind::kWhile, 1);
  Add(loop.bodies[0], {}, fails, &fault);
  Add(loop.bodies[0], {0}, set, &fault);
  Launch();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(rounds_, 5);
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.status().code(), absl::StatusCode::kDataLoss);
}

// The value is that of the launch before, which nothing has set again.
TEST_F(HostConditionalTest, ALoopWhoseRunHasFailedBeforeItDoesNotBegin) {
  RunFault fault;
  fault.Fail(1, absl::InternalError("before"));
  *reinterpret_cast<uint32_t*>(handle_.bits) = 1;
  Kernel counts{[](HostConditionalTest& test) {
    ++test.rounds_;
    return absl::OkStatus();
  }};
  const ConditionalNode loop = *driver_->AddConditional(graph_, {}, handle_, ConditionalKind::kWhile, 1);
  Add(loop.bodies[0], {}, counts, &fault);
  Launch();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(rounds_, 0);
}

TEST_F(HostConditionalTest, ALoopLeavesTheThreadToOtherStreamsBetweenItsTasks) {
  Kernel again{[](HostConditionalTest& test) {
    ++test.rounds_;
    test.Decide(test.most_ == 0 ? 1 : 0);
    return absl::OkStatus();
  }};
  Kernel stops{[](HostConditionalTest& test) {
    test.most_ = 1;
    return absl::OkStatus();
  }};
  Add(graph_, {}, again);
  const ConditionalNode loop = *driver_->AddConditional(graph_, std::vector{0}, handle_, ConditionalKind::kWhile, 1);
  Add(loop.bodies[0], {}, again);
  Launch();
  while (rounds_ < 10) std::this_thread::yield();
  const Stream other = *driver_->CreateStream(0, 0);
  stops.test = this;
  ASSERT_OK(driver_->Launch(other, {.call =
                                        [](void* callable, void* const* /*argv*/) {
                                          Kernel& of = *static_cast<Kernel*>(callable);
                                          return of.call(*of.test);
                                        },
                                    .callable = &stops}));
  EXPECT_TRUE(Finish(other));
  EXPECT_TRUE(Finish(stream_));
  driver_->DestroyStream(other);
}

// It goes round without a task, until the run fails to which the branch not taken belongs.
TEST_F(HostConditionalTest, ALoopWithoutATaskLeavesTheThreadToOthersToo) {
  RunFault fault;
  *reinterpret_cast<uint32_t*>(handle_.bits) = 1;
  Kernel never{[](HostConditionalTest& test) {
    ++test.rounds_;
    return absl::OkStatus();
  }};
  const ConditionalNode loop = *driver_->AddConditional(graph_, {}, handle_, ConditionalKind::kWhile, 1);
  const ConditionalHandle inner = *driver_->CreateConditional(loop.bodies[0]);
  const ConditionalNode branch = *driver_->AddConditional(loop.bodies[0], {}, inner, ConditionalKind::kIf, 1);
  Add(branch.bodies[0], {}, never, &fault);
  Launch();
  const Stream other = *driver_->CreateStream(0, 0);
  const absl::StatusOr<void*> memory = driver_->AllocateDevice(0, 64);
  ASSERT_OK(memory.status());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(driver_->Fill(other, {.dst = *memory, .count = 64}));
    EXPECT_TRUE(Finish(other));
  }
  fault.Fail(0, absl::InternalError("as any"));
  EXPECT_TRUE(Finish(stream_));
  EXPECT_EQ(rounds_, 0);
  driver_->FreeDevice(0, *memory);
  driver_->DestroyStream(other);
}

// The launch keeps what it needs.
TEST_F(HostConditionalTest, AStreamMayGoWhileALoopRunsOnIt) {
  Kernel again{[](HostConditionalTest& test) {
    test.Decide(++test.rounds_ < test.most_ ? 1 : 0);
    return absl::OkStatus();
  }};
  most_ = 1000;
  Add(graph_, {}, again);
  const ConditionalNode loop = *driver_->AddConditional(graph_, std::vector{0}, handle_, ConditionalKind::kWhile, 1);
  Add(loop.bodies[0], {}, again);
  Launch();
  driver_->DestroyStream(stream_);
  driver_->DestroyExec(exec_);
  driver_->DestroyGraph(graph_);
  driver_.reset();  // finishes the queued work
  EXPECT_EQ(rounds_, 1000);
  SetUp();
}

}  // namespace
}  // namespace penstock::driver::host::host_conditional_test
