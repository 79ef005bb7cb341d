// One suite for every driver and mode: what a declared graph computes, in which order, and how it fails.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::graph_test {
namespace {

using std::chrono::seconds;

struct Axpy {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t a, const int32_t* x, int32_t* y) const { y[i] += a * x[i]; }
};
struct Sum {  // modulo 2^32, so that every order and device agrees
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, int32_t* out) const {
    out[i] = static_cast<int32_t>(static_cast<uint32_t>(a[i]) + 3u * static_cast<uint32_t>(b[i]));
  }
};
struct Transpose {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> in, View<int32_t> out) const {
    out(i.x, i.y) = in(i.y, i.x) + static_cast<int32_t>(in.height);
  }
};
struct Number {
  PENSTOCK_HOST_DEVICE void operator()(Index3 i, View<int32_t> out) const {
    out(i.z, i.y, i.x) = static_cast<int32_t>(i.z * 10000 + i.y * 100 + i.x);
  }
};
TEST_KERNEL void Scale([[maybe_unused]] int n, [[maybe_unused]] int32_t by, [[maybe_unused]] const int32_t* x,
                       [[maybe_unused]] int32_t* y) {
#if defined(__CUDA_ARCH__)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * by;
#endif
}
void ScaleOnHost(int n, int32_t by, const int32_t* x, int32_t* y) {
  for (int i = 0; i < n; ++i) y[i] = x[i] * by;
}

class Conformance : public GraphConformance {};

TEST_P(Conformance, CopiesInComputesAndCopiesOut) {
  constexpr int64_t kN = kSanitized ? 20003 : 100003;
  Graph g("saxpy");
  auto a = g.Param<int32_t>("a");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.InOut<int32_t>("y", kN);
  g.ParallelFor("axpy", kN, Axpy{}, a, Read(x), ReadWrite(y));
  const std::vector<int32_t> hx = Random(kN);
  std::vector<int32_t> hy = Random(kN), expected = hy;
  for (size_t i = 0; i < hy.size(); ++i) expected[i] += 7 * hx[i];
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(a, 7).Set(x, hx).Set(y, hy); }));
  EXPECT_EQ(hy, expected);
}

TEST_P(Conformance, PinnedMemoryIsUsedInPlace) {
  constexpr int64_t kN = 4097;
  Graph g("pinned");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto y = g.Output<int32_t>("y", kN, kPinned);
  auto t = g.Buffer<int32_t>("t", kN);
  g.Copy("in", x, t);
  g.ParallelFor("add", kN, AddOne{}, ReadWrite(t));
  g.Copy("out", t, y);
  auto hx = runtime_->MakeHostBuffer<int32_t>(kN), hy = runtime_->MakeHostBuffer<int32_t>(kN);
  ASSERT_OK(hx.status());
  ASSERT_OK(hy.status());
  std::iota(hx->begin(), hx->end(), 5);
  std::fill(hy->begin(), hy->end(), 0x5a5a5a5a);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, *hx).Set(y, *hy); }));
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ((*hy)[i], i + 6) << i;
}

TEST_P(Conformance, PinnedRefusesMemoryThatIsNot) {
  Graph g("strict");
  auto x = g.InOut<int32_t>("x", 8, kPinned);
  g.ParallelFor("add", 8, AddOne{}, ReadWrite(x));
  std::vector<int32_t> hx(8);
  const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(x, hx); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("not pinned, but declared kPinned; use Runtime::MakeHostBuffer"),
            std::string::npos)
      << status;
}

TEST_P(Conformance, EveryElementOfTwoAndThreeDimensionsIsVisited) {
  constexpr int64_t kH = 67, kW = 129, kD = 5;
  Graph g("shapes");
  auto in = g.Input<int32_t>("in", {kH, kW});
  auto out = g.Output<int32_t>("out", {kW, kH});
  auto cube = g.Output<int32_t>("cube", {kD, kH, kW});
  g.ParallelFor("transpose", {kH, kW}, Transpose{}, Read(in), Write(out));
  g.ParallelFor("number", {kD, kH, kW}, Number{}, Write(cube));
  const std::vector<int32_t> hin = Random(kH * kW);
  std::vector<int32_t> hout = Poisoned(kH * kW), hcube = Poisoned(kD * kH * kW);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(in, hin).Set(out, hout).Set(cube, hcube); }));
  for (int64_t y = 0; y < kH; ++y) {
    for (int64_t x = 0; x < kW; ++x) ASSERT_EQ(hout[x * kH + y], hin[y * kW + x] + kH) << y << " " << x;
  }
  for (int64_t z = 0; z < kD; ++z) {
    for (int64_t y = 0; y < kH; ++y) {
      for (int64_t x = 0; x < kW; ++x) ASSERT_EQ(hcube[(z * kH + y) * kW + x], z * 10000 + y * 100 + x);
    }
  }
}

