// Regions of small nodes that run resident: random graphs against an interpreter, with what launches change.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/trace.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/resident_elsewhere.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::resident_test {
namespace {

constexpr int kBuffers = 12;

// Mixes two elements into one of its own, after as many turns as `spin` says: workers are not equally fast.
struct Blend {
  uint32_t by, spin;
  PENSTOCK_HOST_DEVICE static uint32_t Of(uint32_t own, uint32_t a, uint32_t b, uint32_t by) {
    return own * 5U + a * 3U + b + by;
  }
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<uint32_t> to, View<const uint32_t> a, View<const uint32_t> b,
                                       uint32_t value) const {
    const uint32_t result = Of(to(i), a(i), b(i), by + value);
    volatile uint32_t turns = 0;
    for (uint32_t turn = 0; turn < spin; ++turn) turns = turn;
    static_cast<void>(turns);
    to(i) = result;
  }
};
// The same over two dimensions.
struct BlendPlane {
  uint32_t by;
  PENSTOCK_HOST_DEVICE void operator()(Index2 at, View<uint32_t> to, View<const uint32_t> from) const {
    to(at.y, at.x) = Blend::Of(to(at.y, at.x), from(at.y, at.x), 0, by);
  }
};

struct AddBoth {
  PENSTOCK_HOST_DEVICE static int32_t Of(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b) * 3U);
  }
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> a,
                                       View<const int32_t> b) const {
    to(i) = Of(a(i), b(i));
  }
};

// Of this unit alone: which unit's code a functor of a header has, the linker decides.
struct Increase {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { x(i) += 1; }
};
struct AddFirst {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<const int32_t> from, View<int32_t> x) const { x(i) += from(0); }
};
struct SumUp {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<const int32_t> x, View<int32_t> sum) const {
    sum(0) = 0;
    for (int64_t i = 0; i < x.width; ++i) sum(0) += x(i);
  }
};

struct Step {
  enum Kind { kBlend, kPlane, kFill, kCopy, kHost };
  Kind kind;
  size_t to, a, b;
  uint32_t by, spin;
};

using Memory = std::vector<std::vector<uint32_t>>;

class RandomSteps {
 public:
  RandomSteps(std::mt19937& rng, int64_t n, int steps, bool hosts) : n_(n) {
    for (int s = 0; s < steps; ++s) {
      const uint32_t kind = rng() % 16;
      Step step{.kind = kind < 11              ? Step::kBlend
                        : kind < 13            ? Step::kPlane
                        : kind == 13           ? Step::kFill
                        : kind == 14 || !hosts ? Step::kCopy
                                               : Step::kHost,
                .to = rng() % kBuffers,
                .a = rng() % kBuffers,
                .b = rng() % kBuffers,
                .by = static_cast<uint32_t>(rng()),
                .spin = rng() % 4 == 0 ? static_cast<uint32_t>(rng() % 300) : 0};
      if (step.a == step.to) step.a = (step.a + 1) % kBuffers;
      if (step.b == step.to) step.b = (step.b + 1) % kBuffers;
      steps_.push_back(step);
    }
  }

  void Declare(Graph& graph, const std::vector<BufferHandle<uint32_t>>& x, ParamHandle<uint32_t> value) const {
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      const std::string name = "step" + std::to_string(s);
      switch (step.kind) {
        case Step::kBlend:
          graph.ParallelFor(name, 2 * n_, Blend{step.by, step.spin}, ReadWrite(x[step.to]), Read(x[step.a]),
                            Read(x[step.b]), value);
          break;
        case Step::kPlane:
          graph.ParallelFor(name, {2, n_}, BlendPlane{step.by}, ReadWrite(x[step.to]), Read(x[step.a]));
          break;
        case Step::kFill: graph.Fill(name, x[step.to], step.by); break;
        case Step::kCopy: graph.Copy(name, x[step.a], x[step.to]); break;
        case Step::kHost:
          graph.Host(
              name,
              [by = step.by](std::span<uint32_t> of) {
                for (uint32_t& v : of) v += by;
              },
              ReadWrite(x[step.to]));
      }
    }
  }

  void Interpret(Memory& x, uint32_t value) const {
    for (const Step& step : steps_) {
      std::vector<uint32_t>& to = x[step.to];
      for (size_t i = 0; i < to.size(); ++i) {
        switch (step.kind) {
          case Step::kBlend: to[i] = Blend::Of(to[i], x[step.a][i], x[step.b][i], step.by + value); break;
          case Step::kPlane: to[i] = Blend::Of(to[i], x[step.a][i], 0, step.by); break;
          case Step::kFill: to[i] = step.by; break;
          case Step::kCopy: to[i] = x[step.a][i]; break;
          case Step::kHost: to[i] += step.by;
        }
      }
    }
  }

  size_t size() const { return steps_.size(); }
  // Whether one of two steps writes what the other uses.
  bool Conflict(size_t s, size_t t) const { return Writes(s, t) || Writes(t, s); }

 private:
  bool Writes(size_t writer, size_t user) const {
    const Step& of = steps_[user];
    const size_t to = steps_[writer].to;
    const bool reads_a = of.kind != Step::kFill && of.kind != Step::kHost, reads_b = of.kind == Step::kBlend;
    return of.to == to || (reads_a && of.a == to) || (reads_b && of.b == to);
  }

  int64_t n_;
  std::vector<Step> steps_;
};

