// Graph mode: what a launch changes in graphs that have been made, counted at the driver interface; what is in no
// graph, and what the submission_report says of all that. What results come to, every other conformance test says, in
// either mode.
#include <algorithm>
#include <string>
#include <utility>

#include "tests/conformance/graph/replay_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::replay_test {
namespace {

constexpr int64_t kN = 100;

class Replay : public ReplayConformance {
 protected:
  std::pair<int64_t, int64_t> SetForOtherMemory(int64_t n);
};

TEST_P(Replay, WhatHasNotChangedIsNotSetAgain) {
  Graph g("steady");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  auto value = g.Param<int32_t>("value");
  for (int i = 0; i < 5; ++i) g.ParallelFor("one" + std::to_string(i), kN, AddOne{}, ReadWrite(x));
  g.ParallelFor("value", kN, AddValue{}, ReadWrite(x), value);
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(x, memory).Set(value, 10);
  EXPECT_EQ(OfRun(exec, io), (Changes{.launched = 1, .set = 3})) << "both copies and the kernel with a parameter";
  EXPECT_EQ(OfRun(exec, io), (Changes{.launched = 1}));
  EXPECT_EQ(OfRun(exec, io.Set(value, 10)), (Changes{.launched = 1})) << "the same value";
  EXPECT_EQ(OfRun(exec, io.Set(x, memory)), (Changes{.launched = 1})) << "the same memory";
  EXPECT_EQ(memory[0], 4 * 15);
  EXPECT_EQ(memory[kN - 1], 4 * 15);
}

TEST_P(Replay, CompileLoadsAKernelOnceHoweverManyNodesHaveIt) {
  Graph g("kernels");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  for (int i = 0; i < 20; ++i) g.ParallelFor("one" + std::to_string(i), kN, AddOne{}, ReadWrite(x));
  const int64_t before = Count(Kind::kLoadKernel);
  Executable exec = Compiled(g);
  EXPECT_EQ(Count(Kind::kLoadKernel) - before, 1);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  OfRun(exec, io.Set(x, memory));
  EXPECT_EQ(memory[kN - 1], 20);
}

TEST_P(Replay, AHeadStandsBeforeSeveralKernelsAndBeforeNoCopyOfACopyEngine) {
  constexpr int64_t kLarge = 20000;
  for (const int64_t n : {kLarge, kN}) {
    Graph g("beginnings");
    auto x = g.Input<int32_t>("x", n, kPinned), y = g.Input<int32_t>("y", n, kPinned);
    auto z = g.Output<int32_t>("z", n, kPinned);
    auto t = g.Buffer<int32_t>("t", n);
    g.ParallelFor("copy", n, CopyOut{}, Read(x), Write(t));
    g.ParallelFor("add", n, AddTo{}, Read(y), ReadWrite(t));
    g.ParallelFor("out", n, CopyOut{}, Read(t), Write(z));
    const auto before = Count(Kind::kAddNode);
    Executable exec = Compiled(g);
    EXPECT_EQ(Count(Kind::kAddNode) - before, n == kLarge ? 6 : 7) << n;
    const HostBuffer<int32_t> xs = Pinned(n, 1), ys = Pinned(n, 2);
    HostBuffer<int32_t> zs = Pinned(n, 0);
    Bindings io = exec.bindings();
    const absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(x, xs).Set(y, ys).Set(z, zs));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(zs[static_cast<size_t>(n - 1)], 3);
  }
}