TEST_P(Conformance, ExtentsFollowParameters) {
  constexpr int64_t kMax = 64;
  Graph g("sized");
  auto h = g.Param<int>("h", AtMost(kMax));
  auto w = g.Param<int16_t>("w", AtMost(kMax));
  auto in = g.Input<int32_t>("in", {h, w});
  auto out = g.Output<int32_t>("out", {w, h});
  g.ParallelFor("transpose", {h, w}, Transpose{}, Read(in), Write(out));
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const std::pair<int, int> sizes[] = {{1, 1}, {64, 64}, {3, 50}, {0, 7}, {64, 1}, {17, 33}};
  for (const auto& [hh, ww] : sizes) {
    const std::vector<int32_t> hin = Random(hh * ww);
    std::vector<int32_t> hout = Poisoned(hh * ww);
    auto run = exec->Launch(io.Set(h, hh).Set(w, static_cast<int16_t>(ww)).Set(in, hin).Set(out, hout));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (int y = 0; y < hh; ++y) {
      for (int x = 0; x < ww; ++x) ASSERT_EQ(hout[x * hh + y], hin[y * ww + x] + hh) << hh << "x" << ww;
    }
  }
  std::vector<int32_t> none;
  auto over = exec->Launch(io.Set(h, 65).Set(w, int16_t{1}).Set(in, none).Set(out, none));
  EXPECT_EQ(over.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(over.status().ToString().find("set to 65; declared AtMost(64)"), std::string::npos) << over.status();
}

TEST_P(Conformance, KernelTakesTypedArguments) {
  constexpr int kN = 1000;
  Graph g("kernel");
  auto by = g.Param<int32_t>("by");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.Kernel("scale", Scale, Threads(kN), kN, by, Read(x), Write(y)).HostFallback(ScaleOnHost);
  const std::vector<int32_t> hx = Random(kN);
  std::vector<int32_t> hy = Poisoned(kN);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(by, -3).Set(x, hx).Set(y, hy); }));
  for (size_t i = 0; i < kN; ++i) ASSERT_EQ(hy[i], hx[i] * -3);
}

TEST_P(Conformance, LaunchNodeSubmitsToItsStream) {
  constexpr int64_t kN = 513;
  Graph g("foreign");
  auto x = g.Input<int32_t>("x", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.Launch(
       "copy",
       [](LaunchContext& launch, const int32_t* from, int32_t* to) -> absl::Status {
#if defined(__CUDACC__)
         return ToStatus(cudaMemcpyAsync(to, from, kN * sizeof(int32_t), cudaMemcpyDeviceToDevice, CudaStream(launch)));
#else
         (void)launch, (void)from, (void)to;
         return absl::InternalError("called on a host device");
#endif
       },
       Read(x), Write(y))
      .HostFallback([](const int32_t* from, int32_t* to) { std::copy(from, from + kN, to); });
  g.ParallelFor("add", kN, AddOne{}, ReadWrite(y));
  const std::vector<int32_t> hx = Random(kN);
  std::vector<int32_t> hy = Poisoned(kN);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  for (size_t i = 0; i < kN; ++i) ASSERT_EQ(hy[i], hx[i] + 1);
}

TEST_P(Conformance, FillWritesEveryElement) {
  struct Odd {
    uint8_t r, g, b;
  };
  constexpr int64_t kN = 10007;
  Graph g("fill");
  auto a = g.Output<Odd>("a", kN);
  auto b = g.Output<int64_t>("b", kN);
  g.Fill("rgb", a, Odd{1, 2, 3});
  g.Fill("wide", b, int64_t{0x123456789abcdef});
  std::vector<Odd> ha(kN, Odd{9, 9, 9});
  std::vector<int64_t> hb(kN, -1);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(a, ha).Set(b, hb); }));
  for (size_t i = 0; i < kN; ++i) {
    ASSERT_TRUE(ha[i].r == 1 && ha[i].g == 2 && ha[i].b == 3) << i;
    ASSERT_EQ(hb[i], 0x123456789abcdef);
  }
}

