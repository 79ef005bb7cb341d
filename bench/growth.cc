// How what a graph costs grows with it: CPU time an edge to plan graphs of eight times as many nodes, and a node to
// compile and to run them on a host device. Everything is near the number of nodes and edges; what the ratios have
// over 1 comes from caches that are too small and from fresh pages for large vectors.
//
// Families: see kFamilies. Where each node reads all that was written before, edges are half the square of nodes.
//
// The planner has no public entry of its own, so like bench/plan.cc this looks behind include/.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/passes.h"
#include "graph/plan/plan.h"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, float*) const {}
};
struct Read1 {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const float*, float*) const {}
};

constexpr int64_t kElements = 4;
std::string Named(const char* what, int i) { return std::string(what) + std::to_string(i); }
void OnHost(std::span<float>) {}
void ReadOnHost(std::span<const float>) {}

ps::BufferHandle<float> FilledBuffer(ps::Graph& graph, const std::string& name) {
  const auto buffer = graph.Buffer<float>(name, kElements);
  graph.Fill("fill " + name, buffer, 1.f);
  return buffer;
}

void AddChain(ps::Runtime&, ps::Graph& graph, int nodes) {
  const auto x = FilledBuffer(graph, "x");
  for (int i = 0; i < nodes; ++i) graph.ParallelFor(Named("k", i), kElements, AddOne{}, ps::ReadWrite(x));
}

// One buffer read by all, each of which writes one of its own.
void AddWide(ps::Runtime&, ps::Graph& graph, int nodes) {
  const auto x = FilledBuffer(graph, "x");
  for (int i = 0; i < nodes; ++i) {
    graph.ParallelFor(Named("k", i), kElements, Read1{}, ps::Read(x),
                      ps::Write(graph.Buffer<float>(Named("y", i), kElements)));
  }
}

void AddHostChain(ps::Runtime&, ps::Graph& graph, int nodes) {
  const auto x = graph.InOut<float>("x", kElements);
  for (int i = 0; i < nodes; ++i) graph.Host(Named("h", i), OnHost, ps::ReadWrite(x));
}

void AddHostWide(ps::Runtime&, ps::Graph& graph, int nodes) {
  const auto x = graph.InOut<float>("x", kElements);
  graph.ParallelFor("first", kElements, AddOne{}, ps::ReadWrite(x));
  for (int i = 0; i < nodes; ++i) graph.Host(Named("h", i), ReadOnHost, ps::Read(x));
  graph.ParallelFor("last", kElements, AddOne{}, ps::ReadWrite(x));
}

void AddTurns(ps::Runtime&, ps::Graph& graph, int nodes) {
  const auto x = graph.InOut<float>("x", kElements);
  for (int i = 0; i < nodes; ++i) {
    if (i % 2 == 0) {
      graph.ParallelFor(Named("k", i), kElements, AddOne{}, ps::ReadWrite(x));
    } else {
      graph.Host(Named("h", i), OnHost, ps::ReadWrite(x));
    }
  }
}

// Each node after the eight before it that are powers of two away.
void AddAfters(ps::Runtime&, ps::Graph& graph, int nodes) {
  std::vector<ps::NodeRef> refs;
  for (int i = 0; i < nodes; ++i) {
    const auto x = graph.Buffer<float>(Named("x", i), kElements);
    ps::NodeRef node = graph.Fill(Named("f", i), x, 1.f);
    for (int back = 1; back <= std::min(i, 128); back *= 2) node.After(refs[static_cast<size_t>(i - back)]);
    refs.push_back(node);
  }
}

// Each node after all before it.
void AddAllBefore(ps::Runtime&, ps::Graph& graph, int nodes) {
  std::vector<ps::NodeRef> refs;
  for (int i = 0; i < nodes; ++i) {
    const auto x = graph.Buffer<float>(Named("x", i), kElements);
    ps::NodeRef node = graph.Fill(Named("f", i), x, 1.f);
    for (const ps::NodeRef& before : refs) node.After(before);
    refs.push_back(node);
  }
}

// Two kernels a tile, each tile a slice of one buffer.
void AddTiles(ps::Runtime&, ps::Graph& graph, int nodes) {
  const auto x = graph.Buffer<float>("x", int64_t{4} * nodes);
  for (int i = 0; i < nodes / 2; ++i) {
    graph.Fill(Named("f", i), ps::Write(x, ps::Slice({int64_t{8} * i}, {8})), 1.f);
  }
  for (int i = 0; i < nodes / 2; ++i) {
    graph.ParallelFor(Named("k", i), kElements, AddOne{}, ps::ReadWrite(x, ps::Slice({int64_t{8} * i}, {8})));
  }
}

