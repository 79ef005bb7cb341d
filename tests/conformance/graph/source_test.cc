// Kernels made from sources on every driver: on CUDA devices NVRTC compiles them, on host devices the fallback runs.
#include "penstock/source.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>

#include "src/jit/compiler.h"
#include "tests/conformance/graph/graph_fixture.h"
#include "tests/support/nvrtc.h"
#include "tests/support/temporary_folder.h"

namespace penstock::conformance::source_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kN = 1000;

class SourceKernel : public GraphConformance {
 protected:
  void SetUp() override {
    GraphConformance::SetUp();
    if (IsSkipped() || HasFatalFailure() || !on_cuda()) return;
    PENSTOCK_SKIP_WITHOUT_NVRTC();
  }

  const TemporaryFolder root_;
  const EnvironmentScope cache_{"PENSTOCK_JIT_CACHE", root_.path() + "/jit"};
};

const Source kScale(
    "#include \"index.h\"\n"
    "template <class T>\n"
    "__global__ void scale(T by, const T* from, T* to, long long n, const short* shift, char sign) {\n"
    "  const long long i = Index();\n"
    "  if (i < n) to[i] = (from[i] * by + *shift + OFFSET) * sign;\n"
    "}\n",
    "scale<int>",
    {.options = {"--std=c++20", "-DOFFSET=5"},
     .headers = {{"index.h",
                  "__device__ long long Index() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }"}},
     .file = "scale.cu"});
void ScaleOnHost(int by, const int* from, int* to, int64_t n, const int16_t* shift, signed char sign) {
  for (int64_t i = 0; i < n; ++i) to[i] = (from[i] * by + *shift + 5) * sign;
}

// Sums each block's elements in dynamic shared memory.
const Source kSum(
    "extern \"C\" __global__ void sum(const int* from, int* sums) {\n"
    "  extern __shared__ int shared[];\n"
    "  shared[threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x != 0) return;\n"
    "  int sum = 0;\n"
    "  for (int t = 0; t < blockDim.x; ++t) sum += shared[t];\n"
    "  sums[blockIdx.x] = sum;\n"
    "}\n",
    "sum");

TEST_P(SourceKernel, GetsItsArgumentsAndTakesParametersAnew) {
  Graph g("two sources");
  const auto by = g.Param<int>("by");
  const auto shift = g.Param<int16_t>("shift");
  const auto n = g.Param<int64_t>("n", AtMost(kN));
  const auto x = g.Input<int>("x", kN);
  const auto y = g.InOut<int>("y", kN);
  const auto sums = g.Output<int>("sums", 10);
  const signed char sign = -1;
  g.Kernel("scale", kScale, Threads(n), by, Read(x), ReadWrite(y), n, OnDevice(shift), sign).HostFallback(ScaleOnHost);
  g.Kernel("sum", kSum, Blocks({10, 1, 1}, {100, 1, 1}, 100'000), Read(y), Write(sums))
      .HostFallback([](const int* from, int* to) {
        for (int b = 0; b < 10; ++b) to[b] = std::accumulate(from + 100 * b, from + 100 * (b + 1), 0);
      });
  absl::StatusOr<Executable> exec = runtime_->Compile(g);
  ASSERT_OK(exec.status());
  const std::vector<int32_t> hx = Random(kN);
  std::vector<int32_t> hy(kN, 1), expected = hy, hsums = Poisoned(10);
  for (int run = 0; run < 6; ++run) {
    const int factor = 3 * run - 4, count = kN - 100 * run;
    const auto added = static_cast<int16_t>(run * run);
    for (int i = 0; i < count; ++i) expected[i] = -(hx[i] * factor + added + 5);
    Bindings io = exec->bindings();
    io.Set(by, factor).Set(shift, added).Set(n, count).Set(x, hx).Set(y, hy).Set(sums, hsums);
    ASSERT_OK(exec->Launch(io)->Wait());
    ASSERT_EQ(hy, expected) << "run " << run;
    for (int b = 0; b < 10; ++b) {
      EXPECT_EQ(hsums[b], std::accumulate(expected.begin() + 100 * b, expected.begin() + 100 * (b + 1), 0));
    }
  }
}

TEST_P(SourceKernel, RunsInALoopAndOnASlice) {
  Graph g("loop");
  const auto x = g.InOut<int>("x", kN);
  const Source add("__global__ void add(int* x, int n) { if (threadIdx.x < n) ++x[threadIdx.x]; }", "add");
  g.Repeat("again", 5, [&](Graph& body) {
    body.Kernel("add", add, Threads(100), ReadWrite(x, Slice(200, 100)), 100).HostFallback([](int* at, int count) {
      for (int i = 0; i < count; ++i) ++at[i];
    });
  });
  std::vector<int32_t> hx(kN, 7);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }));
  for (int i = 0; i < kN; ++i) ASSERT_EQ(hx[i], i >= 200 && i < 300 ? 12 : 7) << i;
}