TEST_P(Conformance, HostNodeSeesWhatTheDeviceWroteAndTheOtherWayRound) {
  constexpr int64_t kN = 3000;
  Graph g("round_trip");
  auto k = g.Param<int32_t>("k");
  auto x = g.Input<int32_t>("x", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.Copy("in", x, t);
  g.ParallelFor("before", kN, AddOne{}, ReadWrite(t));
  g.Host(
      "reverse",
      [](int32_t add, std::span<int32_t> v) {
        std::reverse(v.begin(), v.end());
        for (int32_t& e : v) e += add;
      },
      k, ReadWrite(t));
  g.ParallelFor("after", kN, AddOne{}, ReadWrite(t));
  g.Copy("out", t, y);
  const std::vector<int32_t> hx = Random(kN);
  std::vector<int32_t> hy = Poisoned(kN);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(k, 40).Set(x, hx).Set(y, hy); }));
  for (size_t i = 0; i < kN; ++i) ASSERT_EQ(hy[i], hx[kN - 1 - i] + 42);
}

// Pinned memory bound to a kHost buffer skips the staging copies, but not their place in the order.
TEST_P(Conformance, HostNodeWaitsForTheDownloadIntoPinnedMemory) {
  constexpr int64_t kN = kSanitized ? 1 << 16 : 1 << 20;
  Graph g("direct");
  auto y = g.InOut<int32_t>("y", kN);
  g.ParallelFor("add", kN, AddOne{}, ReadWrite(y));
  g.Host(
      "double",
      [](std::span<int32_t> v) {
        for (int32_t& e : v) e *= 2;
      },
      ReadWrite(y));
  g.ParallelFor("again", kN, AddOne{}, ReadWrite(y));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  auto hy = runtime_->MakeHostBuffer<int32_t>(kN);
  ASSERT_OK(hy.status());
  Bindings io = exec->bindings();
  for (int r = 0; r < 5; ++r) {
    std::iota(hy->begin(), hy->end(), 0);
    auto run = exec->Launch(io.Set(y, *hy));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ((*hy)[i], 2 * (i + 1) + 1) << i;
  }
}

TEST_P(Conformance, DiamondWaitsForBothSides) {
  constexpr int64_t kN = kSanitized ? 10000 : 50000;
  Graph g("diamond");
  auto x = g.Input<int32_t>("x", kN);
  auto a = g.Buffer<int32_t>("a", kN), b = g.Buffer<int32_t>("b", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.Copy("a", x, a);
  g.Copy("b", x, b);
  for (int i = 0; i < 10; ++i) {
    g.ParallelFor("left " + std::to_string(i), kN, AddOne{}, ReadWrite(a));
    g.ParallelFor("right " + std::to_string(i), kN, AddOne{}, ReadWrite(b));
  }
  g.ParallelFor("join", kN, Sum{}, Read(a), Read(b), Write(y));
  const std::vector<int32_t> hx = Random(kN);
  std::vector<int32_t> hy = Poisoned(kN);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }));
  for (size_t i = 0; i < kN; ++i) ASSERT_EQ(hy[i], 4 * hx[i] + 40);
}

