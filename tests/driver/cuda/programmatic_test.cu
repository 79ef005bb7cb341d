// Graphs launch kernels that await by themselves what they depend on while that is ending: which edges those are, and
// that the order holds all the same, with nodes between switched off.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/cuda.h"
#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "tests/driver/cuda/gpu_test.h"
#include "tests/support/status.h"

namespace penstock::programmatic_test {
namespace {

#define ASSERT_CUDA(expr) ASSERT_EQ((expr), cudaSuccess)

constexpr int64_t kN = 300;  // two blocks of a ParallelFor
constexpr long long kLong = 100'000;  // cycles: some 50 us

// x becomes 3 x + k: no two such steps commute.
PENSTOCK_HOST_DEVICE uint32_t Stepped(uint32_t x, uint32_t k) { return 3 * x + k; }

struct Step {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, uint32_t k, uint32_t* x) const { x[i] = Stepped(x[i], k); }
};
// Reads elements that another block of the kernel before has written. `by` is no 1, so that what comes too early, or
// too late, is seen behind two of them.
struct Turned {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const uint32_t* x, uint32_t by, uint32_t* y) const {
    y[i] = by * x[kN - 1 - i];
  }
};
struct Sum {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, const uint32_t* x, const uint32_t* y, uint32_t* z) const {
    z[i] = x[i] + y[i];
  }
};
__global__ void PlainStep(uint32_t k, uint32_t* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kN) x[i] = Stepped(x[i], k);
}
__global__ void AwaitingStep(uint32_t k, uint32_t* x) {
  PENSTOCK_AWAIT_DEPENDENCIES();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kN) x[i] = Stepped(x[i], k);
}

// Lets what depends on it be launched at once, long before it has written anything.
__global__ void LateStep(uint32_t k, uint32_t* x) {
  PENSTOCK_AWAIT_DEPENDENCIES();
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const long long begin = clock64();
  while (clock64() - begin < kLong) {
  }
  if (i < kN) x[i] = Stepped(x[i], k);
}

class ProgrammaticTest : public driver::GpuTest {
 protected:
  void SetUp() override {
    driver::GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto made = Runtime::Create({.devices = "cuda:0"});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
    ASSERT_CUDA(cudaSetDevice(0));
    cudaFuncAttributes attributes;
    ASSERT_CUDA(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&AwaitingStep)));
    if (attributes.ptxVersion < 90) GTEST_SKIP() << "compiled for, or on, devices of less than compute capability 9.0";
  }
  void TearDown() override {
    runtime_.reset();
    driver::GpuTest::TearDown();
  }
  Executable Compiled(const Graph& graph) {
    auto exec = runtime_->Compile(graph, {.slots = 2, .mode = Mode::kGraph});  // an exported graph has one
    EXPECT_EQ(exec.status(), absl::OkStatus());
    return exec.ok() ? *std::move(exec) : Executable();
  }
  HostBuffer<uint32_t> Pinned() {
    auto buffer = runtime_->MakeHostBuffer<uint32_t>(kN);
    EXPECT_EQ(buffer.status(), absl::OkStatus());
    return *std::move(buffer);
  }

  std::optional<Runtime> runtime_;
};

// Of each node, in the order of the chain: the kind of the edge to it.
std::vector<bool> ProgrammaticEdges(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_EQ(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), cudaSuccess);
  std::vector<cudaGraphNode_t> from(count), to(count);
  std::vector<cudaGraphEdgeData> data(count);
  EXPECT_EQ(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count), cudaSuccess);
  std::map<cudaGraphNode_t, size_t> leaving, coming;
  for (size_t e = 0; e < count; ++e) leaving[from[e]] = e, coming[to[e]] = e;
  EXPECT_EQ(leaving.size(), count) << "it is no chain";
  std::vector<bool> programmatic;
  cudaGraphNode_t at = nullptr;
  for (const auto& [node, edge] : leaving) {
    if (coming.count(node) == 0) at = node;
  }
  for (auto next = leaving.find(at); next != leaving.end(); next = leaving.find(to[next->second])) {
    programmatic.push_back(data[next->second].type == cudaGraphDependencyTypeProgrammatic);
  }
  return programmatic;
}

