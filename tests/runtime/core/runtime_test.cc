// Runtime, Executable and Run on host devices: devices and options, deadlines, shutdown, pins, traces.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "penstock/trace.h"
#include "tests/support/environment.h"
#include "tests/support/kernels.h"
#include "tests/support/status.h"

namespace penstock::runtime_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Names(const Runtime& runtime) {
  std::string all;
  for (const Device& d : runtime.devices()) all += d.name + " ";
  return all;
}

TEST(RuntimeTest, OptionsNameTheDevices) {
  auto runtime = Runtime::Create({.devices = "host:3"});
  ASSERT_OK(runtime.status());
  EXPECT_EQ(Names(*runtime), "host:0 host:1 host:2 ");
}

TEST(RuntimeTest, EnvironmentNamesTheDevicesWhereOptionsDoNot) {
  EnvironmentScope env("PENSTOCK_DEVICES", "host:2");
  auto runtime = Runtime::Create();
  ASSERT_OK(runtime.status());
  EXPECT_EQ(Names(*runtime), "host:0 host:1 ");
  auto named = Runtime::Create({.devices = "host"});
  ASSERT_OK(named.status());
  EXPECT_EQ(Names(*named), "host:0 ");
}

TEST(RuntimeTest, WithoutANameThereIsAlwaysADevice) {
  auto runtime = Runtime::Create();
  ASSERT_OK(runtime.status());
  EXPECT_FALSE(runtime->devices().empty());
}

