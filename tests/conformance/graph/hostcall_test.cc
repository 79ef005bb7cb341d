// Host nodes that a device asks for: that they come where they stand, that runs are not parted by them, and that the
// answer always comes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "penstock/graph_cache.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/latch.h"

namespace penstock::conformance::hostcall_test {
namespace {

using driver::Latch;
using Kind = driver::checked::CallKind;

constexpr int64_t kN = 100;

struct TimesPlus {
  uint32_t times, plus;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, uint32_t* x) const { x[i] = x[i] * times + plus; }
};
void OnHost(std::span<uint32_t> x, uint32_t times, uint32_t plus) {
  for (uint32_t& v : x) v = v * times + plus;
}

class Asked : public GraphConformance {
 protected:
  static NodeRef As(NodeRef node, HostWay way) {
    return way == HostWay::kHostcallInline ? node.Inline() : way == HostWay::kHostcallWorker ? node.Infallible() : node;
  }
  int64_t Count(Kind kind) { return checks_->witness().log().count(kind); }
  HostBuffer<uint32_t> Pinned(uint32_t value) {
    absl::StatusOr<HostBuffer<uint32_t>> made = runtime_->MakeHostBuffer<uint32_t>(kN);
    EXPECT_OK(made.status());
    std::fill(made->begin(), made->end(), value);
    return *std::move(made);
  }
  Executable Compiled(const Graph& g, CompileOptions options = {.slots = 1}) {
    absl::StatusOr<Executable> exec = runtime_->Compile(g, std::move(options));
    EXPECT_OK(exec.status());
    return exec.ok() ? *exec : Executable();
  }
  absl::Status Run(Executable& exec, const Bindings& io) {
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, exec.Launch(io));
    return run.Wait();
  }
  bool checked() const { return GetParam().checked; }
};

// Kernels and host nodes of all ways in turns, on a word that remembers the order they came in.
TEST_P(Asked, ComeWhereTheyStandBetweenKernels) {
  constexpr HostWay kWays[] = {HostWay::kHostcallInline, HostWay::kHostcallWorker, HostWay::kHostcallInline,
                               HostWay::kWorker};
  for (const bool pinned : {true, false}) {
    Graph g("turns");
    auto plus = g.Param<uint32_t>("plus");
    auto x = g.InOut<uint32_t>("x", kN, pinned ? kPinned : kHost);
    for (uint32_t i = 0; i < 12; ++i) {
      const std::string name = std::to_string(i);
      g.ParallelFor("device" + name, kN, TimesPlus{3 + i, i}, ReadWrite(x));
      NodeRef node = g.Host("host" + name, OnHost, ReadWrite(x), 5 + i, plus);
      As(node, kWays[i % 4]);
    }
    g.ParallelFor("last", kN, TimesPlus{7, 1}, ReadWrite(x));
    Executable exec = Compiled(g, {.slots = 3});
    std::vector<HostBuffer<uint32_t>> memory;
    std::vector<std::vector<uint32_t>> plain(3, std::vector<uint32_t>(kN));
    for (int i = 0; i < 3; ++i) memory.push_back(Pinned(0));
    std::vector<penstock::Run> flying(3);
    std::vector<uint32_t> wanted(3);
    Bindings io = exec.bindings();
    const auto check = [&](size_t i) {
      ASSERT_OK(flying[i].Wait());
      const std::span<const uint32_t> got = pinned ? std::span<const uint32_t>(memory[i]) : plain[i];
      for (const uint32_t v : got) ASSERT_EQ(v, wanted[i]);
    };
    for (uint32_t r = 0; r < 60; ++r) {
      const size_t i = r % 3;
      if (r >= 3) check(i);
      const uint32_t start = static_cast<uint32_t>(rng_()), add = static_cast<uint32_t>(rng_() % 4);
      wanted[i] = start;
      for (uint32_t n = 0; n < 12; ++n) wanted[i] = (wanted[i] * (3 + n) + n) * (5 + n) + add;
      wanted[i] = wanted[i] * 7 + 1;
      if (pinned) {
        std::fill(memory[i].begin(), memory[i].end(), start);
        io.Set(x, memory[i]);
      } else {
        std::fill(plain[i].begin(), plain[i].end(), start);
        io.Set(x, plain[i]);
      }
      absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(plus, add));
      ASSERT_OK(run.status());
      flying[i] = *std::move(run);
    }
    for (size_t i = 0; i < 3; ++i) check(i);
  }
}

