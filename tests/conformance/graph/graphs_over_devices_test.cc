// Graph mode where a plan is on two devices: one graph has the nodes of both. What it computes, what its runs submit
// and change, and what there is instead where no graph can be made.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "penstock/control.h"
#include "penstock/trace.h"
#include "tests/conformance/graph/replay_fixture.h"
#include "tests/support/kernels.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::graphs_over_devices_test {
namespace {

constexpr int64_t kN = 100;

struct TimesAnd {
  int32_t by;
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x, int32_t value) const {
    x[i] = static_cast<int32_t>(static_cast<uint32_t>(x[i]) * static_cast<uint32_t>(by) + static_cast<uint32_t>(value));
  }
};
struct SumTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, int32_t* to) const {
    to[i] = a[i] + 3 * b[i];
  }
};

#if defined(__CUDACC__)
__global__ void AddKernel(int32_t* x, int32_t value) { x[threadIdx.x] += value; }
#endif
absl::Status AddForeignValue([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] int32_t* x,
                             [[maybe_unused]] int32_t value) {
#if defined(__CUDACC__)
  AddKernel<<<1, kN, 0, CudaStream(launch)>>>(x, value);
  return ToStatus(cudaGetLastError());
#else
  return absl::InternalError("called on a host device");
#endif
}
void AddValueTwin(int32_t* x, int32_t value) {
  for (int64_t i = 0; i < kN; ++i) x[i] += value;
}

class OverDevices : public ReplayConformance {
 protected:
  void SetUp() override {
    ReplayConformance::SetUp();
    if (!runtime_ || runtime_->devices().size() >= 2) return;
    if (RequiredDevices() >= 2) FAIL() << "PENSTOCK_REQUIRE_GPU asks for two devices";
    GTEST_SKIP() << "needs two devices";
  }
};

// Nodes with a parameter each that change device at every third, between an upload and a download.
struct Relay {
  static constexpr int kNodes = 36;
  Graph graph{"relay"};
  BufferHandle<int32_t> x;
  std::vector<ParamHandle<int32_t>> values;

  Relay() {
    x = graph.InOut<int32_t>("x", kN, kPinned);
    for (int i = 0; i < kNodes; ++i) {
      values.push_back(graph.Param<int32_t>("value" + std::to_string(i)));
      graph.ParallelFor("node" + std::to_string(i), kN, TimesAnd{3 + i}, ReadWrite(x), values.back()).On(i / 3 % 2);
    }
  }
  static int32_t Of(int32_t x, const std::vector<int32_t>& values) {
    auto result = static_cast<uint32_t>(x);
    for (size_t i = 0; i < values.size(); ++i) {
      result = result * static_cast<uint32_t>(3 + static_cast<int>(i)) + static_cast<uint32_t>(values[i]);
    }
    return static_cast<int32_t>(result);
  }
};

// First each node is set, then all values come by a copy to each device, and at last by value again.
TEST_P(OverDevices, AChainThatCrossesIsOneGraphWhoseRunsHaveTheirOwnValues) {
  const Relay relay;
  Executable exec = Compiled(relay.graph, {.slots = 1});
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(relay.x, memory);
  std::vector<int32_t> values(Relay::kNodes);
  EXPECT_EQ(exec.submission_report().graphs, 1) << exec.submission_report().Text();
  for (int run = 0; run < 50; ++run) {
    const std::vector<int32_t> before = Random(kN);
    std::copy(before.begin(), before.end(), memory.begin());
    if (run < 20) std::iota(values.begin(), values.end(), 100 * run);
    for (size_t i = 0; i < values.size(); ++i) io.Set(relay.values[i], values[i]);
    const Changes changes = OfRun(exec, io);
    EXPECT_EQ(changes.launched, 1) << run;
    EXPECT_EQ(changes.alone, 0) << "no copy between devices is submitted alone";
    for (int64_t i = 0; i < kN; ++i) {
      ASSERT_EQ(memory[i], Relay::Of(before[static_cast<size_t>(i)], values)) << "run " << run << " at " << i;
    }
  }
  const SubmissionReport report = exec.submission_report();
  EXPECT_EQ(report.mode, Mode::kGraph);
  EXPECT_GT(report.refreshes, 0) << "values come by a copy";
  EXPECT_EQ(report.graphs, 3) << "made again for values by a copy, and for values in the nodes: " << report.Text();
}