TEST(RuntimeTest, ADeviceThatIsNotThereIsAnError) {
  for (const char* devices : {"cuda:999", "cuda:998,999"}) {
    const auto runtime = Runtime::Create({.devices = devices});
    EXPECT_EQ(runtime.status().code(), absl::StatusCode::kNotFound) << runtime.status();
  }
  for (const char* devices : {"gpu", "host:0", "host:x", "cuda:0,0", ";"}) {
    const auto runtime = Runtime::Create({.devices = devices});
    EXPECT_EQ(runtime.status().code(), absl::StatusCode::kInvalidArgument) << devices << ": " << runtime.status();
  }
  EXPECT_EQ(Runtime::Create({.devices = "host", .workers = -1}).status().code(), absl::StatusCode::kInvalidArgument);
  for (const StagingOptions& staging :
       {StagingOptions{.threads = -1}, StagingOptions{.chunk_bytes = -1}, StagingOptions{.from_bytes = -1}}) {
    EXPECT_EQ(Runtime::Create({.devices = "host", .staging = staging}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(RuntimeTest, BadCompileOptionsAreNamed) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 4);
  g.ParallelFor("add", 4, AddOne{}, ReadWrite(x));
  EXPECT_EQ(
      runtime->Compile(g, {.slots = -1}).status().message(),
      "graph 'g': CompileOptions::slots is -1; it is the number of runs that may be in flight on a device, 1 to 1024; "
      "take 2, or 3 if uploads, kernels and downloads of runs are to overlap, or 0 to let Compile choose");
  EXPECT_EQ(runtime->Compile(g, {.device = 1}).status().message(),
            "graph 'g': CompileOptions::device is 1; the runtime has devices 0 to 0");
}

TEST(RuntimeTest, NodesPinnedToTwoDevicesExchangeData) {
  auto runtime = Runtime::Create({.devices = "host:2"});
  ASSERT_OK(runtime.status());
  constexpr int kN = 1000;
  Graph g("pins");
  auto x = g.InOut<int32_t>("x", kN);
  for (int i = 0; i < 7; ++i) {
    g.ParallelFor("add " + std::to_string(i), kN, AddOne{}, ReadWrite(x)).On(i % 2);
  }
  auto exec = runtime->Compile(g);
  ASSERT_OK(exec.status());
  std::vector<int32_t> hx(kN, 10);
  Bindings io = exec->bindings();
  for (int r = 1; r <= 5; ++r) {
    auto run = exec->Launch(io.Set(x, hx));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    ASSERT_EQ(hx, std::vector<int32_t>(kN, 10 + 7 * r));
  }
}

TEST(RuntimeTest, RuntimesLiveSideBySide) {
  auto a = Runtime::Create({.devices = "host:1"}), b = Runtime::Create({.devices = "host:2"});
  ASSERT_OK(a.status());
  ASSERT_OK(b.status());
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 100);
  g.ParallelFor("add", 100, AddOne{}, ReadWrite(x));
  for (Runtime* runtime : {&*a, &*b}) {
    auto exec = runtime->Compile(g);
    ASSERT_OK(exec.status());
    std::vector<int32_t> hx(100, 1);
    Bindings io = exec->bindings();
    auto run = exec->Launch(io.Set(x, hx));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(hx, std::vector<int32_t>(100, 2));
  }
}

TEST(RuntimeTest, HandlesMayBeDroppedInAnyOrder) {
  absl::StatusOr<Executable> exec = absl::UnknownError("");
  absl::StatusOr<HostBuffer<int32_t>> buffer = absl::UnknownError("");
  penstock::Run run;
  std::vector<int32_t> hx(100, 1);
  {
    auto runtime = Runtime::Create({.devices = "host"});
    ASSERT_OK(runtime.status());
    Graph g("g");
    auto x = g.InOut<int32_t>("x", 100);
    g.ParallelFor("add", 100, AddOne{}, ReadWrite(x));
    exec = runtime->Compile(g);
    ASSERT_OK(exec.status());
    buffer = runtime->MakeHostBuffer<int32_t>(100);
    Bindings io = exec->bindings();
    auto launched = exec->Launch(io.Set(x, hx));
    ASSERT_OK(launched.status());
    run = *launched;
  }
  EXPECT_TRUE(run.done());
  ASSERT_OK(run.status());
  EXPECT_EQ(hx, std::vector<int32_t>(100, 2));
  EXPECT_EQ(exec->TryLaunch(exec->bindings()).status().code(), absl::StatusCode::kFailedPrecondition);
  (*buffer)[99] = 5;  // still valid memory
}

// A graph whose host node waits until the test lets it go on.
struct Held {
  Graph graph{"held"};
  BufferHandle<int32_t> x = graph.InOut<int32_t>("x", 4);
  std::promise<void> open;
  std::atomic<bool> inside{false};
  Held() {
    graph.Host(
        "hold",
        [this, gate = open.get_future().share()](std::span<int32_t>) {
          inside = true;
          gate.wait();
        },
        ReadWrite(x));
  }
};

TEST(RuntimeTest, ARunPastItsDeadlineIsAbandonedAndItsSlotComesBack) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  Held held;
  auto exec = runtime->Compile(held.graph, {.slots = 1});
  ASSERT_OK(exec.status());
  std::vector<int32_t> hx(4);
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(held.x, hx), milliseconds(20));
  ASSERT_OK(run.status());
  const absl::Status status = run->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(),
            "graph 'held': the run's deadline passed before its work had drained; it is abandoned and its slot comes "
            "back when the work ends; until then the memory bound to 'x' must stay valid");
  EXPECT_EQ(exec->TryLaunch(io).status().code(), absl::StatusCode::kResourceExhausted);
  held.open.set_value();
  auto next = exec->Launch(io);  // waits for the slot
  ASSERT_OK(next.status());
  ASSERT_OK(next->Wait());
  EXPECT_EQ(run->status(), status);
}

TEST(RuntimeTest, ADeadlineEndsTheRunEvenIfNobodyWaits) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  Held held;
  auto exec = runtime->Compile(held.graph);
  ASSERT_OK(exec.status());
  std::vector<int32_t> hx(4);
  std::promise<absl::Status> ended;
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(held.x, hx), milliseconds(10));
  ASSERT_OK(run.status());
  run->OnDone([&](const absl::Status& s) { ended.set_value(s); });
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kDeadlineExceeded);
  held.open.set_value();
}