// Several chains at once: each lane asks for itself, and each node is called once.
TEST_P(Asked, SideBySideAreEachCalledOnceARun) {
  constexpr int kChains = 6, kSteps = 5, kRuns = 20;
  Graph g("chains");
  std::vector<BufferHandle<uint32_t>> x;
  std::vector<std::atomic<int>> calls(kChains * kSteps);
  for (int c = 0; c < kChains; ++c) {
    x.push_back(g.InOut<uint32_t>("x" + std::to_string(c), kN, kPinned));
    for (int s = 0; s < kSteps; ++s) {
      const std::string name = std::to_string(c) + "." + std::to_string(s);
      const auto n = static_cast<uint32_t>(c * kSteps + s);
      g.ParallelFor("device" + name, kN, TimesPlus{3, n}, ReadWrite(x.back()));
      NodeRef node = g.Host(
          "host" + name,
          [&calls, n](std::span<uint32_t> of) {
            ++calls[n];
            OnHost(of, 5, n);
          },
          ReadWrite(x.back()));
      As(node, n % 3 == 0 ? HostWay::kHostcallWorker : HostWay::kHostcallInline);
    }
  }
  Executable exec = Compiled(g, {.slots = 2});
  std::vector<HostBuffer<uint32_t>> memory;
  for (int c = 0; c < kChains; ++c) memory.push_back(Pinned(0));
  Bindings io = exec.bindings();
  for (int r = 0; r < kRuns; ++r) {
    std::vector<uint32_t> wanted;
    for (size_t c = 0; c < kChains; ++c) {
      uint32_t v = static_cast<uint32_t>(rng_());
      std::fill(memory[c].begin(), memory[c].end(), v);
      io.Set(x[c], memory[c]);
      for (size_t s = 0; s < kSteps; ++s)
        v = (v * 3 + static_cast<uint32_t>(c * kSteps + s)) * 5 + static_cast<uint32_t>(c * kSteps + s);
      wanted.push_back(v);
    }
    ASSERT_OK(Run(exec, io));
    for (size_t c = 0; c < kChains; ++c) {
      for (const uint32_t v : memory[c]) ASSERT_EQ(v, wanted[c]) << "chain " << c << " run " << r;
    }
  }
  for (const auto& c : calls) EXPECT_EQ(c.load(), kRuns);
}

// What follows has been submitted while the callable still runs: it waits until it has.
TEST_P(Asked, PartNoRun) {
  if (!checked()) GTEST_SKIP() << "counts calls by a checked driver";
  Graph g("one");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  std::atomic<int64_t> before{0};
  std::atomic<bool> ahead{false};
  const auto submitted = [&] { return in_graphs() ? Count(Kind::kLaunchGraph) : Count(Kind::kLaunch); };
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host(
       "meanwhile",
       [&](std::span<uint32_t> of) {
         const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         const int64_t all = before + (in_graphs() ? 1 : 3);
         while (submitted() < all && std::chrono::steady_clock::now() < until) std::this_thread::yield();
         ahead = submitted() >= all;
         OnHost(of, 5, 2);
       },
       ReadWrite(x))
      .Infallible();
  g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> memory = Pinned(0);
  for (uint32_t r = 0; r < 5; ++r) {
    std::fill(memory.begin(), memory.end(), r);
    before = submitted();
    ahead = false;
    ASSERT_OK(Run(exec, exec.bindings().Set(x, memory)));
    EXPECT_TRUE(ahead) << "the run was parted";
    EXPECT_EQ(memory[kN - 1], ((r * 3 + 1) * 5 + 2) * 7 + 3);
    if (in_graphs()) {
      EXPECT_EQ(submitted() - before, 1) << "one graph";
    }
  }
}

