// Constructs whose nodes are all small: on CUDA devices each of the outermost ones is one region, in which workers
// decide. Wide bodies, bodies of many pages, and what launches change, against plain loops of the CPU.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/conformance/graph/resident_elsewhere.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::resident_control_test {
namespace {

// Cells in a ring, each of which mixes itself with a neighbour.
constexpr int32_t kMul = 5;
int32_t Mixed(int32_t own, int32_t other) {
  return static_cast<int32_t>(static_cast<uint32_t>(own) * uint32_t{kMul} + static_cast<uint32_t>(other) + 1);
}
struct Mix {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> to, View<const int32_t> own,
                                       View<const int32_t> other) const {
    to(i) = static_cast<int32_t>(static_cast<uint32_t>(own(i)) * uint32_t{kMul} + static_cast<uint32_t>(other(i)) + 1);
  }
};
struct CountDown {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, View<int32_t> left) const { left(0) -= 1; }
};
struct AnyLeft {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> left) const { return left(0) > 0; }
};
struct IsOdd {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> left) const { return left(0) % 2 != 0; }
};
struct Remainder {
  int32_t of;
  PENSTOCK_HOST_DEVICE int32_t operator()(View<const int32_t> left) const { return left(0) % of; }
};
struct Step {
  int32_t by;
  static int32_t Of(int32_t x, int32_t by) {
    return static_cast<int32_t>(static_cast<uint32_t>(x) * 3U + static_cast<uint32_t>(by));
  }
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const {
    x(i) = static_cast<int32_t>(static_cast<uint32_t>(x(i)) * 3U + static_cast<uint32_t>(by));
  }
};

class ResidentControls : public GraphConformance {
 protected:
  // Checks the number of regions where constructs are in them.
  void ExpectRegions(const Executable& exec, int64_t regions) const {
    if (!on_cuda()) return;
    const SubmissionReport report = exec.submission_report();
    EXPECT_EQ(report.regions, GetParam().mode == "graph" ? regions : 0) << report.Text();
    EXPECT_NE(report.Text().find("runs in a region, without a launch for each part"), std::string::npos)
        << report.Text();
  }
};

// A ring of cells of which each is a node of its own. Rows alternate.
struct Ring {
  BufferHandle<int32_t> a, b;
  int32_t width;
  void Declare(Graph& g, const std::string& name) const {
    for (const bool back : {false, true}) {
      const auto from = back ? b : a, to = back ? a : b;
      for (int32_t c = 0; c < width; ++c) {
        g.ParallelFor(name + (back ? "/back" : "/cell") + std::to_string(c), 1, Mix{}, Write(to, Slice(c, 1)),
                      Read(from, Slice(c, 1)), Read(from, Slice((c + 1) % width, 1)));
      }
    }
  }
  static void Run(std::vector<int32_t>& row) {
    for (int back = 0; back < 2; ++back) {
      std::vector<int32_t> next;
      for (size_t c = 0; c < row.size(); ++c) next.push_back(Mixed(row[c], row[(c + 1) % row.size()]));
      row = next;
    }
  }
};

// Many workers of several blocks, of which the condition has one; and in the other branch few.
TEST_P(ResidentControls, WideAndNarrowBodiesTakeTurns) {
  constexpr int32_t kWidth = 40;
  Graph graph("wide");
  const auto a = graph.InOut<int32_t>("a", kWidth);
  const Ring ring{a, graph.Buffer<int32_t>("b", kWidth), kWidth};
  const auto left = graph.InOut<int32_t>("left", 1);
  graph.While("loop", When(AnyLeft{}, Read(left)), {.max = 1000}, [&](Graph& g) {
    g.If(
        "odd", When(IsOdd{}, Read(left)), [&](Graph& odd) { ring.Declare(odd, "ring"); },
        [&](Graph& even) {
          even.ParallelFor("all", kWidth, Step{7}, ReadWrite(a));
          even.Fill("first", Write(a, Slice(0, 1)), 3);
        });
    g.ParallelFor("count", 1, CountDown{}, ReadWrite(left));
  });
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  ExpectRegions(*exec, 1);
  for (const int32_t turns : {0, 1, 2, 9, 30}) {
    std::vector<int32_t> memory = Random(kWidth), row = memory, counter = {turns};
    ASSERT_OK(exec->Launch(exec->bindings().Set(a, memory).Set(left, counter))->Wait());
    for (int32_t t = turns; t > 0; --t) {
      if (t % 2 != 0) {
        Ring::Run(row);
      } else {
        for (int32_t& v : row) v = Step::Of(v, 7);
        row[0] = 3;
      }
    }
    ASSERT_EQ(memory, row) << turns << " turns";
  }
}

