// What replaying a random DAG costs: 16 x 32 tasks of 20 us, each of which reads what one to three tasks of the row
// before have written: as CUDA graphs made by hand and with Penstock. Nothing can be faster than a row after the other,
// each as long as a task.
//
// By hand the graph is built node by node with those edges; the same behind one root, which CUDA launches faster than
// many; and captured from 16 streams, one a column, and from 8, with an event where a task reads another column. Both
// halves run one kernel of one thread on the same device words: bound to Penstock's graph, given to the raw ones. The
// first row's input is drawn anew and all words are poisoned before each run; each word is compared with the CPU's.
// Timed: from before the launch to its return (submit), and until the work is done (total).
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

constexpr int kWidth = 16;
constexpr uint64_t kTaskNs = 20'000;
constexpr uint32_t kPoison = 0xDEADBEEF;

PENSTOCK_HOST_DEVICE inline uint32_t Made(uint32_t own, uint32_t a, uint32_t b, uint32_t c) {
  return own * 2654435761u + a * 3 + b * 5 + c * 7;
}

__global__ void TaskKernel(uint32_t own, const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* out) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < kTaskNs);
  *out = Made(own, *a, *b, *c);
}

// Task t writes word t + 1; word 0 is the input of the first row.
struct Dag {
  int rows;
  std::vector<uint32_t> own;
  std::vector<std::array<int, 3>> reads;  // words

  Dag(int rows_, std::mt19937& random) : rows(rows_) {
    for (int t = 0; t < rows * kWidth; ++t) {
      own.push_back(static_cast<uint32_t>(random()));
      std::array<int, 3> words{};
      const int first = (t / kWidth - 1) * kWidth + 1, many = 1 + static_cast<int>(random() % 3);
      for (int r = 0; t >= kWidth && r < 3; ++r) {
        words[r] = r < many ? first + static_cast<int>(random() % kWidth) : words[0];
      }
      reads.push_back(words);
    }
  }
  int tasks() const { return rows * kWidth; }
  // Tasks that task t comes after, each once.
  std::vector<int> Before(int t) const {
    std::vector<int> before;
    for (const int word : reads[static_cast<size_t>(t)]) {
      if (word > 0 && std::find(before.begin(), before.end(), word - 1) == before.end()) before.push_back(word - 1);
    }
    return before;
  }
  std::vector<uint32_t> OnCpu(uint32_t input) const {
    std::vector<uint32_t> words{input};
    for (size_t t = 0; t < own.size(); ++t) {
      const auto& [a, b, c] = reads[t];
      words.push_back(
          Made(own[t], words[static_cast<size_t>(a)], words[static_cast<size_t>(b)], words[static_cast<size_t>(c)]));
    }
    return words;
  }
};

// One instantiated graph with its stream and event.
class RawDag {
 public:
  explicit RawDag(cudaGraph_t graph) : graph_(graph) {
    Check(cudaGraphInstantiate(&exec_, graph_, 0), "instantiating a graph");
    Check(cudaGraphUpload(exec_, stream_), "uploading a graph");
    Check(cudaStreamSynchronize(stream_), "uploading a graph");
  }
  RawDag(const RawDag&) = delete;
  ~RawDag() {
    (void)cudaGraphExecDestroy(exec_);
    (void)cudaGraphDestroy(graph_);
    (void)cudaEventDestroy(done_);
    (void)cudaStreamDestroy(stream_);
  }

  Sample Run() const {
    Sample sample;
    const Clock::time_point begin = Clock::now();
    int failed = cudaGraphLaunch(exec_, stream_);
    failed |= cudaEventRecord(done_, stream_);
    sample.submit = Microseconds(Clock::now() - begin);
    cudaError_t code;
    while ((code = cudaEventQuery(done_)) == cudaErrorNotReady) {
    }
    sample.total = Microseconds(Clock::now() - begin);
    if ((failed | code) != 0) Fail("a raw replay failed");
    return sample;
  }

  static cudaGraph_t Built(const Dag& dag, uint32_t* words, bool one_root) {
    cudaGraph_t graph = nullptr;
    Check(cudaGraphCreate(&graph, 0), "creating a graph");
    cudaGraphNode_t root = nullptr;
    if (one_root) Check(cudaGraphAddEmptyNode(&root, graph, nullptr, 0), "adding a node");
    std::vector<cudaGraphNode_t> nodes(static_cast<size_t>(dag.tasks()));
    for (int t = 0; t < dag.tasks(); ++t) {
      std::vector<cudaGraphNode_t> after;
      for (const int before : dag.Before(t)) after.push_back(nodes[static_cast<size_t>(before)]);
      if (after.empty() && one_root) after.push_back(root);
      Arguments arguments(dag, t, words);
      cudaKernelNodeParams params{};
      params.func = reinterpret_cast<void*>(&TaskKernel);
      params.gridDim = params.blockDim = dim3(1);
      params.kernelParams = arguments.argv.data();
      Check(cudaGraphAddKernelNode(&nodes[static_cast<size_t>(t)], graph, after.data(), after.size(), &params),
            "adding a node");
    }
    return graph;
  }

