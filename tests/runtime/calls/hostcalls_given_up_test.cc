// When the host gives up what a device asks for, and what it says: not because time passed, but because the thread that
// answers had its turn and did not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/runtime/core/test_hook.h"
#include "tests/support/held_graph.h"

namespace penstock::hostcalls_given_up_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The watchdog's clock: counts its looks, and stands still for so long before each. It does not run while it is
// stopped, so that a busy machine does not make the host give up.
struct Clock {
  using TimePoint = std::chrono::steady_clock::time_point;
  std::atomic<int> looks{0};
  std::chrono::nanoseconds stood_still{0};
  std::atomic<TimePoint> stopped_at{TimePoint()};
  TimePoint operator()() {
    const TimePoint stopped = stopped_at;
    return (stopped == TimePoint() ? std::chrono::steady_clock::now() : stopped) + ++looks * stood_still;
  }
  void Stop() { stopped_at = std::chrono::steady_clock::now(); }
  void Start() { stopped_at = TimePoint(); }
  void AwaitLooks(int more) const {
    const int until = looks + more;
    while (looks < until) std::this_thread::yield();
  }
};

Runtime HastyRuntime(Clock& clock, milliseconds patience) {
  runtime::DriverHook hook;
  hook.hostcall_patience = patience;
  hook.hostcall_clock = [&clock] { return clock(); };
  const runtime::ScopedDriverHook held(std::move(hook));
  return *Runtime::Create({.devices = "host:1", .workers = 2, .host_device_threads = 4});
}

// One Host node behind a fill.
struct Asking {
  Asking(const char* name, Runtime& runtime, bool is_inline) : graph(name) {
    graph.Fill("fill", x, 1);
    NodeRef node = graph.Host(
        name,
        [this](std::span<int32_t>) {
          ++calls;
          latch.Arrive();
        },
        ReadWrite(x));
    is_inline ? node.Inline() : node.Infallible();
    executable = *runtime.Compile(graph);
    memory = *runtime.MakeHostBuffer<int32_t>(4);
  }
  penstock::Run Launch() { return *executable.Launch(executable.bindings().Set(x, memory)); }

  Graph graph;
  BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4, kPinned);
  driver::Latch latch;
  std::atomic<int> calls{0};
  Executable executable;
  HostBuffer<int32_t> memory;
};

TEST(AsksGivenUp, NotForTimeThatStoodStill) {
  Clock clock;
  clock.stood_still = std::chrono::seconds(12);
  Runtime runtime = HastyRuntime(clock, milliseconds(1600));
  Asking held("held", runtime, /*is_inline=*/true);
  const penstock::Run run = held.Launch();
  ASSERT_TRUE(held.latch.AwaitArrived());
  clock.AwaitLooks(5);
  held.latch.Open();
  EXPECT_OK(run.Wait());
}

TEST(AsksGivenUp, ForAnInlineCallableThatDoesNotReturn) {
  Clock clock;
  clock.Stop();
  Runtime runtime = HastyRuntime(clock, milliseconds(20));
  Asking held("held", runtime, /*is_inline=*/true);
  const penstock::Run run = held.Launch();
  ASSERT_TRUE(held.latch.AwaitArrived());
  clock.Start();
  clock.AwaitLooks(60);
  held.latch.Open();
  const absl::Status status = run.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("node 'held'"),
                                  HasSubstr("its callable has kept the thread that answers devices for 20 ms"),
                                  HasSubstr("make it Infallible, or neither")));
}

TEST(AsksGivenUp, ForAnotherNodesCallableWhichIsNamed) {
  Clock clock;
  clock.Stop();
  Runtime runtime = HastyRuntime(clock, milliseconds(20));
  Asking held("held", runtime, /*is_inline=*/true), other("other", runtime, /*is_inline=*/false);
  const penstock::Run holds = held.Launch();
  ASSERT_TRUE(held.latch.AwaitArrived());
  const penstock::Run waits = other.Launch();
  clock.Start();
  clock.AwaitLooks(60);
  held.latch.Open();
  other.latch.Open();
  const absl::Status status = waits.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("node 'other'"), HasSubstr("the callable of graph 'held' node 'held'"),
                                  HasSubstr("make that node Infallible, or neither")));
  EXPECT_EQ(other.calls, 0) << "the device had gone on";
  (void)holds.Wait();
  clock.Stop();
  EXPECT_OK(other.Launch().Wait()) << "the next run is as any other";
  EXPECT_EQ(other.calls, 1);
}

struct Always {
  PENSTOCK_HOST_DEVICE bool operator()() const { return true; }
};
// The loop of a device would ask again and again.
TEST(AsksGivenUp, EndsTheLoopThatAsks) {
  Clock clock;
  clock.Stop();
  Runtime runtime = HastyRuntime(clock, milliseconds(20));
  Graph graph("asks");
  driver::Latch latch;
  graph.While("loop", When(Always{}), {},
              [&](Graph& body) { body.Host("held", [&latch] { latch.Arrive(); }).Inline(); });
  Executable executable = *runtime.Compile(graph, {.constructs = Lowering::kDevice});
  const penstock::Run run = *executable.Launch(executable.bindings());
  ASSERT_TRUE(latch.AwaitArrived());
  clock.Start();
  clock.AwaitLooks(60);
  latch.Open();
  const absl::Status status = run.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("node 'loop/held'"), HasSubstr("for 20 ms")));
}

TEST(AsksGivenUp, NeverForACallableOnAWorkerHoweverLongItTakes) {
  Clock clock;
  Runtime runtime = HastyRuntime(clock, milliseconds(200));
  Asking held("held", runtime, /*is_inline=*/false);
  const penstock::Run run = held.Launch();
  ASSERT_TRUE(held.latch.AwaitArrived());
  clock.AwaitLooks(40);
  held.latch.Open();
  EXPECT_OK(run.Wait());
}

}  // namespace
}  // namespace penstock::hostcalls_given_up_test
