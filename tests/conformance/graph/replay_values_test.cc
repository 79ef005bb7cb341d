// Values that change from launch to launch in many nodes of a graph: from when on they come by one copy, until when,
// and that every run has its own whatever became of the one before.
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/graph/replay_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::replay_values_test {
namespace {

constexpr int64_t kN = 40;
constexpr int kNodes = 20;

struct Twist {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x, int32_t value, int64_t wide) const {
    x[i] = static_cast<int32_t>((static_cast<uint32_t>(x[i]) * static_cast<uint32_t>(by)) +
                                static_cast<uint32_t>(value) + static_cast<uint32_t>(wide >> 32));
  }
};

// A chain of nodes that take a value each, between copies.
struct Chain {
  Graph graph{"values"};
  BufferHandle<int32_t> x;
  std::vector<ParamHandle<int32_t>> values;
  ParamHandle<int64_t> wide;

  explicit Chain(bool host_first = false, int64_t n = kN) {
    x = graph.InOut<int32_t>("x", n, kPinned);
    wide = graph.Param<int64_t>("wide");
    if (host_first) {
      graph.Host(
          "may fail",
          [](std::span<int32_t> of) { return of[0] == -1 ? absl::AbortedError("as asked") : absl::OkStatus(); },
          ReadWrite(x));
    }
    for (int i = 0; i < kNodes; ++i) {
      values.push_back(graph.Param<int32_t>("value" + std::to_string(i)));
      graph.ParallelFor("twist" + std::to_string(i), n, Twist{3 + i}, ReadWrite(x), values.back(), wide);
    }
    graph.ParallelFor("one", n, AddOne{}, ReadWrite(x));
  }
  // What the chain makes of `x` with these values.
  static int32_t Of(int32_t x, const std::vector<int32_t>& values, int64_t wide) {
    auto result = static_cast<uint32_t>(x);
    for (size_t i = 0; i < values.size(); ++i) {
      result = result * (3 + static_cast<uint32_t>(i)) + static_cast<uint32_t>(values[i]) +
               static_cast<uint32_t>(wide >> 32);
    }
    return static_cast<int32_t>(result + 1);
  }
};

class ReplayValues : public ReplayConformance {
 protected:
  std::vector<int32_t> NewValues() {
    std::vector<int32_t> values(kNodes);
    for (int32_t& value : values) value = static_cast<int32_t>(rng_() % 1000) + 1000 * ++round_;
    return values;
  }
  static void Set(Bindings& io, const Chain& chain, const std::vector<int32_t>& values, int64_t wide) {
    for (size_t i = 0; i < values.size(); ++i) io.Set(chain.values[i], values[i]);
    io.Set(chain.wide, wide);
  }
  // Launches with these values and checks what comes out.
  Changes Check(Executable& exec, const Chain& chain, Bindings& io, HostBuffer<int32_t>& memory,
                const std::vector<int32_t>& values, int64_t wide = int64_t{5} << 32) {
    const std::vector<int32_t> before = Random(kN);
    std::copy(before.begin(), before.end(), memory.begin());
    Set(io, chain, values, wide);
    const Changes changes = OfRun(exec, io);
    for (int64_t i = 0; i < kN; ++i) {
      EXPECT_EQ(memory[i], Chain::Of(before[static_cast<size_t>(i)], values, wide)) << "at " << i;
      if (memory[i] != Chain::Of(before[static_cast<size_t>(i)], values, wide)) break;
    }
    return changes;
  }
  int32_t round_ = 0;
};

TEST_P(ReplayValues, ManyNewValuesAgainAndAgainComeByOneCopyUntilTheyStayAsTheyAre) {
  const Chain chain;
  Executable exec = Compiled(chain.graph);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(chain.x, memory);
  const auto same = [] { return Changes{.launched = 1}; };
  EXPECT_EQ(Check(exec, chain, io, memory, NewValues()).set, kNodes + 2) << "both copies, too";
  for (int i = 1; i < 8; ++i) {
    EXPECT_EQ(Check(exec, chain, io, memory, NewValues()), (Changes{.launched = 1, .set = kNodes})) << "run " << i;
  }
  EXPECT_EQ(exec.submission_report().graphs, 1);
  EXPECT_EQ(Check(exec, chain, io, memory, NewValues()), same()) << "the eighth in a row";
  EXPECT_EQ(exec.submission_report().graphs, 2);
  EXPECT_NE(exec.submission_report().Text().find("come by one copy from now on"), std::string::npos)
      << exec.submission_report().Text();
  EXPECT_EQ(Check(exec, chain, io, memory, NewValues()), same());
  EXPECT_EQ(Check(exec, chain, io, memory, NewValues(), int64_t{9} << 32), same());
  EXPECT_EQ(exec.submission_report().refreshes, 3);
  std::vector<int32_t> values = NewValues();
  EXPECT_EQ(Check(exec, chain, io, memory, values), same());
  ++values[kNodes / 2];
  EXPECT_EQ(Check(exec, chain, io, memory, values), same()) << "one value is as good as many";
  EXPECT_EQ(Check(exec, chain, io, memory, values), (Changes{.launched = 1, .switched = 1}));
  for (int i = 0; i < 22; ++i) EXPECT_EQ(Check(exec, chain, io, memory, values), same()) << "run " << i;
  EXPECT_EQ(exec.submission_report().graphs, 2);
  Check(exec, chain, io, memory, values);
  EXPECT_EQ(exec.submission_report().graphs, 3) << "the 24th in a row";
  EXPECT_EQ(Check(exec, chain, io, memory, values), same());
  ++values[3];
  EXPECT_EQ(Check(exec, chain, io, memory, values), (Changes{.launched = 1, .set = 1}));
  EXPECT_EQ(exec.submission_report().refreshes, 5);
}

// The first graph waits for the argument of a Launch node, so the one behind the host node is made first.
TEST_P(ReplayValues, SoTheyComeBeforeTheFirstGraphThoughItIsMadeLast) {
  Graph g("late");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  auto wide = g.Param<int64_t>("wide"), late = g.Param<int64_t>("late");
  std::vector<ParamHandle<int32_t>> values;
  g.Launch(
       "theirs", [](LaunchContext&, int32_t*, int64_t) { return absl::OkStatus(); }, ReadWrite(x), late)
      .HostFallback([](int32_t*, int64_t) {});
  for (int i = 0; i <= kNodes; ++i) {
    values.push_back(g.Param<int32_t>("value" + std::to_string(i)));
    if (i == kNodes) g.Host("between", [](std::span<int32_t>) {}, ReadWrite(x));
    g.ParallelFor("twist" + std::to_string(i), kN, Twist{3 + i}, ReadWrite(x), values.back(), wide);
  }
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(x, memory).Set(wide, 0).Set(late, 1);
  for (int run = 0; run < 20; ++run) {
    std::vector<int32_t> now(values.size());
    for (size_t i = 0; i < now.size(); ++i) io.Set(values[i], now[i] = static_cast<int32_t>(1000 * run + 7 * i));
    std::fill(memory.begin(), memory.end(), run);
    OfRun(exec, io);
    ASSERT_EQ(memory[kN - 1] + 1, Chain::Of(run, now, 0)) << "run " << run;
  }
  EXPECT_GT(exec.submission_report().refreshes, 0);
}

// Which do not stand behind the one copy of the parameters, so what reads these must by itself.
TEST_P(ReplayValues, SoTheyComeWhereCopyEnginesBringTheRest) {
  constexpr int64_t kLarge = 20000;
  const Chain chain(/*host_first=*/false, kLarge);
  Executable exec = Compiled(chain.graph);
  HostBuffer<int32_t> memory = Pinned(kLarge, 0);
  Bindings io = exec.bindings();
  io.Set(chain.x, memory);
  for (int run = 0; run < 20; ++run) Check(exec, chain, io, memory, NewValues());
  EXPECT_EQ(exec.submission_report().refreshes, 12);
}

TEST_P(ReplayValues, AFewNewValuesAreSetNodeByNode) {
  const Chain chain;
  Executable exec = Compiled(chain.graph);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(chain.x, memory);
  std::vector<int32_t> values = NewValues();
  Check(exec, chain, io, memory, values);
  for (int run = 0; run < 20; ++run) {
    for (size_t i = 0; i < 15; ++i) ++values[i];
    EXPECT_EQ(Check(exec, chain, io, memory, values), (Changes{.launched = 1, .set = 15}));
  }
  EXPECT_EQ(exec.submission_report().refreshes, 0);
}

TEST_P(ReplayValues, EverySlotHasItsOwn) {
  const Chain chain;
  Executable exec = Compiled(chain.graph, {.slots = 3});
  std::vector<HostBuffer<int32_t>> memory;
  for (int i = 0; i < 3; ++i) memory.push_back(Pinned(kN, 0));
  Bindings io = exec.bindings();
  std::vector<std::pair<penstock::Run, int32_t>> flying(3);
  std::vector<int32_t> values = NewValues();
  for (int r = 0; r < 300; ++r) {
    const auto i = static_cast<size_t>(r % 3);
    if (r >= 3) {
      ASSERT_OK(flying[i].first.Wait());
      ASSERT_EQ(memory[i][kN - 1], flying[i].second) << "run " << r - 3;
    }
    if (rng_() % 4 != 0) values = NewValues();
    std::fill(memory[i].begin(), memory[i].end(), r);
    Set(io, chain, values, r);
    absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(chain.x, memory[i]));
    ASSERT_OK(run.status());
    flying[i] = {*std::move(run), Chain::Of(r, values, r)};
  }
  for (size_t i = 0; i < flying.size(); ++i) {
    ASSERT_OK(flying[i].first.Wait());
    EXPECT_EQ(memory[i][kN - 1], flying[i].second);
  }
  CheckLedger(exec);
}