TEST_P(Replay, AStateThatIsOnlyReadIsInOneGraphWithWhatGoesBeforeAndAfter) {
  Graph g("weights");
  auto weights = runtime_->MakeState<int32_t>("weights", kN, std::vector<int32_t>(kN, 5));
  ASSERT_OK(weights.status());
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  g.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
  g.ParallelFor("add", kN, AddTo{}, Read(*weights), ReadWrite(x));
  g.ParallelFor("one more", kN, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  OfRun(exec, io.Set(x, memory));
  EXPECT_EQ(OfRun(exec, io), (Changes{.launched = 1}));
  EXPECT_EQ(memory[kN - 1], 2 * 7);
  ASSERT_OK(weights->Set(std::vector<int32_t>(kN, 100)));  // comes behind the runs, and the next behind it
  OfRun(exec, io);
  EXPECT_EQ(memory[kN - 1], 2 * 7 + 102);
}

TEST_P(Replay, AParameterSetsTheNodesThatTakeIt) {
  Graph g("params");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  const ParamHandle<int32_t> a = g.Param<int32_t>("a"), b = g.Param<int32_t>("b");
  for (int i = 0; i < 4; ++i) g.ParallelFor("a" + std::to_string(i), kN, AddValue{}, ReadWrite(x), i < 3 ? a : b);
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(x, memory).Set(a, 1).Set(b, 100);
  OfRun(exec, io);
  EXPECT_EQ(OfRun(exec, io.Set(b, 200)), (Changes{.launched = 1, .set = 1}));
  EXPECT_EQ(OfRun(exec, io.Set(a, 2)), (Changes{.launched = 1, .set = 3}));
  EXPECT_EQ(OfRun(exec, io.Set(a, 3).Set(b, 0)), (Changes{.launched = 1, .set = 4}));
  EXPECT_EQ(memory[7], 3 + 100 + 3 + 200 + 6 + 200 + 9);
}

// What launches with other memory for both, and for one, of two copies of n elements set.
std::pair<int64_t, int64_t> Replay::SetForOtherMemory(int64_t n) {
  Graph g("memory");
  auto x = g.Input<int32_t>("x", n, kPinned);
  auto y = g.Output<int32_t>("y", n, kPinned);
  auto t = g.Buffer<int32_t>("t", n);
  g.Copy("in", x, t);
  g.ParallelFor("one", n, AddOne{}, ReadWrite(t));
  g.Copy("out", t, y);
  Executable exec = Compiled(g);
  const HostBuffer<int32_t> xs[] = {Pinned(n, 1), Pinned(n, 2)};
  HostBuffer<int32_t> ys[] = {Pinned(n, 0), Pinned(n, 0)};
  Bindings io = exec.bindings();
  OfRun(exec, io.Set(x, xs[0]).Set(y, ys[0]));
  const Changes one = OfRun(exec, io.Set(x, xs[1]));
  EXPECT_EQ(ys[0][n / 2], 3);
  const Changes both = OfRun(exec, io.Set(x, xs[0]).Set(y, ys[1]));
  EXPECT_EQ(ys[1][n / 2], 2);
  EXPECT_EQ(ys[0][n / 2], 3);
  EXPECT_EQ(one.launched + both.launched, 2);
  return {both.set, one.set};
}

TEST_P(Replay, OtherMemorySetsWhatTouchesIt) {
  EXPECT_EQ(SetForOtherMemory(20000), (std::pair<int64_t, int64_t>(2, 1)));
}

// The address is in a table.
TEST_P(Replay, OtherSmallMemoryIsFoundWithoutACall) {
  EXPECT_EQ(SetForOtherMemory(kN), (std::pair<int64_t, int64_t>(0, 0)));
}

TEST_P(Replay, WhatHasNothingToDoIsSwitchedOffAndLaterOn) {
  Graph g("sizes");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  auto x = g.InOut<int32_t>("x", n, kPinned);
  g.ParallelFor("one", n, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 5);
  const auto bind = [&](Bindings& io, int64_t size) -> Bindings& {
    return io.Set(n, size).Set(x, std::span<int32_t>(memory.data(), static_cast<size_t>(size)));
  };
  Bindings io = exec.bindings();
  EXPECT_EQ(OfRun(exec, bind(io, 0)), (Changes{.launched = 1, .switched = 3}));
  EXPECT_EQ(OfRun(exec, bind(io, 0)), (Changes{.launched = 1}));
  EXPECT_EQ(OfRun(exec, bind(io, kN / 2)), (Changes{.launched = 1, .set = 3, .switched = 3}));
  EXPECT_EQ(OfRun(exec, bind(io, kN)), (Changes{.launched = 1, .set = 3}));
  EXPECT_EQ(OfRun(exec, bind(io, 0)), (Changes{.launched = 1, .switched = 3}));
  EXPECT_EQ(OfRun(exec, bind(io, kN)), (Changes{.launched = 1, .switched = 3})) << "they are what they were";
  EXPECT_EQ(memory[0], 5 + 3);
  EXPECT_EQ(memory[kN - 1], 5 + 2);
}

// CUDA takes no new addresses for copies of rows that lie apart.
TEST_P(Replay, RowsThatLieApartMayBeBoundElsewhere) {
  constexpr int64_t kRows = 5, kColumns = 9, kWide = 20;
  Graph g("tile");
  auto image = g.InOut<int32_t>("image", {kRows, kWide}, kPinned);
  auto tile = g.Buffer<int32_t>("tile", {kRows, kColumns});
  g.Copy("in", Read(image, Slice({0, 3}, {kRows, kColumns})), Write(tile));
  g.ParallelFor("one", kRows * kColumns, AddOne{}, ReadWrite(tile));
  g.Copy("out", Read(tile), Write(image, Slice({0, 4}, {kRows, kColumns})));
  Executable exec = Compiled(g);
  for (int r = 0; r < 3; ++r) {
    HostBuffer<int32_t> memory = Pinned(kRows * kWide, 0);
    const std::vector<int32_t> before = Random(kRows * kWide);
    std::copy(before.begin(), before.end(), memory.begin());
    Bindings io = exec.bindings();
    EXPECT_EQ(OfRun(exec, io.Set(image, memory)).alone, 0);
    std::vector<int32_t> expected = before;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t c = 0; c < kColumns; ++c) {
        expected[static_cast<size_t>(row * kWide + 4 + c)] = before[static_cast<size_t>(row * kWide + 3 + c)] + 1;
      }
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin())) << "run " << r;
  }
}