TEST_P(Asked, TheAnswerComesThoughTheCallableFails) {
  for (const HostWay way : {HostWay::kHostcallInline, HostWay::kHostcallWorker}) {
    Graph g("fails");
    auto how = g.Param<int>("how");
    auto x = g.InOut<uint32_t>("x", kN, kPinned);
    g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
    NodeRef node = g.Host(
        "may fail",
        [](std::span<uint32_t> of, int what) {
          if (what == 1) throw std::runtime_error("as asked");
          OnHost(of, 5, 2);
          return what == 2 ? absl::DataLossError("as asked, too") : absl::OkStatus();
        },
        ReadWrite(x), how);
    As(node, way);
    g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
    Executable exec = Compiled(g);
    HostBuffer<uint32_t> memory = Pinned(0);
    for (const int what : {0, 1, 2, 0, 2, 1, 0}) {
      std::fill(memory.begin(), memory.end(), 1);
      const absl::Status status = Run(exec, exec.bindings().Set(x, memory).Set(how, what));
      if (what == 0) {
        ASSERT_OK(status);
        EXPECT_EQ(memory[0], ((1 * 3 + 1) * 5 + 2) * 7 + 3u);
        continue;
      }
      EXPECT_EQ(status.code(), what == 1 ? absl::StatusCode::kInternal : absl::StatusCode::kDataLoss);
      EXPECT_NE(status.ToString().find("node 'may fail'"), std::string::npos) << status;
      EXPECT_NE(status.ToString().find("as asked"), std::string::npos) << status;
    }
  }
}