class Residents : public GraphConformance {
 protected:
  Memory RandomMemory(int64_t elements) {
    Memory memory(kBuffers, std::vector<uint32_t>(static_cast<size_t>(elements)));
    for (std::vector<uint32_t>& of : memory) {
      for (uint32_t& v : of) v = static_cast<uint32_t>(rng_());
    }
    return memory;
  }

  // Buffers of two rows of `n` elements.
  void CheckRandom(int64_t n, int steps, bool hosts, int runs) {
    const RandomSteps random(rng_, n, steps, hosts);
    Graph graph("resident");
    std::vector<BufferHandle<uint32_t>> x;
    for (int b = 0; b < kBuffers; ++b) x.push_back(graph.InOut<uint32_t>("x" + std::to_string(b), {2, n}));
    const ParamHandle<uint32_t> value = graph.Param<uint32_t>("value");
    random.Declare(graph, x, value);
    auto exec = runtime_->Compile(graph);
    ASSERT_OK(exec.status());
    for (int r = 0; r < runs; ++r) {
      Memory memory = RandomMemory(2 * n), expected = memory;
      const auto of_run = static_cast<uint32_t>(rng_() % 2);
      Bindings io = exec->bindings();
      for (size_t b = 0; b < kBuffers; ++b) io.Set(x[b], memory[b]);
      io.Set(value, of_run);
      ASSERT_OK(exec->Launch(io)->Wait());
      random.Interpret(expected, of_run);
      ASSERT_EQ(memory, expected) << "run " << r;
    }
    EXPECT_GT(exec->submission_report().region_nodes, 1);
  }
};

// Each node of a region has a span of its own, in the order of the graph.
TEST_P(Residents, ATraceTellsWhenEachNodeOfARegionRan) {
  constexpr int kSteps = 60, kRuns = 2;
  const RandomSteps random(rng_, 3, kSteps, false);
  Graph graph("traced");
  std::vector<BufferHandle<uint32_t>> x;
  for (int b = 0; b < kBuffers; ++b) x.push_back(graph.InOut<uint32_t>("x" + std::to_string(b), {2, 3}));
  const ParamHandle<uint32_t> value = graph.Param<uint32_t>("value");
  random.Declare(graph, x, value);
  const auto trace = Trace::Create();
  auto exec = runtime_->Compile(graph, {.slots = 1, .trace = trace});
  ASSERT_OK(exec.status());
  for (int r = 0; r < kRuns; ++r) {
    Memory memory = RandomMemory(6), expected = memory;
    Bindings io = exec->bindings();
    for (size_t b = 0; b < kBuffers; ++b) io.Set(x[b], memory[b]);
    ASSERT_OK(exec->Launch(io.Set(value, 1))->Wait());
    random.Interpret(expected, 1);
    ASSERT_EQ(memory, expected) << "run " << r;
  }
  const int64_t in_regions = exec->submission_report().region_nodes;
  ASSERT_GT(in_regions, kSteps / 2);
  for (int r = 0; r < kRuns; ++r) {
    std::map<std::string, Span> of_step;  // but of those that are no nodes of a device
    int64_t of_workers = 0;
    for (const Span& span : trace->spans()) {
      const bool of_many = span.name.find(" more, ") != std::string::npos;
      if (span.run != r || span.device < 0 || of_many || span.name.rfind("step", 0) != 0) continue;
      of_workers += span.track.find(" resident worker ") != std::string::npos ? 1 : 0;
      EXPECT_TRUE(of_step.emplace(span.name, span).second) << span.name << " has two spans";
    }
    EXPECT_EQ(of_workers, on_cuda() ? in_regions : 0);
    EXPECT_GE(static_cast<int64_t>(of_step.size()), in_regions);
    for (const auto& [name, later] : of_step) {
      EXPECT_LE(later.begin_us, later.end_us) << name;
      for (const auto& [before, earlier] : of_step) {
        const size_t s = std::stoul(before.substr(4)), t = std::stoul(name.substr(4));
        if (s >= t || !random.Conflict(s, t)) continue;
        EXPECT_LE(earlier.end_us, later.begin_us) << before << " and " << name;
      }
    }
  }
}

