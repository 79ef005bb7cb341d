// The library inside an application that has streams, events, graphs and captures of its own: penstock/cuda.h.
//
// What runs is checked by arithmetic that does not commute: x becomes 3 x + k, with another k for each piece of work.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cuda/stream_ref>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/cuda.h"
#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/runtime.h"
#include "penstock/trace.h"
#include "tests/driver/cuda/gpu_test.h"
#include "tests/support/status.h"

namespace penstock::cuda_interop_test {
namespace {

using std::chrono::seconds;

#define ASSERT_CUDA(expr) ASSERT_EQ((expr), cudaSuccess)

constexpr int kN = 1000;

__global__ void StepKernel(uint32_t* x, uint32_t k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kN) x[i] = 3 * x[i] + k;
}
// Until the host says so, or 10 s have passed.
__global__ void HoldKernel(const volatile uint32_t* word) {
  const long long begin = clock64();
  while (*word == 0 && clock64() - begin < 20'000'000'000) __nanosleep(200);
}

struct Step {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, uint32_t k, uint32_t* x) const { x[i] = 3 * x[i] + k; }
};

std::string Text(const absl::Status& status) { return {status.message().data(), status.message().size()}; }

class CudaInteropTest : public driver::GpuTest, public testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    driver::GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto made = Runtime::Create({.devices = "cuda:0"});
    ASSERT_OK(made.status());
    runtime_.emplace(*std::move(made));
    ASSERT_CUDA(cudaSetDevice(0));
    ASSERT_CUDA(cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaHostAlloc(&word_, sizeof(uint32_t), cudaHostAllocMapped));
    *word_ = 1;
    auto x = runtime_->MakeDeviceBuffer<uint32_t>(kN), y = runtime_->MakeDeviceBuffer<uint32_t>(kN);
    ASSERT_OK(x.status());
    ASSERT_OK(y.status());
    x_ = *x;
    y_ = *y;
    // Loads the kernels: a first launch would wait for one that is held.
    StepOn(own_, x_, 0);
    HoldKernel<<<1, 1, 0, own_>>>(word_);
    ASSERT_CUDA(cudaStreamSynchronize(own_));
  }
  void TearDown() override {
    if (runtime_.has_value()) {
      Release();
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      (void)cudaGetLastError();  // a test that failed leaves none to the next
      x_ = y_ = {};
      runtime_.reset();
      (void)cudaStreamDestroy(own_);
      (void)cudaStreamDestroy(other_);
      (void)cudaFreeHost(const_cast<uint32_t*>(word_));
    }
    driver::GpuTest::TearDown();
  }

  // What each piece of work makes of a word.
  static uint32_t After(uint32_t x, const std::vector<uint32_t>& ks) {
    for (const uint32_t k : ks) x = 3 * x + k;
    return x;
  }
  // Done when it returns, and so is what the null stream had before: runs do not wait for that stream.
  void Fill(const DeviceBuffer<uint32_t>& to) {
    before_.resize(kN);
    for (uint32_t& v : before_) v = static_cast<uint32_t>(random_());
    ASSERT_CUDA(cudaMemcpy(to.data(), before_.data(), kN * sizeof(uint32_t), cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaStreamSynchronize(nullptr));
  }
  void Expect(const DeviceBuffer<uint32_t>& of, const std::vector<uint32_t>& ks) {
    std::vector<uint32_t> now(kN, 0xDEADu);
    ASSERT_CUDA(cudaMemcpy(now.data(), of.data(), kN * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < now.size(); ++i) ASSERT_EQ(now[i], After(before_[i], ks)) << i;
  }
  // Submits to a stream of the application's.
  void Hold(cudaStream_t stream) {
    *word_ = 0;
    HoldKernel<<<1, 1, 0, stream>>>(word_);
    ASSERT_CUDA(cudaGetLastError());
  }
  void Release() { *word_ = 1; }
  void StepOn(cudaStream_t stream, const DeviceBuffer<uint32_t>& x, uint32_t k) {
    StepKernel<<<(kN + 127) / 128, 128, 0, stream>>>(x.data(), k);
    ASSERT_CUDA(cudaGetLastError());
  }
  Executable Compiled(const Graph& graph, int slots = 2) {
    auto exec = runtime_->Compile(graph, {.slots = slots, .mode = GetParam()});
    EXPECT_OK(exec.status());
    return exec.ok() ? *std::move(exec) : Executable();
  }

  // Until the mode is decided, and all graphs have been launched once.
  static void Warm(Executable& exec, const Bindings& io) {
    for (int i = 0; i < 40; ++i) {
      auto run = exec.Launch(io);
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait(seconds(60)));
    }
  }

  static CompileOptions TracedOptions() {
    CompileOptions options{.slots = 1};
    options.mode = GetParam();
    options.trace = Trace::Create();
    return options;
  }

  std::optional<Runtime> runtime_;
  cudaStream_t own_ = nullptr, other_ = nullptr;
  volatile uint32_t* word_ = nullptr;
  DeviceBuffer<uint32_t> x_, y_;
  std::vector<uint32_t> before_;
  std::mt19937 random_{7};
};