TEST_P(Asked, AfterACancelTheNextIsNotCalledButAnswered) {
  Graph g("cancelled");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  Latch holding;
  std::atomic<int> second{0};
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host("holds", [&](std::span<uint32_t>) { holding.Arrive(); }, ReadWrite(x)).Infallible();
  g.ParallelFor("second", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host("never called", [&](std::span<uint32_t>) { ++second; }, ReadWrite(x)).Inline();
  g.ParallelFor("third", kN, TimesPlus{3, 1}, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> memory = Pinned(0);
  absl::StatusOr<penstock::Run> run = exec.Launch(exec.bindings().Set(x, memory));
  ASSERT_OK(run.status());
  ASSERT_TRUE(holding.AwaitArrived());
  run->Cancel();
  holding.Open();
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(second, 0);
  ASSERT_OK(Run(exec, exec.bindings().Set(x, memory)));
  EXPECT_EQ(second, 1);
}

// One that waits for its turn with the callable need not have it any more.
TEST_P(Asked, ACancelledRunsQuestionIsAnsweredWithoutItsTurn) {
  Graph g("waits");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  Latch holding;
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host("holds", [&](std::span<uint32_t>) { holding.Arrive(); }, ReadWrite(x)).Infallible();
  g.ParallelFor("second", kN, TimesPlus{3, 1}, ReadWrite(x));
  // A thread of a host device that asks does nothing else.
  absl::StatusOr<Runtime> runtime =
      Runtime::Create({.devices = GetParam().devices, .workers = 2, .host_device_threads = 3});
  ASSERT_OK(runtime.status());
  absl::StatusOr<Executable> exec = runtime->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  HostBuffer<uint32_t> memory[] = {*runtime->MakeHostBuffer<uint32_t>(kN), *runtime->MakeHostBuffer<uint32_t>(kN)};
  for (auto& m : memory) std::fill(m.begin(), m.end(), 0);
  absl::StatusOr<penstock::Run> held = exec->Launch(exec->bindings().Set(x, memory[0]));
  ASSERT_OK(held.status());
  ASSERT_TRUE(holding.AwaitArrived());
  absl::StatusOr<penstock::Run> waits = exec->Launch(exec->bindings().Set(x, memory[1]));
  ASSERT_OK(waits.status());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that it has asked, as a rule
  waits->Cancel();
  EXPECT_EQ(waits->Wait(std::chrono::seconds(5)).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(holding.arrived(), 1);
  holding.Open();
  EXPECT_OK(held->Wait());
}

TEST_P(Asked, OfOneCallableOneIsCalledAtATime) {
  Graph g("gate");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  std::atomic<int> running{0}, most{0};
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host(
       "alone",
       [&](std::span<uint32_t> of) {
         most = std::max(most.load(), ++running);
         std::this_thread::yield();
         OnHost(of, 5, 2);
         --running;
       },
       ReadWrite(x))
      .Infallible();
  g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
  Executable exec = Compiled(g, {.slots = 4});
  std::vector<HostBuffer<uint32_t>> memory;
  for (int i = 0; i < 4; ++i) memory.push_back(Pinned(1));
  for (int r = 0; r < 30; ++r) {
    std::vector<penstock::Run> runs;
    for (auto& m : memory) {
      absl::StatusOr<penstock::Run> run = exec.Launch(exec.bindings().Set(x, m));
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (penstock::Run& run : runs) ASSERT_OK(run.Wait());
  }
  EXPECT_EQ(most, 1);
}

// Who answers is held by another node's callable, which breaks its promise.
TEST_P(Asked, WithoutASignOfWhoAnswersTheDeviceGoesOnAndTheRunSaysSo) {
  CheckedRuntimes hasty;
  absl::StatusOr<Runtime> runtime =
      hasty.CreateRuntime({.devices = GetParam().devices, .workers = 2}, 0, std::chrono::milliseconds(200));
  ASSERT_OK(runtime.status());
  Graph g("stuck");
  auto held = g.Param<int>("held");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  Latch holding;
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host(
       "too slow",
       [&](std::span<uint32_t>, int hold) {
         if (hold != 0) holding.Arrive();
       },
       ReadWrite(x), held)
      .Inline();
  g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
  std::atomic<uint32_t> passed{0};
  g.Host("looks", [&](std::span<const uint32_t> of) { passed = of[kN - 1]; }, Read(x));
  absl::StatusOr<Executable> exec = runtime->Compile(g);
  ASSERT_OK(exec.status());
  HostBuffer<uint32_t> memory = *runtime->MakeHostBuffer<uint32_t>(kN);
  for (int r = 0; r < 2; ++r) {
    std::fill(memory.begin(), memory.end(), 1);
    holding.Shut();
    absl::StatusOr<penstock::Run> run = exec->Launch(exec->bindings().Set(x, memory).Set(held, 1));
    ASSERT_OK(run.status());
    ASSERT_TRUE(holding.AwaitArrived(r + 1));
    // The device goes on by itself: what looks at its work says so.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (passed == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(passed.exchange(0), 4u * 7 + 3);
    holding.Open();
    const absl::Status status = run->Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_NE(status.ToString().find("node 'too slow'"), std::string::npos) << status;
    EXPECT_NE(status.ToString().find("200 ms"), std::string::npos) << status;
    std::fill(memory.begin(), memory.end(), 1);
    ASSERT_OK(Run(*exec, exec->bindings().Set(x, memory).Set(held, 0)));
    EXPECT_EQ(passed.exchange(0), 4u * 7 + 3);
  }
  exec = absl::UnknownError("");
  runtime = absl::UnknownError("");
}

TEST_P(Asked, ThereIsRoomForAsManyAsADeviceHolds) {
  Graph g("many");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host("asked", OnHost, ReadWrite(x), 5u, 2u).Inline();
  g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
  const absl::Status over = runtime_->Compile(g, {.slots = 33}).status();
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(over.ToString().find("33 Host nodes may wait"), std::string::npos) << over;
  const auto run = [&](Executable& exec) {
    HostBuffer<uint32_t> memory = Pinned(1);
    EXPECT_OK(Run(exec, exec.bindings().Set(x, memory)));
    EXPECT_EQ(memory[0], (4u * 5 + 2) * 7 + 3);
  };
  {
    Executable first = Compiled(g, {.slots = 30});
    EXPECT_EQ(first.submission_report().Text().find("part the run"), std::string::npos);
    Executable second = Compiled(g, {.slots = 3});
    EXPECT_NE(second.submission_report().Text().find("part the run"), std::string::npos)
        << second.submission_report().Text();
    run(first);
    run(second);
  }
  Executable third = Compiled(g, {.slots = 32});
  EXPECT_EQ(third.submission_report().Text().find("part the run"), std::string::npos)
      << third.submission_report().Text();
  run(third);
}

// Freeing waits for kernels, and one of these waits for the callable.
TEST_P(Asked, ACallableMayLetGoOfMemory) {
  for (const HostWay way : {HostWay::kHostcallInline, HostWay::kHostcallWorker}) {
    Graph g("lets go");
    auto x = g.InOut<uint32_t>("x", kN, kPinned);
    std::optional<DeviceBuffer<uint32_t>> device;
    std::optional<HostBuffer<uint32_t>> host;
    g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
    NodeRef node = g.Host(
        "lets go",
        [&](std::span<uint32_t> of) {
          device.reset();
          host.reset();
          OnHost(of, 5, 2);
        },
        ReadWrite(x));
    As(node, way);
    g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
    Executable exec = Compiled(g);
    HostBuffer<uint32_t> memory = Pinned(1);
    for (int r = 0; r < 3; ++r) {
      std::fill(memory.begin(), memory.end(), 1);
      device = *runtime_->MakeDeviceBuffer<uint32_t>(1 << 20);
      host = Pinned(0);
      absl::StatusOr<penstock::Run> run = exec.Launch(exec.bindings().Set(x, memory));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait(std::chrono::seconds(8)));
      EXPECT_EQ(memory[0], (4u * 5 + 2) * 7 + 3);
    }
  }
}

TEST_P(Asked, WhoAnswersLaunchesNothing) {
  Graph g("launches");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  Executable other;
  absl::Status refused;
  g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
  g.Host(
       "launches", [&](std::span<uint32_t>) { refused = other.TryLaunch(other.bindings()).status(); }, ReadWrite(x))
      .Inline();
  Graph empty("other");
  auto y = empty.Buffer<uint32_t>("y", kN);
  empty.Fill("fill", y, 1u);
  other = Compiled(empty);
  HostBuffer<uint32_t> memory = Pinned(1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, memory); }));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.ToString().find("inside an Inline Host node"), std::string::npos) << refused;
}