// Nodes of one worker, or of a host device, follow each other on its track. One that has nothing to do has no span.
TEST_P(Residents, AWorkerHasATrackInATrace) {
  constexpr int kChains = 4, kNodes = 5;
  Graph graph("chains");
  const auto x = graph.InOut<int32_t>("x", kChains);
  const auto some = graph.Param<int64_t>("some", AtMost(1));
  for (int c = 0; c < kChains; ++c) {
    const std::string name = std::to_string(c);
    for (int n = 0; n < kNodes; ++n) {
      graph.ParallelFor(name + "add" + std::to_string(n), 1, AddOne{}, ReadWrite(x, Slice(c, 1)));
    }
    graph.ParallelFor(name + "some", some, AddOne{}, ReadWrite(x, Slice(c, 1)));
  }
  const auto trace = Trace::Create();
  auto exec = runtime_->Compile(graph, {.slots = 1, .trace = trace});
  ASSERT_OK(exec.status());
  std::vector<int32_t> memory(kChains);
  ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory).Set(some, 0))->Wait());
  EXPECT_EQ(memory, std::vector<int32_t>(kChains, kNodes));
  ASSERT_EQ(exec->submission_report().regions, 1) << exec->submission_report().Text();
  std::map<std::string, std::vector<Span>> tracks;
  std::string of_region;
  for (const Span& span : trace->spans()) {
    if (span.name.find(", a region") != std::string::npos) of_region = span.track;
    else if (span.name.find("add") == 1) tracks[span.track].push_back(span);
    EXPECT_NE(span.name, "0some");
  }
  size_t nodes = 0;
  for (auto& [track, spans] : tracks) {
    EXPECT_EQ(track.rfind(of_region + (on_cuda() ? " resident worker " : ""), 0), 0u) << track;
    nodes += spans.size();
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::tuple(a.begin_us, a.end_us) < std::tuple(b.begin_us, b.end_us);
    });
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].end_us, spans[i].begin_us) << track;
  }
  EXPECT_EQ(nodes, size_t{kChains * kNodes});
  EXPECT_GE(tracks.size(), on_cuda() ? 2u : 1u);
}

// PENSTOCK_RANDOM_PROGRAMS: how many graphs.
TEST_P(Residents, RandomGraphsComputeWhatAnInterpreterDoes) {
  const uint64_t graphs = FromEnvironment("PENSTOCK_RANDOM_PROGRAMS", kSanitized ? 3 : 12);
  for (uint64_t g = 0; g < graphs && !HasFailure(); ++g) {
    CheckRandom(1 + static_cast<int64_t>(rng_() % 40), 10 + static_cast<int>(rng_() % 150), g % 3 == 0, 4);
  }
}

// More tasks than fit into the pages that a worker holds at once.
TEST_P(Residents, ALongChainIsOneRegion) {
  constexpr int kNodes = 400;
  Graph graph("chain");
  const auto x = graph.InOut<int32_t>("x", 3);
  for (int i = 0; i < kNodes; ++i) graph.ParallelFor("add" + std::to_string(i), 3, AddOne{}, ReadWrite(x));
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  for (int r = 0; r < 3; ++r) {
    std::vector<int32_t> memory = {r, 2, -7};
    ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory))->Wait());
    EXPECT_EQ(memory, (std::vector<int32_t>{r + kNodes, 2 + kNodes, -7 + kNodes}));
  }
  const SubmissionReport report = exec->submission_report();
  EXPECT_EQ(report.regions, 1) << report.Text();
  EXPECT_EQ(report.region_nodes, kNodes);
}

