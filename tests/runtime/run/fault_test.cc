// A fatal device error, injected into host devices: it ends everything in flight and refuses what comes, says what is
// not known to be done, and with nodes waited for names the one that made it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "src/driver/checked/checked_driver.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"
#include "tests/support/kernels.h"
#include "tests/support/null_driver.h"

namespace penstock::fault_test {
namespace {

using driver::checked::CallKind;
using driver::checked::CallRecorder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A runtime on a host device that dies when the witness is told so.
struct Mortal {
  std::shared_ptr<CallRecorder> witness = std::make_shared<CallRecorder>();
  Runtime runtime;
  std::vector<std::string> logged;

  explicit Mortal(bool synchronous = false) : runtime(Make(synchronous)) {}

 private:
  Runtime Make(bool synchronous) {
    const runtime::ScopedDriverHook hook({.host_options = nullptr, .wrap = [this](auto driver) {
                                            return driver::checked::CreateCheckedDriver(std::move(driver), witness);
                                          }});
    return *Runtime::Create({.devices = "host",
                             .workers = 2,
                             .host_device_threads = 2,
                             .synchronous = synchronous,
                             .log = [this](LogLevel, std::string_view text) { logged.emplace_back(text); }});
  }
};

// x += 1, `count` times, in nodes "add 0", "add 1" and so on.
struct Chain {
  Graph graph{"chain"};
  BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4, kPinned);
  explicit Chain(int count) {
    for (int i = 0; i < count; ++i) graph.ParallelFor("add " + std::to_string(i), 4, AddOne{}, ReadWrite(x));
  }
};

absl::StatusOr<penstock::Run> Launch(Executable& exec, BufferHandle<int32_t> x, HostBuffer<int32_t>& memory) {
  Bindings io = exec.bindings();
  return exec.Launch(io.Set(x, memory));
}

constexpr char kRefused[] = "refused after a fatal device error: graph 'chain': injected fatal fault at Launch call 1";

TEST(FaultTest, EndsEverythingInFlightAndRefusesNewWork) {
  Mortal mortal;
  HeldGraph held;
  Chain chain(1);
  Executable holds = *mortal.runtime.Compile(held.graph, {.slots = 2});
  Executable adds = *mortal.runtime.Compile(chain.graph);
  HostBuffer<int32_t> memory = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  std::vector<int32_t> a(4), b(4);
  Bindings io = holds.bindings();
  const penstock::Run running = *holds.Launch(io.Set(held.x, a));
  ASSERT_TRUE(held.latch.AwaitArrived());
  const penstock::Run waiting = *holds.Launch(io.Set(held.x, b));  // for its turn to run the host node
  std::promise<absl::Status> told;
  waiting.OnDone([&](const absl::Status& status) { told.set_value(status); });
  std::future<absl::Status> launcher =
      std::async(std::launch::async, [&] { return holds.Launch(io).status(); });  // for a slot

  mortal.witness->DieAtNth(CallKind::kLaunch, 1);
  const penstock::Run fatal = *Launch(adds, chain.x, memory);
  EXPECT_TRUE(base::IsFatal(fatal.Wait()));
  EXPECT_TRUE(base::IsFatal(launcher.get()));
  EXPECT_THAT(Text(told.get_future().get()),
              StartsWith("graph 'held': ended by a fatal device error: graph 'chain': injected fatal fault at Launch "
                         "call 1; not submitted: "));
  EXPECT_TRUE(base::IsFatal(waiting.Wait()));
  EXPECT_THAT(Text(Launch(adds, chain.x, memory).status()), StartsWith(kRefused));
  EXPECT_THAT(Text(mortal.runtime.Compile(chain.graph).status()), StartsWith(kRefused));
  EXPECT_THAT(Text(mortal.runtime.MakeHostBuffer<int>(1).status()), StartsWith(kRefused));
  EXPECT_FALSE(running.done());  // its host node cannot be ended

  held.latch.Open();
  EXPECT_TRUE(base::IsFatal(running.Wait()));
  EXPECT_EQ(held.after, 0);
  EXPECT_OK(mortal.runtime.Shutdown());
  ASSERT_EQ(mortal.logged.size(), 1u);
  EXPECT_THAT(mortal.logged[0], StartsWith("graph 'chain': injected fatal fault at Launch call 1"));
}

// Its work is done and nobody waits for it or watches it: whoever sees the fault ends it.
TEST(FaultTest, EndsARunThatNobodyPushesOn) {
  Mortal mortal;
  driver::Latch latch;
  Graph g("quiet");
  auto x = g.InOut<int32_t>("x", 4, kPinned);
  g.Launch("stay", [](LaunchContext&, int32_t*) {}, ReadWrite(x)).HostFallback([&](int32_t*) { latch.Arrive(); });
  Chain chain(1);
  Executable stays = *mortal.runtime.Compile(g), adds = *mortal.runtime.Compile(chain.graph);
  HostBuffer<int32_t> a = *mortal.runtime.MakeHostBuffer<int32_t>(4), b = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  const penstock::Run quiet = *Launch(stays, x, a);
  latch.Open();
  mortal.witness->DieAtNth(CallKind::kLaunch, 1);
  EXPECT_TRUE(base::IsFatal(Launch(adds, chain.x, b)->Wait()));
  EXPECT_TRUE(base::IsFatal(quiet.status())) << quiet.status();
}

// What it is given ends when the test says so, and it dies of kernels. It counts how often it is asked for an end.
class DyingDriver final : public runtime::NullDriver {
 public:
  DyingDriver(const std::atomic<bool>& ends, std::atomic<int>& asked) : ends_(ends), asked_(asked) {}
  absl::StatusOr<bool> Query(driver::Event) override {
    asked_.fetch_add(1);
    asked_.notify_all();
    return ends_.load();
  }
  absl::Status Launch(driver::Stream, const driver::KernelOp&) override {
    return base::WithFault(absl::InternalError("died"), {.cuda_code = 700, .fatal = true});
  }

