// Graph mode with a trace: the spans of replays, what they cost at the driver interface, and what has none. That
// nothing else changes, every other conformance test of graphs says with the same code.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/trace.h"
#include "tests/conformance/graph/replay_fixture.h"
#include "tests/support/kernels.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::replay_trace_test {
namespace {

constexpr int64_t kN = 100;

struct Sum {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* a, const int32_t* b, int32_t* to) const {
    to[i] = static_cast<int32_t>(3 * static_cast<uint32_t>(a[i]) + static_cast<uint32_t>(b[i]));
  }
};

#if defined(__CUDACC__)
__global__ void AddTo(int32_t* x, int32_t value) { x[threadIdx.x] += value; }
#endif
absl::Status AddForeign([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] int32_t* x,
                        [[maybe_unused]] int32_t value) {
#if defined(__CUDACC__)
  for (int i = 0; i < 2; ++i) AddTo<<<1, kN, 0, CudaStream(launch)>>>(x, value);
  return ToStatus(cudaGetLastError());
#else
  return absl::InternalError("called on a host device");
#endif
}
void AddTwin(int32_t* x, int32_t value) {
  for (int64_t i = 0; i < kN; ++i) x[i] += 2 * value;
}

// What a span says but for its times.
using Facts = std::tuple<std::string, std::string, SpanKind, int64_t, int>;

// Of devices: what the host does is no node of a graph.
std::vector<Span> OnDevices(const Trace& trace, int64_t run = -1) {
  std::vector<Span> spans = trace.spans();
  std::erase_if(spans, [&](const Span& s) { return s.device < 0 || (run >= 0 && s.run != run); });
  return spans;
}
std::multiset<Facts> FactsOf(const std::vector<Span>& spans) {
  std::multiset<Facts> facts;
  for (const Span& s : spans) facts.emplace(s.name, s.track, s.kind, s.run, s.device);
  return facts;
}
std::multiset<std::string> NamesOf(const std::vector<Span>& spans) {
  std::multiset<std::string> names;
  for (const Span& s : spans) names.insert(s.name);
  return names;
}
std::map<std::string, Span> ByName(const std::vector<Span>& spans) {
  std::map<std::string, Span> by_name;
  for (const Span& s : spans) EXPECT_TRUE(by_name.emplace(s.name, s).second) << s.name << " has two spans";
  return by_name;
}

class ReplayTrace : public ReplayConformance {
 protected:
  CompileOptions Traced(int slots = 1) { return {.slots = slots, .trace = trace_ = Trace::Create()}; }
  static absl::Status Run(Executable& exec, const Bindings& io) {
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, exec.Launch(io));
    return run.Wait();
  }

  std::shared_ptr<Trace> trace_;
};

// Nodes of every kind that a graph has: fills, kernels, captured calls, batches, a node that asks the host.
struct Mixed {
  static constexpr int kParts = 6;
  Graph graph{"mixed"};
  BufferHandle<int32_t> x, y;
  std::vector<BufferHandle<int32_t>> in, out;

  Mixed() {
    x = graph.InOut<int32_t>("x", kN, kPinned);
    y = graph.Output<int32_t>("y", kN, kPinned);
    auto t = graph.Buffer<int32_t>("t", kN), u = graph.Buffer<int32_t>("u", kN);
    graph.Fill("fill", t, 7);
    graph.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
    graph.Launch("theirs", AddForeign, ReadWrite(t), 5).HostFallback(AddTwin);
    graph.Copy("inside", t, u);
    graph
        .Host(
            "asked",
            [](std::span<int32_t> v) {
              for (int32_t& e : v) e += 100;
            },
            ReadWrite(x))
        .Infallible();
    graph.ParallelFor("sum", kN, Sum{}, Read(x), Read(u), Write(y));
    for (int i = 0; i < kParts; ++i) {
      const std::string name = std::to_string(i);
      in.push_back(graph.Input<int32_t>("in" + name, kN, kPinned));
      out.push_back(graph.Output<int32_t>("out" + name, kN, kPinned));
      graph.ParallelFor("part" + name, kN, CopyOut{}, Read(in.back()), Write(out.back()));
    }
  }
};

