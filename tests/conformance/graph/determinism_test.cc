// Graphs that are declared Deterministic, on every driver: what Compile refuses of them, and that what it takes gives
// the same bits in each run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/replicated_state.h"
#include "penstock/scan.h"
#include "tests/conformance/graph/graph_fixture.h"

namespace penstock::conformance::determinism_test {
namespace {

using testing::HasSubstr;

constexpr int kN = 5000;

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const { x[i] += 1; }
};

struct CopyTo {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const int32_t* from, int32_t* to) const { to[i] = from[i]; }
};

class Determinism : public GraphConformance {};

TEST_P(Determinism, OfWhatIsTakenGivesTheSameBitsInEachRun) {
  Graph g("same");
  g.Deterministic();
  const auto x = g.Input<float>("x", kN);
  const auto sums = g.Output<float>("sums", kN), sum = g.Output<float>("sum", 1);
  Scan(g, "sums", Read(x), Write(sums));
  g.Reduce("sum", Read(sums), Write(sum));
  std::vector<float> hx;
  for (const int32_t v : Random(kN)) hx.push_back(static_cast<float>(v) / 3);
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 3});
  ASSERT_OK(exec.status());
  std::vector<float> first, first_sum;
  for (int r = 0; r < 5; ++r) {
    std::vector<float> out(kN), out_sum(1);
    ASSERT_OK(exec->Launch(exec->bindings().Set(x, hx).Set(sums, out).Set(sum, out_sum))->Wait());
    if (r == 0) first = out, first_sum = out_sum;
    ASSERT_EQ(std::memcmp(out.data(), first.data(), kN * sizeof(float)), 0) << r;
    ASSERT_EQ(std::memcmp(out_sum.data(), first_sum.data(), sizeof(float)), 0) << r;
  }
}

TEST_P(Determinism, RefusesWhatSaysThatItVariesByNameAndLineInBodiesToo) {
  const auto refusal = [&](bool promised) {
    Graph g("g");
    const auto x = g.InOut<int32_t>("x", kN);
    g.Repeat("loop", 3, [&](Graph& body) {
      body.ParallelFor(Name("varies", "a.cc", 12), kN, AddOne{}, ReadWrite(x)).Nondeterministic();
    });
    if (promised) g.Deterministic();
    return Text(runtime_->Compile(g).status());
  };
  EXPECT_EQ(refusal(false), "");
  EXPECT_THAT(refusal(true),
              HasSubstr("graph 'g' node 'loop/varies' (a.cc:12): is declared Nondeterministic, and the graph "
                        "is Deterministic"));
}

TEST_P(Determinism, IsPartOfAStepThatIsDeclaredAgain) {
  GraphCache steps(*runtime_);
  std::vector<int32_t> hx(kN, 0);
  const auto step = [&](bool promised, bool varies) {
    const auto run = steps.Launch([&](Graph& g, Bindings& io) {
      const auto x = g.InOut<int32_t>("x", kN);
      NodeRef node = g.ParallelFor("add", kN, AddOne{}, ReadWrite(x));
      if (varies) node.Nondeterministic();
      if (promised) g.Deterministic();
      io.Set(x, hx);
    });
    return run.ok() ? run->Wait() : run.status();
  };
  EXPECT_OK(step(true, false));
  EXPECT_EQ(step(true, true).code(), absl::StatusCode::kInvalidArgument) << "no executable of another step is found";
  EXPECT_OK(step(false, true));
  EXPECT_OK(step(true, false));
  EXPECT_EQ(steps.counts().compiled, 2);
  EXPECT_OK(step(false, false));
  EXPECT_EQ(steps.counts().compiled, 3) << "without the promise it is another graph";
}

TEST_P(Determinism, RefusesToWriteReplicasThatThePaceOfDevicesChooses) {
  const size_t devices = runtime_->devices().size();
  if (devices < 2) GTEST_SKIP() << "several devices are needed";
  auto state = runtime_->MakeReplicatedState<int32_t>("sums", kN, std::vector<int32_t>(kN));
  ASSERT_OK(state.status());
  const auto refusal = [&](bool writes, bool promised, std::vector<DeviceShare> shares) {
    Graph g("g");
    const auto x = g.InOut<int32_t>("x", kN);
    if (writes) {
      g.ParallelFor(Name("add", "a.cc", 7), kN, AddOne{}, ReadWrite(*state));
    } else {
      g.ParallelFor(Name("use", "a.cc", 8), kN, CopyTo{}, Read(*state), Write(x));
    }
    if (promised) g.Deterministic();
    return Text(runtime_->Compile(g, {.devices = std::move(shares)}).status());
  };
  EXPECT_THAT(refusal(true, true, {DeviceShare(0), DeviceShare(1)}),
              HasSubstr("graph 'g' node 'add' (a.cc:7): writes 'sums'"));
  EXPECT_EQ(refusal(true, false, {DeviceShare(0), DeviceShare(1)}), "");
  EXPECT_EQ(refusal(false, true, {DeviceShare(0), DeviceShare(1)}), "");
  EXPECT_EQ(refusal(true, true, {DeviceShare(1)}), "");
}

INSTANTIATE_TEST_SUITE_P(Host, Determinism, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Determinism, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::determinism_test
