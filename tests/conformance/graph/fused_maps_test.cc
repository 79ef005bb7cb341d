// Maps that become one kernel: the same results, values and errors as apart, in graphs, loops, steps that are declared
// again and under all checks. Which do, and which do not, is tests/graph/declare/fuse_maps_test.cc.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph_cache.h"
#include "penstock/map.h"
#include "penstock/state.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::fused_maps_test {
namespace {

using expr::Of;

constexpr int64_t kN = 1003;

struct Below {
  PENSTOCK_HOST_DEVICE bool operator()(int32_t limit, View<const int32_t> x) const { return x(0) < limit; }
};

class FusedMaps : public GraphConformance {
 protected:
  std::vector<float> Floats(int64_t n) {
    std::vector<float> out;
    for (const int32_t v : Random(n)) out.push_back(static_cast<float>(v) / 4096.0f);
    return out;
  }
  // All fused, none, and fused under the check of host code.
  static std::vector<CompileOptions> Ways() {
    std::vector<CompileOptions> ways(3);
    ways[1].fuse_maps = false;
    ways[2].check_against_host = true;
    return ways;
  }
};

// A chain with a diamond, two results, a parameter, an InOut that is read and then written, and any extent.
TEST_P(FusedMaps, GiveTheSameBitsAsApart) {
  Graph g("maps");
  auto n = g.Param<int64_t>("n", AtMost(kN));
  auto scale = g.Param<float>("scale");
  auto x = g.Input<float>("x", n);
  auto sum = g.InOut<float>("sum", n);
  auto bytes = g.Output<uint8_t>("bytes", n);
  auto t = g.Buffer<float>("t", n), a = g.Buffer<float>("a", n), b = g.Buffer<float>("b", n);
  Map(g, "axpy", Write(t), scale * Of(x) + Of(sum));
  Map(g, "a", Write(a), Of(t) * 0.1f);
  Map(g, "b", Write(b), Of(t) / 3.0f + scale);
  Map(g, "sum", Write(sum), Of(a) - Of(b) * Of(x));
  Map(g, "bytes", Write(bytes), expr::Cast<uint8_t>(expr::Abs(Of(sum) + Of(a))));
  for (const CompileOptions& options : Ways()) {
    auto exec = runtime_->Compile(g, options);
    ASSERT_OK(exec.status());
    const SubmissionReport report = exec->submission_report();
    ASSERT_EQ(report.fused.size(), options.fuse_maps ? 1u : 0u);
    if (options.fuse_maps) {
      EXPECT_EQ(report.fused[0].maps, 5);
      EXPECT_EQ(report.fused[0].name, "axpy + a + b + sum + bytes");
      EXPECT_EQ(report.fused[0].memory_bytes, 3 * 4 * kN);
      EXPECT_NE(report.Text().find("one kernel for Maps 'axpy' ("), std::string::npos) << report.Text();
    }
    Bindings io = exec->bindings();
    for (const int64_t count : {kN, int64_t{0}, int64_t{1}, int64_t{64}}) {
      const std::vector<float> hx = Floats(count);
      std::vector<float> hsum = Floats(count), want_sum(hx.size());
      std::vector<uint8_t> got(hx.size()), want(hx.size());
      for (size_t i = 0; i < hx.size(); ++i) {
        const volatile float product = 1.75f * hx[i];
        const float of_t = product + hsum[i];
        const volatile float of_a = of_t * 0.1f;
        const float of_b = of_t / 3.0f + 1.75f;
        const volatile float scaled = of_b * hx[i];
        want_sum[i] = of_a - scaled;
        const float sized = want_sum[i] + of_a;
        want[i] = static_cast<uint8_t>(std::min(sized < 0 ? -sized : sized, 255.0f));
      }
      io.Set(n, count).Set(scale, 1.75f).Set(x, hx).Set(sum, hsum);
      auto run = exec->Launch(io.Set(bytes, got));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(hsum, want_sum);
      EXPECT_EQ(got, want);
    }
  }
}

TEST_P(FusedMaps, WorkInLoopsAndOnStates) {
  for (const CompileOptions& options : Ways()) {
    Graph g("loops");
    auto limit = g.Param<int32_t>("limit");
    auto rounds = g.Param<int64_t>("rounds");
    auto out = g.Output<int32_t>("out", kN);
    auto state = runtime_->MakeState<int32_t>("state", kN);
    ASSERT_OK(state.status());
    auto x = g.Buffer<int32_t>("x", kN), t = g.Buffer<int32_t>("t", kN), u = g.Buffer<int32_t>("u", kN);
    Map(g, "begin", Write(x), Of(*state) + 1);
    g.Repeat("repeat", rounds, [&](Graph& body) {
      Map(body, "t", Write(t), Of(x) * 3);
      Map(body, "x", Write(x), Of(t) - 1);
    });
    g.While("while", When(Below{}, limit, Read(x)), {.max = 100}, [&](Graph& body) {
      Map(body, "u", Write(u), Of(x) + 5);
      Map(body, "y", Write(x), 2 * Of(u));
    });
    Map(g, "end", Write(*state), Of(x) + 7);
    Map(g, "out", Write(out), Of(x));
    auto exec = runtime_->Compile(g, options);
    ASSERT_OK(exec.status());
    int32_t value = 0;
    for (const int32_t times : {2, 0, 3}) {
      std::vector<int32_t> got = Poisoned(kN);
      auto run = exec->Launch(exec->bindings().Set(limit, 1000 * times).Set(rounds, int64_t{times}).Set(out, got));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      value += 1;
      for (int i = 0; i < times; ++i) value = value * 3 - 1;
      while (value < 1000 * times) value = 2 * (value + 5);
      EXPECT_EQ(got, std::vector<int32_t>(kN, value)) << times;
      value += 7;
    }
    EXPECT_EQ(exec->submission_report().fused.size(), options.fuse_maps ? 2u : 0u);
  }
}

// Nodes behind fused ones keep their values, and numbers of a formula are part of the graph.
TEST_P(FusedMaps, AreFoundAgainWithAnotherParameterAndTheValuesOfOtherNodes) {
  GraphCache cache(*runtime_, {8, {.slots = 2}});
  const std::vector<int32_t> in = Random(kN);
  for (int step = 0; step < 9; ++step) {
    const int32_t param = step, add = 10 * step, fill = 100 * step, number = step / 6;
    std::vector<int32_t> out = Poisoned(kN), filled = Poisoned(kN);
    const auto declare = [&](Graph& g, Bindings& io) {
      auto x = g.Input<int32_t>("x", kN);
      auto y = g.Output<int32_t>("y", kN), z = g.Output<int32_t>("z", kN);
      auto t = g.Buffer<int32_t>("t", kN);
      auto p = g.Param<int32_t>("p");
      Map(g, "t", Write(t), Of(x) * p);
      Map(g, "y", Write(y), Of(t) + number);
      g.ParallelFor("value", kN, AddValue{}, ReadWrite(y), add);
      g.Fill("fill", z, fill);
      io.Set(x, in).Set(y, out).Set(z, filled).Set(p, param);
    };
    auto run = cache.Launch(declare);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < static_cast<size_t>(kN); ++i) {
      ASSERT_EQ(out[i], in[i] * param + number + add) << step;
      ASSERT_EQ(filled[i], fill) << step;
    }
  }
  EXPECT_EQ(cache.counts().compiled, 2);
  EXPECT_EQ(cache.counts().found, 7);
  EXPECT_EQ(cache.submission_report().fused.size(), 1u);
}