// More tasks than a worker holds at once, again and again; how often, the launch says.
TEST_P(ResidentControls, ABodyOfManyPagesIsRepeated) {
  constexpr int32_t kNodes = 150;
  Graph graph("pages");
  const auto x = graph.InOut<int32_t>("x", 3);
  const auto trips = graph.Param<int64_t>("trips");
  graph.Repeat("loop", trips, [&](Graph& g) {
    for (int32_t n = 0; n < kNodes; ++n) g.ParallelFor("step" + std::to_string(n), 3, Step{n}, ReadWrite(x));
  });
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  ExpectRegions(*exec, 1);
  for (const int64_t turns : {2, 0, 1, 17, 17}) {
    std::vector<int32_t> memory = Random(3), expected = memory;
    Bindings io = exec->bindings();
    io.Set(x, memory).Set(trips, turns);
    ASSERT_OK(exec->Launch(io)->Wait());
    for (int64_t t = 0; t < turns; ++t) {
      for (int32_t n = 0; n < kNodes; ++n) {
        for (int32_t& v : expected) v = Step::Of(v, n);
      }
    }
    ASSERT_EQ(memory, expected) << turns << " turns";
  }
}

// Loops in branches in loops, and what is declared after them in a body.
TEST_P(ResidentControls, ConstructsAreNested) {
  Graph graph("nested");
  const auto x = graph.InOut<int32_t>("x", 2), left = graph.InOut<int32_t>("left", 1);
  graph.While("outer", When(AnyLeft{}, Read(left)), {.max = 100}, [&](Graph& g) {
    const auto five = [&](Graph& of) {
      of.Repeat("five", 500, [&](Graph& in) { in.ParallelFor("five", 2, Step{5}, ReadWrite(x)); });
    };
    const auto one = [&](Graph& of) {
      of.ParallelFor("one", 2, Step{1}, ReadWrite(x));
      of.If("odd", When(IsOdd{}, Read(left)), [&](Graph& in) { in.ParallelFor("odd", 2, Step{9}, ReadWrite(x)); });
    };
    g.Switch("which", When(Remainder{3}, Read(left)), five, one);
    g.ParallelFor("after", 2, Step{11}, ReadWrite(x));
    g.ParallelFor("count", 1, CountDown{}, ReadWrite(left));
  });
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  ExpectRegions(*exec, 1);
  for (const int32_t turns : {0, 1, 8, 13}) {
    std::vector<int32_t> memory = Random(2), expected = memory, counter = {turns};
    ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory).Set(left, counter))->Wait());
    for (int32_t t = turns; t > 0; --t) {
      for (int32_t& v : expected) {
        for (int i = 0; t % 3 == 0 && i < 500; ++i) v = Step::Of(v, 5);
        if (t % 3 == 1) v = Step::Of(v, 1);
        if (t % 3 == 1 && t % 2 != 0) v = Step::Of(v, 9);
        v = Step::Of(v, 11);
      }
    }
    ASSERT_EQ(memory, expected) << turns << " turns";
    ASSERT_EQ(counter[0], turns > 0 ? 0 : turns);
  }
}

// Under kAuto the nodes have one warp each, and the report does not speak of other constructs.
TEST_P(ResidentControls, AutoTakesShortNodesOnly) {
  constexpr int kRounds = 500;  // too many to be unrolled
  const EnvironmentScope automatic("PENSTOCK_RESIDENT", "auto");
  for (const int64_t elements : {32, 33}) {
    Graph graph("auto");
    const auto x = graph.InOut<int32_t>("x", elements);
    graph.Repeat("loop", kRounds, [&](Graph& g) { g.ParallelFor("step", elements, Step{2}, ReadWrite(x)); });
    auto exec = runtime_->Compile(graph, {.slots = 1});
    ASSERT_OK(exec.status());
    if (elements == 32) ExpectRegions(*exec, 1);
    const SubmissionReport report = exec->submission_report();
    EXPECT_TRUE(elements == 32 || report.regions == 0) << report.Text();
    EXPECT_EQ(report.Text().find("in no region"), std::string::npos) << report.Text();
    std::vector<int32_t> memory = Random(static_cast<int32_t>(elements)), expected = memory;
    ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory))->Wait());
    for (int t = 0; t < kRounds; ++t) {
      for (int32_t& v : expected) v = Step::Of(v, 2);
    }
    EXPECT_EQ(memory, expected);
  }
}