// What a launch that was refused has written is not taken for what the graphs do.
TEST_P(Replay, ALaunchThatIsRefusedLeavesNothingHalfChanged) {
  Graph g("refused");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  auto value = g.Param<int32_t>("value");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  g.ParallelFor("value", kN, AddValue{}, ReadWrite(x), value);
  g.ParallelFor("some", n, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0), other = Pinned(kN, 0);
  Bindings io = exec.bindings();
  OfRun(exec, io.Set(x, memory).Set(value, 1).Set(n, 0));
  EXPECT_EQ(exec.Launch(io.Set(value, 10).Set(n, kN + 1)).status().code(), absl::StatusCode::kInvalidArgument);
  const std::span<int32_t> small(other.data(), 1);
  EXPECT_EQ(exec.Launch(io.Set(n, 1).Set(x, small)).status().code(), absl::StatusCode::kInvalidArgument);
  OfRun(exec, io.Set(x, other));
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(other[0], 11) << "the new value, and one more by the node of one element";
  EXPECT_EQ(other[1], 10);
}

TEST_P(Replay, FillsAndBatchesFollowMemoryAndSizes) {
  constexpr int kParts = 8;
  Graph g("parts");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  std::vector<BufferHandle<int32_t>> x, y;
  for (int i = 0; i < kParts; ++i) {
    const Extent extent = i % 2 == 0 ? Extent(n) : Extent(kN);
    x.push_back(g.Input<int32_t>("x" + std::to_string(i), extent, kPinned));
    y.push_back(g.Output<int32_t>("y" + std::to_string(i), extent, kPinned));
    auto t = g.Buffer<int32_t>("t" + std::to_string(i), extent);
    g.Copy("in" + std::to_string(i), x.back(), t);
    g.ParallelFor("one" + std::to_string(i), extent, AddOne{}, ReadWrite(t));
    g.Copy("out" + std::to_string(i), t, y.back());
  }
  auto seven = g.Output<int32_t>("seven", n, kPinned);
  g.Fill("fill", seven, 7);
  Executable exec = Compiled(g);
  for (const int64_t size : {kN, int64_t{0}, int64_t{3}, kN}) {
    std::vector<HostBuffer<int32_t>> xs, ys;
    Bindings io = exec.bindings();
    for (int i = 0; i < kParts; ++i) {
      const auto part = static_cast<size_t>(i);
      xs.push_back(Pinned(kN, 100 * i + static_cast<int32_t>(size)));
      ys.push_back(Pinned(kN, -1));
      const auto elements = static_cast<size_t>(i % 2 == 0 ? size : kN);
      io.Set(x[part], std::span<const int32_t>(xs.back().data(), elements));
      io.Set(y[part], std::span<int32_t>(ys.back().data(), elements));
    }
    HostBuffer<int32_t> sevens = Pinned(kN, -1);
    io.Set(n, size).Set(seven, std::span<int32_t>(sevens.data(), static_cast<size_t>(size)));
    const auto before = checks_->witness().totals();
    EXPECT_EQ(OfRun(exec, io).alone, 0);
    const auto done = checks_->witness().totals() - before;
    const auto each_way = static_cast<int64_t>(sizeof(int32_t)) * (kParts / 2) * (kN + size);
    EXPECT_EQ(done.uploads.bytes + done.batch_uploads.bytes, each_way) << "nothing of the run before";
    EXPECT_EQ(done.downloads.bytes + done.batch_downloads.bytes,
              each_way + static_cast<int64_t>(sizeof(int32_t)) * size);
    EXPECT_EQ(done.fills.bytes, static_cast<int64_t>(sizeof(int32_t)) * size);
    for (int i = 0; i < kParts; ++i) {
      const auto& to = ys[static_cast<size_t>(i)];
      for (int64_t e = 0; e < kN; ++e) {
        ASSERT_EQ(to[e], i % 2 == 1 || e < size ? 100 * i + size + 1 : -1)
            << "part " << i << " at " << e << " of " << size;
      }
    }
    for (int64_t e = 0; e < kN; ++e) ASSERT_EQ(sevens[e], e < size ? 7 : -1);
  }
}