 private:
  const std::atomic<bool>& ends_;
  std::atomic<int>& asked_;
};

// The only slot is taken by a run that does not end and that nobody watches: only who waits for its slot asks for it.
TEST(FaultTest, RefusesWhoWaitsForASlotThatDoesNotComeFree) {
  std::atomic<bool> ends{false};
  std::atomic<int> asked{0};
  const runtime::ScopedDriverHook hook({.wrap = [&](auto) { return std::make_unique<DyingDriver>(ends, asked); }});
  Runtime runtime = HostRuntime();
  Graph copies("copies");
  auto y = copies.Output<int32_t>("y", 4, kPinned);
  copies.Fill("fill", y, 1);
  Chain chain(1);
  Executable takes = *runtime.Compile(copies, {.slots = 1}), dies = *runtime.Compile(chain.graph);
  HostBuffer<int32_t> memory = *runtime.MakeHostBuffer<int32_t>(4);
  Bindings io = takes.bindings();
  const penstock::Run running = *takes.Launch(io.Set(y, memory));
  const int before = asked;
  std::future<absl::Status> launcher = std::async(std::launch::async, [&] { return takes.Launch(io).status(); });
  asked.wait(before);
  const penstock::Run fatal = *Launch(dies, chain.x, memory);
  EXPECT_EQ(launcher.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  ends = true;
  EXPECT_TRUE(base::IsFatal(fatal.Wait()));
  EXPECT_TRUE(base::IsFatal(running.Wait()));
  EXPECT_THAT(Text(launcher.get()), StartsWith("refused after a fatal device error: "));
}

// Without what ends a run nobody can tell when its work is done. The last calls of a run are the records of that.
TEST(FaultTest, ACallThatEndsARunIsTriedOnceMore) {
  Mortal mortal;
  Chain chain(2);
  Executable exec = *mortal.runtime.Compile(chain.graph, {.slots = 1});
  HostBuffer<int32_t> x = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  EXPECT_OK(Launch(exec, chain.x, x)->Wait());
  const int64_t records = mortal.witness->log().count(CallKind::kRecord);
  ASSERT_GT(records, 0);
  mortal.witness->FailNth(CallKind::kRecord, records, absl::UnavailableError("no record"));
  const absl::StatusOr<penstock::Run> run = Launch(exec, chain.x, x);
  EXPECT_EQ(run->Wait(), absl::UnavailableError("graph 'chain': no record"));  // not abandoned
  Bindings io = exec.bindings();
  EXPECT_OK(exec.TryLaunch(io.Set(chain.x, x)).status());
}

TEST(FaultTest, LeavesAnotherRuntimeAlone) {
  Mortal mortal, other;
  Chain chain(2);
  Executable dies = *mortal.runtime.Compile(chain.graph), lives = *other.runtime.Compile(chain.graph);
  HostBuffer<int32_t> x = *mortal.runtime.MakeHostBuffer<int32_t>(4), y = *other.runtime.MakeHostBuffer<int32_t>(4);
  mortal.witness->DieAtNth(CallKind::kQuery, 1);
  EXPECT_TRUE(base::IsFatal(Launch(dies, chain.x, x)->Wait()));
  y[0] = 5;
  EXPECT_OK(Launch(lives, chain.x, y)->Wait());
  EXPECT_EQ(y[0], 7);
}

TEST(FaultTest, AnErrorThatIsNotFatalFailsItsRunOnly) {
  Mortal mortal;
  Chain chain(3);
  Executable exec = *mortal.runtime.Compile(chain.graph);
  HostBuffer<int32_t> x = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  mortal.witness->FailNth(CallKind::kLaunch, 2, absl::ResourceExhaustedError("no local memory"));
  const absl::Status failed = Launch(exec, chain.x, x)->Wait();
  EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(failed), StartsWith("graph 'chain' node 'add 1' ("));
  x[0] = 0;
  EXPECT_OK(Launch(exec, chain.x, x)->Wait());
  EXPECT_EQ(x[0], 3);
}

// All of them are one segment.
TEST(FaultTest, NothingAfterACallThatFailedIsSubmitted) {
  Mortal mortal;
  Chain chain(4);
  Executable exec = *mortal.runtime.Compile(chain.graph);
  HostBuffer<int32_t> x = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  mortal.witness->FailNth(CallKind::kLaunch, 2, absl::ResourceExhaustedError("no local memory"));
  EXPECT_EQ(Launch(exec, chain.x, x)->Wait().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(mortal.witness->log().count(CallKind::kLaunch), 2);  // 'add 0', and 'add 1' that fails
  EXPECT_EQ(mortal.witness->log().count(CallKind::kCopy), 1);    // no download
}

// What was seen complete before: all that the host node had waited for, and the host node itself.
TEST(FaultTest, ListsTheNodesNotKnownDone) {
  Mortal mortal;
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4, kPinned);
  g.ParallelFor("first", 4, AddOne{}, ReadWrite(x));
  g.Host("look", [](std::span<int32_t>) {}, ReadWrite(x));
  g.ParallelFor("second", 4, AddOne{}, ReadWrite(x));
  g.ParallelFor("third", 4, AddOne{}, ReadWrite(x));
  Executable exec = *mortal.runtime.Compile(g);
  HostBuffer<int32_t> memory = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  mortal.witness->DieAtNth(CallKind::kLaunch, 3);
  EXPECT_EQ(Text(Launch(exec, x, memory)->Wait()),
            "graph 'g': injected fatal fault at Launch call 3; submitted and not known done: 'upload x', 'second'; not "
            "submitted: 'third', 'download x'")
      << exec.PlanText();
}

TEST(FaultTest, CountsTheNodesThatTheListHasNoRoomFor) {
  Mortal mortal;
  Chain chain(20);
  Executable exec = *mortal.runtime.Compile(chain.graph);
  HostBuffer<int32_t> x = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  mortal.witness->DieAtNth(CallKind::kQuery, 1);
  EXPECT_EQ(Text(Launch(exec, chain.x, x)->Wait()),
            "graph 'chain': injected fatal fault at Query call 1; submitted and not known done: 'upload x', 'add 0', "
            "'add 1', 'add 2', 'add 3', 'add 4', 'add 5', 'add 6', 'add 7', 'add 8', 'add 9', 'add 10', 'add 11', 'add "
            "12', 'add 13', 'add 14' and 6 more");
}

// Nodes that are waited for

TEST(SynchronousTest, NamesTheNodeThatAFatalErrorCameFrom) {
  Mortal mortal(/*synchronous=*/true);
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4, kPinned);
  g.ParallelFor("one", 4, AddOne{}, ReadWrite(x));
  g.ParallelFor("two", 4, AddOne{}, ReadWrite(x));
  g.ParallelFor("three", 4, AddOne{}, ReadWrite(x));
  Executable exec = *mortal.runtime.Compile(g);
  HostBuffer<int32_t> memory = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  // The Record behind the second Launch is the one by which "two" is waited for.
  mortal.witness->KeepCalls(true);
  EXPECT_OK(Launch(exec, x, memory)->Wait());
  int64_t records = 0, launches = 0;
  const driver::checked::CallLog log = mortal.witness->log();
  for (const auto& call : log.calls()) {
    launches += call.kind == CallKind::kLaunch;
    records += call.kind == CallKind::kRecord;
    if (launches == 2 && call.kind == CallKind::kRecord) break;
  }
  mortal.witness->DieAtNth(CallKind::kRecord, records);
  const absl::Status status = Launch(exec, x, memory)->Wait();
  EXPECT_TRUE(base::IsFatal(status));
  EXPECT_THAT(Text(status), StartsWith("graph 'g' node 'two' ("));
  EXPECT_THAT(Text(status), HasSubstr(") on host:0: injected fatal fault at Record call "));
}

