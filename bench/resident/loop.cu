// By hand an iteration is five kernels of one block over an extent of one element, chained by programmatic edges, of
// which the last also counts and decides; or eight such iterations a round, whose kernels do nothing once the loop has
// ended, as Penstock unrolls short bodies. Penstock's body has five ParallelFor nodes over one element, of which the
// last counts. All ways work on the same word of device memory. Each run draws a new start for it and compares
// its end with the CPU's. The submission_report does not count what is in bodies, so nothing here says that they have
// regions, but the figures.
//
// In a file of its own, since what it has in common with the benchmark of loops cannot be seen together with what the
// other parts have in common with that of replays.
#include "loop.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/loops/by_hand.cuh"
#include "words.cuh"

namespace bench {
namespace {

constexpr int kNodes = 5;
constexpr unsigned kThreads = 32;

struct Affine {
  uint32_t mul, add;
};
using Body = std::array<Affine, kNodes>;

PENSTOCK_HOST_DEVICE inline uint32_t Next(uint32_t x, Affine k) { return x * k.mul + k.add; }

struct BeginLoop {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, int32_t from, int32_t* left) const { *left = from; }
};
struct Step {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, uint32_t* x, Affine k) const { *x = Next(*x, k); }
};
struct StepAndCount {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, uint32_t* x, Affine k, int32_t* left) const {
    *x = Next(*x, k);
    --*left;
  }
};
struct IsAnyLeft {
  PENSTOCK_HOST_DEVICE bool operator()(const int32_t* left) const { return *left > 0; }
};

// `kIf`: only if the loop goes on.
template <bool kIf>
__global__ void StepByHand(const HandLoop* loop, uint32_t* x, int n, Affine k) {
  AwaitBefore();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n && (!kIf || loop->left > 0)) x[i] = Next(x[i], k);
}
// The last of an iteration. Of the last iteration of a round it decides, by the handle, whether there is another round.
template <bool kIf>
__global__ void LastByHand(HandLoop* loop, uint32_t* x, int n, Affine k, cudaGraphConditionalHandle handle) {
  AwaitBefore();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  int32_t left = loop->left;
  if (!kIf || left > 0) {
    x[i] = Next(x[i], k);
    loop->left = --left;
  }
  if (handle != 0) cudaGraphSetConditional(handle, left > 0 ? 1 : 0);
}