// More workers than a worker has lanes to wait with.
TEST_P(Residents, ATaskMayWaitForAllOtherWorkers) {
  constexpr int64_t kParts = 100;
  Graph graph("join");
  const auto x = graph.InOut<int32_t>("x", kParts), sum = graph.Output<int32_t>("sum", 1);
  for (int64_t p = 0; p < kParts; ++p) {
    graph.ParallelFor("part" + std::to_string(p), 1, Increase{}, ReadWrite(x, Slice(p, 1)));
  }
  graph.ParallelFor("sum", 1, SumUp{}, Read(x), Write(sum));
  for (int64_t p = 0; p < kParts; ++p) {
    graph.ParallelFor("again" + std::to_string(p), 1, AddFirst{}, Read(sum), ReadWrite(x, Slice(p, 1)));
  }
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  for (int r = 0; r < 5; ++r) {
    std::vector<int32_t> memory = Random(kParts), got(1), expected = memory;
    int32_t total = 0;
    for (const int32_t v : memory) total += v + 1;
    for (int32_t& v : expected) v += 1 + total;
    ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory).Set(sum, got))->Wait());
    ASSERT_EQ(got[0], total) << "run " << r;
    ASSERT_EQ(memory, expected) << "run " << r;
  }
  EXPECT_EQ(exec->submission_report().regions, 1);
}

// Nothing else differs, so nothing else is looked at.
TEST_P(Residents, ALaunchMayChangeAValueAlone) {
  constexpr int64_t kN = 70;
  Graph graph("value");
  const auto by = graph.Param<int32_t>("by");
  const auto x = graph.InOut<int32_t>("x", kN);
  graph.ParallelFor("first", kN, AddValue{}, ReadWrite(x), by);
  graph.ParallelFor("second", kN, AddValue{}, ReadWrite(x), by);
  auto exec = runtime_->Compile(graph);
  ASSERT_OK(exec.status());
  std::vector<int32_t> got(kN);
  int32_t expected = 0;
  Bindings io = exec->bindings().Set(x, got);
  for (int32_t run = 1; run <= 5; ++run) {
    ASSERT_OK(exec->Launch(io.Set(by, run))->Wait());
    expected += 2 * run;
    ASSERT_EQ(got, std::vector<int32_t>(kN, expected)) << "run " << run;
  }
  EXPECT_GT(exec->submission_report().regions, 0);
}

// The device memory and the extent are another in each launch.
TEST_P(Residents, LaunchesDecideMemoryAndExtent) {
  constexpr int64_t kMost = 70;
  Graph graph("moves");
  const auto n = graph.Param<int64_t>("n", AtMost(kMost));
  const auto in = graph.Input<int32_t>("in", kMost);
  const auto x = graph.Output<int32_t>("x", kMost, kDevice);
  const auto y = graph.Output<int32_t>("y", kMost);
  graph.ParallelFor("load", kMost, CopyOut<>{}, Read(in), Write(x));
  graph.Fill("fill", y, 5);
  graph.ParallelFor("plus one", n, PlusOne{}, Read(x), ReadWrite(y));
  graph.ParallelFor("add one", n, AddOne{}, ReadWrite(x));
  graph.ParallelFor("add", kMost, AddTo<>{}, Read(x), ReadWrite(y));
  auto exec = runtime_->Compile(graph);
  ASSERT_OK(exec.status());
  std::vector<DeviceBuffer<int32_t>> memory;
  for (int m = 0; m < 3; ++m) memory.push_back(*runtime_->MakeDeviceBuffer<int32_t>(kMost));
  for (size_t r = 0; r < 9; ++r) {
    const std::vector<int32_t> given = Random(kMost);
    std::vector<int32_t> got = Poisoned(kMost), expected;
    const int64_t of_run = r % 4 == 0 ? 0 : static_cast<int64_t>(rng_() % kMost);
    for (int64_t i = 0; i < kMost; ++i) {
      const int32_t v = given[static_cast<size_t>(i)];
      expected.push_back(i < of_run ? (v + 1) + (v + 1) : 5 + v);
    }
    Bindings io = exec->bindings();
    io.Set(in, given).Set(x, memory[r % 3]).Set(y, got).Set(n, of_run);
    ASSERT_OK(exec->Launch(io)->Wait());
    ASSERT_EQ(got, expected) << "run " << r << " of " << of_run;
  }
  EXPECT_GT(exec->submission_report().regions, 0);
}

