// Launch nodes in graphs: captured once a slot, again when an argument is another, and what becomes of a capture that
// fails.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "penstock/trace.h"
#include "tests/conformance/graph/replay_fixture.h"
#include "tests/support/kernels.h"
#if defined(__CUDACC__)
#include "penstock/cuda.h"
#endif

namespace penstock::conformance::replay_capture_test {
namespace {

constexpr int64_t kN = 64;

#if defined(__CUDACC__)
__global__ void AddTo(int32_t* x, int32_t value) { x[threadIdx.x] += value; }
#endif

// Adds `value`, `times` times, one kernel each.
absl::Status AddForeign([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] int32_t* x,
                        [[maybe_unused]] int32_t value, [[maybe_unused]] int32_t times) {
#if defined(__CUDACC__)
  for (int32_t i = 0; i < times; ++i) AddTo<<<1, kN, 0, CudaStream(launch)>>>(x, value);
  return ToStatus(cudaGetLastError());
#else
  return absl::InternalError("called on a host device");
#endif
}
void AddTwin(int32_t* x, int32_t value, int32_t times) {
  for (int64_t i = 0; i < kN; ++i) x[i] += value * times;
}

// One more, what the Launch node adds, one more.
struct Sandwich {
  Graph graph{"sandwich"};
  BufferHandle<int32_t> x;
  ParamHandle<int32_t> value, times;

  template <class V, class T, class F = decltype(&AddForeign)>
  void Declare(V v, T t, F launch = &AddForeign) {
    x = graph.InOut<int32_t>("x", kN, kPinned);
    graph.ParallelFor("one", kN, AddOne{}, ReadWrite(x));
    graph.Launch("theirs", launch, ReadWrite(x), v, t).HostFallback(AddTwin);
    graph.ParallelFor("two", kN, AddOne{}, ReadWrite(x));
  }
};

class ReplayCapture : public ReplayConformance {
 protected:
  Changes Check(Executable& exec, const Sandwich& s, Bindings& io, HostBuffer<int32_t>& memory, int32_t adds) {
    const auto start = static_cast<int32_t>(rng_() % 1000);
    std::fill(memory.begin(), memory.end(), start);
    const Changes changes = OfRun(exec, io.Set(s.x, memory));
    for (int64_t i = 0; i < kN; ++i) EXPECT_EQ(memory[i], start + 2 + adds) << "at " << i;
    return changes;
  }
  static bool Says(const Executable& exec, const std::string& words) {
    return exec.submission_report().Text().find(words) != std::string::npos;
  }
};

TEST_P(ReplayCapture, ALaunchNodeIsCapturedOnceASlotByCompile) {
  Sandwich s;
  s.Declare(7, 2);
  Executable exec = Compiled(s.graph, {.slots = 3});
  EXPECT_EQ(exec.submission_report().captures, 3);
  EXPECT_EQ(exec.submission_report().graphs, 3) << "the Launch node parts none";
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  EXPECT_EQ(Check(exec, s, io, memory, 14).alone, 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Check(exec, s, io, memory, 14), (Changes{.launched = 1}));
  EXPECT_EQ(exec.submission_report().captures, 3);
  EXPECT_TRUE(exec.submission_report().notes.empty()) << exec.submission_report().Text();
}

TEST_P(ReplayCapture, AnotherArgumentIsCapturedAnewAndSetInTheGraphThereIs) {
  Sandwich s;
  s.value = s.graph.Param<int32_t>("value");
  s.Declare(s.value, 3);
  Executable exec = Compiled(s.graph);
  EXPECT_EQ(exec.submission_report().captures, 0) << "the value is not known";
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  Check(exec, s, io.Set(s.value, 5), memory, 15);
  EXPECT_EQ(exec.submission_report().captures, 1);
  EXPECT_EQ(exec.submission_report().graphs, 1);
  for (int32_t value = 6; value < 10; ++value) {
    EXPECT_EQ(Check(exec, s, io.Set(s.value, value), memory, 3 * value).set, 1) << "the child";
    EXPECT_EQ(Check(exec, s, io.Set(s.value, value), memory, 3 * value).set, 0) << "the same value";
  }
  EXPECT_EQ(exec.submission_report().captures, 5);
  EXPECT_EQ(exec.submission_report().graphs, 1) << exec.submission_report().Text();
}

// A slot's stream must not capture what another slot's run submits.
TEST_P(ReplayCapture, RunsInOrderAreCapturedWhileOthersAreSubmitted) {
  constexpr int kThreads = 2, kEach = 20;
  Sandwich s;
  s.value = s.graph.Param<int32_t>("value");
  s.Declare(s.value, 2);
  Executable exec = Compiled(s.graph, {.slots = 4, .in_order = true});
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  std::vector<std::jthread> threads;
  for (int32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Bindings io = exec.bindings();
      io.Set(s.x, memory);
      std::vector<penstock::Run> runs;
      for (int32_t r = 0; r < kEach; ++r) {
        absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(s.value, r * kThreads + t));
        ASSERT_OK(run.status());
        runs.push_back(*run);
      }
      for (const penstock::Run& run : runs) EXPECT_OK(run.Wait());
    });
  }
  threads.clear();
  constexpr int32_t kAll = kThreads * kEach;
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(memory[i], 2 * kAll + kAll * (kAll - 1)) << "at " << i;
}

