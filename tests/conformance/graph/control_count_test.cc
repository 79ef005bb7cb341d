// What a While tells of its iterations, and a Repeat whose number of iterations is in a buffer, on every driver,
// decided by the device and driven by the host.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "penstock/status_macros.h"
#include "penstock/trace.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::control_count_test {
namespace {

constexpr int64_t kMost = 7, kInner = 4;

struct IsLess {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> x, View<const int32_t> limit) const {
    return x(0) < limit(0);
  }
};
struct Increase {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> x) const { ++x(0); }
};
// Notes what an iteration finds, in its own element.
struct NoteIndex {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> notes, View<const int64_t> index,
                                       View<const int32_t> x) const {
    if (i == index(0)) notes(i) = 100 * x(0) + static_cast<int32_t>(index(0));
  }
};
struct NotePair {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> notes, View<const int32_t> outer,
                                       View<const int32_t> inner) const {
    if (i == outer(0) * kInner + inner(0)) ++notes(i);
  }
};
struct SetTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> to, View<const int32_t> from) const { to(0) = from(0); }
};
template <class T>
struct Scaled {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<T> to, View<const int32_t> from, int32_t by) const {
    to(0) = static_cast<T>(static_cast<T>(from(0)) * static_cast<T>(by));
  }
};

class ControlCounts : public GraphConformance {
 protected:
  // The ways in which a loop is compiled.
  static std::vector<CompileOptions> Ways() {
    return {{.slots = 2, .constructs = Lowering::kHost},
            {.slots = 2, .constructs = Lowering::kDevice},
            {.slots = 1, .check_against_host = true}};
  }
};