// x: 3 x + k, two steps.
struct TwoSteps {
  Graph graph{"two steps"};
  ParamHandle<uint32_t> k = graph.Param<uint32_t>("k");
  BufferHandle<uint32_t> x = graph.InOut<uint32_t>("x", kN, kDevice);
  TwoSteps() {
    graph.ParallelFor("first", kN, Step{}, k, ReadWrite(x));
    graph.ParallelFor("second", kN, Step{}, 20u, ReadWrite(x));
  }
};

TEST_P(CudaInteropTest, ARunComesBetweenWhatTheApplicationSubmitsToItsStream) {
  TwoSteps steps;
  Executable exec = Compiled(steps.graph);
  Bindings io = exec.bindings();
  Warm(exec, io.Set(steps.x, x_).Set(steps.k, 0));
  cudaStream_t const streams[] = {own_, nullptr, cudaStreamPerThread};
  for (int i = 0; i < 24; ++i) {
    const cudaStream_t stream = streams[i % 3];
    const auto k = static_cast<uint32_t>(random_());
    Fill(x_);
    Hold(stream);
    StepOn(stream, x_, 1);
    auto run = exec.Launch(io.Set(steps.k, k).On(Native(stream)), seconds(60));
    ASSERT_OK(run.status());
    StepOn(stream, x_, 3);
    Release();
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    Expect(x_, {1, k, 20, 3});
    ASSERT_OK(run->Wait(seconds(60)));
  }
  io.On(Native(cuda::stream_ref(own_)));
  Fill(x_);
  Hold(own_);
  StepOn(own_, x_, 1);
  auto run = exec.Launch(io.Set(steps.k, 9));
  ASSERT_OK(run.status());
  Release();
  ASSERT_OK(run->Wait(seconds(60)));
  Expect(x_, {1, 9, 20});
}

// Two lanes.
TEST_P(CudaInteropTest, AllLanesOfARunAreOrderedWithTheStream) {
  Graph g("lanes");
  auto x = g.InOut<uint32_t>("x", kN, kDevice), y = g.InOut<uint32_t>("y", kN, kDevice);
  g.ParallelFor("of x", kN, Step{}, 11u, ReadWrite(x));
  g.ParallelFor("of y", kN, Step{}, 12u, ReadWrite(y));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  Warm(exec, io.Set(x, x_).Set(y, y_));
  io.On(Native(own_));
  for (int i = 0; i < 20; ++i) {
    Fill(x_);
    ASSERT_CUDA(cudaMemcpy(y_.data(), before_.data(), kN * sizeof(uint32_t), cudaMemcpyHostToDevice));
    Hold(own_);
    StepOn(own_, x_, 1);
    StepOn(own_, y_, 2);
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    StepOn(own_, x_, 3);
    StepOn(own_, y_, 4);
    Release();
    ASSERT_CUDA(cudaStreamSynchronize(own_));
    Expect(x_, {1, 11, 3});
    Expect(y_, {2, 12, 4});
    ASSERT_OK(run->Wait(seconds(60)));
  }
}