// The failure comes while the segment is being submitted, from the node before: it is waited for.
TEST(SynchronousTest, NothingAfterANodeThatFailedIsSubmitted) {
  Mortal mortal(/*synchronous=*/true);
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4, kPinned);
  g.Launch(
       "boom", [](LaunchContext&, int32_t*) {}, ReadWrite(x))
      .HostFallback([](int32_t*) { return absl::InternalError("boom"); });
  g.ParallelFor("behind", 4, AddOne{}, ReadWrite(x));
  Executable exec = *mortal.runtime.Compile(g);
  HostBuffer<int32_t> memory = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  EXPECT_THAT(Text(Launch(exec, x, memory)->Wait()), HasSubstr("node 'boom'"));
  EXPECT_EQ(mortal.witness->log().count(CallKind::kLaunch), 1);
  EXPECT_EQ(mortal.witness->log().count(CallKind::kCopy), 1);  // no download
}

TEST(SynchronousTest, OneNodeOfTheRuntimeRunsAtATime) {
  Mortal mortal(/*synchronous=*/true);
  driver::Crowd crowd;
  const auto body = [&](int32_t* v) {
    crowd.Enter();
    std::this_thread::yield();
    ++v[0];
    crowd.Leave();
  };
  const auto never = [](LaunchContext&, int32_t*) {};
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4);
  for (int i = 0; i < 4; ++i) {
    g.Launch("host fallback " + std::to_string(i), never, ReadWrite(x)).HostFallback(body).Concurrency(8);
  }
  Executable exec = *mortal.runtime.Compile(g, {.slots = 4});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, exec]() mutable {
      std::vector<int32_t> memory(4);
      Bindings io = exec.bindings();
      for (int r = 0; r < 10; ++r) {
        const auto run = exec.Launch(io.Set(x, memory));
        if (!run.ok() || !run->Wait().ok()) ++wrong;
      }
      if (memory[0] != 40) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(crowd.most(), 1);
}