// Pages that a worker has begun to fetch it may not need.
TEST_P(ResidentControls, ALongBodyMayBeLeftOut) {
  constexpr int32_t kNodes = 60;
  Graph graph("long");
  const auto x = graph.InOut<int32_t>("x", 3), left = graph.InOut<int32_t>("left", 1);
  graph.While("loop", When(AnyLeft{}, Read(left)), {.max = 1000}, [&](Graph& g) {
    g.If("odd", When(IsOdd{}, Read(left)), [&](Graph& in) {
      for (int32_t n = 0; n < kNodes; ++n) in.ParallelFor("step" + std::to_string(n), 3, Step{n}, ReadWrite(x));
    });
    for (int32_t n = 0; n < kNodes / 2; ++n) g.ParallelFor("each" + std::to_string(n), 3, Step{n}, ReadWrite(x));
    g.ParallelFor("count", 1, CountDown{}, ReadWrite(left));
  });
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  ExpectRegions(*exec, 1);
  for (const int32_t turns : {2, 1, 40, 41}) {
    std::vector<int32_t> memory = Random(3), expected = memory, counter = {turns};
    ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory).Set(left, counter))->Wait());
    for (int32_t t = turns; t > 0; --t) {
      for (int32_t n = 0; n < (t % 2 != 0 ? kNodes : 0); ++n) {
        for (int32_t& v : expected) v = Step::Of(v, n);
      }
      for (int32_t n = 0; n < kNodes / 2; ++n) {
        for (int32_t& v : expected) v = Step::Of(v, n);
      }
    }
    ASSERT_EQ(memory, expected) << turns << " turns";
  }
}

// Whichever of its sections are decided by which worker.
TEST_P(ResidentControls, CancelEndsALoopWithBranches) {
  for (const int branches : {1, 2, 3}) {
    Graph graph("cancelled");
    const auto x = graph.InOut<int32_t>("x", 2), left = graph.InOut<int32_t>("left", 1);
    graph.While("loop", When(AnyLeft{}, Read(left)), {.max = 2'000'000'000}, [&](Graph& g) {
      for (int b = 0; b < branches; ++b) {
        g.If("odd" + std::to_string(b), When(IsOdd{}, Read(left)),
             [&](Graph& in) { in.ParallelFor("odd", 2, Step{9}, ReadWrite(x)); });
      }
      for (int64_t i = 0; i < 2; ++i) {
        g.ParallelFor("step" + std::to_string(i), 1, Step{1}, ReadWrite(x, Slice(i, 1)));
      }
    });
    auto exec = runtime_->Compile(graph, {.slots = 1});
    ASSERT_OK(exec.status());
    ExpectRegions(*exec, 1);
    std::vector<int32_t> memory = Random(2), counter = {2};
    auto run = exec->Launch(exec->bindings().Set(x, memory).Set(left, counter));
    ASSERT_OK(run.status());
    run->Cancel();
    EXPECT_EQ(run->Wait().code(), absl::StatusCode::kCancelled) << branches << " branches";
  }
}

// Code of another translation unit cannot be called from the region, so there is none.
TEST_P(ResidentControls, CodeOfAnotherUnitKeepsAConstructOut) {
  Graph graph("units");
  const auto x = graph.InOut<int32_t>("x", 2), left = graph.InOut<int32_t>("left", 1);
  graph.While("loop", When(AnyLeft{}, Read(left)), {.max = 100}, [&](Graph& g) {
    AddTenElsewhere(g, "add", 2, x);
    g.ParallelFor("count", 1, CountDown{}, ReadWrite(left));
  });
  auto exec = runtime_->Compile(graph, {.slots = 1});
  ASSERT_OK(exec.status());
  std::vector<int32_t> memory = {1, 2}, counter = {6};
  ASSERT_OK(exec->Launch(exec->bindings().Set(x, memory).Set(left, counter))->Wait());
  EXPECT_EQ(memory, (std::vector<int32_t>{61, 62}));
  const std::string text = exec->submission_report().Text();
  EXPECT_EQ(text.find("runs in a region"), std::string::npos) << text;
  EXPECT_EQ(text.find(" is in no region: ") != std::string::npos, on_cuda()) << text;
}

INSTANTIATE_TEST_SUITE_P(Host, ResidentControls,
                         testing::Values(Target{"host:1", "graph", false, 0, false, true},
                                         Target{"host:3", "graph", true, 2, false, true}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ResidentControls,
                         testing::Values(Target{"cuda", "graph", false, 0, false, true},
                                         Target{"cuda", "stream", false, 0, false, true},
                                         Target{"cuda", "graph", true, 0, false, true}),
                         NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::resident_control_test
