// What a host function between two kernels costs: a chain of kernels with a host function behind each but the last, by
// CUDA's own callbacks and by Penstock's Host nodes, a pair of kernel and host function at a time.
//
// The kernels have one thread each and change one device word, the host functions count. A run is right when the word
// is what the CPU makes of a seed that is drawn anew for each, and each host function was called once and in its place.
//
// By hand: callbacks as nodes of a graph, and on a stream (cudaLaunchHostFunc). For scale, a kernel that writes to
// mapped memory and polls for the answer of a thread that spins, which is how Penstock does it: no user of CUDA has
// that at hand, so it does not compete.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

__global__ void Step(uint32_t* word, uint32_t by) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // Programmatic() below; launched by hand it does not wait
#endif
  *word = *word * 3 + by;
}
void StepOnHost(uint32_t* word, uint32_t by) { *word = *word * 3 + by; }
uint32_t Expected(uint32_t seed, int pairs) {
  for (int i = 0; i <= pairs; ++i) StepOnHost(&seed, static_cast<uint32_t>(i));
  return seed;
}

// Host functions that are called in their order.
struct Counter {
  std::atomic<int> calls{0};
  std::atomic<bool> in_order{true};
  void Call(int place) {
    if (calls.fetch_add(1, std::memory_order_relaxed) != place) in_order = false;
  }
  void Check(int pairs, const std::string& who) {
    if (calls != pairs || !in_order) Fail(who + ": host functions were not called once each, in order");
    calls = 0;
  }
};

std::mt19937 rng(20261123);

// --- by hand ---

struct Place {
  Counter* counter;
  int place;
};
void CUDART_CB CallBack(void* place) {
  auto* const of = static_cast<Place*>(place);
  of->counter->Call(of->place);
}

struct Box {
  volatile uint32_t asked;
  alignas(64) volatile uint32_t answered;
};
__global__ void Ask(Box* box, uint32_t* number) {
  const uint32_t mine = ++*number;
  __threadfence_system();
  box->asked = mine;
  while (box->answered != mine) {
  }
  __threadfence_system();
}

class Raw {
 public:
  explicit Raw(int pairs)
      : pairs_(pairs), word_(MakeDeviceMemory<uint32_t>(1)), numbers_(MakeDeviceMemory<uint32_t>(1)) {
    for (int i = 0; i < pairs; ++i) places_.push_back({&counter_, i});
    Check(cudaMemset(numbers_, 0, sizeof(uint32_t)), "clearing");
    void* memory = nullptr;
    Check(cudaHostAlloc(&memory, sizeof(Box), cudaHostAllocMapped), "allocating pinned memory");
    box_ = new (memory) Box();
  }

  void AddKernel(int i) {
    uint32_t by = static_cast<uint32_t>(i);
    void* args[] = {&word_, &by};
    AddKernelNode(reinterpret_cast<const void*>(&Step), args);
  }
  void AddCallBack(int i) {
    const cudaHostNodeParams params{.fn = CallBack, .userData = &places_[static_cast<size_t>(i)]};
    cudaGraphNode_t node = nullptr;
    bench::Check(cudaGraphAddHostNode(&node, graph_, &last_, last_ == nullptr ? 0 : 1, &params), "adding a node");
    last_ = node;
  }
  void AddHostcall() {
    void* args[] = {&box_, &numbers_};
    AddKernelNode(reinterpret_cast<const void*>(&Ask), args);
  }
  void MakeGraph(bool polls) {
    bench::Check(cudaGraphCreate(&graph_, 0), "making a graph");
    for (int i = 0; i <= pairs_; ++i) {
      AddKernel(i);
      if (i < pairs_) polls ? AddHostcall() : AddCallBack(i);
    }
    bench::Check(cudaGraphInstantiate(&exec_, graph_, 0), "instantiating");
    bench::Check(cudaGraphUpload(exec_, stream_), "uploading");
    bench::Check(cudaStreamSynchronize(stream_), "uploading");
  }