// Pinned memory needs no worker, so it is the caller of Launch that waits for the node, before anybody has the run.
TEST(SynchronousTest, ARunsDeadlineEndsTheWaitForANode) {
  driver::Latch latch;
  Mortal mortal(/*synchronous=*/true);
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4, kPinned);
  g.Launch("stays", [](LaunchContext&, int32_t*) {}, ReadWrite(x)).HostFallback([&](int32_t*) { latch.Arrive(); });
  Executable exec = *mortal.runtime.Compile(g);
  HostBuffer<int32_t> memory = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  Bindings io = exec.bindings();
  const auto run = exec.Launch(io.Set(x, memory), std::chrono::milliseconds(30));
  ASSERT_OK(run.status());
  const absl::Status status = run->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  latch.Open();
}

TEST(SynchronousTest, TheEnvironmentAsksForIt) {
  setenv("PENSTOCK_SYNC", "1", 1);
  Mortal mortal;
  unsetenv("PENSTOCK_SYNC");
  Chain chain(2);
  Executable exec = *mortal.runtime.Compile(chain.graph);
  HostBuffer<int32_t> x = *mortal.runtime.MakeHostBuffer<int32_t>(4);
  mortal.witness->DieAtNth(CallKind::kLaunch, 2);
  EXPECT_THAT(Text(Launch(exec, chain.x, x)->Wait()), StartsWith("graph 'chain' node 'add 1' ("));
}

}  // namespace
}  // namespace penstock::fault_test