// Their functors are called by pointers, which are good in one unit.
TEST_P(Residents, NodesOfTwoTranslationUnitsShareNoRegionOnCuda) {
  constexpr int64_t kN = 5;
  Graph graph("units");
  const auto x = graph.InOut<int32_t>("x", kN);
  for (int i = 0; i < 9; ++i) {
    const std::string name = "add" + std::to_string(i);
    if (i / 3 == 1) AddTenElsewhere(graph, name, kN, x);
    else graph.ParallelFor(name, kN, AddOne{}, ReadWrite(x));
  }
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  std::vector<int32_t> memory(kN, 7);
  ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory))->Wait());
  EXPECT_EQ(memory, std::vector<int32_t>(kN, 7 + 36));
  EXPECT_EQ(exec->submission_report().regions, on_cuda() ? 3 : 1);
  EXPECT_EQ(exec->submission_report().region_nodes, 9);
}

// All workers of a region must be on the device at once, and these are more than it has room for.
TEST_P(Residents, ManyWideRegionsAtOnceEnd) {
  constexpr int kWidth = 128, kSteps = 10;
  const size_t runs_at_once = kSanitized || GetParam().checked ? 4 : 64;
  Graph graph("wide");
  const auto in = graph.Input<int32_t>("in", kWidth), out = graph.Output<int32_t>("out", kWidth);
  BufferHandle<int32_t> from = graph.Buffer<int32_t>("start", kWidth);
  graph.Copy("begin", in, from);
  for (int s = 0; s < kSteps; ++s) {
    const auto to = s + 1 < kSteps ? graph.Buffer<int32_t>("row" + std::to_string(s), kWidth)
                                   : graph.Buffer<int32_t>("last", kWidth);
    for (int c = 0; c < kWidth; ++c) {
      const int next = (c + 1) % kWidth;
      graph.ParallelFor("cell" + std::to_string(s * kWidth + c), 1, AddBoth{}, Write(to, Slice(c, 1)),
                        Read(from, Slice(c, 1)), Read(from, Slice(next, 1)));
    }
    from = to;
  }
  graph.Copy("end", from, out);
  auto exec = runtime_->Compile(graph, {.slots = static_cast<int>(runs_at_once)});
  ASSERT_OK(exec.status());
  std::vector<std::vector<int32_t>> given, got;
  std::vector<penstock::Run> runs;
  for (size_t r = 0; r < runs_at_once; ++r) given.push_back(Random(kWidth)), got.push_back(Poisoned(kWidth));
  for (size_t r = 0; r < runs_at_once; ++r) {
    runs.push_back(*exec->Launch(exec->bindings().Set(in, given[r]).Set(out, got[r])));
  }
  for (size_t r = 0; r < runs_at_once; ++r) {
    ASSERT_OK(runs[r].Wait());
    std::vector<int32_t> row = given[r];
    for (int s = 0; s < kSteps; ++s) {
      std::vector<int32_t> next(kWidth);
      for (size_t c = 0; c < kWidth; ++c) next[c] = AddBoth::Of(row[c], row[(c + 1) % kWidth]);
      row = next;
    }
    ASSERT_EQ(got[r], row) << "run " << r;
  }
}

TEST_P(Residents, TheReportSaysWhatIsInNoRegion) {
  constexpr int64_t kLarge = 5000;
  Graph graph("large");
  const auto x = graph.InOut<int32_t>("x", kLarge, kPinned);
  graph.ParallelFor("one", kLarge, AddOne{}, ReadWrite(x));
  graph.ParallelFor("two", kLarge, AddOne{}, ReadWrite(x));
  auto exec = runtime_->Compile(graph);
  ASSERT_OK(exec.status());
  const SubmissionReport report = exec->submission_report();
  EXPECT_EQ(report.regions, 0);
  EXPECT_NE(report.Text().find("no region: no node is a ParallelFor of few elements"), std::string::npos)
      << report.Text();
}