TEST_P(FusedMaps, FailWithTheNamesAndLinesOfAll) {
  Graph g("fails");
  auto at = g.Param<int64_t>("at");
  auto x = g.Input<float>("x", 2 * kN);
  auto z = g.Output<float>("z", kN);
  auto t = g.Buffer<float>("t", kN);
  Map(g, Name("t", "dir/a.cc", 3), Write(t), Of(x, Slice(at, kN)));
  Map(g, Name("z", "dir/a.cc", 4), Write(z), Of(t) + 1.0f);
  const std::vector<float> hx = Floats(2 * kN);
  std::vector<float> got(static_cast<size_t>(kN));
  const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(at, kN + 1).Set(x, hx).Set(z, got); });
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.ToString().find("node 't + z' (a.cc:3, a.cc:4)"), std::string::npos) << status;
  // Mistakes are those of the declared nodes.
  Map(g, Name("short", "dir/a.cc", 5), Write(t, Slice(0, 3)), Of(x));
  const auto exec = runtime_->Compile(g);
  EXPECT_NE(exec.status().ToString().find("node 'short' (a.cc:5): reads {2006} elements of 'x'"), std::string::npos)
      << exec.status();
}

INSTANTIATE_TEST_SUITE_P(Host, FusedMaps, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, FusedMaps, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::fused_maps_test