// Memory that host threads copy: streams know nothing of them.
TEST_P(CudaInteropTest, HostNodesAndPageableMemoryAreOrderedWithTheStream) {
  static const auto step = [](std::vector<uint32_t>& v, uint32_t k) {
    for (uint32_t& word : v) word = 3 * word + k;
  };
  const auto on_host = [](std::span<uint32_t> v) {
    for (uint32_t& word : v) word = 3 * word + 11;
  };
  Graph g("host");
  auto x = g.InOut<uint32_t>("x", kN);
  g.Host("first", on_host, ReadWrite(x));
  g.ParallelFor("of x", kN, Step{}, 12u, ReadWrite(x));
  g.Host("last", on_host, ReadWrite(x));
  Executable exec = Compiled(g);
  Bindings io = exec.bindings();
  std::vector<uint32_t> memory(kN);
  Warm(exec, io.Set(x, memory));
  io.On(Native(own_));
  const cudaHostFn_t before = [](void* v) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    step(*static_cast<std::vector<uint32_t>*>(v), 1);
  };
  const cudaHostFn_t after = [](void* v) { step(*static_cast<std::vector<uint32_t>*>(v), 3); };
  for (int i = 0; i < 10; ++i) {
    Fill(x_);
    memory = before_;
    ASSERT_CUDA(cudaLaunchHostFunc(own_, before, &memory));
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    ASSERT_CUDA(cudaLaunchHostFunc(own_, after, &memory));
    ASSERT_CUDA(cudaStreamSynchronize(own_));
    for (size_t w = 0; w < memory.size(); ++w) ASSERT_EQ(memory[w], After(before_[w], {1, 11, 12, 11, 3})) << w;
    ASSERT_OK(run->Wait(seconds(60)));
  }
}

// A thread that has called nothing of CUDA's yet.
TEST_P(CudaInteropTest, ADefaultStreamIsThatOfTheThreadsDevice) {
  TwoSteps steps;
  Executable exec = Compiled(steps.graph);
  Bindings io = exec.bindings();
  Fill(x_);
  std::thread([&] {
    auto run = exec.Launch(io.Set(steps.x, x_).Set(steps.k, 4).On(Native(nullptr)));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
  }).join();
  Expect(x_, {4, 20});
}

// Declared again, with a graph made anew each time.
TEST_P(CudaInteropTest, GraphsOfStepsThatAreDeclaredAgainDoNotPileUp) {
  GraphCache cache(*runtime_, {.compile = {.slots = 1, .mode = GetParam()}});
  for (uint32_t i = 0; i < 20; ++i) {
    cudaGraph_t solver = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(own_, cudaStreamCaptureModeThreadLocal));
    StepOn(own_, x_, i);
    ASSERT_CUDA(cudaStreamEndCapture(own_, &solver));
    Fill(x_);
    auto run = cache.Launch([&](Graph& g, Bindings& io) {
      auto x = g.InOut<uint32_t>("x", kN, kDevice);
      g.ParallelFor("before", kN, Step{}, 2u, ReadWrite(x));
      g.Launch("solve", CudaGraph(solver), ReadWrite(x));
      io.Set(x, x_);
    });
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    Expect(x_, {2, i});
    ASSERT_CUDA(cudaGraphDestroy(solver));
  }
}

