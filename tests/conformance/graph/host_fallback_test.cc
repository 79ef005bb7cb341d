// The host fallback check on every driver: what agrees passes, what differs is named by element and value.
#include <cmath>
#include <cstdlib>

#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/kernels.h"

namespace penstock::conformance::host_fallback_test {
namespace {

constexpr int kN = 100;

struct Number {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, int32_t by, View<const int32_t> in, View<int32_t> out) const {
    out(i.y, i.x) = in(i.y, i.x) * by;
  }
};
// A wrong device code: the same sources say something else to each compiler.
struct Differs {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, int32_t* x) const {
#if defined(__CUDA_ARCH__)
    x[i] += i % 10 == 7 ? 2 : 1;
#else
    x[i] += 1;
#endif
  }
};
struct AddTo {
  PENSTOCK_HOST_DEVICE void operator()(Index2 i, View<const int32_t> from, View<int32_t> to) const {
    to(i.y, i.x) += from(i.y, i.x) + static_cast<int32_t>(100 * to.height + to.width);
  }
};
void TripleOnHost(int n, const int32_t* from, int32_t* to) {
  for (int i = 0; i < n; ++i) to[i] = from[i] * 3;
}
// On the device it leaves all as it is, but for what is only written.
TEST_KERNEL void Eights([[maybe_unused]] View<int32_t> v) {
#if defined(__CUDA_ARCH__)
  if (v.height == 2) v(0, 0) = v(0, 1) = v(1, 0) = v(1, 1) = 8;
#endif
}
template <class T>
TEST_KERNEL void Triple([[maybe_unused]] int n, [[maybe_unused]] const T* x, [[maybe_unused]] T* y) {
#if defined(__CUDA_ARCH__)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 3;
#endif
}

class Twin : public GraphConformance {
 protected:
  CompileOptions Checked(double tolerance = 0) {
    return {.slots = 1, .check_against_host = true, .host_tolerance = tolerance};
  }
  std::string where() const { return " on host: "; }  // the check is a host node
};

std::string Words(const absl::Status& status) { return std::string(status.message().data(), status.message().size()); }

TEST_P(Twin, WhatAgreesPassesAndComputesTheSame) {
  Graph g("agrees");
  auto by = g.Param<int32_t>("by");
  auto h = g.Param<int>("h", AtMost(16));
  auto x = g.InOut<int32_t>("x", kN);
  auto in = g.Input<int32_t>("in", {h, 8});
  auto out = g.Output<int32_t>("out", {h, 8});
  auto y = g.Output<int32_t>("y", kN);
  auto t = g.Buffer<int32_t>("t", kN);
  g.ParallelFor("add", kN, AddOne{}, ReadWrite(x));
  const NodeRef number = g.ParallelFor("number", {h, 8}, Number{}, by, Read(in), Write(out));
  g.Copy("t", x, t);
  g.Kernel("triple", Triple<int32_t>, Threads(kN), kN, Read(t), Write(y)).HostFallback(TripleOnHost).After(number);
  g.ParallelFor("again", kN, AddOne{}, ReadWrite(y));
  const std::vector<int32_t> hin = Random(5 * 8);
  std::vector<int32_t> hx = Random(kN), hout = Poisoned(5 * 8), hy = Poisoned(kN);
  const std::vector<int32_t> before = hx;
  ASSERT_OK(RunOnce(
      g, [&](Bindings& io) { io.Set(by, 7).Set(h, 5).Set(x, hx).Set(in, hin).Set(out, hout).Set(y, hy); }, Checked()));
  for (int i = 0; i < kN; ++i) {
    ASSERT_EQ(hx[i], before[i] + 1);
    ASSERT_EQ(hy[i], (before[i] + 1) * 3 + 1);
  }
  for (size_t i = 0; i < hout.size(); ++i) ASSERT_EQ(hout[i], hin[i] * 7);
}