class LoopByHand {
 public:
  // Of `at_once` iterations a round.
  template <bool kIf>
  static std::shared_ptr<LoopByHand> Make(const Body& body, int iterations, int at_once, uint32_t* x) {
    auto loop = std::make_shared<LoopByHand>();
    HandGraph& graph = loop->graph_;
    const auto handle = graph.MakeHandle();
    const auto begin = graph.Add({}, HandBegin, 1, loop->loop_, iterations, handle);
    auto [node, bodies] = graph.AddConditional({begin}, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
    HandGraph& in = bodies[0];
    std::vector<CUgraphNode> last;
    for (int i = 0; i < at_once; ++i) {
      for (size_t n = 0; n + 1 < body.size(); ++n) {
        last = {in.Add(last, &StepByHand<kIf>, kThreads, loop->loop_, x, 1, body[n])};
      }
      last = {in.Add(last, &LastByHand<kIf>, kThreads, loop->loop_, x, 1, body.back(), i + 1 < at_once ? 0 : handle)};
    }
    loop->exec_ = graph.Instantiate();
    return loop;
  }
  LoopByHand() = default;
  LoopByHand(const LoopByHand&) = delete;
  ~LoopByHand() {
    (void)cudaGraphExecDestroy(exec_);
    (void)cudaEventDestroy(done_);
    (void)cudaStreamDestroy(stream_);
    (void)cudaFree(loop_);
  }

  Sample Run() const {
    const Clock::time_point begin = Clock::now();
    int failed = cudaGraphLaunch(exec_, stream_);
    failed |= cudaEventRecord(done_, stream_);
    const Clock::time_point submitted = Clock::now();
    int answer = cudaEventQuery(done_);
    while (answer == cudaErrorNotReady) answer = cudaEventQuery(done_);
    const Clock::time_point end = Clock::now();
    if ((failed | answer) != 0) Fail("a loop by hand failed");
    (void)cudaGetLastError();  // "not ready" is not an error
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  HandGraph graph_;
  HandLoop* const loop_ = MakeDeviceMemory<HandLoop>(1);
  const cudaStream_t stream_ = MakeStream();
  const cudaEvent_t done_ = MakeEvent();
  cudaGraphExec_t exec_ = nullptr;
};

class LoopByPenstock {
 public:
  LoopByPenstock(const Context& context, const Regions& regions, const Body& body, int iterations, const Words& words) {
    ps::Graph graph("loop");
    const auto x = graph.InOut<uint32_t>("x", 1, words.where());
    const auto left = graph.Buffer<int32_t>("left", 1);
    graph.ParallelFor("begin", 1, BeginLoop{}, iterations, ps::Write(left));
    graph.While("loop", ps::When(IsAnyLeft{}, ps::Read(left)), {.max = 2'000'000'000}, [&](ps::Graph& in) {
      for (size_t n = 0; n + 1 < body.size(); ++n) {
        in.ParallelFor(ps::Name("step", n), 1, Step{}, ps::ReadWrite(x), body[n]);
      }
      in.ParallelFor("last", 1, StepAndCount{}, ps::ReadWrite(x), body.back(), ps::ReadWrite(left));
    });
    exec_ = Must(context.runtime.Compile(
        graph,
        {.slots = 1, .mode = ps::Mode::kGraph, .resident = regions.resident, .constructs = ps::Lowering::kDevice}));
    io_ = exec_.bindings();
    words.Bind(io_, x);
  }
  Sample Run() const {
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    return {Microseconds(submitted - begin), Microseconds(Clock::now() - begin)};
  }

 private:
  mutable ps::Executable exec_;
  ps::Bindings io_;
};

}  // namespace

void MeasureLoop(const Context& context, Report& report) {
  const int iterations = context.options.quick ? 40 : 1000;
  const auto random = [&] { return static_cast<uint32_t>(context.random()); };
  Body body;
  for (Affine& k : body) k.mul = random() | 1, k.add = random();
  const Words words(context.runtime, context.cuda, 1);
  std::vector<Way> ways;
  const auto add = [&](Kind kind, const std::string& name, std::function<Sample()> time) {
    ways.push_back({kind, name, [&, name, time = std::move(time)] {
                      uint32_t x = random();
                      words.Put({x});
                      const Sample sample = time();
                      for (int i = 0; i < iterations; ++i) {
                        for (const Affine& k : body) x = Next(x, k);
                      }
                      if (words.Get().front() != x) Fail("loop, " + name + ": wrong result");
                      return sample;
                    }});
  };
  if (context.cuda) {
    const auto one = LoopByHand::Make<false>(body, iterations, 1, words.data());
    const auto eight = LoopByHand::Make<true>(body, iterations, kAtOnce, words.data());
    add(Kind::kRaw, "a WHILE node", [one] { return one->Run(); });
    add(Kind::kRaw, "a WHILE node, 8 iterations a round", [eight] { return eight->Run(); });
  }
  for (const Regions& regions : kRegions) {
    const auto loop = std::make_shared<LoopByPenstock>(context, regions, body, iterations, words);
    add(Kind::kPenstock, regions.name, [loop] { return loop->Run(); });
  }
  context.Run(ways);
  if (!context.cuda) return;
  const double scale = 1.0 / iterations;
  const auto of = [&](const Regions& regions) { return SpreadOf(Find(ways, regions.name), &Sample::total, scale); };
  const Spread raw = SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, scale);
  const std::string name = "While of " + std::to_string(iterations) + " iterations of 5 nodes";
  report.Alone(name + ", resident", "us an iteration", of(kOn), AtMost(of(kOn).median, 2));
  report.Compare(name + ", resident; raw: a WHILE node", "us an iteration", raw, of(kOn), 0);
  report.Compare(name + ", graph mode; raw: a WHILE node", "us an iteration", raw, of(kOff), 0);
  report.Details(name, "us an iteration", ways, scale);
}

}  // namespace bench