TEST_F(ProgrammaticTest, EdgesFromKernelsToThoseThatAwaitAreProgrammaticAndNoOthers) {
  Graph g("edges");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  g.ParallelFor("behind a copy", kN, Step{}, 1u, ReadWrite(x));
  g.Kernel("plain", &PlainStep, Threads(Dim(kN)), 2u, ReadWrite(x));
  g.ParallelFor("behind a plain one", kN, Step{}, 3u, ReadWrite(x));
  g.Kernel("says so", &AwaitingStep, Threads(Dim(kN)).Programmatic(), 4u, ReadWrite(x));
  g.Fill("fill", Write(x, Slice({0}, {3})), 7u);
  g.ParallelFor("behind a fill", kN, Step{}, 5u, ReadWrite(x));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> memory = Pinned();
  Bindings io = exec.bindings();
  auto exported = exec.Export(io.Set(x, memory));
  ASSERT_OK(exported.status());
  EXPECT_EQ(ProgrammaticEdges(CudaGraphOf(*exported)),
            (std::vector<bool>{false, false, true, true, true, true, false}));

  for (int64_t i = 0; i < kN; ++i) memory[static_cast<size_t>(i)] = static_cast<uint32_t>(i);
  auto run = exec.Launch(io);
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  for (int64_t i = 0; i < kN; ++i) {
    uint32_t expected = static_cast<uint32_t>(i);
    for (const uint32_t k : {1u, 2u, 3u, 4u}) expected = Stepped(expected, k);
    expected = Stepped(i < 3 ? 7 : expected, 5);
    ASSERT_EQ(memory[static_cast<size_t>(i)], expected) << i;
  }
}

// Two beginnings, a join, and two that come behind it.
TEST_F(ProgrammaticTest, EdgesToKernelsThatDependOnSeveralAreNot) {
  Graph g("join");
  auto x = g.Buffer<uint32_t>("x", kN), y = g.Buffer<uint32_t>("y", kN), z = g.Buffer<uint32_t>("z", kN);
  auto out = g.Output<uint32_t>("out", kN, kPinned);
  g.Fill("x", Write(x), 1u);
  g.Fill("y", Write(y), 2u);
  g.ParallelFor("join", kN, Sum{}, Read(x), Read(y), Write(z));
  g.ParallelFor("a", kN, Turned{}, Read(z), 1u, Write(x));
  g.ParallelFor("b", kN, Turned{}, Read(z), 1u, Write(y));
  g.ParallelFor("again", kN, Sum{}, Read(x), Read(y), Write(out));
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> memory = Pinned();
  Bindings io = exec.bindings();
  auto exported = exec.Export(io.Set(out, memory));
  ASSERT_OK(exported.status());
  size_t count = 0, programmatic = 0;
  ASSERT_CUDA(cudaGraphGetEdges(CudaGraphOf(*exported), nullptr, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> from(count), to(count);
  std::vector<cudaGraphEdgeData> data(count);
  ASSERT_CUDA(cudaGraphGetEdges(CudaGraphOf(*exported), from.data(), to.data(), data.data(), &count));
  for (const cudaGraphEdgeData& edge : data) programmatic += edge.type == cudaGraphDependencyTypeProgrammatic ? 1 : 0;
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(programmatic, 2u) << "those to 'a' and 'b'";
  auto run = exec.Launch(io);
  ASSERT_OK(run.status());
  ASSERT_OK(run->Wait());
  for (const uint32_t sum : memory.span()) ASSERT_EQ(sum, 6u);
}

// Late, then a step over n elements, then the elements the other way round, over and over.
TEST_F(ProgrammaticTest, TheOrderHoldsWhateverIsSwitchedOff) {
  Graph g("order");
  auto x = g.InOut<uint32_t>("x", kN, kPinned);
  auto y = g.Buffer<uint32_t>("y", kN);
  const auto k = g.Param<uint32_t>("k");
  const auto n = g.Param<int32_t>("n", AtMost(kN));
  constexpr int kRounds = 3;
  for (int r = 0; r < kRounds; ++r) {
    const std::string of = std::to_string(r);
    g.Kernel("late " + of, &LateStep, Threads(Dim(kN)).Programmatic(), k, ReadWrite(x));
    g.ParallelFor("some " + of, Dim(n), Step{}, 77u, ReadWrite(x));
    g.ParallelFor("there " + of, kN, Turned{}, Read(x), 5u, Write(y));
    g.ParallelFor("back " + of, kN, Turned{}, Read(y), 7u, Write(x));
  }
  Executable exec = Compiled(g);
  HostBuffer<uint32_t> memory = Pinned();
  Bindings io = exec.bindings();
  io.Set(x, memory);
  std::vector<uint32_t> expected(kN);
  for (uint32_t run_number = 0; run_number < 200; ++run_number) {
    const int32_t elements = run_number % 3 == 0 ? 0 : static_cast<int32_t>(run_number) % (kN + 1);
    for (int64_t i = 0; i < kN; ++i) {
      const auto at = static_cast<size_t>(i);
      expected[at] = memory[at] = run_number * 7919u + static_cast<uint32_t>(i);
      for (int r = 0; r < kRounds; ++r) {
        expected[at] = Stepped(expected[at], run_number);
        if (i < elements) expected[at] = Stepped(expected[at], 77);
        expected[at] *= 5 * 7;
      }
    }
    auto run = exec.Launch(io.Set(k, run_number).Set(n, elements));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait());
    for (size_t i = 0; i < static_cast<size_t>(kN); ++i) ASSERT_EQ(memory[i], expected[i]) << run_number << ", " << i;
  }
  EXPECT_GT(exec.submission_report().nodes_switched, 0);
}

}  // namespace
}  // namespace penstock::programmatic_test