TEST_P(Twin, ATwinThatComputesSomethingElseIsNamedWithTheFirstElement) {
  Graph g("differs");
  auto x = g.InOut<int32_t>("x", kN);
  int calls = 0;
  const Name name = "add";
  const int line = __LINE__ - 1;
  // On host devices the first call is the node itself: a host fallback that keeps state gives itself away.
  const bool cuda = on_cuda();
  g.Kernel(name, Triple<int32_t>, Threads(1), 0, Read(g.Input<int32_t>("unused", 1)), ReadWrite(x))
      .HostFallback([&calls, cuda](int, const int32_t*, int32_t* v) {
        if (++calls == 1 && !cuda) return;
        v[3] -= 5;
        v[90] = 0;
      });
  std::vector<int32_t> hx(kN, 3), unused(1);
  std::vector<int32_t> sent = hx;
  auto exec = runtime_->Compile(g, Checked());
  ASSERT_OK(exec.status());
  Bindings io = exec->bindings();
  const BufferHandle<int32_t> unused_handle(x.graph(), 1);
  auto run = exec->Launch(io.Set(x, hx).Set(unused_handle, unused));
  ASSERT_OK(run.status());
  const absl::Status status = run->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Words(status), "graph 'differs' node 'check add' (host_fallback_test.cc:" + std::to_string(line) + ")" +
                               where() +
                               "the node and its host code differ in buffer 'x'; element 3 is 3 (03 00 00 00) by the "
                               "node and -2 (fe ff ff ff) by the host code, 2 of 100 elements differ; correct one of "
                               "them");
}

TEST_P(Twin, AnOutputThatIsNotWrittenWholeIsFound) {
  Graph g("partial");
  auto x = g.Input<uint16_t>("x", kN);
  auto y = g.Output<uint16_t>("y", kN);
  g.Kernel("triple", Triple<uint16_t>, Threads(kN), kN, Read(x), Write(y))
      .HostFallback([](int n, const uint16_t* from, uint16_t* to) {
        for (int i = 0; i < n - 1; ++i) to[i] = static_cast<uint16_t>(from[i] * 3);
      });
  std::vector<uint16_t> hx(kN, 5), hy(kN, 1);
  const std::string text = Words(RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }, Checked()));
  EXPECT_NE(text.find("buffer 'y'; element 99 is "), std::string::npos) << text;
  EXPECT_NE(text.find(" by the node and 42405 (a5 a5) by the host code, 1 of 100 elements differ"), std::string::npos)
      << text;
}

TEST_P(Twin, FloatsAreComparedWithinTheTolerance) {
  for (const double tolerance : {0.0, 1e-9, 1e-3}) {
    Graph g("floats");
    auto x = g.Input<double>("x", kN);
    auto y = g.Output<double>("y", kN);
    int calls = 0;
    const bool cuda = on_cuda();
    g.Kernel("triple", Triple<double>, Threads(kN), kN, Read(x), Write(y))
        .HostFallback([&calls, cuda](int n, const double* from, double* to) {
          const double off = ++calls == 1 && !cuda ? 1 : 1 + 1e-6;
          for (int i = 0; i < n; ++i) to[i] = from[i] * 3 * off;
        });
    std::vector<double> hx(kN, 0.5), hy(kN);
    const absl::Status status = RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy); }, Checked(tolerance));
    EXPECT_EQ(status.ok(), tolerance == 1e-3) << status;
    if (status.ok()) continue;
    const std::string text = Words(status);
    EXPECT_NE(text.find("element 0 is 1.5 (00 00 00 00 00 00 f8 3f) by the node and 1.5000015 ("), std::string::npos)
        << text;
    EXPECT_NE(text.find("100 of 100 elements differ; correct one of them, or allow CompileOptions::host_tolerance"),
              std::string::npos)
        << text;
  }
}