TEST_P(ReplayCapture, ACaptureOfAnotherStructureHasTheGraphMadeAnewAndTheLedgerSaysWhy) {
  Sandwich s;
  s.times = s.graph.Param<int32_t>("times");
  s.Declare(10, s.times);
  Executable exec = Compiled(s.graph);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  Check(exec, s, io.Set(s.times, 1), memory, 10);
  for (const int32_t times : {3, 2, 5}) {
    // A host fallback is one kernel, however often it adds.
    if (!on_cuda()) checks_->witness().FailNth(Kind::kSetChild, 1, absl::FailedPreconditionError("other nodes"));
    Check(exec, s, io.Set(s.times, times), memory, 10 * times);
    EXPECT_TRUE(Says(exec, "a graph was instantiated again: graph 'sandwich' node 'theirs'"))
        << exec.submission_report().Text();
    Check(exec, s, io, memory, 10 * times);
  }
  EXPECT_EQ(exec.submission_report().graphs, 4);
  EXPECT_EQ(exec.submission_report().captures, 4);
}

TEST_P(ReplayCapture, SlotsHaveTheirOwn) {
  Sandwich s;
  s.value = s.graph.Param<int32_t>("value");
  s.Declare(s.value, 2);
  Executable exec = Compiled(s.graph, {.slots = 3});
  std::vector<HostBuffer<int32_t>> memory;
  for (int i = 0; i < 3; ++i) memory.push_back(Pinned(kN, 0));
  std::vector<std::pair<penstock::Run, int32_t>> flying(3);
  Bindings io = exec.bindings();
  for (int r = 0; r < 300; ++r) {
    const auto i = static_cast<size_t>(r % 3);
    if (r >= 3) {
      ASSERT_OK(flying[i].first.Wait());
      ASSERT_EQ(memory[i][kN - 1], flying[i].second) << "run " << r - 3;
    }
    std::fill(memory[i].begin(), memory[i].end(), r);
    const auto value = static_cast<int32_t>(rng_() % 3);
    absl::StatusOr<penstock::Run> run = exec.Launch(io.Set(s.x, memory[i]).Set(s.value, value));
    ASSERT_OK(run.status());
    flying[i] = {*std::move(run), r + 2 + 2 * value};
  }
  for (auto& [run, expected] : flying) ASSERT_OK(run.Wait());
  CheckLedger(exec);
}

// As an application breaks one, or a library: by a call that waits.
absl::Status Waits([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] int32_t* x, [[maybe_unused]] int32_t value,
                   [[maybe_unused]] int32_t times) {
#if defined(__CUDACC__)
  AddTo<<<1, kN, 0, CudaStream(launch)>>>(x, value * times);
  return ToStatus(cudaStreamSynchronize(CudaStream(launch)));
#else
  return absl::InternalError("called on a host device");
#endif
}

