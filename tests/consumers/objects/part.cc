// A plugin: declares part of a graph, and runs one of its own. Built twice, so that names that stand for different code
// meet in one process. ADDS: what its steps add, and OWN_NAME: what it calls itself.
#include <vector>

#include "part.h"
#include "penstock/ps.h"

struct Step {  // the other plugin's Step adds something else
  PS_HOST_DEVICE void operator()(int64_t i, float by, float* x) const { x[i] += by * ADDS; }
};

namespace {

struct Pixel {
  float v;
};
struct Hidden {
  PS_HOST_DEVICE void operator()(int64_t i, float* x) const { x[i] += ADDS; }
};

// Of the program's own: how many of the plugin's callables are alive.
struct Counted {
  explicit Counted(int* count) : alive(count) { ++*alive; }
  Counted(const Counted& other) : Counted(other.alive) {}
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive; }
  int* alive;
};

void Declare(ps::Graph& graph, ps::ParamHandle<float> by, ps::BufferHandle<float> x, int* alive) {
  graph.ParallelFor(PART "step", 4, Step{}, by, ps::ReadWrite(x));
  graph.ParallelFor(PART "hidden", 4, Hidden{}, ps::ReadWrite(x));
  const auto add = [counted = Counted(alive)](float amount, std::span<float> all) {
    for (float& v : all) v += amount * ADDS;
  };
  graph.Host(PART "host", add, by, ps::ReadWrite(x));
  graph.Launch(
           PART "launch", [counted = Counted(alive)](ps::LaunchContext&, float*) {}, ps::ReadWrite(x))
      .HostFallback([counted = Counted(alive)](float* all) {
        for (int i = 0; i < 4; ++i) all[i] += ADDS;
      });
}

int RunOwn() {
  auto runtime = ps::Runtime::Create({.devices = "host:1"});
  ps::Graph graph("own");
  auto by = graph.Param<float>("by");
  auto x = graph.InOut<float>("x", 4);
  int alive = 0;
  Declare(graph, by, x, &alive);
  auto exec = runtime->Compile(graph);
  if (!exec.ok()) return -1;
  std::vector<float> v(4, 0);
  auto run = exec->Launch(exec->bindings().Set(by, 1.f).Set(x, v));
  return run.ok() && run->Wait().ok() ? static_cast<int>(v[0]) : -2;
}

// A buffer of a type that this plugin has to itself, and what reads one.
int DeclarePixels(ps::Graph& graph) { return graph.Input<Pixel>(PART "pixels", 4).index(); }
void ReadPixels(ps::Graph& graph, uint32_t serial, int index) {
  graph.Host(PART "read", [](std::span<const Pixel>) {}, ps::Read(ps::BufferHandle<Pixel>(serial, index)));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Part kPart;
const Part kPart{&Declare, &RunOwn, &DeclarePixels, &ReadPixels};