TEST(RuntimeTest, SeveralThreadsMayShutItDown) {
  for (int round = 0; round < 100; ++round) {
    Runtime runtime = *Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1});
    std::barrier together(3);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        together.arrive_and_wait();
        EXPECT_EQ(runtime.Shutdown(), absl::OkStatus());
      });
    }
  }
}

TEST(RuntimeTest, ShutdownRefusesNewWorkAndItsDeadlineHolds) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  Held held;
  auto exec = runtime->Compile(held.graph, {.slots = 2});
  ASSERT_OK(exec.status());
  std::vector<int32_t> hx(4);
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(held.x, hx));
  ASSERT_OK(run.status());
  while (!held.inside) std::this_thread::yield();
  EXPECT_EQ(runtime->Shutdown(milliseconds(5)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(exec->Launch(io).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(runtime->Compile(held.graph).status().code(), absl::StatusCode::kFailedPrecondition);
  held.open.set_value();
  ASSERT_OK(runtime->Shutdown(seconds(60)));
  EXPECT_EQ(run->status().code(), absl::StatusCode::kDeadlineExceeded);  // abandoned by the first
  ASSERT_OK(runtime->Shutdown());
}

TEST(RuntimeTest, ManyThreadsLaunchOneExecutable) {
  auto runtime = Runtime::Create({.devices = "host:2", .workers = 3});
  ASSERT_OK(runtime.status());
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 257);
  g.ParallelFor("add", 257, AddOne{}, ReadWrite(x));
  g.Host(
      "more",
      [](std::span<int32_t> v) {
        for (int32_t& e : v) e += 1;
      },
      ReadWrite(x));
  g.ParallelFor("again", 257, AddOne{}, ReadWrite(x)).On(1);
  auto exec = runtime->Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Bindings io = exec->bindings();
      for (int i = 0; i < 25; ++i) {
        std::vector<int32_t> hx(257, t * 1000 + i);
        auto run = exec->Launch(io.Set(x, hx));
        if (!run.ok() || !run->Wait().ok() || hx != std::vector<int32_t>(257, t * 1000 + i + 3)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(exec->launches(), 100);
}

TEST(RuntimeTest, ATraceHasEveryNodeOfARunOnItsLane) {
  auto runtime = Runtime::Create({.devices = "host"});
  ASSERT_OK(runtime.status());
  auto trace = Trace::Create();
  Graph g("traced");
  auto x = g.InOut<int32_t>("x", 100, kPinned);
  g.ParallelFor("add", 100, AddOne{}, ReadWrite(x));
  g.Host("look", [](std::span<const int32_t>) {}, Read(x));
  auto exec = runtime->Compile(g, {.slots = 1, .trace = trace});
  ASSERT_OK(exec.status());
  auto hx = runtime->MakeHostBuffer<int32_t>(100);
  ASSERT_OK(hx.status());
  Bindings io = exec->bindings();
  for (int r = 0; r < 2; ++r) {
    auto run = exec->Launch(io.Set(x, *hx));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }
  std::multiset<std::string> names;
  double upload_end = 0, kernel_begin = 0, kernel_end = 0, download_begin = 0;
  for (const Span& s : trace->spans()) {
    names.insert(s.name + "/" + std::to_string(s.run));
    EXPECT_LE(s.begin_us, s.end_us) << s.name;
    if (s.run != 1) continue;
    if (s.kind == SpanKind::kUpload) upload_end = s.end_us;
    if (s.kind == SpanKind::kDownload) download_begin = s.begin_us;
    if (s.kind == SpanKind::kKernel) kernel_begin = s.begin_us, kernel_end = s.end_us;
  }
  EXPECT_EQ(names, (std::multiset<std::string>{"add/0", "add/1", "download x/0", "download x/1", "look/0", "look/1",
                                               "upload x/0", "upload x/1"}));
  EXPECT_LE(upload_end, kernel_begin);
  EXPECT_LE(kernel_end, download_begin);
}

}  // namespace
}  // namespace penstock::runtime_test
