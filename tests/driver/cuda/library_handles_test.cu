// cublas.h, cusolver.h and cufft.h with the libraries themselves: calls in graphs and on streams, replayed, with
// results that plain loops check.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/cublas.h"
#include "penstock/cufft.h"
#include "penstock/cusolver.h"
#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/driver/cuda/gpu_test.h"
#include "tests/support/status.h"

namespace penstock::library_handles_test {
namespace {

constexpr int kN = 48;
constexpr int kRuns = 12;

class LibraryHandlesTest : public driver::GpuTest, public testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    driver::GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto made = Runtime::Create({.devices = "cuda:0"});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
  }
  void TearDown() override {
    runtime_.reset();
    driver::GpuTest::TearDown();
  }
  Executable Compiled(const Graph& graph) {
    auto exec = runtime_->Compile(graph, {.slots = 2, .mode = GetParam()});
    EXPECT_OK(exec.status());
    return exec.ok() ? *std::move(exec) : Executable();
  }
  HostBuffer<float> Pinned(int64_t n) {
    auto buffer = runtime_->MakeHostBuffer<float>(n);
    EXPECT_OK(buffer.status());
    return *std::move(buffer);
  }
  // Waits for a run, so that its results may be checked.
  static void Run(Executable& exec, const Bindings& io) {
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
  }

  std::optional<Runtime> runtime_;
};

// Small integers, so that sums are exact.
float Small(int i) { return static_cast<float>(i % 7 - 3); }

absl::Status Gemv(LaunchContext& launch, const float* alpha, const float* a, const float* x, float* y) {
  PENSTOCK_ASSIGN_OR_RETURN(Cublas * blas, launch.Get<Cublas>());
  return ToStatus(cublasSgemv(blas->handle(), CUBLAS_OP_T, kN, kN, alpha, a, kN, x, 1, launch.Zero<float>(), y, 1),
                  "cublasSgemv");
}

TEST_P(LibraryHandlesTest, CublasTakesANewScalarInEachRun) {
  Graph g("gemv");
  const auto alpha = g.Param<float>("alpha");
  const auto a = g.Input<float>("a", kN * kN, kPinned), x = g.Input<float>("x", kN, kPinned);
  const auto y = g.Output<float>("y", kN, kPinned);
  g.Launch("gemv", PENSTOCK_ON_CUDA(Gemv), OnDevice(alpha), Read(a), Read(x), Write(y));
  Executable exec = Compiled(g);
  HostBuffer<float> ha = Pinned(kN * kN), hx = Pinned(kN), hy = Pinned(kN);
  for (int i = 0; i < kN * kN; ++i) ha[static_cast<size_t>(i)] = Small(i);
  Bindings io = exec.bindings();
  io.Set(a, ha).Set(x, hx).Set(y, hy);
  for (int r = 0; r < kRuns; ++r) {
    for (int i = 0; i < kN; ++i) hx[static_cast<size_t>(i)] = Small(i + r);
    std::fill(hy.begin(), hy.end(), -1.f);
    Run(exec, io.Set(alpha, static_cast<float>(r)));
    for (int row = 0; row < kN; ++row) {
      float sum = 0;
      for (int i = 0; i < kN; ++i) sum += Small(row * kN + i) * Small(i + r);
      ASSERT_EQ(hy[static_cast<size_t>(row)], static_cast<float>(r) * sum) << "run " << r << ", row " << row;
    }
  }
}

// x = solution of a x = b, where b is overwritten by x and a by its factor.
absl::Status Solve(LaunchContext& launch, float* a, float* b, int* info) {
  PENSTOCK_ASSIGN_OR_RETURN(Cusolver * solver, launch.Get<Cusolver>());
  int count = 0;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cusolverDnSpotrf_bufferSize(solver->handle(), CUBLAS_FILL_MODE_LOWER, kN, a, kN, &count), "the size"));
  PENSTOCK_ASSIGN_OR_RETURN(CudaWorkspace * work,
                            launch.Get<CudaWorkspace>(static_cast<size_t>(count) * sizeof(float)));
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cusolverDnSpotrf(solver->handle(), CUBLAS_FILL_MODE_LOWER, kN, a, kN,
                                                     static_cast<float*>(work->data()), count, info),
                                    "potrf"));
  return ToStatus(cusolverDnSpotrs(solver->handle(), CUBLAS_FILL_MODE_LOWER, kN, 1, a, kN, b, kN, info), "potrs");
}