  static cudaGraph_t Captured(const Dag& dag, uint32_t* words, int streams) {
    std::vector<cudaStream_t> lanes;
    for (int l = 0; l < streams; ++l) lanes.push_back(MakeStream());
    std::vector<cudaEvent_t> events;
    const auto record = [&](cudaStream_t on) {
      events.push_back(MakeEvent());
      Check(cudaEventRecord(events.back(), on), "recording an event");
      return events.back();
    };
    Check(cudaStreamBeginCapture(lanes[0], cudaStreamCaptureModeThreadLocal), "beginning a capture");
    const cudaEvent_t fork = record(lanes[0]);
    for (int l = 1; l < streams; ++l) Check(cudaStreamWaitEvent(lanes[static_cast<size_t>(l)], fork, 0), "forking");
    std::vector<cudaEvent_t> done;
    const auto lane_of = [&](int t) { return lanes[static_cast<size_t>(t % kWidth % streams)]; };
    for (int t = 0; t < dag.tasks(); ++t) {
      for (const int before : dag.Before(t)) {
        if (lane_of(before) == lane_of(t)) continue;
        Check(cudaStreamWaitEvent(lane_of(t), done[static_cast<size_t>(before)], 0), "waiting for an event");
      }
      Arguments arguments(dag, t, words);
      Check(cudaLaunchKernel(reinterpret_cast<const void*>(&TaskKernel), dim3(1), dim3(1), arguments.argv.data(), 0,
                             lane_of(t)),
            "launching a kernel");
      done.push_back(record(lane_of(t)));
    }
    for (int l = 1; l < streams; ++l) {
      Check(cudaStreamWaitEvent(lanes[0], record(lanes[static_cast<size_t>(l)]), 0), "joining");
    }
    cudaGraph_t graph = nullptr;
    Check(cudaStreamEndCapture(lanes[0], &graph), "ending a capture");
    for (const cudaEvent_t event : events) (void)cudaEventDestroy(event);
    for (const cudaStream_t lane : lanes) (void)cudaStreamDestroy(lane);
    return graph;
  }

 private:
  struct Arguments {
    uint32_t own;
    const uint32_t *a, *b, *c;
    uint32_t* out;
    std::array<void*, 5> argv;
    Arguments(const Dag& dag, int t, uint32_t* words)
        : own(dag.own[static_cast<size_t>(t)]),
          a(words + dag.reads[static_cast<size_t>(t)][0]),
          b(words + dag.reads[static_cast<size_t>(t)][1]),
          c(words + dag.reads[static_cast<size_t>(t)][2]),
          out(words + t + 1),
          argv{&own, &a, &b, &c, &out} {}
    Arguments(const Arguments&) = delete;
  };

  const cudaGraph_t graph_;
  cudaGraphExec_t exec_ = nullptr;
  const cudaStream_t stream_ = MakeStream();
  const cudaEvent_t done_ = MakeEvent();
};