TEST_P(OverDevices, RunsOfSeveralSlotsAreRight) {
  const Relay relay;
  Executable exec = Compiled(relay.graph, {.slots = 3});
  struct Flying {
    penstock::Run run;
    std::vector<int32_t> before, values;
    HostBuffer<int32_t> memory;
  };
  std::vector<Flying> flying(3);
  for (Flying& f : flying) f.memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  const auto check = [&](Flying& f) {
    ASSERT_OK(f.run.Wait());
    for (int64_t i = 0; i < kN; ++i) {
      ASSERT_EQ(f.memory[i], Relay::Of(f.before[static_cast<size_t>(i)], f.values));
    }
  };
  for (int r = 0; r < 60; ++r) {
    Flying& f = flying[static_cast<size_t>(r % 3)];
    if (r >= 3) check(f);
    f.before = Random(kN);
    f.values = Random(Relay::kNodes);
    std::copy(f.before.begin(), f.before.end(), f.memory.begin());
    for (size_t i = 0; i < f.values.size(); ++i) io.Set(relay.values[i], f.values[i]);
    absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(relay.x, f.memory));
    ASSERT_OK(run.status());
    f.run = *std::move(run);
  }
  for (Flying& f : flying) check(f);
  CheckLedger(exec);
}

// A block of a grid goes from one device to the other: its rows are apart unless it is as wide as the grid.
TEST_P(OverDevices, ABlockWhoseWidthAParameterSaysIsRightInEachRun) {
  constexpr int64_t kRows = 8, kColumns = 16;
  Graph g("block");
  auto width = g.Param<int64_t>("width", AtMost{kColumns});
  auto x = g.Input<int32_t>("x", {kRows, kColumns}, kPinned);
  auto y = g.Output<int32_t>("y", {kRows, kColumns}, kPinned);
  auto t = g.Buffer<int32_t>("t", {kRows, kColumns}), u = g.Buffer<int32_t>("u", {kRows, kColumns});
  g.ParallelFor("here", kRows * kColumns, CopyOut{}, Read(x), Write(t)).On(0);
  g.Fill("clear", u, 0).On(1);
  g.Copy("block", Read(t, Slice({0, 0}, {kRows, width})), Write(u, Slice({0, 0}, {kRows, width}))).On(1);
  g.ParallelFor("there", kRows * kColumns, CopyOut{}, Read(u), Write(y)).On(1);
  Executable exec = Compiled(g);
  const std::vector<int32_t> in = Random(kRows * kColumns);
  HostBuffer<int32_t> from = Pinned(kRows * kColumns, 0), to = Pinned(kRows * kColumns, -1);
  std::copy(in.begin(), in.end(), from.begin());
  Bindings io = exec.bindings();
  for (const int64_t w : {5, 16, 16, 5, 1, 7, 7}) {
    std::fill(to.begin(), to.end(), -1);
    EXPECT_EQ(OfRun(exec, io.Set(x, from).Set(y, to).Set(width, w)).launched, 1);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      ASSERT_EQ(to[i], i % kColumns < w ? in[static_cast<size_t>(i)] : 0) << "width " << w << " at " << i;
    }
  }
  EXPECT_EQ(exec.submission_report().graphs, 6) << "one, and one for each change of a block whose rows are apart";
}

TEST_P(OverDevices, ALineWhoseLengthAParameterSaysIsSetInTheGraph) {
  Graph g("line");
  auto n = g.Param<int64_t>("n", AtMost{kN});
  auto x = g.InOut<int32_t>("x", n, kPinned);
  g.ParallelFor("here", n, AddOne{}, ReadWrite(x)).On(0);
  g.ParallelFor("there", n, AddOne{}, ReadWrite(x)).On(1);
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  for (const int64_t size : {7, 0, 100, 100, 3}) {
    std::fill(memory.begin(), memory.end(), 5);
    OfRun(exec, io.Set(x, std::span(memory.data(), static_cast<size_t>(size))).Set(n, size));
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(memory[i], i < size ? 7 : 5) << "size " << size << " at " << i;
  }
  EXPECT_EQ(exec.submission_report().graphs, 1);
}

TEST_P(OverDevices, CallablesOfBothDevicesAreCapturedThere) {
  Graph g("foreign");
  auto value = g.Param<int32_t>("value");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  for (int i = 0; i < 4; ++i) {
    g.Launch("theirs" + std::to_string(i), AddForeignValue, ReadWrite(x), value).HostFallback(AddValueTwin).On(i % 2);
  }
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  for (const int32_t v : {1, 1, 10}) {
    std::fill(memory.begin(), memory.end(), 7);
    EXPECT_EQ(OfRun(exec, io.Set(x, memory).Set(value, v)).launched, 1);
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(memory[i], 7 + 4 * v);
  }
  EXPECT_EQ(exec.submission_report().graphs, 1);
}

