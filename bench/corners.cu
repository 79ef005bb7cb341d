// Uses that were once far slower than the best way, in parts that `--parts` chooses from:
//
//   wide     graphs of thousands of nodes that nothing orders, tiny ones and ones of very different lengths: compiling,
//            device memory, and a run. Raw CUDA builds the same graph as it is, in 128 chains, and in 16.
//   buffers  512 nodes on 512 buffers in device memory that launches bind, and on as many parts of one such buffer
//   auto     what Mode::kAuto costs a short program, and what it takes once it has decided, beside either mode
//   bursts   20 replays of a chain on the same device memory, launched at once (CompileOptions::in_order); raw CUDA
//            launches one graph 20 times in one stream, with and without programmatic edges
//
// Every run gets new random inputs, and every result is compared with the host's.
//
// Without a CUDA device everything runs on a host device, for its results only.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

PS_HOST_DEVICE uint32_t Mixed(uint32_t seed, int32_t i) { return (seed ^ static_cast<uint32_t>(i)) * 2654435761u; }

// Keeps a thread busy for so long; a host device does not wait.
PS_HOST_DEVICE void Spin(int32_t nanoseconds) {
#ifdef __CUDA_ARCH__
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (nanoseconds > 0 && now - begin < static_cast<unsigned long long>(nanoseconds));
#else
  (void)nanoseconds;
#endif
}

struct Task {
  PS_HOST_DEVICE void operator()(int64_t, const uint32_t* seed, uint32_t* out, int32_t i, int32_t nanoseconds) const {
    Spin(nanoseconds);
    *out = Mixed(*seed, i);
  }
};
struct Step {
  PS_HOST_DEVICE void operator()(int64_t, const uint32_t* seed, uint32_t* out, int32_t i) const {
    *out = *out * 3 + Mixed(*seed, i);
  }
};
struct StepAndTell {
  PS_HOST_DEVICE void operator()(int64_t, const uint32_t* seed, uint32_t* out, uint32_t* told, int32_t i) const {
    *told = *out = *out * 3 + Mixed(*seed, i);
  }
};
__global__ void RawTask(const uint32_t* seed, uint32_t* out, int32_t i, int32_t nanoseconds) {
  Task()(0, seed, out, i, nanoseconds);
}

struct Context {
  const Options& options;
  bool cuda;
  ps::Runtime& runtime;
  std::mt19937& random;
};

ps::Mode ModeOf(int m) { return m == 0 ? ps::Mode::kStream : m == 1 ? ps::Mode::kGraph : ps::Mode::kAuto; }
constexpr const char* kModeNames[] = {"streams", "graphs", "auto", "auto, Decide at once"};
constexpr int kAuto = 2, kDecided = 3;

std::string Count(int count) { return std::to_string(count); }

// The lengths of tasks in nanoseconds: none, or one in 16 many times as long as the others.
std::vector<int32_t> Lengths(int tasks, bool uneven, std::mt19937& random) {
  std::vector<int32_t> lengths(static_cast<size_t>(tasks));
  for (int32_t& length : lengths) {
    if (!uneven) break;
    length = static_cast<int32_t>(random() % 16 == 0 ? 100000 + random() % 100000 : 1000 + random() % 20000);
  }
  return lengths;
}

void CheckTasks(const std::string& way, uint32_t seed, const uint32_t* found, int tasks) {
  for (int i = 0; i < tasks; ++i) {
    if (found[i] != Mixed(seed, i)) Fail(way + ": task " + Count(i) + " is wrong");
  }
}

int64_t FreeMemory(bool cuda) {
  size_t free = 0, total = 0;
  if (cuda) Check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return static_cast<int64_t>(free);
}