TEST_P(LibraryHandlesTest, CusolverFactorsAndSolves) {
  Graph g("solve");
  const auto a = g.InOut<float>("a", kN * kN, kPinned), b = g.InOut<float>("b", kN, kPinned);
  const auto info = g.Buffer<int>("info", 1);
  g.Launch("solve", Solve, ReadWrite(a), ReadWrite(b), Write(info));
  Executable exec = Compiled(g);
  HostBuffer<float> ha = Pinned(kN * kN), hb = Pinned(kN);
  Bindings io = exec.bindings();
  io.Set(a, ha).Set(b, hb);
  for (int r = 0; r < kRuns; ++r) {
    // Symmetric, and its diagonal outweighs the rest.
    for (int row = 0; row < kN; ++row) {
      float sum = 0;
      for (int i = 0; i < kN; ++i) {
        const float value = i == row ? 4.f * kN : Small(row + i);
        ha[static_cast<size_t>(row * kN + i)] = value;
        sum += value * Small(i + r);
      }
      hb[static_cast<size_t>(row)] = sum;
    }
    Run(exec, io);
    for (int i = 0; i < kN; ++i) {
      ASSERT_NEAR(hb[static_cast<size_t>(i)], Small(i + r), 1e-4) << "run " << r << ", element " << i;
    }
  }
}

// Two arrays of kN points, and one of both together: two plans in one callable.
absl::Status Transforms(LaunchContext& launch, cufftComplex* x, cufftComplex* apart, cufftComplex* together) {
  PENSTOCK_ASSIGN_OR_RETURN(Cufft * two, launch.Get<Cufft>(CufftShape{.n = {kN}, .batch = 2}));
  PENSTOCK_ASSIGN_OR_RETURN(Cufft * one, launch.Get<Cufft>(CufftShape{.n = {2, kN}}));
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cufftExecC2C(two->plan(), x, apart, CUFFT_FORWARD), "two arrays"));
  return ToStatus(cufftExecC2C(one->plan(), x, together, CUFFT_FORWARD), "one array");
}

TEST_P(LibraryHandlesTest, CufftHasAPlanForEachShape) {
  Graph g("fft");
  const auto x = g.InOut<cufftComplex>("x", 2 * kN, kPinned);
  const auto apart = g.Output<cufftComplex>("apart", 2 * kN, kPinned);
  const auto together = g.Output<cufftComplex>("together", 2 * kN, kPinned);
  g.Launch("fft", Transforms, ReadWrite(x), Write(apart), Write(together));
  Executable exec = Compiled(g);
  auto hx = runtime_->MakeHostBuffer<cufftComplex>(2 * kN), ha = runtime_->MakeHostBuffer<cufftComplex>(2 * kN);
  auto ht = runtime_->MakeHostBuffer<cufftComplex>(2 * kN);
  ASSERT_OK(hx.status());
  ASSERT_OK(ha.status());
  ASSERT_OK(ht.status());
  Bindings io = exec.bindings();
  io.Set(x, *hx).Set(apart, *ha).Set(together, *ht);
  for (int r = 0; r < kRuns; ++r) {
    for (int i = 0; i < 2 * kN; ++i) (*hx)[static_cast<size_t>(i)] = {Small(i + r), Small(3 * i)};
    Run(exec, io);
    for (int k = 0; k < kN; ++k) {
      double re[2] = {}, im[2] = {};
      for (int row = 0; row < 2; ++row) {
        for (int i = 0; i < kN; ++i) {
          const double angle = -2 * std::numbers::pi * k * i / kN, cosine = std::cos(angle), sine = std::sin(angle);
          const int at = row * kN + i;
          re[row] += Small(at + r) * cosine - Small(3 * at) * sine;
          im[row] += Small(at + r) * sine + Small(3 * at) * cosine;
        }
      }
      const auto low = static_cast<size_t>(k), high = static_cast<size_t>(kN + k);
      ASSERT_NEAR((*ha)[low].x, re[0], 1e-3) << "run " << r << ", point " << k;
      ASSERT_NEAR((*ha)[high].y, im[1], 1e-3) << "run " << r << ", point " << k;
      ASSERT_NEAR((*ht)[low].x, re[0] + re[1], 1e-3) << "run " << r << ", point " << k;
      ASSERT_NEAR((*ht)[high].y, im[0] - im[1], 1e-3) << "run " << r << ", point " << k;
    }
  }
}

TEST_P(LibraryHandlesTest, AShapeThatCufftRefusesIsTheNodesFailure) {
  Graph g("refused");
  const auto x = g.InOut<float>("x", kN, kPinned);
  g.Launch(
      "fft", [](LaunchContext& launch, float*) { return launch.Get<Cufft>(CufftShape{.n = {-3}}).status(); },
      ReadWrite(x));
  absl::StatusOr<Executable> exec = runtime_->Compile(g, {.slots = 1, .mode = GetParam()});
  absl::Status refused = exec.status();
  if (exec.ok()) {
    HostBuffer<float> hx = Pinned(kN);
    auto run = exec->Launch(exec->bindings().Set(x, hx));
    refused.Update(run.ok() ? run->Wait() : run.status());
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_NE(refused.ToString().find("cufftMakePlanMany64 failed: cufftResult"), std::string::npos) << refused;
}

INSTANTIATE_TEST_SUITE_P(Modes, LibraryHandlesTest, testing::Values(Mode::kGraph, Mode::kStream),
                         [](const auto& of) { return of.param == Mode::kGraph ? "graph" : "stream"; });

}  // namespace
}  // namespace penstock::library_handles_test
