// co_await on a run: when and where the coroutine goes on, and what it may do there.
#include "penstock/await.h"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "src/host/worker_pool.h"
#include "tests/support/held_graph.h"

namespace penstock::await_test {
namespace {

using std::chrono::milliseconds;

// A coroutine that starts at once and that nobody awaits; its frame goes when it ends.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Thread {
  std::thread::id id;
  int worker;  // -1: none
};

Detached Report(penstock::Run run, std::promise<absl::Status>* status, std::promise<Thread>* where = nullptr) {
  absl::Status ended = co_await run;
  if (where != nullptr) where->set_value({std::this_thread::get_id(), host::WorkerPool::CurrentIndex()});
  status->set_value(ended);
}

class AwaitTest : public testing::Test {
 protected:
  penstock::Run Launch(Executable& exec) {
    Bindings io = exec.bindings();
    return *exec.Launch(io.Set(held_.x, memory_));
  }

  std::vector<int32_t> memory_ = std::vector<int32_t>(4);
  HeldGraph held_;
  std::promise<absl::Status> status_;
  Runtime runtime_ = HostRuntime();
};

// The run has nothing for a worker to do, its handle stays, and nobody waits: what ends it is that it is awaited.
TEST_F(AwaitTest, ResumesOnAWorkerWithTheStatusAndTheOutputs) {
  Graph g("device");
  auto x = g.InOut<int32_t>("x", 1, kPinned);
  g.Launch(
       "hold", [](LaunchContext&, int32_t*) {}, ReadWrite(x))
      .HostFallback([&](int32_t* v) { held_.latch.Arrive(), v[0] = 7; });
  Executable exec = *runtime_.Compile(g);
  HostBuffer<int32_t> memory = *runtime_.MakeHostBuffer<int32_t>(1);
  std::promise<Thread> where;
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(x, memory));
  Report(run, &status_, &where);
  held_.latch.Open();
  auto status = status_.get_future();
  EXPECT_EQ(status.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "nobody pushes the run on";
  EXPECT_OK(run.Wait());
  EXPECT_OK(status.get());
  EXPECT_EQ(memory[0], 7);
  EXPECT_GE(where.get_future().get().worker, 0);
}

TEST_F(AwaitTest, ARunThatHasEndedIsReadyAtOnce) {
  held_.latch.Open();
  Executable exec = *runtime_.Compile(held_.graph);
  const penstock::Run run = Launch(exec);
  ASSERT_OK(run.Wait());
  std::promise<Thread> where;
  Report(run, &status_, &where);
  auto status = status_.get_future();
  ASSERT_EQ(status.wait_for(milliseconds(0)), std::future_status::ready);
  EXPECT_OK(status.get());
  EXPECT_EQ(where.get_future().get().id, std::this_thread::get_id());
}

TEST_F(AwaitTest, NoRunIsReadyWithItsStatus) {
  Report(penstock::Run(), &status_);
  EXPECT_EQ(status_.get_future().get().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(AwaitTest, ACancelledRunResumes) {
  Executable exec = *runtime_.Compile(held_.graph);
  const penstock::Run run = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  Report(run, &status_);
  run.Cancel();
  held_.latch.Open();
  EXPECT_EQ(status_.get_future().get().code(), absl::StatusCode::kCancelled);
}

TEST_F(AwaitTest, AnAbandonedRunResumesWhileItsWorkGoesOn) {
  Executable exec = *runtime_.Compile(held_.graph);
  Report(Launch(exec), &status_);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  EXPECT_EQ(runtime_.Shutdown(milliseconds(0)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status_.get_future().get().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(held_.after.load(), 0);
  held_.latch.Open();
  ASSERT_OK(runtime_.Shutdown());
}

// Ten runs one behind the other from one coroutine, which is on a worker after the first.
Detached Chain(Executable exec, BufferHandle<int32_t> x, std::vector<int32_t>* memory, Runtime* runtime,
               std::promise<absl::Status>* result) {
  Bindings io = exec.bindings();
  io.Set(x, *memory);
  absl::Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    const absl::StatusOr<penstock::Run> run = exec.TryLaunch(io);
    status = run.status();
    if (run.ok()) status = co_await *run;
  }
  if (status.ok() && exec.Launch(io).status().code() != absl::StatusCode::kFailedPrecondition) {
    status = absl::InternalError("Launch was not refused");
  }
  if (status.ok() && runtime->Shutdown().code() != absl::StatusCode::kFailedPrecondition) {
    status = absl::InternalError("Shutdown was not refused");
  }
  result->set_value(status);
}

TEST_F(AwaitTest, ACoroutineMayLaunchWithoutWaitingAndAwaitAgain) {
  Executable exec = *runtime_.Compile(held_.graph, {.slots = 1});
  Chain(exec, held_.x, &memory_, &runtime_, &status_);
  held_.latch.Open();
  EXPECT_OK(status_.get_future().get());
  EXPECT_EQ(memory_[0], 10);
}

Detached Count(penstock::Run run, std::shared_ptr<std::vector<int32_t>> memory, std::atomic<int>* good) {
  const absl::Status status = co_await run;
  if (status.ok() && (*memory)[0] == 1) ++*good;
}

TEST_F(AwaitTest, ManyCoroutinesAwaitRunsThatNobodyElseHolds) {
  held_.latch.Open();
  std::atomic<int> good{0};
  {
    Executable exec = *runtime_.Compile(held_.graph, {.slots = 3});
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        Bindings io = exec.bindings();
        for (int i = 0; i < 100; ++i) {
          auto memory = std::make_shared<std::vector<int32_t>>(4);
          Count(*exec.Launch(io.Set(held_.x, *memory)), memory, &good);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ASSERT_OK(runtime_.Shutdown());
  EXPECT_EQ(good.load(), 300);
}

TEST_F(AwaitTest, TwoCoroutinesMayAwaitOneRun) {
  Executable exec = *runtime_.Compile(held_.graph);
  const penstock::Run run = Launch(exec);
  std::promise<absl::Status> other;
  Report(run, &status_);
  Report(run, &other);
  held_.latch.Open();
  EXPECT_OK(status_.get_future().get());
  EXPECT_OK(other.get_future().get());
}

}  // namespace
}  // namespace penstock::await_test