TEST_P(Conformance, RunsOverlapInTheirOwnSlots) {
  constexpr int64_t kN = kSanitized ? 500 : 2000;
  constexpr int kRuns = 60;
  Graph g("slots");
  auto a = g.Param<int32_t>("a");
  auto x = g.Input<int32_t>("x", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  auto y = g.Output<int32_t>("y", kN);
  g.Fill("zero", t, 0);
  g.ParallelFor("axpy", kN, Axpy{}, a, Read(x), ReadWrite(t));
  g.Copy("out", t, y);
  auto exec = runtime_->Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  const std::vector<int32_t> hx = Random(kN);
  std::vector<std::vector<int32_t>> hy(kRuns, Poisoned(kN));
  std::vector<penstock::Run> runs;
  Bindings io = exec->bindings();
  for (int r = 0; r < kRuns; ++r) {
    auto run = exec->Launch(io.Set(a, r).Set(x, hx).Set(y, hy[r]));
    ASSERT_OK(run.status());
    runs.push_back(*std::move(run));
  }
  for (int r = 0; r < kRuns; ++r) {
    ASSERT_OK(runs[r].Wait());
    for (size_t i = 0; i < kN; ++i) ASSERT_EQ(hy[r][i], r * hx[i]) << r;
  }
  EXPECT_EQ(exec->launches(), kRuns);
}

// A host node that is held keeps its slot: with all slots held, TryLaunch must say so and Launch must wait.
TEST_P(Conformance, FullSlotsPushBack) {
  Graph g("full");
  auto x = g.InOut<int32_t>("x", 4);
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> inside{0};
  g.Host(
       "hold",
       [gate, &inside](std::span<int32_t>) {
         ++inside;
         gate.wait();
       },
       ReadWrite(x))
      .Concurrency(2);
  auto exec = runtime_->Compile(g, {.slots = 2});
  ASSERT_OK(exec.status());
  std::vector<int32_t> a(4), b(4), c(4);
  Bindings io = exec->bindings();
  auto first = exec->Launch(io.Set(x, a)), second = exec->Launch(io.Set(x, b));
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  while (inside < 2) std::this_thread::yield();
  const auto full = exec->TryLaunch(io.Set(x, c));
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.status().message(),
            "graph 'full': all 2 slots are taken; wait for a run to end, use Launch or Acquire, which wait, or compile "
            "with more slots");
  const auto late = exec->Launch(io, std::chrono::milliseconds(1));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  EXPECT_EQ(first->Wait(std::chrono::milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(first->done());
  EXPECT_EQ(first->status().code(), absl::StatusCode::kUnavailable);
  open.set_value();
  EXPECT_OK(first->Wait());
  EXPECT_OK(second->Wait());
  auto third = exec->Launch(io);
  ASSERT_OK(third.status());
  EXPECT_OK(third->Wait());
}

TEST_P(Conformance, OneCallableRunsOneAtATime) {
  Graph g("alone");
  auto x = g.InOut<int32_t>("x", 4);
  std::atomic<int> inside{0}, most{0};
  g.Host(
      "count",
      [&](std::span<int32_t>) {
        const int now = ++inside;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        for (int i = 0; i < 200; ++i) std::this_thread::yield();
        --inside;
      },
      ReadWrite(x));
  auto exec = runtime_->Compile(g, {.slots = 4});
  ASSERT_OK(exec.status());
  std::vector<std::vector<int32_t>> memory(32, std::vector<int32_t>(4));
  std::vector<penstock::Run> runs;
  for (auto& m : memory) {
    Bindings io = exec->bindings();
    auto run = exec->Launch(io.Set(x, m));
    ASSERT_OK(run.status());
    runs.push_back(*std::move(run));
  }
  for (const penstock::Run& run : runs) ASSERT_OK(run.Wait());
  EXPECT_EQ(most.load(), 1);
}

TEST_P(Conformance, OnDoneIsCalledOnceWithTheStatus) {
  Graph g("callback");
  auto x = g.InOut<int32_t>("x", 16);
  g.ParallelFor("add", 16, AddOne{}, ReadWrite(x));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  std::vector<int32_t> hx(16, 1);
  std::promise<absl::Status> during, after;
  {
    Bindings io = exec->bindings();
    auto run = exec->Launch(io.Set(x, hx));
    ASSERT_OK(run.status());
    run->OnDone([&](const absl::Status& s) { during.set_value(s); });
    ASSERT_OK(run->Wait());
    run->OnDone([&](const absl::Status& s) { after.set_value(s); });
  }
  EXPECT_OK(during.get_future().get());
  EXPECT_OK(after.get_future().get());
  EXPECT_EQ(hx, std::vector<int32_t>(16, 2));
}

TEST_P(Conformance, DroppedRunsGoOnAndFreeTheirSlot) {
  Graph g("dropped");
  auto x = g.InOut<int32_t>("x", 1000);
  g.ParallelFor("add", 1000, AddOne{}, ReadWrite(x));
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  auto hx = runtime_->MakeHostBuffer<int32_t>(1000);
  ASSERT_OK(hx.status());
  std::fill(hx->begin(), hx->end(), 0);
  Bindings io = exec->bindings();
  io.Set(x, *hx);
  for (int i = 0; i < 20; ++i) ASSERT_OK(exec->Launch(io).status());
  auto last = exec->Launch(io);
  ASSERT_OK(last.status());
  ASSERT_OK(last->Wait());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ((*hx)[i], 21);
}

TEST_P(Conformance, KeepAliveIsHeldUntilTheRunHasEnded) {
  Graph g("keep");
  auto x = g.InOut<int32_t>("x", 4);
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  g.Host("hold", [gate](std::span<int32_t>) { gate.wait(); }, ReadWrite(x));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  auto memory = std::make_shared<std::vector<int32_t>>(4);
  const std::weak_ptr<std::vector<int32_t>> watch = memory;
  absl::StatusOr<penstock::Run> run = absl::UnknownError("not launched");
  {
    Bindings io = exec->bindings();
    run = exec->Launch(io.Set(x, *memory, memory));
    memory.reset();
  }
  ASSERT_OK(run.status());
  EXPECT_FALSE(watch.expired());
  open.set_value();
  ASSERT_OK(run->Wait());
  while (!watch.expired()) std::this_thread::yield();  // released right after the run's end
}

TEST_P(Conformance, FailingHostNodeSkipsWhatDependsOnIt) {
  Graph g("fails");
  auto x = g.Input<int32_t>("x", 4);
  auto y = g.Output<int32_t>("y", 4);
  std::atomic<int> later{0};
  const Name decode = "decode";
  const int line = __LINE__ - 1;
  g.Host(
      decode, [](std::span<const int32_t>, std::span<int32_t>) { return absl::DataLossError("bad header"); }, Read(x),
      Write(y));
  g.Host("after", [&](std::span<int32_t>) { ++later; }, ReadWrite(y));
  std::vector<int32_t> hx(4), hy(4);
  const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "graph 'fails' node 'decode' (graph_test.cc:" + std::to_string(line) + ") on host: bad header");
  EXPECT_EQ(later.load(), 0);
}

TEST_P(Conformance, ThrowingHostNodeIsAnErrorAndTheSlotComesBack) {
  Graph g("throws");
  auto bad = g.Param<int>("bad");
  auto x = g.InOut<int32_t>("x", 4);
  g.Host(
      "maybe",
      [](int fail, std::span<int32_t> v) {
        if (fail) throw std::runtime_error("no such luck");
        v[0] = 1;
      },
      bad, ReadWrite(x));
  g.ParallelFor("add", 4, AddOne{}, ReadWrite(x));
  auto exec = runtime_->Compile(g, {.slots = 1});
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (int i = 0; i < 10; ++i) {
    std::vector<int32_t> hx(4, 5);
    auto run = exec->Launch(io.Set(bad, i % 2).Set(x, hx));
    ASSERT_OK(run.status());
    const absl::Status status = run->Wait();
    if (i % 2) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_NE(std::string(status.message()).find("node 'maybe' (graph_test.cc:"), std::string::npos) << status;
      EXPECT_NE(std::string(status.message()).find("the callable threw: no such luck"), std::string::npos) << status;
    } else {
      ASSERT_OK(status);
      EXPECT_EQ(hx, (std::vector<int32_t>{2, 6, 6, 6}));
    }
  }
}

