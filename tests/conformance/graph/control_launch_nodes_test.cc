// Launch nodes in constructs that the device decides: captured by Compile, and children of bodies.
#include <gmock/gmock.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/graph/graph_fixture.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::control_launch_nodes_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr int64_t kN = 40;

#if defined(__CUDACC__)
__global__ void AddTo(int32_t* x, const int32_t* by, int32_t times) { x[threadIdx.x] += by[threadIdx.x] * times; }
#endif

absl::Status AddForeign([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] int32_t* x,
                        [[maybe_unused]] const int32_t* by, [[maybe_unused]] int32_t times) {
#if defined(__CUDACC__)
  AddTo<<<1, kN, 0, CudaStream(launch)>>>(x, by, times);
  return ToStatus(cudaGetLastError());
#else
  return absl::InternalError("called on a host device");
#endif
}
void AddOnHost(int32_t* x, const int32_t* by, int32_t times) {
  for (int64_t i = 0; i < kN; ++i) x[i] += by[i] * times;
}
// The same, with a call of the host.
absl::Status AddAndCall(LaunchContext& launch, int32_t* x, const int32_t* by, int32_t times) {
#if defined(__CUDACC__)
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaLaunchHostFunc(CudaStream(launch), [](void*) {}, nullptr)));
#endif
  return AddForeign(launch, x, by, times);
}

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x(i); }
};
struct Below {
  PENSTOCK_HOST_DEVICE bool operator()(int32_t limit, View<const int32_t> round) const { return round(0) < limit; }
};
struct IsOdd {
  PENSTOCK_HOST_DEVICE bool operator()(View<const int32_t> round) const { return round(0) % 2 != 0; }
};

class LaunchesInConstructs : public GraphConformance {
 protected:
  std::vector<std::string> Notes(const absl::StatusOr<Executable>& exec) const {
    return exec.ok() ? exec->submission_report().notes : std::vector<std::string>{exec.status().ToString()};
  }
  // Launches with x of zeros and three rounds, each of which adds one to `by`, and then that to x.
  template <class Launch>
  void CheckLoop(Graph& g, Launch launch, const testing::Matcher<std::vector<std::string>>& notes) {
    auto trips = g.Param<int64_t>("trips");
    auto x = g.InOut<int32_t>("x", kN);
    auto by = g.Buffer<int32_t>("by", kN);
    g.Fill("zero", by, 0);
    g.Repeat("loop", trips, [&](Graph& body) {
      body.ParallelFor("one", kN, AddOne{}, ReadWrite(by));
      launch(body, x, by);
    });
    auto exec = runtime_->Compile(g, {.slots = 1});
    ASSERT_OK(exec.status());
    EXPECT_THAT(Notes(exec), notes);
    for (int round = 0; round < 2; ++round) {
      std::vector<int32_t> values(kN);
      auto run = exec->Launch(Bind(exec->bindings()).Set(x, values).Set(trips, int64_t{3}));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      EXPECT_EQ(values, std::vector<int32_t>(kN, (1 + 2 + 3) * 2));
    }
  }
  Bindings Bind(Bindings io) const { return two_ ? io.Set(*two_, 2) : io; }
  std::optional<ParamHandle<int32_t>> two_;
};