// CUDA refuses batches of copies in a capture and leaves it valid: a graph would run without the copy.
TEST_P(CudaInteropTest, ALaunchNodeWhoseCallIsRefusedInACaptureIsInNoGraph) {
  Graph graph("refused");
  auto y = graph.Input<uint32_t>("y", kN, kDevice);
  auto x = graph.Output<uint32_t>("x", kN, kDevice);
  const auto copies_without_a_look = [](LaunchContext& launch, const uint32_t* from, uint32_t* to) {
    const void *sources[] = {from}, *targets[] = {to};
    const size_t sizes[] = {kN * sizeof(uint32_t)};
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    (void)cudaMemcpyBatchAsync(targets, sources, sizes, 1, &attributes, &first, 1, CudaStream(launch));
  };
  graph.Launch("theirs", copies_without_a_look, Read(y), Write(x));
  Executable exec = Compiled(graph);
  Bindings io = exec.bindings();
  io.Set(y, y_).Set(x, x_);
  if (GetParam() == Mode::kGraph) {  // a launch captures, which knows the memory
    const absl::Status refused = exec.Launch(io).status();
    EXPECT_NE(Text(refused).find("graph 'refused' node 'theirs' ("), std::string::npos) << refused;
    EXPECT_NE(Text(refused).find("cuMemcpyBatchAsync"), std::string::npos) << refused;
    return;
  }
  for (int i = 0; i < 50; ++i) {
    ASSERT_CUDA(cudaMemset(x_.data(), 0, kN * sizeof(uint32_t)));
    Fill(y_);
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    Expect(x_, {});
  }
  if (GetParam() == Mode::kAuto) {
    EXPECT_NE(exec.submission_report().Text().find("cuMemcpyBatchAsync"), std::string::npos)
        << exec.submission_report().Text();
  }
}

TEST_P(CudaInteropTest, AStreamUnderCaptureIsRefusedAndItsCaptureGoesOn) {
  TwoSteps steps;
  Executable exec = Compiled(steps.graph);
  Bindings io = exec.bindings();
  io.Set(steps.k, 5).Set(steps.x, x_).On(Native(own_));
  for (const cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    ASSERT_CUDA(cudaStreamBeginCapture(own_, mode));
    StepOn(own_, x_, 1);
    const absl::Status refused = exec.Launch(io).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_NE(Text(refused).find("the stream captures, and a run cannot be captured; add the graph that "
                                 "Executable::Export gives to the capture"),
              std::string::npos)
        << refused;
    StepOn(own_, x_, 2);
    cudaGraph_t captured = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(own_, &captured));
    size_t nodes = 0;
    ASSERT_CUDA(cudaGraphGetNodes(captured, nullptr, &nodes));
    EXPECT_EQ(nodes, 2u);
    ASSERT_CUDA(cudaGraphDestroy(captured));
  }
}

// With a capture of the max_alignment_alias kind open here, all that allocates, frees and asks goes on, here and
// elsewhere.
TEST_P(CudaInteropTest, RunsAndCompilesBreakNoCaptureOfTheApplications) {
  TwoSteps steps;
  Executable exec = Compiled(steps.graph);
  const auto use = [&] {
    Bindings io = exec.bindings();
    auto memory = runtime_->MakeDeviceBuffer<uint32_t>(kN);
    ASSERT_OK(memory.status());
    auto run = exec.Launch(io.Set(steps.k, 5).Set(steps.x, *memory));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    TwoSteps more;
    Executable other = Compiled(more.graph);
    Bindings with = other.bindings();
    for (int i = 0; i < 12; ++i) {
      run = other.Launch(with.Set(more.k, 5).Set(more.x, *memory));
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait(seconds(60)));
    }
    ASSERT_OK(runtime_->MakeHostBuffer<uint32_t>(1 << 20).status());
    // A trace, and a graph of the application's as a node.
    cudaGraph_t solver = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&solver, 0));
    cudaGraphNode_t node = nullptr;
    ASSERT_CUDA(cudaGraphAddEmptyNode(&node, solver, nullptr, 0));
    Graph g("traced");
    auto x = g.InOut<uint32_t>("x", kN, kDevice);
    g.ParallelFor("step", kN, Step{}, 1u, ReadWrite(x));
    g.Launch("solve", CudaGraph(solver), ReadWrite(x));
    ASSERT_CUDA(cudaGraphDestroy(solver));
    auto traced = runtime_->Compile(g, TracedOptions());
    ASSERT_OK(traced.status());
    Bindings of = traced->bindings();
    run = traced->Launch(of.Set(x, *memory));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
  };
  ASSERT_CUDA(cudaStreamBeginCapture(own_, cudaStreamCaptureModeGlobal));
  StepOn(own_, x_, 1);
  use();
  std::thread(use).join();
  StepOn(own_, x_, 2);
  cudaGraph_t captured = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(own_, &captured));
  size_t nodes = 0;
  ASSERT_CUDA(cudaGraphGetNodes(captured, nullptr, &nodes));
  EXPECT_EQ(nodes, 2u);
  ASSERT_CUDA(cudaGraphDestroy(captured));
}

