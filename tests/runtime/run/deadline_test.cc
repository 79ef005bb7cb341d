// Deadlines: of Launch, Wait, runs and Shutdown; runs that are abandoned, and what becomes of them when they drain
// late.
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <thread>
#include <type_traits>

#include "penstock/graph.h"
#include "src/base/mutex.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"
#include "tests/support/null_driver.h"

namespace penstock::deadline_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kGoesOn[] = "Run::Wait: the deadline passed before the run ended; the run goes on";
constexpr char kAbandoned[] =
    "graph 'held': the run's deadline passed before its work had drained; it is abandoned and its slot comes back when "
    "the work ends";

// Bound memory that counts how often it is let go.
struct Counted {
  std::vector<int32_t> memory = std::vector<int32_t>(4);
  std::shared_ptr<std::atomic<int>> gone;
  explicit Counted(std::shared_ptr<std::atomic<int>> count) : gone(std::move(count)) {}
  ~Counted() { ++*gone; }
};

class DeadlineTest : public testing::Test {
 protected:
  // Memory with a keep-alive, held by the run alone.
  penstock::Run LaunchKept(Executable& exec, Deadline deadline) {
    auto kept = std::make_shared<Counted>(gone_);
    Bindings io = exec.bindings();
    return *exec.Launch(io.Set(held_.x, kept->memory, kept), deadline);
  }
  penstock::Run Launch(Executable& exec, Deadline deadline = {}) {
    Bindings io = exec.bindings();
    return *exec.Launch(io.Set(held_.x, memory_), deadline);
  }
  Executable Compile(int slots = 1) { return *runtime_.Compile(held_.graph, {.slots = slots}); }