void AddStates(ps::Runtime& runtime, ps::Graph& graph, int nodes) {
  for (int i = 0; i < nodes; ++i) {
    const auto state = Must(runtime.MakeState<float>(Named("s", i), kElements));
    graph.ParallelFor(Named("k", i), kElements, AddOne{}, ps::ReadWrite(state));
  }
}

struct Family {
  const char* name;
  std::function<void(ps::Runtime&, ps::Graph&, int)> add;
  bool runs;  // bound memory is one InOut of kElements, "x"
  bool dense = false;  // planned only
};
const Family kFamilies[] = {
    {"kernels in a chain", AddChain, false},
    {"kernels side by side", AddWide, false},
    {"Host nodes in a chain", AddHostChain, true},
    {"Host nodes side by side", AddHostWide, true},
    {"kernels and Host nodes in turns", AddTurns, true},
    {"After eight of those before", AddAfters, false},
    {"After all before", AddAllBefore, false, true},
    {"tiles of one buffer", AddTiles, false},
    {"States side by side", AddStates, false},
};

// Of all threads of the process, so that a busy machine, which takes them off its cores, is no matter of the graph.
double CpuTime() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}
double MicrosecondsOf(const std::function<void()>& work) {
  const double begin = CpuTime();
  work();
  return CpuTime() - begin;
}

// The least of some repeats.
double LeastOf(int repeats, const std::function<void()>& work) {
  double least = MicrosecondsOf(work);
  for (int r = 1; r < repeats; ++r) least = std::min(least, MicrosecondsOf(work));
  return least;
}

struct Cost {
  double plan = 0, compile = 0, run = 0;  // microseconds: an edge, a node, a node
};

Cost CostOf(ps::Runtime& runtime, const Family& family, int nodes, int repeats) {
  ps::Graph graph(family.name);
  family.add(runtime, graph, nodes);
  penstock::graph::PlanOptions options;
  options.devices.push_back({.name = "host:0"});
  for (const penstock::BufferDecl& buffer : graph.model().buffers) {
    if (buffer.state != nullptr) options.runtime = buffer.state->runtime;
  }
  penstock::graph::Draft draft(graph.model(), options);
  Validate(draft.records, draft.findings);
  DeclaredEdges(draft.records, draft.checked);
  const double edges = static_cast<double>(std::max(draft.checked.declared.items(), graph.model().nodes.size()));
  Cost cost;
  cost.plan = LeastOf(repeats, [&] { Must(penstock::graph::MakePlan(graph.model(), options).status()); }) / edges;
  if (family.dense) return cost;
  cost.compile =
      LeastOf(repeats, [&] { Must(runtime.Compile(graph, {.slots = 1, .mode = ps::Mode::kGraph}).status()); }) / nodes;
  ps::Executable exec = Must(runtime.Compile(graph, {.slots = 1, .mode = ps::Mode::kStream}));
  std::vector<float> memory(kElements);
  ps::Bindings io = exec.bindings();
  if (family.runs) io.Set(ps::BufferHandle<float>(graph.model().serial, 0), memory);
  cost.run = LeastOf(repeats, [&] { Must(Must(exec.Launch(io)).Wait()); }) / nodes;
  return cost;
}

void Main(const Options& options) {
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host", .workers = 1, .host_device_threads = 1}));
  const int small = options.quick ? 20 : 1000, large = 8 * small, repeats = options.quick ? 1 : 5;
  Report report("Growth");
  report.Note("CPU time of all threads, the least of " + std::to_string(repeats) + " repeats. The ratio is of " +
              std::to_string(large) + " nodes to " + std::to_string(small) + "; growth as the work is 1.");
  for (const Family& family : kFamilies) {
    const int most = family.dense ? large / 4 : large;
    const Cost a = CostOf(runtime, family, small, repeats), b = CostOf(runtime, family, most, repeats);
    const auto row = [&](const char* what, const char* unit, double at_small, double at_large) {
      if (at_small <= 0) return;
      report.Alone(std::string(family.name) + ": " + what + ", " + std::to_string(small) + " nodes", unit,
                   SpreadOf({at_small}), "-");
      report.Alone(std::string(family.name) + ": " + what + ", " + std::to_string(most) + " nodes", unit,
                   SpreadOf({at_large}), "-");
      report.Alone(std::string(family.name) + ": " + what + ", ratio", "times", SpreadOf({at_large / at_small}),
                   "at most 2");
    };
    row("plan", "us an edge", a.plan, b.plan);
    row("Compile with graphs", "us a node", a.compile, b.compile);
    row("run", "us a node", a.run, b.run);
  }
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "growth", "How what graphs cost grows with them."));
    return 0;
  });
}