TEST_P(Replay, HostNodesPartGraphs) {
  Graph g("host");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  g.ParallelFor("before", kN, AddOne{}, ReadWrite(x));
  g.Host(
      "ten",
      [](std::span<int32_t> v) {
        for (int32_t& e : v) e += 10;
      },
      ReadWrite(x));
  g.ParallelFor("behind", kN, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g, {.slots = 2});
  EXPECT_EQ(exec.submission_report().graphs, 4) << "two a slot";
  HostBuffer<int32_t> memory = Pinned(kN, 1);
  Bindings io = exec.bindings();
  const Changes first = OfRun(exec, io.Set(x, memory));
  EXPECT_EQ(first.launched, 2);
  EXPECT_EQ(first.alone, 0);
  EXPECT_EQ(memory[kN - 1], 13);
}

TEST_P(Replay, TheEnvironmentsModeWinsAndMustBeOne) {
  Graph g("mode");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  g.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
  {
    const ModeScope stream("stream");
    EXPECT_EQ(Compiled(g, {.slots = 1, .mode = Mode::kGraph}).submission_report().mode, Mode::kStream);
  }
  {
    const ModeScope graph("graph");
    EXPECT_EQ(Compiled(g, {.slots = 1, .mode = Mode::kStream}).submission_report().mode, Mode::kGraph);
  }
  {
    const ModeScope none("");
    EXPECT_EQ(Compiled(g, {.slots = 1, .mode = Mode::kGraph}).submission_report().mode, Mode::kGraph);
    EXPECT_EQ(Compiled(g).submission_report().mode, Mode::kAuto);
  }
  {
    const ModeScope both("auto");
    EXPECT_EQ(Compiled(g, {.slots = 1, .mode = Mode::kGraph}).submission_report().mode, Mode::kAuto);
  }
  const ModeScope other("graphs");
  const absl::StatusOr<Executable> exec = runtime_->Compile(g);
  EXPECT_EQ(exec.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(exec.status().message().find("PENSTOCK_MODE is 'graphs'"), std::string_view::npos) << exec.status();
}

TEST_P(Replay, ThousandsOfRunsInTurnsAreRight) {
  Graph g("turns");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto y = g.Output<int32_t>("y", kN, kPinned);
  auto value = g.Param<int32_t>("value");
  auto t = g.Buffer<int32_t>("t", kN);
  g.Copy("in", x, t);
  g.ParallelFor("value", kN, AddValue{}, ReadWrite(t), value);
  g.ParallelFor("one", kN, AddOne{}, ReadWrite(t));
  g.Copy("out", t, y);
  Executable exec = Compiled(g, {.slots = 3});
  std::vector<HostBuffer<int32_t>> xs, ys;
  for (int i = 0; i < 3; ++i) xs.push_back(Pinned(kN, 100 * i)), ys.push_back(Pinned(kN, -1));
  std::vector<std::pair<penstock::Run, int32_t>> flying(3);
  Bindings io = exec.bindings();
  for (int r = 0; r < 2000; ++r) {
    const auto i = static_cast<size_t>(r % 3);
    if (r >= 3) {
      ASSERT_OK(flying[i].first.Wait());
      ASSERT_EQ(ys[i][kN - 1], flying[i].second) << "run " << r - 3;
    }
    const auto from = static_cast<size_t>(rng_() % 3);
    const auto v = static_cast<int32_t>(rng_() % 4);
    absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(x, xs[from]).Set(y, ys[i]).Set(value, v));
    ASSERT_OK(run.status());
    flying[i] = {*std::move(run), 100 * static_cast<int32_t>(from) + v + 1};
  }
  for (size_t i = 0; i < flying.size(); ++i) {
    ASSERT_OK(flying[i].first.Wait());
    EXPECT_EQ(ys[i][kN - 1], flying[i].second);
  }
  CheckLedger(exec);
}

INSTANTIATE_TEST_SUITE_P(Host, Replay,
                         testing::Values(Target{"host:2", "graph", true}, Target{"host:2", "graph", true, 7}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Replay, testing::Values(Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::replay_test