// The memory of a Mixed.
struct MixedMemory {
  HostBuffer<int32_t> x, y;
  std::vector<HostBuffer<int32_t>> in, out;
  void Bind(const Mixed& of, Bindings& io) {
    io.Set(of.x, x).Set(of.y, y);
    for (size_t i = 0; i < in.size(); ++i) io.Set(of.in[i], in[i]).Set(of.out[i], out[i]);
  }
  std::vector<int32_t> Results() const {
    std::vector<int32_t> all(x.begin(), x.end());
    all.insert(all.end(), y.begin(), y.end());
    for (const auto& o : out) all.insert(all.end(), o.begin(), o.end());
    return all;
  }
};

class ReplayTraceMixed : public ReplayTrace {
 protected:
  MixedMemory NewMemory() {
    MixedMemory memory{Pinned(kN, 3), Pinned(kN, -1), {}, {}};
    for (int i = 0; i < Mixed::kParts; ++i) {
      memory.in.push_back(Pinned(kN, 50 + i));
      memory.out.push_back(Pinned(kN, -1));
    }
    return memory;
  }
  // Runs it twice and returns what the second has left.
  std::vector<int32_t> RunTwice(Executable exec) {
    MixedMemory memory = NewMemory();
    Bindings io = exec.bindings();
    memory.Bind(mixed_, io);
    for (int r = 0; r < 2; ++r) EXPECT_OK(Run(exec, io));
    return memory.Results();
  }
  Mixed mixed_;
};

TEST_P(ReplayTraceMixed, EveryNodeHasASpanARunThatSaysWhatItDoesOnStreams) {
  const Executable exec = Compiled(mixed_.graph, Traced(2));
  EXPECT_EQ(exec.submission_report().mode, Mode::kGraph) << exec.submission_report().Text();
  RunTwice(exec);
  CheckLedger(exec);
  const std::vector<Span> of_graphs = OnDevices(*trace_);
  const ModeScope stream("stream");
  RunTwice(Compiled(mixed_.graph, Traced(2)));
  EXPECT_EQ(FactsOf(of_graphs), FactsOf(OnDevices(*trace_)));
  const std::multiset<std::string> names = NamesOf(of_graphs);
  std::set<std::tuple<std::string, SpanKind, int64_t>> said;
  for (const Span& s : of_graphs) said.emplace(s.name, s.kind, s.run);
  for (const int64_t run : {0, 1}) {
    for (const auto& [name, kind] : {std::pair("download y", SpanKind::kDownload), std::pair("fill", SpanKind::kKernel),
                                     std::pair("one", SpanKind::kKernel), std::pair("theirs", SpanKind::kKernel),
                                     std::pair("inside", SpanKind::kKernel), std::pair("asked", SpanKind::kHost),
                                     std::pair("part5", SpanKind::kKernel)}) {
      EXPECT_EQ(said.count({name, kind, run}), 1u) << name << " in run " << run;
    }
  }
  const auto batches = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.find(" more, a batch") != std::string::npos;
  });
  EXPECT_GE(batches, 4) << "one each way in each run";
  for (const Span& s : of_graphs) EXPECT_LE(s.begin_us, s.end_us) << s.name;
}

TEST_P(ReplayTraceMixed, ResultsAreThoseOfARunWithoutATrace) {
  const std::vector<int32_t> untraced = RunTwice(Compiled(mixed_.graph));
  EXPECT_EQ(RunTwice(Compiled(mixed_.graph, Traced())), untraced);
  EXPECT_EQ(untraced[0], 3 + 2 * 101);
  EXPECT_EQ(untraced[kN], 3 * untraced[0] + 17);
  EXPECT_EQ(untraced.back(), 55);
}