TEST_P(Conformance, WaitAndLaunchAreRefusedInsideAHostNode) {
  Graph inner("inner");
  auto ix = inner.InOut<int32_t>("x", 4);
  inner.ParallelFor("add", 4, AddOne{}, ReadWrite(ix));
  auto inner_exec = runtime_->Compile(inner);
  ASSERT_OK(inner_exec.status());
  std::vector<int32_t> mine(4);
  Graph g("outer");
  auto x = g.InOut<int32_t>("x", 4);
  absl::Status launched, tried, waited;
  g.Host(
      "reenter",
      [&](std::span<int32_t>) {
        Bindings io = inner_exec->bindings();
        launched = inner_exec->Launch(io.Set(ix, mine)).status();
        auto run = inner_exec->TryLaunch(io);
        tried = run.status();
        if (run.ok() && !run->done()) waited = run->Wait();
        while (run.ok() && !run->done()) std::this_thread::yield();
      },
      ReadWrite(x));
  std::vector<int32_t> hx(4);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }));
  EXPECT_EQ(launched.code(), absl::StatusCode::kFailedPrecondition) << launched;
  EXPECT_OK(tried);
  EXPECT_TRUE(waited.ok() || waited.code() == absl::StatusCode::kFailedPrecondition) << waited;
  EXPECT_EQ(mine, std::vector<int32_t>(4, 1));
}