TEST_P(Asked, ARunWithoutADeviceHasItsNodesCalledByWorkers) {
  Graph g("host only");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  g.Host("one", OnHost, ReadWrite(x), 5u, 2u).Inline();
  g.Host("two", OnHost, ReadWrite(x), 7u, 3u).Infallible();
  HostBuffer<uint32_t> memory = Pinned(1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, memory); }));
  EXPECT_EQ(memory[0], 7u * 7 + 3);
}

TEST_P(Asked, OnlyHostNodesAre) {
  Graph g("wrong");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  g.ParallelFor("kernel", kN, TimesPlus{3, 1}, ReadWrite(x)).Inline();
  const absl::Status status = runtime_->Compile(g).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.ToString().find("node 'kernel'"), std::string::npos) << status;
  EXPECT_NE(status.ToString().find("Inline and Infallible apply to Host nodes only"), std::string::npos) << status;
}

TEST_P(Asked, ADeclaredAgainStepHasItsOwnCallables) {
  GraphCache cache(*runtime_);
  HostBuffer<uint32_t> memory = Pinned(0);
  for (uint32_t r = 0; r < 10; ++r) {
    std::fill(memory.begin(), memory.end(), r);
    absl::StatusOr<penstock::Run> run = cache.Launch([&](Graph& g, Bindings& io) {
      auto x = g.InOut<uint32_t>("x", kN, kPinned);
      g.ParallelFor("first", kN, TimesPlus{3, 1}, ReadWrite(x));
      g.Host("asked", [r](std::span<uint32_t> of) { OnHost(of, 5, r); }, ReadWrite(x)).Inline();
      g.ParallelFor("second", kN, TimesPlus{7, 3}, ReadWrite(x));
      io.Set(x, memory);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(memory[kN - 1], ((r * 3 + 1) * 5 + r) * 7 + 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Asked, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Asked, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::hostcall_test