TEST_P(ReplayCapture, OneThatIsBrokenAtCompileIsItsStatusInGraphModeAndAStreamLaunchUnderAuto) {
  Sandwich s;
  s.Declare(4, 5, Waits);
  const auto fail = [&] {
    if (!on_cuda()) checks_->witness().FailNth(Kind::kEndCapture, 1, absl::FailedPreconditionError("it was broken"));
  };
  fail();
  const absl::StatusOr<Executable> refused = runtime_->Compile(s.graph);
  EXPECT_EQ(refused.status().message().rfind("graph 'sandwich' node 'theirs'", 0), 0u) << refused.status();
  const ModeScope mode("auto");
  fail();
  Executable exec = Compiled(s.graph);
  EXPECT_TRUE(Says(exec, "node 'theirs' is in no graph: graph 'sandwich' node 'theirs'"))
      << exec.submission_report().Text();
  EXPECT_EQ(exec.submission_report().graphs, 2) << "one before it and one behind";
  EXPECT_EQ(exec.submission_report().captures, 0);
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  Bindings io = exec.bindings();
  for (int run = 0; run < 40; ++run) {
    std::fill(memory.begin(), memory.end(), run);
    absl::StatusOr<penstock::Run> started = exec.Launch(io.Set(s.x, memory));
    ASSERT_OK(started.status());
    ASSERT_OK(started->Wait());
    ASSERT_EQ(memory[kN - 1], run + 22);
  }
  EXPECT_GT(exec.submission_report().graph_launches, 0);
}

// Breaks its capture where `times` is 1.
absl::Status MayWait(LaunchContext& launch, int32_t* x, int32_t value, int32_t times) {
  return times == 1 ? Waits(launch, x, value, times) : AddForeign(launch, x, value, times);
}

TEST_P(ReplayCapture, OneThatIsBrokenByALaunchIsItsStatusInGraphModeAndTheEndOfGraphsUnderAuto) {
  Sandwich s;
  s.times = s.graph.Param<int32_t>("times");
  s.Declare(4, s.times, MayWait);
  const auto fail = [&] {
    if (!on_cuda()) checks_->witness().FailNth(Kind::kEndCapture, 1, absl::FailedPreconditionError("it was broken"));
  };
  HostBuffer<int32_t> memory = Pinned(kN, 0);
  {
    Executable exec = Compiled(s.graph);
    Bindings io = exec.bindings();
    io.Set(s.x, memory);
    Check(exec, s, io.Set(s.times, 2), memory, 8);
    fail();
    const absl::Status status = exec.Launch(io.Set(s.times, 1)).status();
    EXPECT_EQ(status.message().rfind("graph 'sandwich' node 'theirs'", 0), 0u) << status;
    std::fill(memory.begin(), memory.end(), 0);
    absl::StatusOr<penstock::Run> again = exec.Launch(io.Set(s.times, 3));
    ASSERT_OK(again.status());
    ASSERT_OK(again->Wait());
    EXPECT_EQ(memory[0], 14);
  }
  // With a trace graphs are decided on before the first run.
  const ModeScope mode("auto");
  for (const auto& trace : {std::shared_ptr<Trace>(), Trace::Create()}) {
    Executable exec = Compiled(s.graph, {.slots = 1, .trace = trace});
    Bindings io = exec.bindings();
    io.Set(s.x, memory);
    for (int run = 0; run < 60; ++run) {
      const int64_t launched = exec.submission_report().graph_launches;
      const int32_t times = launched == 2 ? 1 : 2 + run % 2;
      if (launched == 2 && exec.submission_report().mode != Mode::kStream) fail();
      std::fill(memory.begin(), memory.end(), run);
      absl::StatusOr<penstock::Run> started = exec.Launch(io.Set(s.times, times));
      ASSERT_OK(started.status());
      ASSERT_OK(started->Wait());
      ASSERT_EQ(memory[kN - 1], run + 2 + 4 * times) << "run " << run;
    }
    EXPECT_EQ(exec.submission_report().mode, Mode::kStream) << exec.submission_report().Text();
    EXPECT_EQ(exec.submission_report().graph_launches, 2);
    EXPECT_TRUE(Says(exec, "no graphs any more: graph 'sandwich' node 'theirs'")) << exec.submission_report().Text();
    if (trace == nullptr) continue;
    std::set<int64_t> traced;
    for (const Span& span : trace->spans()) {
      if (span.name == "theirs") traced.insert(span.run);
    }
    EXPECT_EQ(traced.size(), 60u);
  }
}