TEST_P(OverDevices, NodesOfBothDevicesCallTheHost) {
  Graph g("asked");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  for (int i = 0; i < 4; ++i) {
    g.ParallelFor("add" + std::to_string(i), kN, AddOne{}, ReadWrite(x)).On(i % 2);
    g.Host(
         "host" + std::to_string(i),
         [i](std::span<int32_t> v) {
           for (int32_t& e : v) e = e * 2 + i;
         },
         ReadWrite(x))
        .Infallible();
  }
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  for (int run = 0; run < 3; ++run) {
    std::fill(memory.begin(), memory.end(), run);
    OfRun(exec, io.Set(x, memory));
    int32_t expected = run;
    for (int i = 0; i < 4; ++i) expected = (expected + 1) * 2 + i;
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(memory[i], expected);
  }
}

// The state is only read, so no node is on its device.
TEST_P(OverDevices, ACopyFromADeviceWithoutNodesIsInTheGraph) {
  const std::vector<int32_t> contents = Random(kN);
  const auto state =
      runtime_->MakeState<int32_t>("there", kN, std::span<const int32_t>(contents), StateOptions{.device = 1});
  ASSERT_OK(state.status());
  Graph g("peer");
  auto y = g.Output<int32_t>("y", kN, kPinned);
  g.ParallelFor("here", kN, CopyOut{}, Read(*state), Write(y)).On(0);
  Executable exec = Compiled(g);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  EXPECT_EQ(OfRun(exec, io.Set(y, memory)).alone, 0);
  EXPECT_TRUE(std::equal(contents.begin(), contents.end(), memory.begin()));
}

// Runs try streams and graphs in turns, and each ends with events of the device that recorded them.
TEST_P(OverDevices, RunsThatWriteStatesOfBothDevicesAreInOrderInEitherMode) {
  const ModeScope automatic("auto");
  const std::vector<int32_t> zeros(kN);
  const auto here =
      runtime_->MakeState<int32_t>("here", kN, std::span<const int32_t>(zeros), StateOptions{.device = 0});
  const auto there =
      runtime_->MakeState<int32_t>("there", kN, std::span<const int32_t>(zeros), StateOptions{.device = 1});
  ASSERT_OK(here.status());
  ASSERT_OK(there.status());
  Graph g("states");
  auto y = g.Output<int32_t>("y", kN, kPinned);
  g.ParallelFor("one", kN, AddOne{}, ReadWrite(*here)).On(0);
  g.ParallelFor("other", kN, AddTo{}, Read(*here), ReadWrite(*there)).On(1);
  g.ParallelFor("out", kN, SumTo{}, Read(*here), Read(*there), Write(y)).On(1);
  Executable exec = Compiled(g, {.slots = 2});
  ASSERT_EQ(exec.submission_report().mode, Mode::kAuto) << exec.submission_report().Text();
  constexpr int kRuns = 300;
  std::vector<HostBuffer<int32_t>> outs;
  for (int i = 0; i < 2; ++i) outs.push_back(Pinned(kN, -1));
  std::vector<penstock::Run> flying(2);
  Bindings io = exec.bindings();
  const auto check = [&](int run) {
    ASSERT_OK(flying[static_cast<size_t>(run % 2)].Wait());
    const int32_t count = run + 1;
    ASSERT_EQ(outs[static_cast<size_t>(run % 2)][kN - 1], count + 3 * count * (count + 1) / 2) << "run " << run;
  };
  for (int run = 0; run < kRuns; ++run) {
    if (run >= 2) check(run - 2);
    absl::StatusOr<penstock::Run> launched = exec.Launch(io.Set(y, outs[static_cast<size_t>(run % 2)]));
    ASSERT_OK(launched.status());
    flying[static_cast<size_t>(run % 2)] = *std::move(launched);
  }
  check(kRuns - 2);
  check(kRuns - 1);
  EXPECT_GT(Count(Kind::kLaunchGraph), 0);
  EXPECT_GT(Count(Kind::kLaunch), 0);
}