// The words, and the Penstock graph that works on them.
class PenstockDag {
 public:
  PenstockDag(ps::Runtime& runtime, const Dag& dag, ps::Mode mode)
      : memory_(Must(runtime.MakeDeviceBuffer<uint32_t>(dag.tasks() + 1))) {
    ps::Graph graph("random dag");
    const auto words = graph.InOut<uint32_t>("words", dag.tasks() + 1, ps::kDevice);
    const auto word = [](int w) { return ps::Slice({w}, {1}); };
    for (int t = 0; t < dag.tasks(); ++t) {
      const auto& [a, b, c] = dag.reads[static_cast<size_t>(t)];
      graph
          .Kernel("task " + std::to_string(t), &TaskKernel, ps::Blocks({1, 1, 1}, {1, 1, 1}),
                  dag.own[static_cast<size_t>(t)], ps::Read(words, word(a)), ps::Read(words, word(b)),
                  ps::Read(words, word(c)), ps::Write(words, word(t + 1)))
          .HostTwin([](uint32_t own, const uint32_t* x, const uint32_t* y, const uint32_t* z, uint32_t* out) {
            *out = Made(own, *x, *y, *z);
          });
    }
    exec_ = Must(runtime.Compile(graph, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
    io_.Set(words, memory_);
    all_ = Transfer(runtime, dag.tasks() + 1);
  }

  Sample Run() {
    Sample sample;
    const Clock::time_point begin = Clock::now();
    ps::Run run = Must(exec_.Launch(io_));
    sample.submit = Microseconds(Clock::now() - begin);
    Must(run.Wait());
    sample.total = Microseconds(Clock::now() - begin);
    return sample;
  }
  uint32_t* words() const { return memory_.data(); }
  // While no clock runs.
  void Fill(uint32_t input) {
    std::fill(all_.host.begin(), all_.host.end(), kPoison);
    all_.host[0] = input;
    all_.Move(all_.up, all_.up_io.Set(all_.to, memory_).Set(all_.from_host, all_.host));
  }
  std::vector<uint32_t> Words() {
    std::fill(all_.host.begin(), all_.host.end(), kPoison);
    all_.Move(all_.down, all_.down_io.Set(all_.from, memory_).Set(all_.to_host, all_.host));
    return {all_.host.begin(), all_.host.end()};
  }
  ps::ReplayLedger ledger() const { return exec_.ledger(); }

 private:
  // All words up or down.
  struct Transfer {
    Transfer() = default;
    Transfer(ps::Runtime& runtime, int words) : host(Must(runtime.MakeHostBuffer<uint32_t>(words))) {
      ps::Graph upload("upload"), download("download");
      from_host = upload.Input<uint32_t>("host", words);
      to = upload.Output<uint32_t>("words", words, ps::kDevice);
      upload.Copy("up", ps::Read(from_host), ps::Write(to));
      from = download.Input<uint32_t>("words", words, ps::kDevice);
      to_host = download.Output<uint32_t>("host", words);
      download.Copy("down", ps::Read(from), ps::Write(to_host));
      up = Must(runtime.Compile(upload, {.slots = 1, .mode = ps::Mode::kStream}));
      down = Must(runtime.Compile(download, {.slots = 1, .mode = ps::Mode::kStream}));
      up_io = up.bindings();
      down_io = down.bindings();
    }
    static void Move(ps::Executable& exec, const ps::Bindings& io) {
      ps::Run run = Must(exec.Launch(io));
      Must(run.Wait());
    }
    ps::HostBuffer<uint32_t> host;
    ps::BufferHandle<uint32_t> from_host, to, from, to_host;
    ps::Executable up, down;
    ps::Bindings up_io, down_io;
  };

  ps::DeviceBuffer<uint32_t> memory_;
  ps::Executable exec_;
  ps::Bindings io_;
  Transfer all_;
};

void Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20281);
  const Dag dag(options.quick ? 4 : 32, random);
  PenstockDag graphs(runtime, dag, ps::Mode::kGraph), streams(runtime, dag, ps::Mode::kStream);
  std::vector<Way> ways;
  const auto add = [&](Kind kind, const std::string& name, std::function<Sample()> time) {
    ways.push_back(
        {kind, name, [&, name, time = std::move(time), mine = name == "Penstock, streams" ? &streams : &graphs] {
           const auto input = static_cast<uint32_t>(random());
           mine->Fill(input);
           const Sample sample = time();
           if (mine->Words() != dag.OnCpu(input)) Fail(name + ": wrong result");
           return sample;
         }});
  };
  if (cuda) {
    const auto add_raw = [&](const std::string& name, cudaGraph_t graph) {
      add(Kind::kRaw, name, [raw = std::make_shared<RawDag>(graph)] { return raw->Run(); });
    };
    add_raw("raw, node by node", RawDag::Built(dag, graphs.words(), false));
    add_raw("raw, node by node behind one root", RawDag::Built(dag, graphs.words(), true));
    add_raw("raw, captured from 16 streams", RawDag::Captured(dag, graphs.words(), kWidth));
    add_raw("raw, captured from 8 streams", RawDag::Captured(dag, graphs.words(), kWidth / 2));
  }
  add(Kind::kPenstock, "Penstock, graphs", [&] { return graphs.Run(); });
  add(Kind::kScale, "Penstock, streams", [&] { return streams.Run(); });
  Measure(ways, options.quick ? 1 : 3, options.repeats);
  Report report("Replaying a random DAG");
  if (!cuda) return report.Skip(missing, "On a host device the Penstock half gave the right results.");
  report.Note(std::to_string(kWidth) + " x " + std::to_string(dag.rows) +
              " tasks of 20 us, each behind one to three of "
              "the row before; no graph can take less than " +
              std::to_string(dag.rows * 20) + " us. Medians of " + std::to_string(options.repeats) +
              " runs each, the ways in turn, on " + runtime.devices()[0].description +
              ". Raw is the best of the raw ways below.");
  const auto compare = [&](const char* when, double Sample::* figure, double target) {
    report.Compare(when, "us", SpreadOf(BestRaw(ways, figure), figure, 1),
                   SpreadOf(Find(ways, "Penstock, graphs"), figure, 1), target);
  };
  compare("submit", &Sample::submit, 0);
  compare("until done", &Sample::total, 1.02);
  report.Details("replay", "us", ways, 1);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "random_dag", "What replaying a random DAG of 20 us tasks costs."));
    return 0;
  });
}