// Nodes that touch an element each, in an order of After alone. Node i is of buffer i % buffers, of which each element
// has a node, and which is uploaded before its nodes and downloaded behind them.
struct Dag {
  int buffers = 1;
  std::vector<std::vector<int>> preds;  // of each node: earlier ones

  int nodes() const { return static_cast<int>(preds.size()); }
  int elements(int buffer) const { return (nodes() - buffer + buffers - 1) / buffers; }
  static std::string NameOf(int node) { return "n" + std::to_string(node); }
  Graph Declare(std::vector<BufferHandle<int32_t>>& x) const {
    Graph g("dag");
    for (int b = 0; b < buffers; ++b) x.push_back(g.InOut<int32_t>("x" + std::to_string(b), elements(b), kPinned));
    std::vector<NodeRef> refs;
    for (int i = 0; i < nodes(); ++i) {
      const BufferHandle<int32_t> of = x[static_cast<size_t>(i % buffers)];
      NodeRef ref = g.ParallelFor(NameOf(i), 1, AddOne{}, ReadWrite(of, Slice({i / buffers}, {1})));
      for (const int p : preds[static_cast<size_t>(i)]) ref.After(refs[static_cast<size_t>(p)]);
      refs.push_back(ref);
    }
    return g;
  }

  // The names of all nodes, uploads first and downloads last, and of each those that come before it.
  struct Order {
    std::vector<std::string> names;
    std::vector<std::vector<bool>> before;
  };
  Order WholeOrder() const {
    Order order;
    const auto count = static_cast<size_t>(nodes() + 2 * buffers);
    order.before.assign(count, std::vector<bool>(count));
    for (int b = 0; b < buffers; ++b) order.names.push_back("upload x" + std::to_string(b));
    for (int i = 0; i < nodes(); ++i) order.names.push_back(NameOf(i));
    for (int b = 0; b < buffers; ++b) order.names.push_back("download x" + std::to_string(b));
    const auto add = [&](int from, int to) {
      auto &mine = order.before[static_cast<size_t>(to)], &others = order.before[static_cast<size_t>(from)];
      for (size_t k = 0; k < count; ++k) mine[k] = mine[k] || others[k];
      mine[static_cast<size_t>(from)] = true;
    };
    for (int i = 0; i < nodes(); ++i) {
      add(i % buffers, buffers + i);
      for (const int p : preds[static_cast<size_t>(i)]) add(buffers + p, buffers + i);
    }
    for (int i = 0; i < nodes(); ++i) add(buffers + i, buffers + nodes() + i % buffers);
    return order;
  }

  // How many nodes a graph of it has, and how many of them are stamps: one behind each node, and one before each that
  // comes directly behind none or several. What begins with several begins with the copy of parameters, which has none.
  struct Size {
    int all = 0, timestamps = 0;
  };
  Size GraphSize() const {
    const Order order = WholeOrder();
    const size_t count = order.names.size();
    Size size;
    int roots = 0;
    for (size_t n = 0; n < count; ++n) {
      int direct = 0;
      for (size_t p = 0; p < count; ++p) {
        bool implied = false;
        for (size_t k = 0; k < count; ++k) implied = implied || (order.before[n][k] && order.before[k][p]);
        direct += order.before[n][p] && !implied ? 1 : 0;
      }
      size.timestamps += direct == 1 ? 1 : 2;
      roots += direct == 0 ? 1 : 0;
    }
    size.all = static_cast<int>(count) + size.timestamps + (roots > 1 ? 1 : 0);
    return size;
  }

  static Dag Random(std::mt19937& random) {
    Dag dag{.buffers = 1 + static_cast<int>(random() % 3), .preds = {}};
    const int nodes = dag.buffers + static_cast<int>(random() % 10);
    const unsigned one_in = 2 + random() % 4;
    for (int i = 0; i < nodes; ++i) {
      dag.preds.emplace_back();
      for (int p = 0; p < i; ++p) {
        if (random() % one_in == 0) dag.preds.back().push_back(p);
      }
    }
    return dag;
  }
  std::string Text() const {
    std::string text = std::to_string(buffers) + " buffers";
    for (int i = 0; i < nodes(); ++i) {
      text += ", " + NameOf(i) + " after";
      for (const int p : preds[static_cast<size_t>(i)]) text += " " + NameOf(p);
    }
    return text;
  }
};