TEST_P(ReplayValues, ARunThatFailedBeforeItsGraphKeepsNoLaterOneFromItsValues) {
  const Chain chain(true);
  Executable exec = Compiled(chain.graph);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(chain.x, memory);
  std::vector<int32_t> values;
  for (int run = 0; run < 10; ++run) Check(exec, chain, io, memory, values = NewValues());
  ASSERT_GT(exec.submission_report().refreshes, 0) << "values come by a copy";
  for (int run = 0; run < 3; ++run) {
    std::fill(memory.begin(), memory.end(), -1);
    Set(io, chain, values = NewValues(), 7);
    absl::StatusOr<penstock::Run> failing = exec.Launch(io);
    ASSERT_OK(failing.status());
    EXPECT_EQ(failing->Wait().code(), absl::StatusCode::kAborted);
    Check(exec, chain, io, memory, values, 7);
  }
}

TEST_P(ReplayValues, AValueThatIsReadThereReachesWhoeverElseTakesIt) {
  Chain chain;
  chain.graph.Host(
      "takes it too", [](std::span<int32_t> of, int64_t wide) { of[0] ^= static_cast<int32_t>(wide >> 32); },
      ReadWrite(chain.x), chain.wide);
  Executable exec = Compiled(chain.graph);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(chain.x, memory);
  for (int32_t run = 1; run < 14; ++run) {
    const std::vector<int32_t> values = NewValues();
    std::fill(memory.begin(), memory.end(), run);
    Set(io, chain, values, int64_t{run} << 32);
    OfRun(exec, io);
    ASSERT_EQ(memory[0], Chain::Of(run, values, int64_t{run} << 32) ^ run) << "run " << run;
    ASSERT_EQ(memory[1], Chain::Of(run, values, int64_t{run} << 32)) << "run " << run;
  }
  EXPECT_GT(exec.submission_report().refreshes, 0) << "values come by a copy";
}