// One takes memory of the graph, the other memory of its body.
TEST_P(LaunchesInConstructs, ComputeInEachIterationOfTheDevice) {
  Graph g("launches");
  auto limit = g.Param<int32_t>("limit");
  auto x = g.InOut<int32_t>("x", kN), round = g.InOut<int32_t>("round", 1);
  auto by = g.Buffer<int32_t>("by", kN);
  g.Fill("three", by, 3);
  g.While("loop", When(Below{}, limit, Read(round)), {}, [&](Graph& body) {
    body.ParallelFor("more", kN, AddOne{}, ReadWrite(by));
    body.Launch("theirs", AddForeign, ReadWrite(x), Read(by), 2).HostFallback(AddOnHost);
    body.If("odd", When(IsOdd{}, Read(round)), [&](Graph& then) {
      auto own = then.Buffer<int32_t>("own", kN);
      then.Fill("five", own, 5);
      then.Launch("inner", AddForeign, ReadWrite(x), Read(own), 1).HostFallback(AddOnHost);
    });
    body.ParallelFor("count", 1, AddOne{}, ReadWrite(round));
  });
  auto exec = runtime_->Compile(g, {.slots = 2, .constructs = Lowering::kDevice});
  ASSERT_OK(exec.status());
  EXPECT_THAT(Notes(exec), Contains(HasSubstr("the device decides construct 'loop'")));
  for (const int32_t rounds : {4, 0, 7}) {
    std::vector<int32_t> values[2], expected[2];
    int32_t begin[2] = {0, 0};
    std::vector<penstock::Run> runs;
    for (int r = 0; r < 2; ++r) {
      expected[r] = values[r] = Random(kN);
      auto run =
          exec->Launch(exec->bindings().Set(limit, rounds + r).Set(x, values[r]).Set(round, std::span(&begin[r], 1)));
      ASSERT_OK(run.status());
      runs.push_back(*std::move(run));
    }
    for (int r = 0; r < 2; ++r) {
      ASSERT_OK(runs[static_cast<size_t>(r)].Wait());
      for (int32_t& v : expected[r]) {
        for (int32_t i = 0; i < rounds + r; ++i) v += (4 + i) * 2 + (i % 2 != 0 ? 5 : 0);
      }
      EXPECT_EQ(values[r], expected[r]) << rounds << " rounds, run " << r;
    }
  }
}

TEST_P(LaunchesInConstructs, TheHostDrivesThoseWhoseArgumentsLaunchesDecide) {
  Graph g("varies");
  two_ = g.Param<int32_t>("two");
  CheckLoop(
      g,
      [&](Graph& body, auto x, auto by) {
        body.Launch("theirs", AddForeign, ReadWrite(x), Read(by), *two_).HostFallback(AddOnHost);
      },
      Contains(AllOf(HasSubstr("the host drives construct 'loop'"), HasSubstr("node 'loop/theirs'"),
                     HasSubstr("parameter 'two'"))));
}

// On host devices, whose captures hold one call each, a checked driver refuses the child.
TEST_P(LaunchesInConstructs, TheHostDrivesThoseWhoseCaptureABodyCannotHold) {
  if (!on_cuda() && !GetParam().checked) GTEST_SKIP() << "only a checked driver of host devices refuses";
  if (!on_cuda()) {
    checks_->witness().FailNth(driver::checked::CallKind::kAddChild, 1,
                               absl::FailedPreconditionError("it has a call of the host"));
  }
  Graph g("refused");
  CheckLoop(
      g,
      [&](Graph& body, auto x, auto by) {
        body.Launch("theirs", AddAndCall, ReadWrite(x), Read(by), 2).HostFallback(AddOnHost);
      },
      Contains(AllOf(HasSubstr("the host drives construct 'loop'"), HasSubstr("node 'loop/theirs'"),
                     HasSubstr("a call of the host"))));
}

// The memory of a loop that the host drives is bound when its body is launched.
TEST_P(LaunchesInConstructs, TheHostDrivesThoseInLoopsThatItDrives) {
  Graph g("inside");
  auto trips = g.Param<int64_t>("trips");
  auto x = g.InOut<int32_t>("x", kN), by = g.InOut<int32_t>("by", kN);
  g.Repeat("outer", trips, [&](Graph& outer) {
    outer.Host("see", [](std::span<const int32_t>) {}, Read(x));
    outer.Repeat("inner", trips, [&](Graph& inner) {
      inner.Launch("theirs", AddForeign, ReadWrite(x), Read(by), 2).HostFallback(AddOnHost);
    });
  });
  auto exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  EXPECT_THAT(exec->PlanText(), testing::ContainsRegex("outer/inner +control"));
  std::vector<int32_t> values(kN), ones(kN, 1);
  auto run = exec->Launch(exec->bindings().Set(x, values).Set(by, ones).Set(trips, int64_t{3}));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  EXPECT_EQ(values, std::vector<int32_t>(kN, 18));
}

INSTANTIATE_TEST_SUITE_P(Host, LaunchesInConstructs, testing::ValuesIn(HostTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, LaunchesInConstructs, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::control_launch_nodes_test