// The tasks as a CUDA graph; task i comes after task i - chains.
class RawWide {
 public:
  RawWide(const std::vector<int32_t>& lengths, int chains, std::mt19937& random)
      : tasks_(static_cast<int>(lengths.size())), random_(random), stream_(MakeStream()) {
    Check(cudaMallocHost(&pinned_, (lengths.size() + 1) * 4), "allocating pinned memory");
    uint32_t* const device = MakeDeviceMemory<uint32_t>(tasks_ + 1);
    const Clock::time_point begin = Clock::now();
    cudaGraph_t graph = nullptr;
    Check(cudaGraphCreate(&graph, 0), "creating a graph");
    cudaGraphNode_t first = nullptr, last = nullptr;
    Check(cudaGraphAddMemcpyNode1D(&first, graph, nullptr, 0, device, pinned_, 4, cudaMemcpyHostToDevice), "adding");
    std::vector<cudaGraphNode_t> nodes(lengths.size()), ends;
    const uint32_t* seed = device;
    for (int i = 0; i < tasks_; ++i) {
      uint32_t* out = device + 1 + i;
      int32_t length = lengths[static_cast<size_t>(i)];
      void* argv[] = {&seed, &out, &i, &length};
      cudaKernelNodeParams params{};
      params.func = reinterpret_cast<void*>(&RawTask);
      params.gridDim = params.blockDim = dim3(1);
      params.kernelParams = argv;
      const cudaGraphNode_t* after = i < chains ? &first : &nodes[static_cast<size_t>(i - chains)];
      Check(cudaGraphAddKernelNode(&nodes[static_cast<size_t>(i)], graph, after, 1, &params), "adding a kernel");
      if (i + chains >= tasks_) ends.push_back(nodes[static_cast<size_t>(i)]);
    }
    Check(cudaGraphAddMemcpyNode1D(&last, graph, ends.data(), ends.size(), pinned_ + 1, device + 1, lengths.size() * 4,
                                   cudaMemcpyDeviceToHost),
          "adding");
    Check(cudaGraphInstantiate(&exec_, graph, cudaGraphInstantiateFlagUseNodePriority), "instantiating");
    Check(cudaGraphUpload(exec_, stream_), "uploading a graph");
    Check(cudaStreamSynchronize(stream_), "waiting");
    made_us_ = Microseconds(Clock::now() - begin);
    Check(cudaGraphDestroy(graph), "destroying a graph");
  }
  RawWide(const RawWide&) = delete;
  ~RawWide() { cudaGraphExecDestroy(exec_); }
  double made_us() const { return made_us_; }

  Sample Run() {
    std::fill_n(pinned_ + 1, tasks_, 0x5A5A5A5A);
    pinned_[0] = random_();
    const Clock::time_point begin = Clock::now();
    Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    CheckTasks("by hand", pinned_[0], pinned_ + 1, tasks_);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const int tasks_;
  std::mt19937& random_;
  const cudaStream_t stream_;
  uint32_t* pinned_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  double made_us_ = 0;
};

// The tasks, each on an element of its own, or all in a chain.
class Wide {
 public:
  Wide(Context& context, const std::vector<int32_t>& lengths, bool chain)
      : random_(context.random),
        seed_(Must(context.runtime.MakeHostBuffer<uint32_t>(1))),
        out_(Must(context.runtime.MakeHostBuffer<uint32_t>(static_cast<int64_t>(lengths.size())))) {
    const auto tasks = static_cast<int64_t>(lengths.size());
    ps::Graph g("wide");
    auto seed = g.Input<uint32_t>("seed", 1, ps::kPinned);
    auto out = g.Output<uint32_t>("out", tasks, ps::kPinned);
    for (int32_t i = 0; i < tasks; ++i) {
      auto node = g.ParallelFor("task " + Count(i), 1, Task{}, ps::Read(seed), ps::Write(out, ps::Slice({i}, {1})), i,
                                lengths[static_cast<size_t>(i)]);
      if (chain && last_.has_value()) node.After(*last_);
      last_.emplace(node);
    }
    const Clock::time_point begin = Clock::now();
    exec_ = Must(context.runtime.Compile(g, {.slots = 1, .mode = ps::Mode::kGraph}));
    made_us_ = Microseconds(Clock::now() - begin);
    io_ = exec_.bindings();
    io_.Set(seed, seed_).Set(out, out_);
    Run();
  }
  double made_us() const { return made_us_; }