  Sample RunGraph(bool polls) {
    Reset();
    std::thread answerer;
    std::atomic<bool> ready{false};
    if (polls) answerer = std::thread([&] { AnswerAll(ready); });
    while (polls && !ready) std::this_thread::yield();
    const Clock::time_point begin = Clock::now();
    bench::Check(cudaGraphLaunch(exec_, stream_), "launching");
    const Clock::time_point submitted = Clock::now();
    bench::Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    if (polls) answerer.join();
    return Ended(begin, submitted, end);
  }
  Sample RunStream() {
    Reset();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i <= pairs_; ++i) {
      Step<<<1, 1, 0, stream_>>>(word_, static_cast<uint32_t>(i));
      if (i < pairs_) bench::Check(cudaLaunchHostFunc(stream_, CallBack, &places_[static_cast<size_t>(i)]), "callback");
    }
    const Clock::time_point submitted = Clock::now();
    bench::Check(cudaStreamSynchronize(stream_), "waiting");
    return Ended(begin, submitted, Clock::now());
  }

 private:
  void AddKernelNode(const void* kernel, void** args) {
    const cudaKernelNodeParams params{.func = const_cast<void*>(kernel),
                                      .gridDim = dim3(1),
                                      .blockDim = dim3(1),
                                      .sharedMemBytes = 0,
                                      .kernelParams = args,
                                      .extra = nullptr};
    cudaGraphNode_t node = nullptr;
    bench::Check(cudaGraphAddKernelNode(&node, graph_, &last_, last_ == nullptr ? 0 : 1, &params), "adding a node");
    last_ = node;
  }
  void AnswerAll(std::atomic<bool>& ready) {
    uint32_t seen = box_->asked;
    ready = true;
    for (int i = 0; i < pairs_; ++i) {
      while (box_->asked == seen) {
      }
      seen = box_->asked;
      std::atomic_thread_fence(std::memory_order_acquire);
      counter_.Call(i);
      std::atomic_thread_fence(std::memory_order_release);
      box_->answered = seen;
    }
  }
  void Reset() {
    seed_ = static_cast<uint32_t>(rng());
    bench::Check(cudaMemcpy(word_, &seed_, sizeof(seed_), cudaMemcpyHostToDevice), "setting the word");
    bench::Check(cudaStreamSynchronize(stream_), "waiting");
  }
  Sample Ended(Clock::time_point begin, Clock::time_point submitted, Clock::time_point end) {
    uint32_t got = 0;
    bench::Check(cudaMemcpy(&got, word_, sizeof(got), cudaMemcpyDeviceToHost), "reading the word");
    if (got != Expected(seed_, pairs_)) Fail("raw: the word is wrong");
    counter_.Check(pairs_, "raw");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  const int pairs_;
  uint32_t* word_;
  uint32_t* numbers_;
  Box* box_ = nullptr;
  cudaStream_t stream_ = MakeStream();
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  cudaGraphNode_t last_ = nullptr;
  Counter counter_;
  std::vector<Place> places_;
  uint32_t seed_ = 0;
};

// --- Penstock ---

enum class Answer { kInline, kWorker, kParted };

class Ours {
 public:
  Ours(ps::Runtime& runtime, int pairs, Answer answer, ps::Mode mode)
      : pairs_(pairs),
        memory_(Must(runtime.MakeDeviceBuffer<uint32_t>(1))),
        pinned_(Must(runtime.MakeHostBuffer<uint32_t>(1))) {
    exec_ = std::make_unique<ps::Executable>(Must(runtime.Compile(DeclareAll(answer), {.slots = 1, .mode = mode})));
    io_ = std::make_unique<ps::Bindings>(exec_->bindings());
    io_->Set(word_, memory_);
    ps::Graph up("up"), down("down");
    in_ = up.Input<uint32_t>("in", 1, ps::kPinned), to_ = up.Output<uint32_t>("to", 1, ps::kDevice);
    from_ = down.Input<uint32_t>("from", 1, ps::kDevice), out_ = down.Output<uint32_t>("out", 1, ps::kPinned);
    up.Copy("up", in_, to_);
    down.Copy("down", from_, out_);
    up_ = std::make_unique<ps::Executable>(Must(runtime.Compile(up)));
    down_ = std::make_unique<ps::Executable>(Must(runtime.Compile(down)));
  }
  ps::Graph DeclareAll(Answer answer) {
    ps::Graph g("pairs");
    word_ = g.InOut<uint32_t>("word", 1, ps::kDevice);
    std::unique_ptr<ps::NodeRef> host;
    for (int i = 0; i <= pairs_; ++i) {
      const std::string name = std::to_string(i);
      ps::NodeRef kernel = g.Kernel("kernel" + name, Step, ps::Blocks({1, 1, 1}, {1, 1, 1}).Programmatic(),
                                    ps::ReadWrite(word_), static_cast<uint32_t>(i))
                               .HostFallback(StepOnHost);
      if (host != nullptr) kernel.After(*host);
      if (i == pairs_) break;
      ps::NodeRef node = g.Host("host" + name, [this, i] { counter_.Call(i); });
      node.After(kernel);
      if (answer == Answer::kInline) node.Inline();
      if (answer == Answer::kWorker) node.Infallible();
      host = std::make_unique<ps::NodeRef>(node);
    }
    return g;
  }