TEST_P(Conformance, BadBindingsAreNamed) {
  Graph g("bad");
  auto a = g.Param<int32_t>("a");
  auto x = g.Input<int32_t>("x", 8);
  auto y = g.InOut<int32_t>("y", 8);
  g.ParallelFor("axpy", 8, Axpy{}, a, Read(x), ReadWrite(y));
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  std::vector<int32_t> hx(8), hy(8), small(7);
  const std::vector<int32_t> fixed(8);
  const auto message = [&](Bindings& io) { return std::string(exec->Launch(io).status().message()); };
  Bindings io = exec->bindings();
  EXPECT_NE(message(io).find("param 'a' (graph_test.cc:"), std::string::npos) << message(io);
  io.Set(a, 1);
  EXPECT_NE(message(io).find("buffer 'x' (graph_test.cc:"), std::string::npos) << message(io);
  io.Set(x, hx).Set(y, small);
  EXPECT_NE(message(io).find("bound to 7 elements; its extent in this run has 8"), std::string::npos) << message(io);
  io.Set(y, fixed);
  EXPECT_NE(message(io).find("bound to const memory, but the graph writes it"), std::string::npos) << message(io);
  io.Set(y, hx);
  EXPECT_NE(message(io).find("overlaps the memory of buffer 'x'"), std::string::npos) << message(io);
  io.Set(y, hy);
  auto run = exec->Launch(io);
  ASSERT_OK(run.status());
  EXPECT_OK(run->Wait());
  Graph other("other");
  auto launch = other.Param<int32_t>("a");
  io.Set(launch, 1);
  EXPECT_EQ(exec->Launch(io).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(Conformance, EqualResultsWithAnyNumberOfLanesAndSlots) {
  constexpr int64_t kN = 777;
  constexpr int kWidth = 6, kDepth = 8;
  std::vector<int32_t> first;
  const std::vector<int32_t> hx = Random(kN);
  for (const int lanes : {1, 2, 8}) {
    for (const int slots : {1, 3}) {
      Graph g("stencil");
      auto x = g.Input<int32_t>("x", kN);
      auto y = g.Output<int32_t>("y", kN);
      std::vector<BufferHandle<int32_t>> row;
      for (int i = 0; i < kWidth; ++i) {
        row.push_back(g.Buffer<int32_t>("b0." + std::to_string(i), kN));
        g.Copy("start " + std::to_string(i), x, row.back());
      }
      for (int d = 1; d < kDepth; ++d) {
        std::vector<BufferHandle<int32_t>> next;
        for (int i = 0; i < kWidth; ++i) {
          next.push_back(g.Buffer<int32_t>("b" + std::to_string(d) + "." + std::to_string(i), kN));
          g.ParallelFor("s" + std::to_string(d) + "." + std::to_string(i), kN, Sum{}, Read(row[i]),
                        Read(row[(i + 1) % kWidth]), Write(next.back()));
        }
        row = next;
      }
      g.ParallelFor("last", kN, Sum{}, Read(row[0]), Read(row[3]), Write(y));
      std::vector<int32_t> hy = Poisoned(kN);
      ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }, {.slots = slots, .max_lanes = lanes}));
      if (first.empty()) {
        int64_t scale = 1;
        for (int d = 0; d < kDepth; ++d) scale *= 4;
        for (size_t i = 0; i < kN; ++i) {
          ASSERT_EQ(hy[i], static_cast<int32_t>(static_cast<uint32_t>(scale) * static_cast<uint32_t>(hx[i])));
        }
        first = hy;
      }
      EXPECT_EQ(hy, first) << lanes << " lanes, " << slots << " slots";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Conformance, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Conformance, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::graph_test