class ReplayTraceDag : public ReplayTrace {
 protected:
  static std::vector<Dag> Dags(int random_ones, std::mt19937& random) {
    std::vector<Dag> dags = {{1, {{}, {0}, {1}, {2}}},  // a chain
                             {1, {{}, {0}, {0}, {1, 2}}},  // a diamond
                             {2, {{}, {}, {0}, {1}, {2, 3}}}};
    for (int i = 0; i < random_ones; ++i) dags.push_back(Dag::Random(random));
    return dags;
  }
  // Compiles it with a trace and runs it `runs` times.
  Executable RunTraced(const Dag& dag, int runs) {
    std::vector<BufferHandle<int32_t>> x;
    Executable exec = Compiled(dag.Declare(x), Traced());
    Bindings io = exec.bindings();
    std::vector<HostBuffer<int32_t>> memory;
    for (int b = 0; b < dag.buffers; ++b) {
      memory.push_back(Pinned(dag.elements(b), 5));
      io.Set(x[static_cast<size_t>(b)], memory.back());
    }
    for (int r = 0; r < runs; ++r) EXPECT_OK(Run(exec, io));
    for (int i = 0; i < dag.nodes(); ++i)
      EXPECT_EQ(memory[static_cast<size_t>(i % dag.buffers)][i / dag.buffers], 5 + runs);
    return exec;
  }
};

TEST_P(ReplayTraceDag, ANodeBeginsWhenAllBeforeItHaveEnded) {
  for (const Dag& dag : Dags(40, rng_)) {
    RunTraced(dag, 2);
    const Dag::Order order = dag.WholeOrder();
    for (int64_t run = 0; run < 2; ++run) {
      const std::map<std::string, Span> spans = ByName(OnDevices(*trace_, run));
      ASSERT_EQ(spans.size(), order.names.size()) << dag.Text();
      for (size_t n = 0; n < order.names.size(); ++n) {
        const Span& span = spans.at(order.names[n]);
        ASSERT_LE(span.begin_us, span.end_us) << span.name << " of " << dag.Text();
        for (size_t p = 0; p < n; ++p) {
          if (order.before[n][p]) {
            ASSERT_LE(spans.at(order.names[p]).end_us, span.begin_us)
                << order.names[p] << " before " << span.name << " of " << dag.Text();
          }
        }
      }
    }
  }
}

TEST_P(ReplayTraceDag, ItCostsANodeAfterEachAndOneBeforeWhatComesAfterNoneOrSeveral) {
  EXPECT_EQ((Dag{1, {{}, {0}, {1}, {2}}}).GraphSize().timestamps, 6 + 1)
      << "a chain of six, of which the first has a begin";
  EXPECT_EQ((Dag{1, {{}, {0}, {0}, {1, 2}}}).GraphSize().timestamps, 6 + 2);
  for (const Dag& dag : Dags(40, rng_)) {
    const int64_t nodes = Count(Kind::kAddNode), timed = Count(Kind::kRecord);
    const Executable exec = RunTraced(dag, 0);
    EXPECT_EQ(Count(Kind::kAddNode) - nodes, dag.GraphSize().all) << dag.Text();
    EXPECT_EQ(exec.submission_report().graph_nodes, dag.GraphSize().all) << dag.Text();
    EXPECT_LE(Count(Kind::kRecord) - timed, 2) << "the upload's end, and the trace's base";
  }
}