// As a library has it: memory to work in, which it allocates, clears and waits for.
std::atomic<int> made = 0, alive = 0;
#if defined(__CUDACC__)
struct Workspace {
  explicit Workspace(const LaunchContext& launch) : stream(CudaStream(launch)) {
    ++made, ++alive;
    EXPECT_EQ(cudaMalloc(&memory, kN * sizeof(int32_t)), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory, 0, kN * sizeof(int32_t), stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  ~Workspace() {
    --alive;
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  const cudaStream_t stream;
  int32_t* memory = nullptr;
};
__global__ void Slowly(const int32_t* from, const int32_t* zero, int32_t* to) {
  const long long begin = clock64();
  while (clock64() - begin < 20000) {
  }
  to[threadIdx.x] = from[threadIdx.x] + *zero;
}
#endif

// from to the workspace, from there to `to`.
absl::Status ThroughWorkspace([[maybe_unused]] LaunchContext& launch, [[maybe_unused]] const int32_t* from,
                              [[maybe_unused]] int32_t* to) {
#if defined(__CUDACC__)
  const Workspace& workspace = launch.Get<Workspace>();
  EXPECT_EQ(workspace.stream, CudaStream(launch)) << "whoever gets it has the stream it was made with";
  Slowly<<<1, kN, 0, workspace.stream>>>(from, launch.Zero<int32_t>(), workspace.memory);
  Slowly<<<1, kN, 0, workspace.stream>>>(workspace.memory, launch.Zero<int32_t>(), to);
  return ToStatus(cudaGetLastError());
#else
  return absl::InternalError("called on a host device");
#endif
}
void CopyTwin(const int32_t* from, int32_t* to) { std::copy(from, from + kN, to); }

// What no access says: nodes of a lane share the workspace.
TEST_P(ReplayCapture, NodesOfALaneShareWhatTheyHaveMadeAndComeOneAfterTheOther) {
  constexpr int kCopies = 8;
  Graph g("shared");
  std::vector<BufferHandle<int32_t>> x, y;
  std::vector<HostBuffer<int32_t>> from, to;
  for (int i = 0; i < kCopies; ++i) {
    const std::string number = std::to_string(i);
    x.push_back(g.Input<int32_t>("x" + number, kN, kPinned));
    y.push_back(g.Output<int32_t>("y" + number, kN, kPinned));
    from.push_back(Pinned(kN, 0));
    to.push_back(Pinned(kN, 0));
    g.Launch("copy" + number, ThroughWorkspace, Read(x.back()), Write(y.back())).HostFallback(CopyTwin);
  }
  for (const std::string mode : {"graph", "stream", "auto"}) {
    const ModeScope scope(mode);
    made = 0;
    Executable exec = Compiled(g, {.slots = 1, .max_lanes = 2});
    Bindings io = exec.bindings();
    for (int r = 0; r < 60; ++r) {
      for (size_t i = 0; i < kCopies; ++i) {
        std::fill(from[i].begin(), from[i].end(), 100 * r + static_cast<int32_t>(i));
        std::fill(to[i].begin(), to[i].end(), -1);
        io.Set(x[i], from[i]).Set(y[i], to[i]);
      }
      absl::StatusOr<penstock::Run> run = exec.Launch(io);
      ASSERT_OK(run.status());
      ASSERT_OK(run->Wait());
      for (size_t i = 0; i < kCopies; ++i) {
        ASSERT_TRUE(std::equal(from[i].begin(), from[i].end(), to[i].begin())) << mode << ", run " << r << ", " << i;
      }
    }
    if (on_cuda()) {
      EXPECT_EQ(made, 2) << mode << ": one a lane";
    }
    if (on_cuda() && mode == "graph") {
      EXPECT_EQ(exec.submission_report().captures, kCopies + 2) << "again where it was made";
    }
  }
  runtime_.reset();  // when that has gone, so have all executables
  EXPECT_EQ(alive, 0);
}

INSTANTIATE_TEST_SUITE_P(Host, ReplayCapture,
                         testing::Values(Target{"host:2", "graph", true}, Target{"host:2", "graph", true, 7}),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, ReplayCapture, testing::Values(Target{"cuda", "graph", true}), NameOfTarget);

}  // namespace
}  // namespace penstock::conformance::replay_capture_test