// Runs that end by their condition, by `max`, and without an iteration, two at once.
TEST_P(ControlCounts, AWhileTellsItsIterationsAndWhetherTheyWereCapped) {
  Graph g("told");
  auto from = g.Input<int32_t>("from", 1), limit = g.Input<int32_t>("limit", 1);
  auto notes = g.InOut<int32_t>("notes", kMost), ended = g.Output<int32_t>("ended", 1);
  auto count = g.Output<int64_t>("count", 1);
  auto capped = g.Output<uint8_t>("capped", 1);
  auto index = g.Buffer<int64_t>("index", 1);
  g.ParallelFor("begin", 1, SetTo{}, Write(ended), Read(from));
  g.While("loop", When(IsLess{}, Read(ended), Read(limit)).Count(index).Capped(capped), {.max = kMost},
          [&](Graph& body) {
            body.ParallelFor("note", kMost, NoteIndex{}, ReadWrite(notes), Read(index), Read(ended));
            body.ParallelFor("increase", 1, Increase{}, ReadWrite(ended));
          });
  g.Copy("count", index, count);
  for (const CompileOptions& way : Ways()) {
    auto exec = runtime_->Compile(g, way);
    ASSERT_OK(exec.status());
    struct Case {
      int32_t from, limit;
      std::vector<int32_t> notes = std::vector<int32_t>(kMost, -1);
      int32_t ended = -1;
      int64_t count = -1;
      uint8_t capped = 9;
    };
    std::vector<Case> cases{{3, 8}, {5, 5}, {-2, 100}, {0, 7}, {1, 2}, {9, 1}, {0, 8}, {4, 8}};
    std::vector<penstock::Run> runs;
    for (Case& c : cases) {
      Bindings io = exec->bindings();
      io.Set(from, std::span(&c.from, 1)).Set(limit, std::span(&c.limit, 1)).Set(notes, c.notes);
      io.Set(ended, std::span(&c.ended, 1)).Set(count, std::span(&c.count, 1)).Set(capped, std::span(&c.capped, 1));
      auto run = exec->Launch(io);
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (size_t r = 0; r < runs.size(); ++r) {
      ASSERT_OK(runs[r].Wait());
      const Case& c = cases[r];
      std::vector<int32_t> expected(kMost, -1);
      int32_t x = c.from, i = 0;
      for (; x < c.limit && i < kMost; ++i, ++x) expected[static_cast<size_t>(i)] = 100 * x + i;
      EXPECT_EQ(c.count, i) << c.from;
      EXPECT_EQ(c.capped, x < c.limit ? 1 : 0) << c.from;
      EXPECT_EQ(c.ended, x) << c.from;
      EXPECT_EQ(c.notes, expected) << c.from;
    }
  }
}

// The counts are an element of a State, of an Output, and memory of the outer body alone.
TEST_P(ControlCounts, AnInnerLoopBeginsAgainAtNone) {
  auto state = runtime_->MakeState<int32_t>("state", {3});
  ASSERT_OK(state.status());
  Graph g("nested");
  auto limit = g.Input<int32_t>("limit", 1);
  auto notes = g.InOut<int32_t>("notes", 5 * kInner), y = g.Buffer<int32_t>("y", 1);
  auto capped = g.Output<bool>("capped", 2);
  auto outer_index = g.Buffer<int32_t>("outer index", 1);
  const auto more = When(IsLess{}, Read(outer_index), Read(limit));
  g.Fill("no outer index", outer_index, 0);
  g.While(
      "outer", more.Count(outer_index).Count(Write(*state, Slice({1}, {1}))).Capped(Write(capped, Slice({0}, {1}))),
      {.max = 5}, [&](Graph& outer) {
        auto inner_index = outer.Buffer<int32_t>("inner index", 1);
        outer.Fill("y", y, 0);
        outer.While(
            "inner",
            When(IsLess{}, Read(y), Read(outer_index)).Capped(Write(capped, Slice({1}, {1}))).Count(inner_index),
            {.max = 3}, [&](Graph& inner) {
              inner.ParallelFor("note", 5 * kInner, NotePair{}, ReadWrite(notes), Read(outer_index), Read(inner_index));
              inner.ParallelFor("increase", 1, Increase{}, ReadWrite(y));
            });
        outer.ParallelFor("note end", 5 * kInner, NotePair{}, ReadWrite(notes), Read(outer_index), Read(inner_index));
      });
  for (const CompileOptions& way : Ways()) {
    auto exec = runtime_->Compile(g, way);
    ASSERT_OK(exec.status());
    for (const int32_t most : {5, 0, 3, 9}) {
      ASSERT_OK(state->Set(std::vector<int32_t>{-3, -3, -3}));
      std::vector<int32_t> got(5 * kInner), expected(5 * kInner), of_state(3);
      bool caps[2] = {true, true};
      Bindings io = exec->bindings();
      auto run = exec->Launch(io.Set(limit, std::span(&most, 1)).Set(notes, got).Set(capped, caps));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      const int32_t outer = std::min(most, 5);
      for (int32_t i = 0; i < outer; ++i) {
        const int32_t inner = std::min(i, 3);
        for (int32_t j = 0; j <= inner; ++j) ++expected[static_cast<size_t>(i * kInner + j)];
      }
      EXPECT_EQ(got, expected) << most;
      EXPECT_EQ(caps[0], most > 5);
      EXPECT_EQ(caps[1], outer == 0 || outer - 1 > 3);  // as it was, if the inner loop has never begun
      ASSERT_OK(state->Read(std::span(of_state)));
      EXPECT_EQ(of_state, (std::vector<int32_t>{-3, outer, -3}));
    }
  }
}

// What the body makes of the number comes too late for it.
template <class T>
void CheckRepeat(Runtime& runtime, const CompileOptions& way) {
  Graph g("trips");
  auto from = g.Input<int32_t>("from", 1);
  auto by = g.Param<int32_t>("by");
  auto x = g.InOut<int32_t>("x", 1);
  auto trips = g.Buffer<T>("trips", 1);
  g.ParallelFor("say", 1, Scaled<T>{}, Write(trips), Read(from), by);
  g.Repeat("loop", Read(trips), [&](Graph& body) {
    body.Fill("change", trips, T{2});
    body.ParallelFor("increase", 1, Increase{}, ReadWrite(x));
    body.Repeat("inner", Read(trips),
                [&](Graph& inner) { inner.ParallelFor("increase", 1, Increase{}, ReadWrite(x)); });
  });
  auto exec = runtime.Compile(g, way);
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  for (const auto& [number, factor] : {std::pair{3, 1}, {0, 1}, {5, 1}, {5, 2}, {1, -1}, {1, 1}}) {
    const int32_t is = number;
    int32_t value = 10;
    auto run = exec->Launch(io.Set(from, std::span(&is, 1)).Set(by, factor).Set(x, std::span(&value, 1)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    EXPECT_EQ(value, 10 + 3 * std::max(number * factor, 0)) << number << " * " << factor;
  }
}
TEST_P(ControlCounts, ARepeatReadsItsNumberWhenItBegins) {
  for (const CompileOptions& way : Ways()) {
    CheckRepeat<int32_t>(*runtime_, way);
    CheckRepeat<int64_t>(*runtime_, way);
  }
}

// The host's word has 32 bits, in which the number would be 3.
TEST_P(ControlCounts, ARepeatOfANumberBeyondAllIsLong) {
  Graph g("long");
  auto trips = g.Input<int64_t>("trips", 1);
  std::atomic<int> calls{0};
  g.Repeat("loop", Read(trips),
           [&](Graph& body) { body.Host("count", [&calls](std::span<const int64_t>) { ++calls; }, Read(trips)); });
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  const int64_t number = (int64_t{1} << 32) + 3;
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(trips, std::span(&number, 1)));
  ASSERT_OK(run.status());
  while (calls.load() < 5 && !run->done()) std::this_thread::yield();
  run->Cancel();
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kCancelled);
}

// Two of them in bodies of an If and of a loop, by a condition and by a number, over several slots.
struct Nested {
  Graph graph{"counted"};
  BufferHandle<int32_t> limit, x, y;
  ParamHandle<int32_t> times;

  Nested() {
    limit = graph.Input<int32_t>("limit", 1);
    x = graph.InOut<int32_t>("x", 1);
    y = graph.InOut<int32_t>("y", 1);
    times = graph.Param<int32_t>("times");
    graph.While("first", When(IsLess{}, Read(x), Read(limit)), {.max = 100},
                [&](Graph& body) { body.ParallelFor("increase", 1, Increase{}, ReadWrite(x)); });
    graph.If("if", When(IsLess{}, Read(y), Read(limit)), [&](Graph& body) {
      body.Repeat("outer", times, [&](Graph& outer) {
        outer.ParallelFor("increase", 1, Increase{}, ReadWrite(y));
        outer.While("inner", When(IsLess{}, Read(y), Read(limit)), {.max = 2},
                    [&](Graph& inner) { inner.ParallelFor("increase", 1, Increase{}, ReadWrite(y)); });
      });
    });
  }
};

// What a launch of a Nested does.
struct NestedCounts {
  int64_t first = 0, outer = 0, inner = 0;

  void Add(int32_t from, int32_t most, int32_t rounds) {
    first += std::max(0, most - from);
    int32_t now = from;
    for (int32_t r = 0; from < most && r < rounds; ++r, ++outer) {
      ++now;
      for (int i = 0; i < 2 && now < most; ++i, ++inner) ++now;
    }
  }
};

constexpr std::tuple<int32_t, int32_t, int32_t> kNestedLaunches[] = {
    {0, 5, 4}, {3, 3, 2}, {-6, 7, 9}, {0, 1, 0}, {1, 20, 3}};

absl::Status LaunchNested(const Nested& nested, Executable& exec, int32_t from, int32_t most, int32_t rounds) {
  int32_t a = from, b = from;
  Bindings io = exec.bindings();
  io.Set(nested.limit, std::span<const int32_t>(&most, 1)).Set(nested.times, rounds);
  PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run,
                            exec.Launch(io.Set(nested.x, std::span(&a, 1)).Set(nested.y, std::span(&b, 1))));
  return run.Wait();
}