TEST_P(ReplayTraceDag, SpansAreOfTheTracesClock) {
  const Dag chain{1, {{}, {0}, {1}}};
  std::vector<BufferHandle<int32_t>> x;
  const Graph g = chain.Declare(x);
  CompileOptions options = Traced();
  const double began = trace_->Now();
  Executable exec = Compiled(g, options);
  HostBuffer<int32_t> memory = Pinned(chain.nodes(), 0);
  Bindings io = exec.bindings();
  io.Set(x[0], memory);
  const double before = trace_->Now();
  OfRun(exec, io);
  const double behind = trace_->Now();
  // Spans are late by what it took to see the base complete, which is less than Compile took.
  for (const Span& s : OnDevices(*trace_)) {
    EXPECT_GE(s.begin_us, before) << s.name;
    EXPECT_LE(s.end_us, behind + (before - began)) << s.name;
  }
}

TEST_P(ReplayTrace, WhatARunDidNotGetToHasNoSpan) {
  Graph g("stops");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  g.ParallelFor("before", kN, AddOne{}, ReadWrite(x));
  g.Host(
      "may fail", [](std::span<int32_t> v) { return v[0] == 0 ? absl::AbortedError("as asked") : absl::OkStatus(); },
      ReadWrite(x));
  g.ParallelFor("behind", kN, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g, Traced());
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(x, memory);
  for (int64_t run = 0; run < 4; ++run) {
    const bool fails = run % 2 == 0;
    std::fill(memory.begin(), memory.end(), fails ? -1 : 7);
    EXPECT_EQ(Run(exec, io).code(), fails ? absl::StatusCode::kAborted : absl::StatusCode::kOk);
    std::multiset<std::string> expected = {"upload x", "before", "download x"};
    if (!fails) expected.merge(std::multiset<std::string>{"upload x", "behind", "download x"});
    EXPECT_EQ(NamesOf(OnDevices(*trace_, run)), expected) << "run " << run;
  }
}

TEST_P(ReplayTrace, WhatIsSwitchedOffHasNoSpan) {
  Graph g("sizes");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  g.ParallelFor("all", kN, AddOne{}, ReadWrite(x));
  g.ParallelFor("some", n, AddOne{}, ReadWrite(x));
  Executable exec = Compiled(g, Traced());
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(x, memory);
  const int64_t sizes[] = {0, kN, 1, 0, kN};
  for (size_t run = 0; run < std::size(sizes); ++run) {
    OfRun(exec, io.Set(n, sizes[run]));
    const std::multiset<std::string> names = NamesOf(OnDevices(*trace_, static_cast<int64_t>(run)));
    EXPECT_EQ(names.count("all"), 1u) << run;
    EXPECT_EQ(names.count("some"), sizes[run] == 0 ? 0u : 1u) << run;
  }
}

// Values of many nodes that change again and again have the graph made anew.
TEST_P(ReplayTrace, GraphsThatAreMadeAnewAreTimedToo) {
  constexpr int kNodes = 20, kRuns = 14;
  Graph g("values");
  auto x = g.InOut<int32_t>("x", kN, kPinned);
  std::vector<ParamHandle<int32_t>> values;
  for (int i = 0; i < kNodes; ++i) {
    values.push_back(g.Param<int32_t>("value" + std::to_string(i)));
    g.ParallelFor("add" + std::to_string(i), kN, AddValue{}, ReadWrite(x), values.back());
  }
  Executable exec = Compiled(g, Traced());
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  io.Set(x, memory);
  int32_t expected = 0;
  for (int64_t run = 0; run < kRuns; ++run) {
    for (const ParamHandle<int32_t>& value : values) {
      const auto by = static_cast<int32_t>(rng_() % 1000);
      expected += by;
      io.Set(value, by);
    }
    OfRun(exec, io);
    EXPECT_EQ(memory[kN - 1], expected);
    EXPECT_EQ(OnDevices(*trace_, run).size(), kNodes + 2u) << "run " << run;
  }
  EXPECT_GT(exec.submission_report().graphs, 1) << exec.submission_report().Text();
  EXPECT_EQ(exec.submission_report().graph_nodes, exec.submission_report().graphs * (2 * (kNodes + 2) + 2))
      << "with a head, and its stamp";
}