// What counts is how much a Fill or a Copy writes, not how large the buffers are.
TEST_P(Residents, PartsOfLargeBuffersAreFilledAndCopied) {
  constexpr int64_t kLarge = 5000, kPart = 20;
  Graph graph("parts");
  const auto in = graph.Input<int32_t>("in", kLarge);
  const auto out = graph.Output<int32_t>("out", kLarge);
  const auto x = graph.Buffer<int32_t>("x", kLarge), y = graph.Buffer<int32_t>("y", kPart);
  graph.ParallelFor("load", kLarge, CopyOut<>{}, Read(in), Write(x));
  graph.Copy("to y", Read(x, Slice({7}, {kPart})), Write(y));
  graph.ParallelFor("add", kPart, AddOne{}, ReadWrite(y));
  graph.Copy("to x", Read(y), Write(x, Slice({4000}, {kPart})));
  graph.Fill("fill", Write(x, Slice({4010}, {kPart})), 5);
  graph.ParallelFor("store", kLarge, CopyOut<>{}, Read(x), Write(out));
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  const std::vector<int32_t> given = Random(kLarge);
  std::vector<int32_t> got = Poisoned(kLarge), expected = given;
  for (size_t i = 0; i < kPart; ++i) expected[4000 + i] = given[7 + i] + 1;
  for (size_t i = 0; i < kPart; ++i) expected[4010 + i] = 5;
  ASSERT_OK(exec->Launch(exec->bindings().Set(in, given).Set(out, got))->Wait());
  EXPECT_EQ(got, expected);
  EXPECT_EQ(exec->submission_report().region_nodes, 4) << exec->submission_report().Text();
}

// Under kAuto regions have 8 nodes or more, of one warp each, and on host devices nothing side by side.
TEST_P(Residents, AutoTakesManyShortNodes) {
  const EnvironmentScope automatic("PENSTOCK_RESIDENT", "auto");
  const auto in_regions = [&](int32_t chains, int32_t nodes, int64_t elements) -> int64_t {
    Graph graph("auto");
    std::vector<std::vector<int32_t>> memory(static_cast<size_t>(chains),
                                             std::vector<int32_t>(static_cast<size_t>(elements), 5));
    std::vector<BufferHandle<int32_t>> x;
    for (int32_t c = 0; c < chains; ++c) {
      x.push_back(graph.InOut<int32_t>(Name("x", c), elements));
      for (int32_t n = 0; n < nodes; ++n) graph.ParallelFor(Name("add", c, n), elements, AddOne{}, ReadWrite(x.back()));
    }
    auto exec = runtime_->Compile(graph, {.slots = 1});
    EXPECT_OK(exec.status());
    Bindings io = exec->bindings();
    for (size_t c = 0; c < x.size(); ++c) io.Set(x[c], memory[c]);
    EXPECT_OK(exec->Launch(io)->Wait());
    for (const std::vector<int32_t>& of : memory) {
      EXPECT_EQ(of, std::vector<int32_t>(static_cast<size_t>(elements), 5 + nodes));
    }
    const SubmissionReport report = exec->submission_report();
    EXPECT_EQ(report.Text().find("no region"), std::string::npos) << report.Text();
    return report.region_nodes;
  };
  EXPECT_EQ(in_regions(1, 8, 32), 8);
  EXPECT_EQ(in_regions(1, 7, 32), 0);
  EXPECT_EQ(in_regions(1, 8, 33), 0);
  EXPECT_EQ(in_regions(2, 8, 3), GetParam().devices == "cuda" ? 16 : 0);
}

TEST_P(Residents, AnyOtherWordIsRefused) {
  const EnvironmentScope wrong("PENSTOCK_RESIDENT", "perhaps");
  Graph graph("g");
  graph.ParallelFor("one", 1, AddOne{}, ReadWrite(graph.InOut<int32_t>("x", 1)));
  const absl::Status refused = runtime_->Compile(graph).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Text(refused).find("graph 'g': PENSTOCK_RESIDENT is 'perhaps'; it must be off, auto or on"),
            std::string::npos)
      << refused;
}

INSTANTIATE_TEST_SUITE_P(Host, Residents,
                         testing::Values(Target{"host:1", "graph", false, 0, false, true},
                                         Target{"host:3", "graph", true, 2, false, true}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Residents,
                         testing::Values(Target{"cuda", "graph", false, 0, false, true},
                                         Target{"cuda", "graph", true, 0, false, true}),
                         NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::resident_test