  Sample Run() {
    std::fill(out_.begin(), out_.end(), 0x5A5A5A5A);
    seed_[0] = random_();
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    CheckTasks("Penstock", seed_[0], out_.data(), static_cast<int>(out_.size()));
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  std::mt19937& random_;
  ps::HostBuffer<uint32_t> seed_, out_;
  std::optional<ps::NodeRef> last_;
  ps::Executable exec_;
  ps::Bindings io_;
  double made_us_ = 0;
};

Spread Only(double value) { return {value, value, value}; }

using Kept = std::vector<std::unique_ptr<Wide>>;

// What one takes of the device's memory: of 8, after the first, since the driver takes memory for many graphs at once.
// All are kept: what is given back, the driver gives to the next one.
Spread MemoryOf(Context& context, const std::vector<int32_t>& lengths, bool chain, Kept& kept) {
  constexpr int kMany = 8;
  kept.push_back(std::make_unique<Wide>(context, lengths, chain));
  const int64_t before = FreeMemory(context.cuda);
  for (int i = 0; i < kMany; ++i) kept.push_back(std::make_unique<Wide>(context, lengths, chain));
  return Only(static_cast<double>(before - FreeMemory(context.cuda)) / 1e6 / kMany);
}

void MeasureWide(Context& context, Report& report) {
  struct Case {
    int tasks;
    bool uneven;
  };
  const std::vector<Case> cases = context.options.quick
                                      ? std::vector<Case>{{300, false}}
                                      : std::vector<Case>{{500, true}, {2000, true}, {10000, false}, {20000, false}};
  Kept kept;
  for (const Case& of : cases) {
    const std::string name = Count(of.tasks) + (of.uneven ? " uneven" : " tiny") + " tasks";
    const std::vector<int32_t> lengths = Lengths(of.tasks, of.uneven, context.random);
    const Spread of_chain = MemoryOf(context, lengths, true, kept), of_wide = MemoryOf(context, lengths, false, kept);
    Wide wide(context, lengths, false);
    if (!context.cuda) continue;
    std::vector<std::unique_ptr<RawWide>> raw;
    std::vector<Way> ways;
    const std::pair<int, const char*> kChains[] = {
        {of.tasks, "as it is"}, {128, "in 128 chains"}, {16, "in 16 chains"}};
    double made = 1e12;
    for (const auto& [chains, how] : kChains) {
      raw.push_back(std::make_unique<RawWide>(lengths, chains, context.random));
      made = std::min(made, raw.back()->made_us());
      ways.push_back({Kind::kRaw, std::string("by hand, ") + how, [&of = *raw.back()] { return of.Run(); }});
    }
    ways.push_back({Kind::kPenstock, "Penstock, graphs", [&] { return wide.Run(); }});
    Measure(ways, 2, context.options.repeats);
    const Spread best = SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1);
    report.Compare(name + ", a run; raw: the best by hand", "us", best, SpreadOf(ways.back(), &Sample::total, 1), 1.02);
    report.Compare(name + ", a run; raw: the graph as it is", "us", SpreadOf(ways[0], &Sample::total, 1),
                   SpreadOf(ways.back(), &Sample::total, 1), 1);
    report.Compare(name + ", compiling; raw: the quickest to make by hand", "ms", Only(made / 1000),
                   Only(wide.made_us() / 1000), 0);
    report.Compare(name + ", device memory; raw: as many in a chain, Penstock", "MB", of_chain, of_wide, 1.1);
    report.Details(name, "us", ways, 1);
  }
}

class Buffers {
 public:
  static constexpr int32_t kNodes = 512, kApart = 128;  // elements: as far apart as buffers
  Buffers(Context& context, bool many, ps::Mode mode)
      : random_(context.random), seed_(Must(context.runtime.MakeHostBuffer<uint32_t>(1))) {
    ps::Graph g("buffers");
    auto seed = g.Input<uint32_t>("seed", 1, ps::kPinned);
    auto told = g.Output<uint32_t>("told", kNodes, ps::kPinned);
    std::vector<ps::BufferHandle<uint32_t>> buffers;
    for (int32_t i = 0; i < (many ? kNodes : 1); ++i) {
      const int64_t elements = many ? 1 : kNodes * kApart;
      buffers.push_back(g.InOut<uint32_t>("buffer " + Count(i), elements, ps::kDevice));
      memory_.push_back(Must(context.runtime.MakeDeviceBuffer<uint32_t>(elements)));
    }
    for (int32_t i = 0; i < kNodes; ++i) {
      const auto access = many ? ps::ReadWrite(buffers[static_cast<size_t>(i)])
                               : ps::ReadWrite(buffers[0], ps::Slice({i * kApart}, {1}));
      g.ParallelFor("step " + Count(i), 1, StepAndTell{}, ps::Read(seed), access, ps::Write(told, ps::Slice({i}, {1})),
                    i);
    }
    exec_ = Must(context.runtime.Compile(g, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
    out_ = Must(context.runtime.MakeHostBuffer<uint32_t>(kNodes));
    io_.Set(seed, seed_).Set(told, out_);
    for (size_t b = 0; b < buffers.size(); ++b) io_.Set(buffers[b], memory_[b]);
    TimeRun();
    kept_.assign(out_.begin(), out_.end());  // memory begins undefined
  }
  Sample Run() {
    const Sample took = TimeRun();
    for (int32_t i = 0; i < kNodes; ++i) {
      uint32_t& kept = kept_[static_cast<size_t>(i)];
      kept = kept * 3 + Mixed(seed_[0], i);
      if (out_[i] != kept) Fail("buffers: element " + Count(i) + " is wrong");
    }
    return took;
  }

 private:
  Sample TimeRun() {
    std::fill(out_.begin(), out_.end(), 0x5A5A5A5A);
    seed_[0] = random_();
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    return {Microseconds(submitted - begin), Microseconds(Clock::now() - begin)};
  }

  std::mt19937& random_;
  ps::HostBuffer<uint32_t> seed_, out_;
  std::vector<ps::DeviceBuffer<uint32_t>> memory_;
  std::vector<uint32_t> kept_;
  ps::Executable exec_;
  ps::Bindings io_;
};

void MeasureBuffers(Context& context, Report& report) {
  for (int m = 0; m < 2; ++m) {
    Buffers one(context, false, ModeOf(m)), many(context, true, ModeOf(m));
    std::vector<Way> ways = {{Kind::kRaw, "Penstock, parts of one buffer", [&] { return one.Run(); }},
                             {Kind::kPenstock, "Penstock, a buffer a node", [&] { return many.Run(); }}};
    Measure(ways, 2, context.options.repeats);
    const std::string name = std::string("512 nodes, ") + kModeNames[m];
    report.Compare(name + ", a buffer a node; raw: parts of one buffer, Penstock", "us",
                   SpreadOf(ways[0], &Sample::total, 1), SpreadOf(ways[1], &Sample::total, 1), m == 1 ? 1.02 : 0);
    report.Details(name, "us", ways, 1);
  }
}

// A chain on one pinned element.
class Chain {
 public:
  Chain(Context& context, int nodes, int mode)
      : nodes_(nodes),
        random_(context.random),
        seed_(Must(context.runtime.MakeHostBuffer<uint32_t>(1))),
        cell_(Must(context.runtime.MakeHostBuffer<uint32_t>(1))) {
    ps::Graph g("chain");
    auto seed = g.Input<uint32_t>("seed", 1, ps::kPinned);
    auto cell = g.InOut<uint32_t>("cell", 1, ps::kPinned);
    for (int32_t i = 0; i < nodes; ++i)
      g.ParallelFor("step " + Count(i), 1, Step{}, ps::Read(seed), ps::ReadWrite(cell), i);
    exec_ = Must(context.runtime.Compile(g, {.mode = ModeOf(mode)}));
    if (mode == kDecided) exec_.Decide();
    io_ = exec_.bindings();
    io_.Set(seed, seed_).Set(cell, cell_);
  }
  Sample Run() {
    seed_[0] = random_();
    uint32_t want = cell_[0] = random_();
    for (int32_t i = 0; i < nodes_; ++i) want = want * 3 + Mixed(seed_[0], i);
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    if (cell_[0] != want) Fail("chain: the result is wrong");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const int nodes_;
  std::mt19937& random_;
  ps::HostBuffer<uint32_t> seed_, cell_;
  ps::Executable exec_;
  ps::Bindings io_;
};

void MeasureAuto(Context& context, Report& report) {
  constexpr int kShort = 30, kSettled = 100;
  for (const int nodes : context.options.quick ? std::vector<int>{20} : std::vector<int>{1, 10, 100, 1000}) {
    const std::string name = "chain of " + Count(nodes);
    std::vector<std::unique_ptr<Chain>> settled;
    std::vector<Way> begun, ways;
    for (int m = 0; m <= kDecided; ++m) {
      const Kind kind = m >= kAuto ? Kind::kPenstock : Kind::kRaw;
      begun.push_back({kind, std::string("Penstock, ") + kModeNames[m], [&context, nodes, m] {
                         Chain chain(context, nodes, m);
                         Sample sum;
                         for (int run = 0; run < kShort; ++run) {
                           const Sample took = chain.Run();
                           sum.submit += took.submit, sum.total += took.total;
                         }
                         return sum;
                       }});
      settled.push_back(std::make_unique<Chain>(context, nodes, m));
      for (int run = 0; run < kSettled; ++run) settled.back()->Run();
      ways.push_back({kind, std::string("Penstock, ") + kModeNames[m], [&of = *settled.back()] { return of.Run(); }});
    }
    Measure(begun, 1, context.options.repeats);
    Measure(ways, 2, context.options.repeats);
    const auto compare = [&](const char* what, std::vector<Way>& of, double scale, double target) {
      report.Compare(name + what + "; raw: the better mode", "us",
                     SpreadOf(BestRaw(of, &Sample::total), &Sample::total, scale),
                     SpreadOf(of[kAuto], &Sample::total, scale), target);
      report.Details(name + what, "us", of, scale);
    };
    compare(", a run of the first 30", begun, 1.0 / kShort, 1.5);
    compare(", a run once decided", ways, 1, 1.02);
  }
}

constexpr int kBurst = 20;

__global__ void RawStep(const uint32_t* seed, uint32_t* out, int32_t i) { Step()(0, seed, out, i); }
__global__ void RawEarlyStep(const uint32_t* seed, uint32_t* out, int32_t i) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
  Step()(0, seed, out, i);
}

// One element of device memory that chains change, and what it should hold.
class BurstMemory {
 public:
  explicit BurstMemory(Context& context)
      : runtime_(context.runtime), seed(Made(context)), cell(Made(context)), seed_(context.random()) {
    std::vector<uint32_t> values = {seed_, value_ = context.random()};
    ps::Graph put("put");
    auto from = put.Input<uint32_t>("from", 2);
    auto to_seed = put.Output<uint32_t>("seed", 1, ps::kDevice), to_cell = put.Output<uint32_t>("cell", 1, ps::kDevice);
    put.Copy("put seed", ps::Read(from, ps::Slice({0}, {1})), ps::Write(to_seed));
    put.Copy("put cell", ps::Read(from, ps::Slice({1}, {1})), ps::Write(to_cell));
    ps::Executable exec = Must(runtime_.Compile(put));
    Must(Must(exec.Launch(exec.bindings().Set(from, values).Set(to_seed, seed).Set(to_cell, cell))).Wait());
    ps::Graph get("get");
    from_ = get.Input<uint32_t>("cell", 1, ps::kDevice);
    to_ = get.Output<uint32_t>("to", 1);
    get.Copy("get", from_, to_);
    get_ = Must(runtime_.Compile(get));
  }
  // After a burst of chains.
  void Check(int nodes, const char* way) {
    for (int run = 0; run < kBurst; ++run) {
      for (int32_t i = 0; i < nodes; ++i) value_ = value_ * 3 + Mixed(seed_, i);
    }
    std::vector<uint32_t> found = {~value_};
    Must(Must(get_.Launch(get_.bindings().Set(from_, cell).Set(to_, found))).Wait());
    if (found[0] != value_) Fail(std::string("bursts: ") + way + " is wrong");
  }

 private:
  static ps::DeviceBuffer<uint32_t> Made(Context& context) {
    return Must(context.runtime.MakeDeviceBuffer<uint32_t>(1));
  }
  ps::Runtime& runtime_;

 public:
  const ps::DeviceBuffer<uint32_t> seed, cell;

 private:
  uint32_t seed_, value_ = 0;
  ps::BufferHandle<uint32_t> from_, to_;
  ps::Executable get_;
};

class RawBurst {
 public:
  RawBurst(Context& context, int nodes, bool programmatic) : nodes_(nodes), memory_(context), stream_(MakeStream()) {
    bench::Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int32_t i = 0; i < nodes; ++i) {
      cudaLaunchAttribute early{};
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = config.blockDim = dim3(1);
      config.stream = stream_;
      config.attrs = &early;
      config.numAttrs = programmatic && i > 0 ? 1 : 0;
      const uint32_t* seed = memory_.seed.data();
      const auto kernel = programmatic ? &RawEarlyStep : &RawStep;
      bench::Check(cudaLaunchKernelEx(&config, kernel, seed, memory_.cell.data(), i), "capturing a kernel");
    }
    cudaGraph_t graph = nullptr;
    bench::Check(cudaStreamEndCapture(stream_, &graph), "capturing");
    bench::Check(cudaGraphInstantiate(&exec_, graph, 0), "instantiating");
    bench::Check(cudaGraphDestroy(graph), "destroying a graph");
    bench::Check(cudaGraphUpload(exec_, stream_), "uploading a graph");
    bench::Check(cudaStreamSynchronize(stream_), "waiting");
  }
  Sample Run() {
    const Clock::time_point begin = Clock::now();
    for (int run = 0; run < kBurst; ++run) bench::Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    const Clock::time_point submitted = Clock::now();
    bench::Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    memory_.Check(nodes_, "raw");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const int nodes_;
  BurstMemory memory_;
  cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
};

class Burst {
 public:
  Burst(Context& context, int nodes, const ps::CompileOptions& options) : nodes_(nodes), memory_(context) {
    ps::Graph g("burst");
    auto seed = g.Input<uint32_t>("seed", 1, ps::kDevice);
    auto cell = g.InOut<uint32_t>("cell", 1, ps::kDevice);
    for (int32_t i = 0; i < nodes; ++i) {
      g.Kernel(ps::Name("step", i), RawEarlyStep, ps::Blocks({1, 1, 1}, {1, 1, 1}).Programmatic(), ps::Read(seed),
               ps::ReadWrite(cell), i)
          .HostFallback([](const uint32_t* from, uint32_t* to, int32_t step) { Step()(0, from, to, step); });
    }
    exec_ = Must(context.runtime.Compile(g, options));
    io_ = exec_.bindings();
    io_.Set(seed, memory_.seed).Set(cell, memory_.cell);
  }
  Sample Run() {
    const Clock::time_point begin = Clock::now();
    ps::Run last;
    for (int run = 0; run < kBurst; ++run) last = Must(exec_.Launch(io_));
    const Clock::time_point submitted = Clock::now();
    Must(last.Wait());
    const Clock::time_point end = Clock::now();
    memory_.Check(nodes_, "Penstock");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const int nodes_;
  BurstMemory memory_;
  ps::Executable exec_;
  ps::Bindings io_;
};

void MeasureBursts(Context& context, Report& report) {
  for (const int nodes : context.options.quick ? std::vector<int>{10} : std::vector<int>{1, 10, 60, 300}) {
    std::vector<std::unique_ptr<RawBurst>> raw;
    std::vector<std::unique_ptr<Burst>> ours;
    std::vector<Way> ways;
    for (const bool programmatic : {false, true}) {
      if (!context.cuda) break;
      raw.push_back(std::make_unique<RawBurst>(context, nodes, programmatic));
      ways.push_back({Kind::kRaw, programmatic ? "a graph, programmatic edges" : "a graph",
                      [&of = *raw.back()] { return of.Run(); }});
    }
    const auto add = [&](const char* name, const ps::CompileOptions& options) {
      ours.push_back(std::make_unique<Burst>(context, nodes, options));
      ways.push_back({Kind::kPenstock, name, [&of = *ours.back()] { return of.Run(); }});
    };
    add("Penstock in order", {.in_order = true, .mode = ps::Mode::kGraph});
    add("Penstock in order, 2 slots", {.slots = 2, .in_order = true, .mode = ps::Mode::kGraph});
    add("Penstock, one slot", {.slots = 1, .mode = ps::Mode::kGraph});
    Measure(ways, 2, context.options.repeats);
    if (!context.cuda) continue;
    const std::string name = "20 x a chain of " + Count(nodes);
    report.Compare(name, "us", SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1),
                   SpreadOf(ways[2], &Sample::total, 1), 1.02);
    report.Details(name, "us", ways, 1);
  }
}

struct Part {
  const char* name;
  const char* title;
  const char* note;
  void (*measure)(Context&, Report&);
};
constexpr Part kParts[] = {
    {"wide", "Very wide graphs",
     "Penstock has one slot and graph mode; memory: what 8 more take, each launched once, divided by 8.", MeasureWide},
    {"buffers", "Many bound device buffers", "One slot.", MeasureBuffers},
    {"auto", "Mode::kAuto", "One run at a time, with the default options.", MeasureAuto},
    {"bursts", "Bursts of replays on the same memory", "Graph mode; 16 slots by default up to 64 nodes, else 2.",
     MeasureBursts},
};

int Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20226);
  Context context{options, cuda, runtime, random};
  Report all("Corners");
  for (const Part& part : kParts) {
    const auto& wanted = options.parts;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), part.name) == wanted.end()) continue;
    Report report(part.title);
    report.Note(part.note);
    report.Note("Medians of " + Count(options.repeats) + " runs each, the ways in turn, on " +
                runtime.devices()[0].description + ".");
    part.measure(context, report);
    all.Append(report);
  }
  if (!cuda) {
    all.Skip(missing, "On a host device everything gave the right results.");
    return 0;
  }
  all.Publish(options);
  return 0;
}

std::vector<std::string> PartNames() {
  std::vector<std::string> names;
  for (const Part& part : kParts) names.push_back(part.name);
  return names;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(bench::ParseOptions(argc, argv, "corners", "Uses that were once far slower than the best way.",
                                           bench::PartNames()));
  });
}