TEST_P(ReplayTrace, WhatIsInNoGraphIsTimedBesideThem) {
  if (runtime_->devices().size() < 2) GTEST_SKIP() << "needs two devices";
  const std::vector<int32_t> contents = Random(kN);
  const auto state =
      runtime_->MakeState<int32_t>("there", kN, std::span<const int32_t>(contents), StateOptions{.device = 1});
  ASSERT_OK(state.status());
  Graph g("peer");
  auto x = g.Input<int32_t>("x", kN, kPinned);
  auto y = g.Output<int32_t>("y", kN, kPinned);
  auto t = g.Buffer<int32_t>("t", kN);
  g.ParallelFor("before", kN, CopyOut{}, Read(x), Write(t)).On(0);
  g.ParallelFor("here", kN, Sum{}, Read(*state), Read(t), Write(y)).On(0);
  const HostBuffer<int32_t> in = Pinned(kN, 1);
  HostBuffer<int32_t> out = Pinned(kN, 0);
  std::vector<std::multiset<Facts>> facts;
  for (const char* const mode : {"graph", "stream"}) {
    const ModeScope scope(mode);
    Executable exec = Compiled(g, Traced());
    EXPECT_EQ(exec.submission_report().mode, std::string(mode) == "graph" ? Mode::kGraph : Mode::kStream);
    Bindings io = exec.bindings();
    io.Set(x, in).Set(y, out);
    for (int r = 0; r < 2; ++r) ASSERT_OK(Run(exec, io));
    facts.push_back(FactsOf(OnDevices(*trace_)));
    EXPECT_EQ(facts.back().size(), 2u * 5) << "two copies here, one from there, two kernels";
  }
  EXPECT_EQ(facts[0], facts[1]);
}

// Runs with a trace are too slow to compare, so the mode that should be faster is kept.
TEST_P(ReplayTrace, UnderAutoNoModeIsTriedAndTheReportSaysSo) {
  for (const int nodes : {1, 100}) {
    Graph g("traced");
    auto x = g.InOut<int32_t>("x", kN, kPinned);
    for (int n = 0; n < nodes; ++n) g.ParallelFor(Name("add", n), kN, AddOne{}, ReadWrite(x));
    const ModeScope both("auto");
    const auto trace = Trace::Create();
    Executable exec = Compiled(g, {.slots = 1, .trace = trace});
    HostBuffer<int32_t> words = *runtime_->MakeHostBuffer<int32_t>(kN);
    std::fill_n(words.data(), kN, 3);
    for (int r = 0; r < 3; ++r) ASSERT_OK(exec.Launch(exec.bindings().Set(x, words))->Wait());
    EXPECT_EQ(words[kN - 1], 3 + 3 * nodes);
    const SubmissionReport report = exec.submission_report();
    EXPECT_NE(report.mode, Mode::kAuto);
    EXPECT_EQ(report.graph_launches, report.mode == Mode::kGraph ? 3 : 0);
    EXPECT_TRUE(nodes == 1 || report.mode == Mode::kGraph) << report.Text();
    EXPECT_NE(report.Text().find("no mode is tried"), std::string::npos) << report.Text();
    const std::vector<Span> spans = trace->spans();
    EXPECT_EQ(std::count_if(spans.begin(), spans.end(), [](const Span& s) { return s.name.rfind("add", 0) == 0; }),
              3 * nodes);
  }
}

#define INSTANTIATE(suite)                                                                                       \
  INSTANTIATE_TEST_SUITE_P(Host, suite,                                                                          \
                           testing::Values(Target{"host:2", "graph", true}, Target{"host:2", "graph", true, 7}), \
                           NameOfTarget);                                                                        \
  INSTANTIATE_TEST_SUITE_P(Cuda, suite, testing::Values(Target{"cuda", "graph", true}), NameOfTarget)
INSTANTIATE(ReplayTrace);
INSTANTIATE(ReplayTraceMixed);
INSTANTIATE(ReplayTraceDag);

}  // namespace
}  // namespace penstock::conformance::replay_trace_test
