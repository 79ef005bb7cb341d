// Replays of a graph over two GPUs: chains of small kernels that stay on their GPU, or change it at every tenth kernel
// with the 4 KiB that they work on. What a launch costs the thread, and how long a replay takes.
//
// Raw ways: one graph captured from a stream a chain (events at crossings become edges), with copies at crossings; the
// same with kernels that read the other GPU's memory instead of a copy; and streams and events with copies. The result
// is compared with the host's after each replay.
//
// With fewer than two GPUs the Penstock half runs on two host devices, for its results only.
#include <algorithm>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

constexpr int64_t kWords = 1024;
constexpr int kChains = 4, kEach = 250, kCrossEvery = 10;

PS_HOST_DEVICE uint32_t Next(uint32_t x, uint32_t k) { return x * 3 + k; }
struct Step {
  uint32_t k;
  PS_HOST_DEVICE void operator()(int64_t i, uint32_t* x) const { x[i] = Next(x[i], k); }
};
struct Same {
  PS_HOST_DEVICE void operator()(int64_t i, const uint32_t* from, uint32_t* to) const { to[i] = from[i]; }
};
__global__ void RawStep(const uint32_t* from, uint32_t* to, uint32_t k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kWords) to[i] = Next(from[i], k);
}

// The device of a chain's kernel.
int DeviceOf(int chain, int kernel, bool crosses) { return (chain + (crosses ? kernel / kCrossEvery : 0)) % 2; }

uint32_t Expected(uint32_t x) {
  for (int k = 0; k < kEach; ++k) x = Next(x, static_cast<uint32_t>(k));
  return x;
}
void CheckResult(const std::string& way, const std::vector<uint32_t>& found, uint32_t chain) {
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != Expected(static_cast<uint32_t>(i) + chain))
      Fail(way + ": chain " + std::to_string(chain) + " is wrong");
  }
}

class Raw {
 public:
  explicit Raw(bool crosses) : crosses_(crosses) {
    for (int d = 0; d < 2; ++d) {
      Choose(d);
      (void)cudaDeviceEnablePeerAccess(1 - d, 0);
      (void)cudaGetLastError();  // already enabled
    }
    chains_.resize(kChains);
    for (Chain& chain : chains_) {
      for (int d = 0; d < 2; ++d) {
        Choose(d);
        chain.memory[d] = MakeDeviceMemory<uint32_t>(kWords);
        chain.streams[d] = MakeStream();
        chain.events[d] = MakeEvent();
      }
    }
    Choose(0);
    fork_ = MakeEvent();
  }
  Raw(const Raw&) = delete;
  ~Raw() {
    for (const cudaGraphExec_t exec : graphs_) {
      if (exec != nullptr) cudaGraphExecDestroy(exec);
    }
    for (const Chain& chain : chains_) {
      for (int d = 0; d < 2; ++d) cudaFree(chain.memory[d]), cudaStreamDestroy(chain.streams[d]);
    }
  }