// Columns of a State and of a bound buffer, and a slice by pointer; several runs, each with what the one before left.
TEST_P(Twin, PartsAndStatesThatAgreePassAndComputeTheSame) {
  constexpr int64_t kH = 5, kW = 9;
  const auto state = runtime_->MakeState<int32_t>("s", {kH, kW});
  ASSERT_OK(state.status());
  Graph g("parts");
  auto left = g.Param<int>("left");
  auto in = g.Input<int32_t>("in", {kH, kW});
  auto y = g.Output<int32_t>("y", kN);
  auto out = g.Output<int32_t>("out", {kH, kW});
  const Box columns = Slice({1, left}, {3, 4});
  g.ParallelFor("add", {3, 4}, AddTo{}, Read(in, columns), ReadWrite(*state, columns));
  g.ParallelFor("all", {kH, kW}, Number{}, 1, Read(*state), Write(out));
  g.Kernel("triple", Triple<int32_t>, Threads(10), 10, Read(in, Slice({2, 0}, {2, kW})), Write(y, Slice(50, 10)))
      .HostFallback(TripleOnHost);
  auto exec = runtime_->Compile(g, Checked());
  ASSERT_OK(exec.status());
  EXPECT_NE(exec->PlanText().find("check add"), std::string::npos);
  EXPECT_NE(exec->PlanText().find("check triple"), std::string::npos);
  const std::vector<int32_t> hin = Random(kH * kW);
  std::vector<int32_t> hy = Poisoned(kN), expected_y = hy, sum(kH * kW), hout = Poisoned(kH * kW);
  for (size_t i = 0; i < 10; ++i) expected_y[50 + i] = hin[2 * kW + i] * 3;
  Bindings io = exec->bindings();
  for (int r = 0; r < 5; ++r) {
    auto run = exec->Launch(io.Set(left, r).Set(in, hin).Set(y, hy).Set(out, hout));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (int64_t i = 0; i < kH * kW; ++i) {
      const bool inside = i / kW >= 1 && i / kW < 4 && i % kW >= r && i % kW < r + 4;
      sum[i] += inside ? hin[i] + 304 : 0;
    }
    EXPECT_EQ(hout, sum) << "run " << r;
    EXPECT_EQ(hy, expected_y);
  }
}

// Two columns of a State that is read as well; element 3 of them is the right one of the second row.
TEST_P(Twin, ATwinOfAPartThatComputesSomethingElseFailsTheRunAndPoisonsTheState) {
  auto state = runtime_->MakeState<int32_t>("s", {4, 6}, std::vector<int32_t>(24, 8));
  ASSERT_OK(state.status());
  Graph g("differs");
  int calls = 0;
  const bool cuda = on_cuda();
  g.Kernel("add", Eights, Threads(1), ReadWrite(*state, Slice({1, 2}, {3, 2})))
      .HostFallback([&calls, cuda](View<int32_t> v) {
        if (++calls == 1 && !cuda) return;  // the node itself
        v(1, 1) -= 5;
      });
  const std::string text = Words(RunOnce(g, [](Bindings&) {}, Checked()));
  EXPECT_NE(text.find("buffer 's'; element 3 is 8 (08 00 00 00) by the node and 3 (03 00 00 00) by the host code, 1 of "
                      "6 elements differ"),
            std::string::npos)
      << text;
  EXPECT_EQ(state->status().code(), absl::StatusCode::kFailedPrecondition);
}

// A part that is only written begins as poison, row by row.
TEST_P(Twin, APartThatIsNotWrittenWholeIsFound) {
  Graph g("partial");
  auto y = g.Output<int32_t>("y", {3, 5});
  g.Kernel("add", Eights, Threads(1), Write(y, Slice({1, 1}, {2, 2}))).HostFallback([](View<int32_t> v) {
    v(0, 0) = v(0, 1) = v(1, 1) = 8;
  });
  std::vector<int32_t> hy(15, 1);
  const std::string text = Words(RunOnce(g, [&](Bindings& io) { io.Set(y, hy); }, Checked()));
  EXPECT_NE(text.find("buffer 'y'; element 2 is "), std::string::npos) << text;
  EXPECT_NE(text.find(" by the node and -1515870811 (a5 a5 a5 a5) by the host code, 1 of 4 elements differ"),
            std::string::npos)
      << text;
}

