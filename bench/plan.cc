// What compiling a graph costs a node: Runtime::Compile on a host device, which plans the graph (checks, edges, places,
// lanes, memory, reduction), makes the program from the plan, and one slot with its streams, events and memory.
//
// Planning has no public entry of its own; what a user waits for is Compile, and on a host device its parts beside the
// planner are small and linear. So the figures bound the planner from above.
//
// Shapes: a chain on one buffer; eight chains side by side; the three-point stencil, eight wide; and random layers of
// 32 nodes, each reading one to four buffers of the layer before and writing one of its own, so that lifetimes are
// packed.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

using Buffer = ps::BufferHandle<float>;

struct Touch {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, float*) const {}
};
struct Read1 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, float*) const {}
};
struct Read3 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, const float*, const float*, float*) const {}
};
struct Read4 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, const float*, const float*, const float*, float*) const {}
};

constexpr int64_t kElements = 64;
std::string Node(int i) { return "node " + std::to_string(i); }
std::vector<Buffer> Buffers(ps::Graph& graph, int count, const char* name) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(graph.Buffer<float>(name + std::to_string(i), kElements));
  return buffers;
}

// Chains side by side, node after node in turn.
void AddChains(ps::Graph& graph, int nodes, int width) {
  const std::vector<Buffer> cells = Buffers(graph, width, "cell ");
  for (int i = 0; i < width; ++i) graph.Fill("fill " + std::to_string(i), cells[static_cast<size_t>(i)], 1.f);
  for (int i = width; i < nodes; ++i) {
    graph.ParallelFor(Node(i), kElements, Touch{}, ps::ReadWrite(cells[static_cast<size_t>(i % width)]));
  }
}

void AddStencil(ps::Graph& graph, int nodes) {
  constexpr int kWidth = 8;
  const std::vector<Buffer> rows[] = {Buffers(graph, kWidth, "even "), Buffers(graph, kWidth, "odd ")};
  for (int i = 0; i < nodes; ++i) {
    const auto at = static_cast<size_t>(i % kWidth);
    const Buffer to = rows[i / kWidth % 2][at];
    if (i < kWidth) {
      graph.Fill(Node(i), to, 1.f);
      continue;
    }
    const std::vector<Buffer>& from = rows[(i / kWidth + 1) % 2];
    graph.ParallelFor(Node(i), kElements, Read3{}, ps::Read(from[at == 0 ? 0 : at - 1]), ps::Read(from[at]),
                      ps::Read(from[std::min<size_t>(at + 1, kWidth - 1)]), ps::Write(to));
  }
}

void AddLayers(ps::Graph& graph, int nodes) {
  constexpr int kLayer = 32;
  std::mt19937 random(4711);
  const std::vector<Buffer> outs = Buffers(graph, nodes, "out ");
  for (int i = 0; i < nodes; ++i) {
    const Buffer to = outs[static_cast<size_t>(i)];
    if (i < kLayer) {
      graph.Fill(Node(i), to, 1.f);
      continue;
    }
    const auto pick = [&] {
      return ps::Read(outs[static_cast<size_t>((i / kLayer - 1) * kLayer) + random() % kLayer]);
    };
    switch (random() % 3) {
      case 0: graph.ParallelFor(Node(i), kElements, Read1{}, pick(), ps::Write(to)); break;
      case 1: graph.ParallelFor(Node(i), kElements, Read3{}, pick(), pick(), pick(), ps::Write(to)); break;
      default: graph.ParallelFor(Node(i), kElements, Read4{}, pick(), pick(), pick(), pick(), ps::Write(to)); break;
    }
  }
}

struct Shape {
  const char* name;
  std::function<void(ps::Graph&, int)> add;
};
const Shape kShapes[] = {
    {"chain", [](ps::Graph& graph, int nodes) { AddChains(graph, nodes, 1); }},
    {"8 wide", [](ps::Graph& graph, int nodes) { AddChains(graph, nodes, 8); }},
    {"stencil", AddStencil},
    {"random layers", AddLayers},
};

void Compile(benchmark::State& state, const Shape& shape, int nodes, ps::Runtime& runtime) {
  ps::Graph graph(shape.name);
  shape.add(graph, nodes);
  for (auto _ : state) {
    absl::StatusOr<ps::Executable> exec = runtime.Compile(graph, {.slots = 1});
    Must(exec.status());
    state.PauseTiming();
    *exec = ps::Executable();
    state.ResumeTiming();
  }
}

// Gathers the repetitions of each benchmark.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      times_[run.run_name.function_name].push_back(1e6 * run.real_accumulated_time /
                                                   static_cast<double>(run.iterations));
    }
  }
  std::vector<double> TimesOf(const std::string& name) { return times_[name]; }

 private:
  std::map<std::string, std::vector<double>> times_;  // microseconds an iteration
};

void Main(const Options& options) {
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1}));
  const std::vector<int> counts = options.quick ? std::vector{50} : std::vector{1000, 10000};
  const auto title = [](const Shape& shape, int nodes) {
    return std::string(shape.name) + ", " + std::to_string(nodes) + " nodes";
  };
  for (const Shape& shape : kShapes) {
    for (const int nodes : counts) {
      benchmark::RegisterBenchmark(
          title(shape, nodes).c_str(),
          [&shape, nodes, &runtime](benchmark::State& state) { Compile(state, shape, nodes, runtime); })
          ->Repetitions(options.quick ? 1 : 7)
          ->MinTime(options.quick ? 0.001 : 0.05);
    }
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);

  Report report("Compiling a graph");
  report.Note(
      "Microseconds a node of Runtime::Compile on a host device with one slot: planning, and what the plan needs "
      "to run.");
  for (const Shape& shape : kShapes) {
    for (const int nodes : counts) {
      std::vector<double> times = collector.TimesOf(title(shape, nodes));
      for (double& time : times) time /= nodes;
      if (!times.empty())
        report.Alone(title(shape, nodes), "us a node", SpreadOf(times),
                     nodes == 10000 ? "1 for the planner (later)" : "-");
    }
  }
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  bench::Main(
      bench::ParseOptions(argc, argv, "plan", "What compiling a graph costs; takes --benchmark_filter and the like."));
}