TEST_P(CudaInteropTest, AnExportedGraphIsLaunchedPrintedAndAddedToACapture) {
  if (GetParam() == Mode::kStream) GTEST_SKIP() << "there are no graphs in stream mode";
  std::optional<ExportedGraph> exported;
  {
    TwoSteps steps;
    Executable exec = Compiled(steps.graph);
    Bindings io = exec.bindings();
    auto made = exec.Export(io.Set(steps.k, 7).Set(steps.x, x_));
    ASSERT_OK(made.status());
    exported = *std::move(made);
  }
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&exec, CudaGraphOf(*exported), 0));
  Fill(x_);
  for (int i = 0; i < 3; ++i) ASSERT_CUDA(cudaGraphLaunch(exec, own_));
  ASSERT_CUDA(cudaStreamSynchronize(own_));
  Expect(x_, {7, 20, 7, 20, 7, 20});
  ASSERT_CUDA(cudaGraphExecDestroy(exec));

  const std::string path = testing::TempDir() + "exported.dot";
  ASSERT_CUDA(cudaGraphDebugDotPrint(CudaGraphOf(*exported), path.c_str(), cudaGraphDebugDotFlagsVerbose));
  std::ifstream file(path);
  std::stringstream dot;
  dot << file.rdbuf();
  EXPECT_NE(dot.str().find("digraph"), std::string::npos) << dot.str();
  (void)std::remove(path.c_str());

  EXPECT_EQ(AddToCapture(*exported, own_).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_CUDA(cudaStreamBeginCapture(own_, cudaStreamCaptureModeThreadLocal));
  StepOn(own_, x_, 1);
  const ExportedGraph none;
  EXPECT_EQ(AddToCapture(none, own_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(AddToCapture(*exported, own_));
  StepOn(own_, x_, 2);
  EXPECT_OK(AddToCapture(*exported, own_));
  cudaGraph_t captured = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(own_, &captured));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, captured, 0));
  ASSERT_CUDA(cudaGraphDestroy(captured));
  Fill(x_);
  ASSERT_CUDA(cudaGraphLaunch(exec, own_));
  ASSERT_CUDA(cudaStreamSynchronize(own_));
  Expect(x_, {1, 7, 20, 2, 7, 20});
  ASSERT_CUDA(cudaGraphExecDestroy(exec));
}