TEST_P(SourceKernel, AgreesWithItsHostFallback) {
  Graph g("checked");
  const auto x = g.Input<int>("x", kN);
  const auto y = g.Output<int>("y", kN);
  const auto shift = g.Param<int16_t>("shift");
  g.Kernel("scale", kScale, Threads(kN), 3, Read(x), Write(y), int64_t{kN}, OnDevice(shift), char{1})
      .HostFallback([](int by, const int* from, int* to, int64_t n, const int16_t* added, char sign) {
        ScaleOnHost(by, from, to, n, added, static_cast<signed char>(sign));
      });
  std::vector<int32_t> hx = Random(kN), hy = Poisoned(kN);
  EXPECT_OK(
      RunOnce(g, [&](Bindings& io) { io.Set(x, hx).Set(y, hy).Set(shift, int16_t{2}); }, {.check_against_host = true}));
}

// Kernels that wait for those before them may be launched while these are still ending.
TEST_P(SourceKernel, RunsAsAProgrammaticKernel) {
  const Source twice(
      "__global__ void twice(int* x, int n) {\n"
      "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) x[i] = 2 * x[i] + 1;\n"
      "}\n",
      "twice");
  Graph g("programmatic");
  const auto x = g.InOut<int>("x", kN);
  for (int k = 0; k < 8; ++k) {
    g.Kernel(Name("twice", k), twice, Threads(kN).Programmatic(), ReadWrite(x), kN).HostFallback([](int* at, int n) {
      for (int i = 0; i < n; ++i) at[i] = 2 * at[i] + 1;
    });
  }
  std::vector<int32_t> hx(kN, 3);
  ASSERT_OK(RunOnce(g, [&](Bindings& io) { io.Set(x, hx); }));
  for (int i = 0; i < kN; ++i) ASSERT_EQ(hx[i], 3 * 256 + 255) << i;
}

// Of executables that come and go, each uses its own image.
TEST_P(SourceKernel, IsUnloadedWithItsExecutableOnly) {
  Graph g("g");
  const auto x = g.InOut<int>("x", 1);
  const Source set("__global__ void set(int* x) { *x += 1; }", "set");
  g.Kernel("set", set, Threads(1, 1), ReadWrite(x)).HostFallback([](int* at) { *at += 1; });
  const auto run = [&](Executable& exec) {
    std::vector<int32_t> word{41};
    EXPECT_OK(exec.Launch(exec.bindings().Set(x, word))->Wait());
    return word[0];
  };
  Executable kept = *runtime_->Compile(g);
  for (int i = 0; i < 5; ++i) {
    Executable other = *runtime_->Compile(g);
    EXPECT_EQ(run(other), 42);
  }
  EXPECT_EQ(run(kept), 42);
}

TEST_P(SourceKernel, IsRefusedIfItTakesOtherArguments) {
  if (!on_cuda()) GTEST_SKIP() << "only the device's code knows what it takes";
  Graph g("g");
  const auto x = g.InOut<int>("x", 4);
  const Source add("__global__ void add(int* x, long long n) {}", "add");
  g.Kernel(Name("add", "a.cc", 3), add, Threads(4), ReadWrite(x), 4);
  EXPECT_EQ(
      Text(runtime_->Compile(g).status()),
      "graph 'g' node 'add' (a.cc:3) on cuda:0: kernel 'add' takes 16 bytes in 2 parameters (8, 8), and the node "
      "gives 12 bytes in 2 arguments (8, 4); an access gives a pointer, a parameter or value its own type; give it "
      "the types that the kernel takes, in their order");
}

TEST_P(SourceKernel, IsRefusedIfItDoesNotCompile) {
  if (!on_cuda()) GTEST_SKIP() << "nothing is compiled for host devices";
  Graph g("g");
  const auto x = g.InOut<int>("x", 4);
  const Source wrong("\n__global__ void k(int* x) { x = y; }", "k", {.file = "wrong.cu"});
  g.Kernel(Name("k", "a.cc", 3), wrong, Threads(4), ReadWrite(x));
  const std::string text = Text(runtime_->Compile(g).status());
  EXPECT_THAT(text,
              StartsWith("graph 'g' node 'k' (a.cc:3) on cuda:0: kernel 'k' of wrong.cu does not compile for sm_"));
  EXPECT_THAT(text, HasSubstr("\nwrong.cu(2): error: identifier \"y\" is undefined"));
}

INSTANTIATE_TEST_SUITE_P(Host, SourceKernel, testing::ValuesIn(HostTargetsOfResults()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, SourceKernel, testing::ValuesIn(CudaTargets()), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::source_test