TEST_P(OverDevices, SpansSayWhichDeviceEachNodeWasOnAndInWhichOrder) {
  const std::shared_ptr<Trace> trace = Trace::Create();
  Graph g("traced");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  for (int i = 0; i < 4; ++i) g.ParallelFor("n" + std::to_string(i), kN, AddOne{}, ReadWrite(x)).On(i / 2);
  Executable exec = Compiled(g, {.slots = 1, .trace = trace});
  EXPECT_EQ(exec.submission_report().mode, Mode::kGraph);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  const double before = trace->Now();
  OfRun(exec, io.Set(x, memory));
  std::multiset<std::pair<std::string, int>> seen;
  double end[2] = {0, 0};
  for (const Span& s : trace->spans()) {
    if (s.device < 0) continue;
    seen.emplace(s.name, s.device);
    EXPECT_LE(s.begin_us, s.end_us) << s.name;
    EXPECT_LT(std::abs(s.begin_us - before), 60e6) << s.name << " is on a clock of its own";
    if (s.name.size() != 2) continue;
    EXPECT_GE(s.begin_us, end[s.device]) << s.name << " began before the one before it on its device had ended";
    end[s.device] = s.end_us;
  }
  const std::multiset<std::pair<std::string, int>> expected = {
      {"upload x", 0}, {"n0", 0}, {"n1", 0}, {"peer copy x", 1}, {"n2", 1}, {"n3", 1}, {"download x", 1}};
  EXPECT_EQ(seen, expected);
}

// Constructs that the host drives begin and end between graphs, all of which are launched on one device.
TEST_P(OverDevices, WhereConstructsOfBothDevicesBeginAndEndIsTraced) {
  const std::vector<int32_t> zeros(kN);
  const auto trace = Trace::Create();
  Graph g("driven");
  auto times = g.Param<int64_t>("times", AtMost{100});
  std::vector<State<int32_t>> states;
  std::multiset<std::pair<std::string, int>> expected;
  for (const int device : {0, 1}) {
    auto state = runtime_->MakeState<int32_t>(Name("state", device), kN, std::span<const int32_t>(zeros),
                                              StateOptions{.device = device});
    ASSERT_OK(state.status());
    states.push_back(*state);
    const std::string name = "loop " + std::to_string(device);
    g.Repeat(name, times, [&](Graph& body) { body.ParallelFor("add", kN, AddOne{}, ReadWrite(*state)).On(device); });
    expected.insert({{name + " (begin)", device}, {name + " (end)", device}});
  }
  Executable exec = Compiled(g, {.slots = 1, .constructs = Lowering::kHost, .trace = trace});
  EXPECT_EQ(exec.submission_report().mode, Mode::kGraph) << exec.submission_report().Text();
  Bindings io = exec.bindings();
  const double before = trace->Now();
  absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(times, 5));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  for (const State<int32_t>& state : states) {
    std::vector<int32_t> left(kN);
    ASSERT_OK(state.Read(std::span(left)));
    EXPECT_EQ(left, std::vector<int32_t>(kN, 5));
  }
  std::multiset<std::pair<std::string, int>> seen;
  for (const Span& s : trace->spans()) {
    if (s.name.find(" (") == std::string::npos) continue;
    seen.emplace(s.name, s.device);
    EXPECT_LE(s.begin_us, s.end_us) << s.name;
    EXPECT_LT(std::abs(s.begin_us - before), 60e6) << s.name << " is on a clock of its own";
  }
  EXPECT_EQ(seen, expected);
}

// A construct that its device decides has a graph there, so the plan is of streams.
TEST_P(OverDevices, AConstructMakesThemStreamsAndTheLedgerSaysSo) {
  Graph g("construct");
  auto times = g.Param<int64_t>("times", AtMost{100});
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  g.ParallelFor("before", kN, AddOne{}, ReadWrite(x)).On(0);
  g.Repeat("again", times, [&](Graph& body) { body.ParallelFor("inside", kN, AddOne{}, ReadWrite(x)).On(1); });
  Executable exec = Compiled(g);
  const SubmissionReport report = exec.submission_report();
  EXPECT_EQ(report.mode, Mode::kStream);
  EXPECT_NE(report.Text().find("several devices"), std::string::npos) << report.Text();
  HostBuffer<int32_t> memory = Pinned(kN, 1);
  Bindings io = exec.bindings();
  absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(x, memory).Set(times, 5));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(memory[0], 7);
}

INSTANTIATE_TEST_SUITE_P(Host, OverDevices,
                         testing::Values(Target{"host:2", "graph", true}, Target{"host:3", "graph", true, 7}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, OverDevices, testing::Values(Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::graphs_over_devices_test
