// Blocks of the size that a kernel's occupancy says, on every driver. The oracle is the calculation of the CUDA runtime
// that the test has itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/source.h"
#include "src/driver/checked/call_log.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/nvrtc.h"
#include "tests/support/temporary_folder.h"

namespace penstock::conformance::occupancy_test {
namespace {

using testing::HasSubstr;

constexpr int kN = 5000;

// Writes the size of its block to each element: on host devices the fallback writes what stands for it.
TEST_KERNEL void WritesSize([[maybe_unused]] int32_t* sizes, [[maybe_unused]] int n) {
#if defined(__CUDACC__)
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) sizes[i] = static_cast<int32_t>(blockDim.x);
#endif
}
// Has at most 160 threads in a block, and dynamic shared memory.
#if defined(__CUDACC__)
__launch_bounds__(160)
#endif
    TEST_KERNEL void BoundedWritesSize([[maybe_unused]] int32_t* sizes, [[maybe_unused]] int n) {
#if defined(__CUDACC__)
  extern __shared__ int32_t shared[];
  shared[threadIdx.x] = static_cast<int32_t>(blockDim.x);
  __syncthreads();
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) sizes[i] = shared[blockDim.x - 1 - threadIdx.x];
#endif
}
constexpr int32_t kOnHost = -1;
void OnHost(int32_t* sizes, int n) { std::fill_n(sizes, n, kOnHost); }

const Source kWritesSize(
    "extern \"C\" __global__ void sizes(int* sizes, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) sizes[i] = blockDim.x;\n"
    "}\n",
    "sizes");

class Occupancy : public GraphConformance {
 protected:
  // The size that the blocks should have.
  int32_t Expected([[maybe_unused]] void (*kernel)(int32_t*, int), [[maybe_unused]] size_t shared_bytes) {
    if (!on_cuda()) return kOnHost;
    [[maybe_unused]] int blocks = 0;
    int threads = 0;
#if defined(__CUDACC__)
    EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, kernel, shared_bytes), cudaSuccess);
#endif
    return threads;
  }
  // Runs the nodes that `declare` declares on a graph and a buffer, and returns what they wrote.
  template <class Declare>
  std::vector<int32_t> Sizes(Declare declare) {
    Graph g("sizes");
    const auto sizes = g.Output<int32_t>("sizes", kN);
    declare(g, sizes);
    std::vector<int32_t> out = Poisoned(kN);
    EXPECT_OK(RunOnce(g, [&](Bindings& io) { io.Set(sizes, out); }));
    return out;
  }
};

TEST_P(Occupancy, IsThatOfTheCudaRuntime) {
  for (const auto& [kernel, shared] :
       {std::pair(&WritesSize, 0u), {&BoundedWritesSize, 1000u}, {&WritesSize, 90000u}}) {
    const std::vector<int32_t> out = Sizes([&](Graph& g, auto sizes) {
      g.Kernel("sizes", kernel, Threads(kN, kOccupancy, shared), Write(sizes), kN).HostFallback(OnHost);
    });
    ASSERT_EQ(out, std::vector<int32_t>(kN, Expected(kernel, shared))) << shared;
  }
}

TEST_P(Occupancy, HoldsForKernelsOfSources) {
  const TemporaryFolder root;
  const EnvironmentScope cache("PENSTOCK_JIT_CACHE", root.path() + "/jit");
  if (on_cuda()) PENSTOCK_SKIP_WITHOUT_NVRTC();
  const std::vector<int32_t> out = Sizes([&](Graph& g, auto sizes) {
    g.Kernel("sizes", kWritesSize, Threads(kN, kOccupancy), Write(sizes), kN).HostFallback(OnHost);
  });
  // The same code, so the same occupancy.
  ASSERT_EQ(out, std::vector<int32_t>(kN, Expected(&WritesSize, 0)));
}

TEST_P(Occupancy, CoversAllThreadsInALoopWhateverAParameterSays) {
  Graph g("loop");
  const auto n = g.Param<int>("n", AtMost(kN));
  const auto sizes = g.InOut<int32_t>("sizes", kN);
  g.Repeat("twice", 2, [&](Graph& body) {
    body.Kernel("sizes", &WritesSize, Threads(n, kOccupancy), ReadWrite(sizes), n).HostFallback(OnHost);
  });
  absl::StatusOr<Executable> exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  const int32_t expected = Expected(&WritesSize, 0);
  for (const int value : {kN, 1, 0, 1025}) {
    std::vector<int32_t> out = Poisoned(kN), wanted = out;
    std::fill_n(wanted.begin(), value, expected);
    ASSERT_OK(exec->Launch(exec->bindings().Set(n, value).Set(sizes, out))->Wait());
    ASSERT_EQ(out, wanted) << value;
  }
}

TEST_P(Occupancy, IsAskedForOnceAndTold) {
  Graph g("asked");
  const auto sizes = g.Output<int32_t>("sizes", kN);
  for (int i = 0; i < 3; ++i) {
    g.Kernel(Name("sizes", i), &WritesSize, Threads(kN, kOccupancy), Write(sizes), kN).HostFallback(OnHost);
  }
  const auto asked = [&] {
    return checks_ ? checks_->witness().log().count(driver::checked::CallKind::kFindBlockSize) : 0;
  };
  const int64_t before = asked();
  absl::StatusOr<Executable> exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  EXPECT_EQ(asked() - before, checks_ ? 1 : 0);
  const std::string size = std::to_string(on_cuda() ? Expected(&WritesSize, 0) : 256);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(exec->submission_report().Text(),
                HasSubstr("node 'sizes " + std::to_string(i) + "' (occupancy_test.cc:"));
  }
  EXPECT_THAT(exec->submission_report().Text(), HasSubstr("has blocks of " + size + " threads"));
}

TEST_P(Occupancy, OfTooMuchSharedMemoryIsRefusedByName) {
  Graph g("shared");
  const auto sizes = g.Output<int32_t>("sizes", kN);
  g.Kernel(Name("k", "a.cc", 3), &WritesSize, Threads(kN, kOccupancy, 300'000), Write(sizes), kN).HostFallback(OnHost);
  const absl::Status refused = runtime_->Compile(g).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(refused), HasSubstr("node 'k' (a.cc:3) on "));
  EXPECT_THAT(Text(refused), HasSubstr("its blocks take 300000 bytes of shared memory; a block has at most"));
}

INSTANTIATE_TEST_SUITE_P(Host, Occupancy, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, Occupancy, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::occupancy_test