TEST_P(ControlCounts, TheReportSaysHowManyIterationsEachLoopHasDoneAndWhatTheyTook) {
  const Nested nested;
  for (const CompileOptions& way : Ways()) {
    auto exec = runtime_->Compile(nested.graph, way);
    ASSERT_OK(exec.status());
    NestedCounts expected;
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& [from, most, rounds] : kNestedLaunches) {
      ASSERT_OK(LaunchNested(nested, *exec, from, most, rounds));
      expected.Add(from, most, rounds);
    }
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - begin;
    const std::vector<SubmissionReport::Loop> loops = exec->submission_report().loops;
    ASSERT_EQ(loops.size(), 3u);
    EXPECT_EQ(loops[0].name, "first");
    EXPECT_EQ(loops[1].name, "if/then/outer");
    EXPECT_EQ(loops[2].name, "if/then/outer/inner");
    EXPECT_EQ(loops[0].iterations, expected.first);
    EXPECT_EQ(loops[1].iterations, expected.outer);
    EXPECT_EQ(loops[2].iterations, expected.inner);
    for (const SubmissionReport::Loop& loop : loops) {
      EXPECT_GT(loop.iteration_us, 0) << loop.name;
      EXPECT_LT(loop.iteration_us, all.count()) << loop.name;
    }
    EXPECT_NE(
        exec->submission_report().Text().find("loop 'first': " + std::to_string(expected.first) + " iterations of "),
        std::string::npos);
  }
}