  Sample Run() {
    const auto seed = static_cast<uint32_t>(rng());
    pinned_[0] = seed;
    Launch(*up_, up_->bindings().Set(in_, pinned_).Set(to_, memory_));
    const Clock::time_point begin = Clock::now();
    ps::Run run = Must(exec_->Launch(*io_));
    const Clock::time_point submitted = Clock::now();
    Must(run.Wait());
    const Clock::time_point end = Clock::now();
    pinned_[0] = ~seed;
    Launch(*down_, down_->bindings().Set(from_, memory_).Set(out_, pinned_));
    if (pinned_[0] != Expected(seed, pairs_)) Fail("penstock: the word is wrong");
    counter_.Check(pairs_, "penstock");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }
  // Cores kept busy by runs one after the other.
  double Cores() {
    const std::clock_t cpu = std::clock();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < 200; ++i) Must(Must(exec_->Launch(*io_)).Wait());
    const double wall = Microseconds(Clock::now() - begin);
    counter_.calls = 0;
    counter_.in_order = true;
    return static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC * 1e6 / wall;
  }

 private:
  static void Launch(ps::Executable& exec, const ps::Bindings& io) { Must(Must(exec.Launch(io)).Wait()); }

  const int pairs_;
  ps::DeviceBuffer<uint32_t> memory_;
  ps::HostBuffer<uint32_t> pinned_;
  Counter counter_;
  ps::BufferHandle<uint32_t> word_, in_, to_, from_, out_;
  std::unique_ptr<ps::Executable> exec_, up_, down_;
  std::unique_ptr<ps::Bindings> io_;
};

struct OurWay {
  const char* name;
  Answer answer;
  ps::Mode mode;
};
constexpr OurWay kOurs[] = {{"penstock: graph, inline", Answer::kInline, ps::Mode::kGraph},
                            {"penstock: graph, on a worker", Answer::kWorker, ps::Mode::kGraph},
                            {"penstock: graph, parted", Answer::kParted, ps::Mode::kGraph},
                            {"penstock: stream, inline", Answer::kInline, ps::Mode::kStream},
                            {"penstock: stream, on a worker", Answer::kWorker, ps::Mode::kStream},
                            {"penstock: stream, parted", Answer::kParted, ps::Mode::kStream}};

int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv, "host_node", "What a host function between two kernels costs.");
  const int pairs = options.quick ? 10 : 100;
  const std::string no_device = WhyNoDevice();
  ps::Runtime runtime = Must(ps::Runtime::Create(no_device.empty() ? ps::RuntimeOptions{.devices = "cuda:0"}
                                                                   : ps::RuntimeOptions{.devices = "host"}));
  std::vector<Way> ways;
  Report report("A host function between two kernels");
  if (no_device.empty()) {
    const auto add = [&](Kind kind, const char* name, bool graph, bool polls) {
      auto raw = std::make_shared<Raw>(pairs);
      if (graph) raw->MakeGraph(polls);
      ways.push_back({kind, name, [=] { return graph ? raw->RunGraph(polls) : raw->RunStream(); }});
    };
    add(Kind::kRaw, "raw: callback nodes in a graph", true, false);
    add(Kind::kRaw, "raw: callbacks on a stream", false, false);
    add(Kind::kScale, "by hand: a polling kernel and a spinning thread", true, true);
  }
  std::vector<std::shared_ptr<Ours>> ours;
  for (const OurWay& way : kOurs) {
    ours.push_back(std::make_shared<Ours>(runtime, pairs, way.answer, way.mode));
    ways.push_back({Kind::kPenstock, way.name, [of = ours.back()] { return of->Run(); }});
  }
  Measure(ways, 3, options.repeats);
  if (!no_device.empty()) {
    report.Skip(no_device, "the Penstock half ran on a host device and its results are right");
    return 0;
  }
  const double scale = 1.0 / pairs;
  const Spread raw = SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, scale);
  for (const OurWay& way : kOurs) {
    const Spread of = SpreadOf(Find(ways, way.name), &Sample::total, scale);
    report.Compare(std::string(way.name) + ", a pair", "us", raw, of, 0);
    const double most = way.answer == Answer::kInline ? 4.5 : 6;
    if (way.mode == ps::Mode::kGraph && way.answer != Answer::kParted) {
      report.Alone(
          std::string(way.name) + ", a pair, against a figure", "us", of,
          "≤ " + std::string(way.answer == Answer::kInline ? "4.5" : "6") + (of.median <= most ? ", met" : ", missed"));
    }
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    char text[160];
    std::snprintf(text, sizeof text, "%s: %.2f cores busy while runs follow each other, the caller's among them.",
                  kOurs[i].name, ours[i]->Cores());
    report.Note(text);
  }
  report.Details("a pair", "us", ways, scale);
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] { return bench::Main(argc, argv); });
}