  Sample Run(bool as_graph, bool reads) {
    std::vector<uint32_t> start(kWords);
    for (int c = 0; c < kChains; ++c) {
      for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<uint32_t>(i) + static_cast<uint32_t>(c);
      Check(cudaMemcpy(At(c).memory[DeviceOf(c, 0, crosses_)], start.data(), kWords * 4, cudaMemcpyHostToDevice),
            "setting a chain");
    }
    const cudaGraphExec_t graph = as_graph ? GraphOf(reads) : nullptr;
    Choose(0);
    const Clock::time_point begin = Clock::now();
    if (as_graph) Check(cudaGraphLaunch(graph, Main()), "launching");
    else Submit(reads);
    const Clock::time_point submitted = Clock::now();
    for (const Chain& chain : chains_) {
      for (const cudaStream_t stream : chain.streams) Check(cudaStreamSynchronize(stream), "waiting");
    }
    const Clock::time_point end = Clock::now();
    for (int c = 0; c < kChains; ++c) {
      std::vector<uint32_t> found(kWords);
      const int last = DeviceOf(c, kEach - 1, crosses_);
      Check(cudaMemcpy(found.data(), At(c).memory[last], kWords * 4, cudaMemcpyDeviceToHost), "reading");
      CheckResult("by hand", found, static_cast<uint32_t>(c));
    }
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  struct Chain {
    uint32_t* memory[2];
    cudaStream_t streams[2];
    cudaEvent_t events[2];
  };
  Chain& At(int c) { return chains_[static_cast<size_t>(c)]; }
  cudaStream_t Main() { return At(0).streams[0]; }

  void Submit(bool reads) {
    for (int c = 0; c < kChains; ++c) {
      Chain& chain = At(c);
      for (int k = 0; k < kEach; ++k) {
        const int d = DeviceOf(c, k, crosses_), before = k == 0 ? d : DeviceOf(c, k - 1, crosses_);
        const uint32_t* from = chain.memory[d];
        Choose(d);
        if (before != d) {
          Check(cudaEventRecord(chain.events[before], chain.streams[before]), "recording");
          Check(cudaStreamWaitEvent(chain.streams[d], chain.events[before], 0), "waiting");
          if (reads) from = chain.memory[before];
          else
            Check(
                cudaMemcpyAsync(chain.memory[d], chain.memory[before], kWords * 4, cudaMemcpyDefault, chain.streams[d]),
                "copying");
        }
        RawStep<<<kWords / 256, 256, 0, chain.streams[d]>>>(from, chain.memory[d], static_cast<uint32_t>(k));
      }
    }
  }

  cudaGraphExec_t GraphOf(bool reads) {
    cudaGraphExec_t& exec = graphs_[reads ? 1 : 0];
    if (exec != nullptr) return exec;
    Choose(0);
    Check(cudaStreamBeginCapture(Main(), cudaStreamCaptureModeRelaxed), "capturing");
    Check(cudaEventRecord(fork_, Main()), "recording");
    for (Chain& chain : chains_) {
      for (const cudaStream_t stream : chain.streams) {
        if (stream != Main()) Check(cudaStreamWaitEvent(stream, fork_, 0), "waiting");
      }
    }
    Submit(reads);
    for (Chain& chain : chains_) {
      for (int d = 0; d < 2; ++d) {
        if (chain.streams[d] == Main()) continue;
        Choose(d);
        Check(cudaEventRecord(chain.events[d], chain.streams[d]), "recording");
        Check(cudaStreamWaitEvent(Main(), chain.events[d], 0), "waiting");
      }
    }
    cudaGraph_t graph = nullptr;
    Choose(0);
    Check(cudaStreamEndCapture(Main(), &graph), "capturing");
    Check(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    Check(cudaGraphUpload(exec, Main()), "uploading");
    Check(cudaStreamSynchronize(Main()), "uploading");
    cudaGraphDestroy(graph);
    return exec;
  }

  const bool crosses_;
  std::vector<Chain> chains_;
  cudaEvent_t fork_ = nullptr;
  cudaGraphExec_t graphs_[2] = {};  // with copies, with kernels that read
};

// The chains' memory is bound, which parts no graph.
class Penstock {
 public:
  Penstock(ps::Runtime& runtime, bool crosses, ps::Mode mode) : host_(kChains, std::vector<uint32_t>(kWords)) {
    ps::Graph set("set"), graph("chains"), get("get");
    std::vector<ps::BufferHandle<uint32_t>> from, to, x, in, out;
    for (int c = 0; c < kChains; ++c) {
      const std::string name = std::to_string(c);
      const int home = DeviceOf(c, 0, crosses);
      memory_.push_back(Must(runtime.MakeDeviceBuffer<uint32_t>(kWords, home)));
      in.push_back(set.Input<uint32_t>("in" + name, kWords));
      to.push_back(set.Output<uint32_t>("x" + name, kWords, ps::kDevice));
      set.ParallelFor("set" + name, kWords, Same{}, ps::Read(in.back()), ps::Write(to.back())).On(home);
      x.push_back(graph.InOut<uint32_t>("x" + name, kWords, ps::kDevice));
      for (int k = 0; k < kEach; ++k) {
        graph
            .ParallelFor("k" + name + "." + std::to_string(k), kWords, Step{static_cast<uint32_t>(k)},
                         ps::ReadWrite(x.back()))
            .On(DeviceOf(c, k, crosses));
      }
      from.push_back(get.Input<uint32_t>("x" + name, kWords, ps::kDevice));
      out.push_back(get.Output<uint32_t>("out" + name, kWords));
      get.ParallelFor("get" + name, kWords, Same{}, ps::Read(from.back()), ps::Write(out.back())).On(home);
    }
    set_ = Must(runtime.Compile(set, {.slots = 1}));
    exec_ = Must(runtime.Compile(graph, {.slots = 1, .mode = mode}));
    get_ = Must(runtime.Compile(get, {.slots = 1}));
    set_io_ = set_.bindings(), io_ = exec_.bindings(), get_io_ = get_.bindings();
    for (size_t c = 0; c < kChains; ++c) {
      set_io_.Set(in[c], host_[c]).Set(to[c], memory_[c]);
      io_.Set(x[c], memory_[c]);
      get_io_.Set(from[c], memory_[c]).Set(out[c], host_[c]);
    }
  }

  Sample Run() {
    for (size_t c = 0; c < kChains; ++c) {
      for (size_t i = 0; i < host_[c].size(); ++i) host_[c][i] = static_cast<uint32_t>(i + c);
    }
    Must(Must(set_.Launch(set_io_)).Wait());
    const Clock::time_point begin = Clock::now();
    const ps::Run run = Must(exec_.Launch(io_));
    const Clock::time_point submitted = Clock::now();
    Must(run.Wait());
    const Clock::time_point end = Clock::now();
    for (std::vector<uint32_t>& of : host_) std::fill(of.begin(), of.end(), 0x5A5A5A5A);
    Must(Must(get_.Launch(get_io_)).Wait());
    for (size_t c = 0; c < kChains; ++c) CheckResult("Penstock", host_[c], static_cast<uint32_t>(c));
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  std::vector<std::vector<uint32_t>> host_;
  std::vector<ps::DeviceBuffer<uint32_t>> memory_;
  ps::Executable set_, exec_, get_;
  ps::Bindings set_io_, io_, get_io_;
};

int Main(const Options& options) {
  int count = 0;
  if (WhyNoDevice().empty()) Check(cudaGetDeviceCount(&count), "counting devices");
  Report report("Graphs over two GPUs");
  if (count < 2) {
    ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host:2"}));
    for (const bool crosses : {false, true}) Penstock(runtime, crosses, ps::Mode::kGraph).Run();
    report.Skip("fewer than two GPUs", "On host devices the Penstock half gave the right results.");
    return 0;
  }
  ps::Runtime two = Must(ps::Runtime::Create({.devices = "cuda:0,1"}));
  for (const bool crosses : {false, true}) {
    Raw raw(crosses);
    Penstock graphs(two, crosses, ps::Mode::kGraph), streams(two, crosses, ps::Mode::kStream);
    std::vector<Way> ways = {
        {Kind::kRaw, "by hand in one graph, copies", [&] { return raw.Run(true, false); }},
        {Kind::kRaw, "by hand in one graph, kernels that read the other's memory", [&] { return raw.Run(true, true); }},
        {Kind::kRaw, "by hand on streams", [&] { return raw.Run(false, false); }},
        {Kind::kPenstock, "Penstock", [&] { return graphs.Run(); }},
        {Kind::kScale, "Penstock on streams", [&] { return streams.Run(); }},
    };
    Measure(ways, 2, options.repeats);
    const std::string name = std::to_string(kChains) + " chains of " + std::to_string(kEach) + " kernels, " +
                             (crosses ? "crossing at every tenth" : "apart");
    const Spread copies = SpreadOf(ways[0], &Sample::total, 1);
    report.Compare(name + ", a replay; raw: one graph with copies", "us", copies,
                   SpreadOf(Find(ways, "Penstock"), &Sample::total, 1), 1.05);
    report.Compare(name + ", a replay; raw: the best by hand", "us",
                   SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1),
                   SpreadOf(Find(ways, "Penstock"), &Sample::total, 1), 0);
    report.Compare(name + ", a launch; raw: one graph with copies", "us", SpreadOf(ways[0], &Sample::submit, 1),
                   SpreadOf(Find(ways, "Penstock"), &Sample::submit, 1), 1);
    report.Details(name, "us", ways, 1);
  }
  report.Note("Medians of " + std::to_string(options.repeats) + " rounds, the ways in turn, on two " +
              two.devices()[0].description + "; the result is checked after each.");
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "crossings", "Replays of graphs over two GPUs, by hand and with Penstock."));
  });
}