// Each row of a buffer is made of the one before it: what a node reads, no check may take from what it has written.
TEST_P(Twin, NodesThatAccessPartsOfABufferThatLieApartAreChecked) {
  constexpr int64_t kRows = 4;
  Graph g("rows");
  auto x = g.InOut<int32_t>("x", {kRows, kN});
  for (int64_t r = 1; r < kRows; ++r) {
    g.Kernel(Name("row " + std::to_string(r)), Triple<int32_t>, Threads(kN), kN, Read(x, Slice({r - 1, 0}, {1, kN})),
             Write(x, Slice({r, 0}, {1, kN})))
        .HostFallback(TripleOnHost);
  }
  auto exec = runtime_->Compile(g, Checked());
  ASSERT_OK(exec.status());
  EXPECT_NE(exec->PlanText().find("check row 3"), std::string::npos);
  std::vector<int32_t> hx = Poisoned(kRows * kN);
  for (int32_t i = 0; i < kN; ++i) hx[static_cast<size_t>(i)] = i;
  Bindings io = exec->bindings();
  auto run = exec->Launch(io.Set(x, hx));
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  for (int32_t i = 0; i < kN; ++i) ASSERT_EQ(hx[static_cast<size_t>(3 * kN + i)], 27 * i);
}

TEST_P(Twin, ADeviceThatComputesSomethingElseIsFound) {
  if (!on_cuda()) GTEST_SKIP() << "host devices run the host code itself";
  Graph g("device");
  auto x = g.InOut<int32_t>("x", kN);
  g.ParallelFor("wrong", kN, Differs{}, ReadWrite(x));
  std::vector<int32_t> hx(kN, 1);
  const std::string text = Words(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }, Checked()));
  EXPECT_NE(text.find("element 7 is 3 (03 00 00 00) by the node and 2 (02 00 00 00) by the host code, 10 of 100"),
            std::string::npos)
      << text;
}

TEST_P(Twin, WhatCannotBeCheckedIsLogged) {
  std::string logged;
  auto runtime =
      Runtime::Create({.devices = GetParam().devices, .workers = 2, .log = [&](LogLevel, std::string_view text) {
                         logged += std::string(text) + "\n";
                       }});
  ASSERT_OK(runtime.status());
  Graph g("parts");
  auto x = g.InOut<int32_t>("x", kN);
  const Name name = "half";
  const int line = __LINE__ - 1;
  g.ParallelFor(name, kN, AddOne{}, Unordered(ReadWrite(x)));
  ASSERT_OK(runtime->Compile(g, Checked()).status());
  EXPECT_EQ(logged, "graph 'parts' node 'half' (host_fallback_test.cc:" + std::to_string(line) +
                        "): not checked against its host code: an access to 'x' is Unordered\n");
}

TEST_P(Twin, TheEnvironmentTurnsItOn) {
  Graph g("env");
  auto x = g.InOut<int32_t>("x", kN);
  g.ParallelFor("add", kN, AddOne{}, ReadWrite(x));
  EXPECT_EQ(runtime_->Compile(g)->PlanText().find("check add"), std::string::npos);
  setenv("PENSTOCK_CHECK_AGAINST_HOST", "1", 1);
  const auto exec = runtime_->Compile(g);
  unsetenv("PENSTOCK_CHECK_AGAINST_HOST");
  ASSERT_OK(exec.status());
  EXPECT_NE(exec->PlanText().find("check add"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Host, Twin, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Twin, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::host_fallback_test