TEST_P(ReplayValues, NodesThatReadTheirValuesThereMayBeGivenOtherMemoryAndSizes) {
  Graph g("both");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  auto x = g.InOut<int32_t>("x", n, kDevice);
  std::vector<ParamHandle<int32_t>> params;
  for (int i = 0; i < kNodes; ++i) {
    params.push_back(g.Param<int32_t>("value" + std::to_string(i)));
    g.ParallelFor("twist" + std::to_string(i), n, Twist{3 + i}, ReadWrite(x), params.back(), int64_t{0});
  }
  g.ParallelFor("one", n, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g);
  Graph upload("upload"), download("download");
  auto in = upload.Input<int32_t>("in", kN, kPinned), read = download.Input<int32_t>("read", kN, kDevice);
  auto written = upload.Output<int32_t>("written", kN, kDevice), out = download.Output<int32_t>("out", kN, kPinned);
  upload.Copy("in", in, written);
  download.Copy("out", read, out);
  Executable up = Compiled(upload), down = Compiled(download);
  absl::StatusOr<DeviceBuffer<int32_t>> devices[] = {runtime_->MakeDeviceBuffer<int32_t>(kN),
                                                     runtime_->MakeDeviceBuffer<int32_t>(kN)};
  for (const auto& d : devices) ASSERT_OK(d.status());
  HostBuffer<int32_t> from = Pinned(kN, 0), to = Pinned(kN, 0);
  Bindings io = exec.bindings(), ups = up.bindings(), downs = down.bindings();
  const auto run = [](Executable& e, const Bindings& b) {
    absl::StatusOr<penstock::Run> started = e.Launch(b);
    ASSERT_OK(started.status());
    ASSERT_OK(started->Wait());
  };
  for (int r = 0; r < 20; ++r) {
    const DeviceBuffer<int32_t>& device = *devices[r < 14 ? 0 : r % 2];
    const int64_t size = r < 16 ? kN : 1 + static_cast<int64_t>(rng_() % kN);
    std::iota(from.begin(), from.end(), 100 * r);
    run(up, ups.Set(in, from).Set(written, device));
    const std::vector<int32_t> values = NewValues();
    for (size_t i = 0; i < values.size(); ++i) io.Set(params[i], values[i]);
    if (r == 0 || r >= 14) io.Set(n, size).Set(x, std::span<int32_t>(device.data(), static_cast<size_t>(size)));
    run(exec, io);
    if (r == 13) {
      ASSERT_GT(exec.submission_report().refreshes, 0) << "values come by a copy";
    }
    run(down, downs.Set(read, device).Set(out, to));
    for (int64_t i = 0; i < kN; ++i) {
      ASSERT_EQ(to[i], i < size ? Chain::Of(from[i], values, 0) : from[i]) << "run " << r << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Host, ReplayValues,
                         testing::Values(Target{"host:2", "graph", true}, Target{"host:2", "graph", true, 7}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ReplayValues, testing::Values(Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::replay_values_test