// The iterations of a loop in one run, by the names of their spans; they must follow each other.
int64_t IterationsOf(const std::vector<Span>& spans, const std::string& loop, int64_t run) {
  int64_t in_all = 0, next = 0;
  double end = 0;
  for (const Span& span : spans) {
    if (span.run != run || !span.name.starts_with(loop + " iteration")) continue;
    std::istringstream numbers(span.name.substr(span.name.find(' ', loop.size() + 1)));
    int64_t first = -1, last = -1;
    std::string to;
    numbers >> first;
    last = numbers >> to >> last ? last : first;
    if (first == 0) next = 0;  // the loop begins anew
    EXPECT_EQ(first, next) << span.name;
    EXPECT_LE(end, span.begin_us) << span.name;
    EXPECT_LE(span.begin_us, span.end_us) << span.name;
    end = span.end_us;
    next = last + 1;
    in_all += next - first;
  }
  return in_all;
}

TEST_P(ControlCounts, ATraceHasTheIterationsOfAllLoops) {
  const Nested nested;
  for (const Lowering lowering : {Lowering::kHost, Lowering::kDevice}) {
    for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(lowering)) + ", " + std::to_string(static_cast<int>(mode)));
      const std::shared_ptr<Trace> trace = Trace::Create();
      auto exec = runtime_->Compile(nested.graph, {.slots = 1, .mode = mode, .constructs = lowering, .trace = trace});
      ASSERT_OK(exec.status());
      for (const auto& [from, most, rounds] : kNestedLaunches)
        ASSERT_OK(LaunchNested(nested, *exec, from, most, rounds));
      const std::vector<Span> spans = trace->spans();
      NestedCounts expected, traced;
      int64_t run = 0;
      for (const auto& [from, most, rounds] : kNestedLaunches) {
        expected.Add(from, most, rounds);
        traced.first += IterationsOf(spans, "first", run);
        traced.outer += IterationsOf(spans, "if/then/outer", run);
        if (lowering == Lowering::kDevice) {
          traced.inner += IterationsOf(spans, "if/then/outer/inner", run);
        }
        ++run;
      }
      if (lowering == Lowering::kHost) {  // each time it is a run of a part
        traced.inner = std::count_if(spans.begin(), spans.end(), [](const Span& span) {
          return span.name.starts_with("if/then/outer/inner iteration ");
        });
      }
      EXPECT_EQ(traced.first, expected.first);
      EXPECT_EQ(traced.outer, expected.outer);
      EXPECT_EQ(traced.inner, expected.inner);
    }
  }
}

