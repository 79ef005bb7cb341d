// CompileOptions::refuse_late: what Launch refuses with runs in flight, and what it starts. Runs last at least
// `kLeast`, so a mean is known to be at least that, however slow the machine is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/executable/run_pace.h"
#include "tests/support/asleep.h"
#include "tests/support/latch.h"
#include "tests/support/runtimes.h"
#include "tests/support/status.h"

namespace penstock::refuse_late_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kLeast{20}, kShort{10};
constexpr std::chrono::hours kLong{1};

class RefuseLateTest : public testing::Test {
 protected:
  enum Work { kQuick, kLasting, kHeld };

  explicit RefuseLateTest(const char* devices = "host") : runtime_(HostRuntime(4, devices)) {}

  void SetUp() override {
    work_ = graph_.Param<int>("work");
    graph_
        .Host(
            "work",
            [latch = latch_](int work) {
              if (work == kHeld) latch->Arrive();
              const auto until = std::chrono::steady_clock::now() + kLeast;
              while (work == kLasting && std::chrono::steady_clock::now() < until) std::this_thread::yield();
            },
            work_)
        .Concurrency(8);
  }
  void TearDown() override { latch_->Open(); }

  Executable Compile(CompileOptions options) { return *runtime_.Compile(graph_, options); }
  absl::StatusOr<penstock::Run> Launch(Executable& exec, Work work, Deadline deadline = {}) {
    return exec.Launch(exec.bindings().Set(work_, static_cast<int>(work)), deadline);
  }
  // So many runs that the mean is known, and at least kLeast.
  void Warm(Executable& exec) {
    for (int r = 0; r <= runtime::RunPace::kColdRuns; ++r) ASSERT_OK(Launch(exec, kLasting)->Wait());
  }
  void Hold(Executable& exec, int runs = 1) {
    for (int r = 0; r < runs; ++r) ASSERT_OK(Launch(exec, kHeld).status());
    ASSERT_TRUE(latch_->AwaitArrived(runs));
  }

  // Shared with runs that are abandoned when their deadline passes.
  std::shared_ptr<driver::Latch> latch_ = std::make_shared<driver::Latch>();
  Graph graph_{"work"};
  ParamHandle<int> work_;
  Runtime runtime_;
};

TEST_F(RefuseLateTest, WhatShouldEndAfterItsDeadlineIsNotStarted) {
  Executable exec = Compile({.slots = 3, .refuse_late = true});
  Warm(exec);
  Hold(exec);
  const int64_t launches = exec.launches();
  const absl::Status refused = Launch(exec, kQuick, kShort).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(refused), AllOf(HasSubstr("graph 'work'"), HasSubstr("1 run is in front of it"),
                                   HasSubstr("nothing was started"), HasSubstr("refuse_late")));
  EXPECT_EQ(exec.TryLaunch(exec.bindings().Set(work_, 0), kShort).status().code(), absl::StatusCode::kDeadlineExceeded);
  auto lease = exec.TryAcquire();
  ASSERT_OK(lease.status());
  EXPECT_EQ(lease->Launch(exec.bindings().Set(work_, 0), kShort).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(exec.launches(), launches);
  EXPECT_OK(lease->Launch(exec.bindings().Set(work_, 0), kLong)->Wait());
  EXPECT_OK(Launch(exec, kQuick, kLong)->Wait());
  EXPECT_OK(Launch(exec, kQuick)->Wait());
}

TEST_F(RefuseLateTest, NothingIsRefusedBeforeTheMeanIsKnown) {
  Executable exec = Compile({.slots = 2, .refuse_late = true});
  for (int r = 0; r < runtime::RunPace::kColdRuns; ++r) ASSERT_OK(Launch(exec, kLasting)->Wait());
  Hold(exec);
  EXPECT_OK(Launch(exec, kQuick, kShort).status());
}

TEST_F(RefuseLateTest, NothingIsRefusedWithNoRunInFront) {
  Executable exec = Compile({.slots = 2, .refuse_late = true});
  Warm(exec);
  auto lease = exec.TryAcquire();  // takes a slot, but is no run
  ASSERT_OK(lease.status());
  EXPECT_OK(Launch(exec, kQuick, kShort).status());
}

TEST_F(RefuseLateTest, NothingIsRefusedWithoutTheOption) {
  Executable exec = Compile({.slots = 2});
  Warm(exec);
  Hold(exec);
  EXPECT_OK(Launch(exec, kQuick, kShort).status());
}

TEST_F(RefuseLateTest, ALaunchThatWaitsForASlotIsInFront) {
  Executable exec = Compile({.slots = 1, .refuse_late = true});
  Warm(exec);
  Hold(exec);
  std::promise<pid_t> thread;
  std::jthread waits([&] {
    thread.set_value(gettid());
    EXPECT_OK(Launch(exec, kQuick)->Wait());
  });
  EXPECT_TRUE(test_support::FallsAsleep(thread.get_future().get()));
  const absl::Status refused = Launch(exec, kQuick, kShort).status();
  EXPECT_THAT(Text(refused), AllOf(HasSubstr("2 runs are in front of it"), HasSubstr("refused")));
  latch_->Open();
}

// Means of at least kLeast on each of two devices are one of at least kLeast / 2 on both.
class RefuseLateOnTwoTest : public RefuseLateTest {
 protected:
  RefuseLateOnTwoTest() : RefuseLateTest("host:2") {}
};

TEST_F(RefuseLateOnTwoTest, SeveralDevicesShareWhatIsInFront) {
  Executable exec = Compile({.slots = 1, .devices = {0, 1}, .refuse_late = true});
  Executable one = *exec.On(0), other = *exec.On(1);
  Warm(one);
  ASSERT_OK(Launch(one, kHeld).status());
  ASSERT_TRUE(latch_->AwaitArrived());
  EXPECT_THAT(Text(Launch(one, kQuick, kShort).status()), HasSubstr("1 run is in front of it"));
  EXPECT_OK(Launch(exec, kQuick, kShort).status()) << "the other device's mean is not known";
  Warm(other);
  ASSERT_OK(Launch(other, kHeld).status());
  ASSERT_TRUE(latch_->AwaitArrived(2));
  EXPECT_THAT(Text(Launch(exec, kQuick, kShort).status()), HasSubstr("2 runs are in front of it"));
}

}  // namespace
}  // namespace penstock::refuse_late_test