  std::shared_ptr<std::atomic<int>> gone_ = std::make_shared<std::atomic<int>>(0);
  std::vector<int32_t> memory_ = std::vector<int32_t>(4);
  HeldGraph held_;
  Runtime runtime_ = HostRuntime();
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
class LongestDuration : public testing::Test {};
using Durations = testing::Types<std::chrono::nanoseconds, std::chrono::microseconds, milliseconds, seconds,
                                 std::chrono::hours, std::chrono::duration<int64_t, std::atto>,
                                 std::chrono::duration<uint64_t, std::exa>, std::chrono::duration<int32_t, std::exa>,
                                 std::chrono::duration<float>, std::chrono::duration<double, std::nano>>;
TYPED_TEST_SUITE(LongestDuration, Durations);

// Ten seconds of attoseconds pass before the test has ended if it is very slow; never those of the others.
TYPED_TEST(LongestDuration, HasNotPassedAndTheLeastHas) {
  EXPECT_FALSE(Deadline(TypeParam::max()).passed());
  EXPECT_TRUE(Deadline(TypeParam::min()).passed());  // of a type without a sign, no time at all
  if constexpr (!std::is_same_v<typename TypeParam::period, std::atto>) {
    EXPECT_TRUE(Deadline(TypeParam::max()).is_never());
  }
}

TEST(DeadlineOfADuration, ThatIsInfiniteIsNeverAndNoNumberHasPassed) {
  using Seconds = std::chrono::duration<double>;
  EXPECT_TRUE(Deadline(Seconds(kInfinity)).is_never());
  EXPECT_TRUE(Deadline(Seconds(-kInfinity)).passed());
  EXPECT_TRUE(Deadline(Seconds(std::numeric_limits<double>::quiet_NaN())).passed());
  EXPECT_TRUE(Deadline(std::chrono::duration<float>(std::nanf(""))).passed());
}

TEST(DeadlineOfADuration, IsExactToTheNanosecond) {
  using std::chrono::nanoseconds;
  for (const int64_t ns : {INT64_MAX, INT64_MAX - 1, int64_t{1}, int64_t{0}, int64_t{-1}, INT64_MIN + 1, INT64_MIN}) {
    EXPECT_EQ(detail::Saturated(nanoseconds(ns)), nanoseconds(ns));
  }
  EXPECT_EQ(detail::Saturated(milliseconds(INT64_MAX / 1'000'000)), milliseconds(INT64_MAX / 1'000'000));
  EXPECT_EQ(detail::Saturated(milliseconds(INT64_MAX / 1'000'000 + 1)), nanoseconds::max());
  EXPECT_EQ(detail::Saturated(std::chrono::duration<uint64_t>(UINT64_MAX)), nanoseconds::max());
  EXPECT_EQ(detail::Saturated(std::chrono::duration<int64_t, std::ratio<1, 3>>(7)), nanoseconds(2'333'333'333));
  EXPECT_EQ(detail::Saturated(std::chrono::duration<double>(0.25)), milliseconds(250));
}

TEST(DeadlineOfADuration, StartsAtAnyTime) {
  using std::chrono::nanoseconds;
  using TimePoint = Deadline::Clock::time_point;
  EXPECT_EQ(detail::After(TimePoint::max(), nanoseconds(1)), TimePoint::max());
  EXPECT_EQ(detail::After(TimePoint::min(), nanoseconds(-1)), TimePoint::min());
  EXPECT_EQ(detail::After(TimePoint::max(), nanoseconds::min()), TimePoint(nanoseconds(-1)));
  EXPECT_EQ(detail::After(TimePoint(nanoseconds(2)), nanoseconds(3)), TimePoint(nanoseconds(5)));
}

TEST(DeadlineAtATimePoint, OfEitherEndIsNeverAndPassed) {
  EXPECT_TRUE(Deadline(Deadline::Clock::time_point::max()).is_never());
  EXPECT_TRUE(Deadline(Deadline::Clock::time_point::min()).passed());
}

// Sleeps until a time that no other clock can tell.
TEST(CondVarWait, UntilTheEndsOfTimeIsWokenOrPasses) {
  base::Mutex mu;
  base::CondVar changed;
  using TimePoint = Deadline::Clock::time_point;
  for (const TimePoint until : {TimePoint::max(), TimePoint::max() - std::chrono::nanoseconds(1)}) {
    bool set = false;
    std::thread other([&] {
      base::MutexLock lock(mu);
      set = true;
      changed.NotifyOne();
    });
    {
      base::MutexLock lock(mu);
      while (!set) changed.WaitUntil(mu, until);
    }
    other.join();
  }
  base::MutexLock lock(mu);
  EXPECT_FALSE(changed.WaitUntil(mu, TimePoint::min()));
}

TEST_F(DeadlineTest, AsLongAsCanBeIsNoDeadline) {
  Executable exec = Compile();
  for (const Deadline longest : {Deadline(std::chrono::nanoseconds::max()), Deadline(std::chrono::hours::max()),
                                 Deadline(std::chrono::duration<double>(kInfinity)),
                                 Deadline(Deadline::Clock::time_point::max() - std::chrono::nanoseconds(1))}) {
    const penstock::Run run = Launch(exec, longest);
    std::thread opens([&] { held_.latch.Open(); });
    EXPECT_OK(run.Wait(longest));
    opens.join();
  }
  EXPECT_OK(runtime_.MakeHostBuffer<int>(4, std::chrono::hours::max()).status());
  EXPECT_OK(runtime_.Shutdown(milliseconds::max()));
}

TEST_F(DeadlineTest, AtTheBeginningOfTimeHasPassed) {
  Executable exec = Compile();
  const penstock::Run run = LaunchKept(exec, Deadline::Clock::time_point::min());
  EXPECT_EQ(run.Wait(Deadline::Clock::time_point::min()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Text(run.Wait()), kAbandoned);
  held_.latch.Open();
}

TEST_F(DeadlineTest, OfLaunchBoundsTheWaitForASlot) {
  Executable exec = Compile();
  const penstock::Run first = Launch(exec);
  ASSERT_TRUE(held_.latch.AwaitArrived());
  Bindings io = exec.bindings();
  io.Set(held_.x, memory_);
  const absl::Status late = exec.Launch(io, milliseconds(1)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Text(late),
            "graph 'held': all 1 slots are taken and none came free before the deadline; nothing was "
            "started");
  EXPECT_EQ(exec.launches(), 1);
  held_.latch.Open();
  ASSERT_OK(first.Wait());
}

TEST_F(DeadlineTest, OfWaitLeavesTheRunGoing) {
  Executable exec = Compile();
  const penstock::Run run = Launch(exec, seconds(3600));
  EXPECT_EQ(Text(run.Wait(milliseconds(1))), kGoesOn);
  EXPECT_EQ(run.Wait(milliseconds(-1)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Text(run.status()), "the run has not ended yet");
  held_.latch.Open();
  ASSERT_OK(run.Wait(seconds(3600)));
  ASSERT_OK(run.Wait(milliseconds(-1)));  // has ended: no deadline matters
}

TEST_F(DeadlineTest, ThatHasPassedAlreadyStartsNothing) {
  Executable exec = Compile();
  const penstock::Run run = LaunchKept(exec, milliseconds(-1));
  EXPECT_EQ(Text(run.Wait()), kAbandoned);
  held_.latch.Open();
  ASSERT_OK(Launch(exec).Wait());  // the slot is back
  EXPECT_EQ(held_.latch.arrived(), 1);
  EXPECT_EQ(gone_->load(), 1);
}

TEST_F(DeadlineTest, AnAbandonedRunKeepsItsSlotAndKeepAlivesUntilItDrains) {
  Executable exec = Compile();
  const penstock::Run run = LaunchKept(exec, seconds(2));
  ASSERT_TRUE(held_.latch.AwaitArrived());
  const absl::Status status = run.Wait();
  EXPECT_EQ(Text(status), kAbandoned);  // and no memory to name: the run keeps it itself
  EXPECT_TRUE(run.done());
  Bindings io = exec.bindings();
  io.Set(held_.x, memory_);
  EXPECT_EQ(exec.TryLaunch(io).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(gone_->load(), 0);
  held_.latch.Open();
  const penstock::Run next = Launch(exec);  // waits for the only slot
  ASSERT_OK(next.Wait());
  EXPECT_EQ(held_.after.load(), 1);  // of the second run: what the first had not begun never ran
  EXPECT_EQ(run.status(), status);
  ASSERT_OK(runtime_.Shutdown());
  EXPECT_EQ(gone_->load(), 1);
}

TEST_F(DeadlineTest, AnAbandonedRunNamesTheMemoryThatMustStay) {
  Graph g("two");
  driver::Latch latch;
  auto x = g.Input<int32_t>("x", 4), k = g.Input<int32_t>("k", 4);
  auto y = g.Output<int32_t>("y", 4);
  g.Host(
      "hold", [&](std::span<const int32_t>, std::span<const int32_t>, std::span<int32_t>) { latch.Arrive(); }, Read(x),
      Read(k), Write(y));
  Executable exec = *runtime_.Compile(g);
  std::vector<int32_t> hx(4), hy(4);
  auto kept = std::make_shared<Counted>(gone_);
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(x, hx).Set(k, kept->memory, kept).Set(y, hy), milliseconds(10));
  EXPECT_EQ(Text(run.Wait()),
            "graph 'two': the run's deadline passed before its work had drained; it is abandoned and its slot comes "
            "back when the work ends; until then the memory bound to 'x', 'y' must stay valid");
  latch.Open();
  ASSERT_OK(runtime_.Shutdown());
}

// The kernel is on the device when the deadline passes; what is queued behind it never starts.
TEST_F(DeadlineTest, AnAbandonedKernelDrainsLateAndItsSlotServesAgain) {
  Graph g("kernel");
  driver::Latch latch;
  std::atomic<int> later{0};
  auto x = g.InOut<int32_t>("x", 4);
  g.Launch(
       "hold", [](LaunchContext&, int32_t*) {}, ReadWrite(x))
      .HostFallback([&](int32_t* v) {
        latch.Arrive();
        ++v[0];
      });
  g.Launch("later", [](LaunchContext&, int32_t*) {}, ReadWrite(x)).HostFallback([&](int32_t*) { ++later; });
  Executable exec = *runtime_.Compile(g, {.slots = 1});
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(x, memory_), seconds(2));
  ASSERT_TRUE(latch.AwaitArrived());
  EXPECT_EQ(run.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  latch.Open();
  ASSERT_OK(exec.Launch(io)->Wait());
  EXPECT_EQ(later.load(), 1);
  EXPECT_EQ(memory_[0], 1);  // the abandoned run brought nothing back
}

// A driver that keeps whoever submits a fill.
class StuckDriver final : public runtime::NullDriver {
 public:
  explicit StuckDriver(driver::Latch& latch) : latch_(latch) {}
  absl::Status Fill(driver::Stream stream, const driver::FillOp& op) override {
    latch_.Arrive();
    return NullDriver::Fill(stream, op);
  }

 private:
  driver::Latch& latch_;
};

// A worker that submits what follows a host node is stuck in the driver. The host node ends after Launch has, so it is
// not the caller that goes on from there.
TEST_F(DeadlineTest, HoldsWhileTheThreadThatAdvancesTheRunIsHeldUp) {
  driver::Latch latch;
  const runtime::ScopedDriverHook hook({.wrap = [&](auto) { return std::make_unique<StuckDriver>(latch); }});
  Runtime runtime = HostRuntime();
  Graph g("stuck");
  std::promise<void> launched, told;
  auto t = g.Buffer<int32_t>("t", 4);
  auto x = g.InOut<int32_t>("x", 4);
  g.Host("go", [&](std::span<int32_t>) { launched.get_future().wait(); }, ReadWrite(x));
  g.Launch(
       "use", [](LaunchContext&, int32_t*, int32_t*) {}, ReadWrite(x), Write(t))
      .HostFallback([](int32_t*, int32_t*) {});
  g.Fill("fill", t, 7);
  Executable exec = *runtime.Compile(g, {.slots = 1});
  Bindings io = exec.bindings();
  const penstock::Run run = *exec.Launch(io.Set(x, memory_), seconds(2));
  launched.set_value();
  run.OnDone([&](const absl::Status&) { told.set_value(); });
  ASSERT_TRUE(latch.AwaitArrived());
  run.Cancel();  // returns
  EXPECT_EQ(run.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  told.get_future().wait();
  latch.Open();
  ASSERT_OK(runtime.Shutdown());
}

TEST_F(DeadlineTest, OfShutdownAbandonsWhatIsInFlight) {
  Executable exec = Compile(3);
  const penstock::Run first = Launch(exec), second = LaunchKept(exec, {}), third = LaunchKept(exec, {});
  ASSERT_TRUE(held_.latch.AwaitArrived());
  std::promise<absl::Status> told;
  third.OnDone([&](const absl::Status& s) { told.set_value(s); });
  auto waiter = std::async(std::launch::async, [&] { return second.Wait(); });
  EXPECT_EQ(Text(runtime_.Shutdown(milliseconds(1))),
            "Runtime::Shutdown: 3 runs were still in flight at the deadline; they are abandoned; the runtime keeps its "
            "threads and their memory until they have drained and Shutdown is called again");
  EXPECT_EQ(Text(first.Wait()),
            "graph 'held': the runtime was shut down before the run's work had drained; it is abandoned and its slot "
            "comes back when the work ends; until then the memory bound to 'x' must stay valid");
  EXPECT_EQ(Text(told.get_future().get()),
            "graph 'held': the runtime was shut down before the run's work had drained; it is abandoned and its slot "
            "comes back when the work ends");
  EXPECT_EQ(waiter.get().code(), absl::StatusCode::kDeadlineExceeded);
  held_.latch.Open();
  ASSERT_OK(runtime_.Shutdown());
  EXPECT_EQ(gone_->load(), 2);
  EXPECT_EQ(Text(exec.Launch(exec.bindings()).status()), "the runtime has been shut down; make a new one");
}

// The destructor does not wait a second time for what a Shutdown has given up; what is left goes on and is let go of.
TEST_F(DeadlineTest, ARuntimeGivenUpIsLeftBehindWithAWordInTheLog) {
  std::promise<std::string> logged;
  auto held = std::make_shared<HeldGraph>();
  penstock::Run run;
  {
    Runtime runtime = *Runtime::Create({.devices = "host", .workers = 2, .log = [&](LogLevel, std::string_view text) {
                                          logged.set_value(std::string(text));
                                        }});
    Executable exec = *runtime.Compile(held->graph);
    auto kept = std::make_shared<Counted>(gone_);
    Bindings io = exec.bindings();
    run = *exec.Launch(io.Set(held->x, kept->memory, kept));
    ASSERT_TRUE(held->latch.AwaitArrived());
    EXPECT_EQ(runtime.Shutdown(milliseconds(0)).code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(logged.get_future().get(),
            "Runtime::Shutdown: 1 runs were still in flight at the deadline; they are abandoned; the runtime keeps its "
            "threads and their memory until they have drained and Shutdown is called again");
  EXPECT_EQ(run.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(gone_->load(), 0);
  held->latch.Open();
  while (gone_->load() == 0) std::this_thread::yield();  // the threads that were left behind do their work
}

}  // namespace
}  // namespace penstock::deadline_test
