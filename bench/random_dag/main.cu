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
#include "work.cuh"

namespace bench {
namespace {

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
  const cudaGraph_t graph_;
  cudaGraphExec_t exec_ = nullptr;
  const cudaStream_t stream_ = MakeStream();
  const cudaEvent_t done_ = MakeEvent();
};

void Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20281);
  const Dag dag(options.quick ? 4 : 32, random);
  PenstockDag graphs(runtime, dag, {.slots = 1, .mode = ps::Mode::kGraph}),
      streams(runtime, dag, {.slots = 1, .mode = ps::Mode::kStream});
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