// A loop on each of two devices of one graph, and one in an executable of which each device has a replica.
TEST_P(ControlCounts, OfSeveralDevicesAreReportedAndTraced) {
  const auto devices = static_cast<int>(runtime_->devices().size());
  if (devices < 2) GTEST_SKIP() << "needs two devices";
  Graph g("several");
  auto limit = g.Input<int32_t>("limit", 1);
  std::vector<BufferHandle<int32_t>> x;
  for (const int device : {0, 1}) {
    x.push_back(g.InOut<int32_t>(Name("x", device), 1));
    g.While(Name("loop", device), When(IsLess{}, Read(x.back()), Read(limit)), {.max = 100},
            [&](Graph& body) { body.ParallelFor("increase", 1, Increase{}, ReadWrite(x.back())).On(device); });
  }
  const int32_t most = 9;
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    int32_t values[2] = {2, 4};
    const std::shared_ptr<Trace> trace = Trace::Create();
    auto exec = runtime_->Compile(g, {.slots = 1, .mode = mode, .constructs = Lowering::kDevice, .trace = trace});
    ASSERT_OK(exec.status());
    Bindings io = exec->bindings();
    for (size_t d = 0; d < 2; ++d) io.Set(x[d], std::span(&values[d], 1));
    auto run = exec->Launch(io.Set(limit, std::span(&most, 1)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    const std::vector<SubmissionReport::Loop> loops = exec->submission_report().loops;
    ASSERT_EQ(loops.size(), 2u);
    EXPECT_EQ(loops[0].iterations, 7);
    EXPECT_EQ(loops[1].iterations, 5);
    int64_t traced[2] = {0, 0};
    for (const Span& span : trace->spans()) {
      for (const int device : {0, 1}) {
        if (!span.name.starts_with("loop " + std::to_string(device) + " iteration")) continue;
        ++traced[device];
        EXPECT_EQ(span.device, device) << span.name;
        EXPECT_EQ(span.track.find(runtime_->devices()[static_cast<size_t>(device)].name), 0u) << span.track;
      }
    }
    EXPECT_EQ(traced[0], 7);
    EXPECT_EQ(traced[1], 5);
  }

  const Nested nested;
  auto replicated = runtime_->Compile(nested.graph, {.slots = 1, .devices = {0, 1}});
  ASSERT_OK(replicated.status());
  NestedCounts expected;
  for (int round = 0; round < 4; ++round) {
    for (const auto& [from, until, rounds] : kNestedLaunches) {
      ASSERT_OK(LaunchNested(nested, *replicated, from, until, rounds));
      expected.Add(from, until, rounds);
    }
  }
  const std::vector<SubmissionReport::Loop> all = replicated->submission_report().loops;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].iterations, expected.first);
  EXPECT_EQ(all[2].iterations, expected.inner);
}

TEST_P(ControlCounts, ATraceHasTheNewestIterationsOfALongLoop) {
  constexpr int32_t kLong = 6000;
  Graph g("long");
  auto limit = g.Input<int32_t>("limit", 1);
  auto x = g.InOut<int32_t>("x", 1);
  g.While("loop", When(IsLess{}, Read(x), Read(limit)), {.max = 2 * kLong},
          [&](Graph& body) { body.ParallelFor("increase", 1, Increase{}, ReadWrite(x)); });
  const std::shared_ptr<Trace> trace = Trace::Create();
  auto exec = runtime_->Compile(g, {.slots = 1, .mode = Mode::kGraph, .constructs = Lowering::kDevice, .trace = trace});
  ASSERT_OK(exec.status());
  for (int run = 0; run < 2; ++run) {
    int32_t from = 0;
    const int32_t most = kLong;
    Bindings io = exec->bindings();
    auto launched = exec->Launch(io.Set(x, std::span(&from, 1)).Set(limit, std::span(&most, 1)));
    ASSERT_OK(launched.status());
    ASSERT_OK(launched->Wait());
    EXPECT_EQ(from, kLong);
  }
  std::vector<std::string> names;
  for (const Span& span : trace->spans()) {
    if (span.name.starts_with("loop iteration ")) names.push_back(span.name);
  }
  ASSERT_EQ(names.size(), 2 * 4095u);
  for (size_t i = 0; i < names.size(); ++i) {
    ASSERT_EQ(names[i], "loop iteration " + std::to_string(kLong - 4095 + static_cast<int32_t>(i % 4095)));
  }
}

INSTANTIATE_TEST_SUITE_P(Host, ControlCounts, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ControlCounts, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::control_count_test