// Nodes without anything to do, copies, fills and captured calls.
TEST_P(CudaInteropTest, AnExportedGraphHasAllKindsOfNodes) {
  if (GetParam() == Mode::kStream) GTEST_SKIP() << "there are no graphs in stream mode";
  Graph g("kinds");
  auto rest = g.Param<int64_t>("rest", AtMost(kN));
  auto a = g.Input<uint32_t>("a", kN);
  auto y = g.Output<uint32_t>("y", kN), z = g.Output<uint32_t>("z", rest);
  auto t = g.Buffer<uint32_t>("t", kN), u = g.Buffer<uint32_t>("u", rest);
  g.Copy("in", Read(a), Write(t));
  g.ParallelFor("first", kN, Step{}, 1u, ReadWrite(t));
  g.Launch(
       "library",
       [](LaunchContext& launch, uint32_t* x) {
         StepKernel<<<(kN + 127) / 128, 128, 0, CudaStream(launch)>>>(x, 2);
         return ToStatus(cudaGetLastError());
       },
       ReadWrite(t))
      .HostFallback([](uint32_t* x) {
        for (int i = 0; i < kN; ++i) x[i] = 3 * x[i] + 2;
      });
  g.Copy("out", Read(t), Write(y));
  int looked = 0, asked = 0;
  g.Host("look", [&](std::span<const uint32_t>) { ++looked; }, Read(y));
  g.Host("asked", [&](std::span<const uint32_t>) { ++asked; }, Read(y)).Inline();
  g.Fill("fill", u, 7u);
  g.ParallelFor("rest", rest, Step{}, 4u, ReadWrite(u));
  g.Copy("rest out", Read(u), Write(z));
  Executable exec = Compiled(g);
  for (const int64_t n : {int64_t{kN}, int64_t{0}, int64_t{33}}) {
    auto a_ = runtime_->MakeHostBuffer<uint32_t>(kN), y_ = runtime_->MakeHostBuffer<uint32_t>(kN);
    auto z_ = runtime_->MakeHostBuffer<uint32_t>(kN);
    ASSERT_TRUE(a_.ok() && y_.ok() && z_.ok());
    for (int i = 0; i < kN; ++i) {
      (*a_)[i] = static_cast<uint32_t>(random_());
      (*y_)[i] = (*z_)[i] = 0xDEADu;
    }
    Bindings io = exec.bindings();
    io.Set(rest, n).Set(a, *a_).Set(y, *y_).Set(z, std::span(z_->data(), static_cast<size_t>(n)));
    auto exported = exec.Export(io);
    ASSERT_OK(exported.status());
    cudaGraphExec_t native = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&native, CudaGraphOf(*exported), 0));
    for (int launch = 0; launch < 2; ++launch) ASSERT_CUDA(cudaGraphLaunch(native, own_));
    ASSERT_CUDA(cudaStreamSynchronize(own_));
    ASSERT_CUDA(cudaGraphExecDestroy(native));
    EXPECT_OK(exported->status());
    EXPECT_EQ(std::exchange(looked, 0), 2);
    EXPECT_EQ(std::exchange(asked, 0), 2);
    for (int i = 0; i < kN; ++i) {
      ASSERT_EQ((*y_)[i], After((*a_)[i], {1, 2})) << i;
      ASSERT_EQ((*z_)[i], i < n ? 25u : 0xDEADu) << i;
    }
  }
}

TEST_P(CudaInteropTest, AGraphOfTheApplicationsIsANode) {
  cudaGraph_t solver = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(own_, cudaStreamCaptureModeThreadLocal));
  StepOn(own_, x_, 2);
  StepOn(own_, x_, 3);
  ASSERT_CUDA(cudaStreamEndCapture(own_, &solver));
  Graph g("with a graph");
  auto k = g.Param<uint32_t>("k");
  auto x = g.InOut<uint32_t>("x", kN, kDevice);
  const CudaGraph node(solver);
  g.ParallelFor("before", kN, Step{}, k, ReadWrite(x));
  g.Launch("solve", node, ReadWrite(x));
  g.ParallelFor("between", kN, Step{}, 4u, ReadWrite(x));
  g.Launch("again", node, ReadWrite(x));
  StepOn(nullptr, x_, 1);
  ASSERT_CUDA(cudaGraphDestroy(solver));
  Executable exec = Compiled(g, 1);
  Bindings io = exec.bindings();
  io.Set(x, x_);
  for (uint32_t i = 0; i < 20; ++i) {
    Fill(x_);
    auto run = exec.Launch(io.Set(k, i));
    ASSERT_OK(run.status());
    ASSERT_OK(run->Wait(seconds(60)));
    Expect(x_, {i, 2, 3, 4, 2, 3});
  }
  for (const std::string& note : exec.submission_report().notes) {
    EXPECT_EQ(note.find("is in no graph"), std::string::npos) << note;
    EXPECT_EQ(note.find("no graphs"), std::string::npos) << note;
  }
  // What is no graph fails the node, with CUDA's words.
  Graph bad("bad");
  auto z = bad.InOut<uint32_t>("z", kN, kDevice);
  bad.Launch("none", CudaGraph(nullptr), ReadWrite(z));
  auto compiled = runtime_->Compile(bad, {.slots = 1, .mode = GetParam()});
  absl::Status failure = compiled.status();
  if (compiled.ok()) {
    Bindings with = compiled->bindings();
    auto run = compiled->Launch(with.Set(z, x_));
    failure = run.ok() ? run->Wait(seconds(60)) : run.status();
  }
  EXPECT_NE(Text(failure).find("cloning a CUDA graph"), std::string::npos) << failure;
}

TEST_P(CudaInteropTest, NodesWaitForAndSignalEventsOfTheApplications) {
  cudaEvent_t arrived = nullptr, done = nullptr;
  ASSERT_CUDA(cudaEventCreateWithFlags(&arrived, cudaEventDisableTiming));
  ASSERT_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  Graph g("events");
  auto x = g.InOut<uint32_t>("x", kN, kDevice);
  g.Launch("arrived", WaitForEvent{arrived}, ReadWrite(x));
  g.ParallelFor("step", kN, Step{}, 2u, ReadWrite(x));
  g.Launch("done", SignalEvent{done}, ReadWrite(x));
  Executable exec = Compiled(g, 1);
  Bindings io = exec.bindings();
  Warm(exec, io.Set(x, x_));
  for (int i = 0; i < 20; ++i) {
    Fill(x_);
    Hold(own_);
    StepOn(own_, x_, 1);
    ASSERT_CUDA(cudaEventRecord(arrived, own_));
    auto run = exec.Launch(io);
    ASSERT_OK(run.status());
    ASSERT_CUDA(cudaStreamWaitEvent(other_, done, 0));
    StepOn(other_, x_, 3);
    Release();
    ASSERT_CUDA(cudaStreamSynchronize(other_));
    Expect(x_, {1, 2, 3});
    ASSERT_OK(run->Wait(seconds(60)));
  }
  exec = Executable();
  ASSERT_CUDA(cudaEventDestroy(arrived));
  ASSERT_CUDA(cudaEventDestroy(done));
}

TEST_P(CudaInteropTest, AStreamOfAnotherDeviceIsRefused) {
  int devices = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "needs 2 CUDA devices, this machine has " << devices;
  TwoSteps steps;
  Executable exec = Compiled(steps.graph);
  Bindings io = exec.bindings();
  cudaStream_t elsewhere = nullptr;
  ASSERT_CUDA(cudaSetDevice(1));
  ASSERT_CUDA(cudaStreamCreate(&elsewhere));
  const absl::Status status = exec.Launch(io.Set(steps.k, 1).Set(steps.x, x_).On(Native(elsewhere))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(Text(status).find("the stream is of cuda:1, which the runtime does not use"), std::string::npos) << status;
  ASSERT_CUDA(cudaStreamDestroy(elsewhere));
  ASSERT_CUDA(cudaSetDevice(0));
}

INSTANTIATE_TEST_SUITE_P(Modes, CudaInteropTest, testing::Values(Mode::kStream, Mode::kGraph, Mode::kAuto),
                         [](const auto& mode) {
                           return mode.param == Mode::kStream  ? "stream"
                                  : mode.param == Mode::kGraph ? "graph"
                                                               : "automatic";
                         });

}  // namespace
}  // namespace penstock::cuda_interop_test
