// Pitfall: tiny nodes on streams. Each is submitted by a call of its own, which takes longer than the node.
#include "penstock/ps.h"
#include "pitfall.h"

absl::Status TinyNodes(const pitfalls::Options& options) {
  constexpr int64_t kSize = 32;
  constexpr int kNodes = 200;
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::State<float> values, runtime.MakeState<float>("values", kSize));
  ps::Graph graph("tiny nodes");
  for (int n = 0; n < kNodes; ++n) {
    graph.ParallelFor(ps::Name("step", n), kSize, pitfalls::WorkInPlace{1}, ps::ReadWrite(values));
  }
  PS_ASSIGN_OR_RETURN(
      ps::Executable exec,
      runtime.Compile(graph, {.slots = 2, .mode = options.fixed ? ps::Mode::kGraph : ps::Mode::kStream}));

  pitfalls::Clock clock;
  ps::Run last;
  for (int r = -pitfalls::kWarmUp; r < options.runs; ++r) {
    if (r == 0) {
      PS_RETURN_IF_ERROR(last.Wait());
      clock.Start();
    }
    PS_ASSIGN_OR_RETURN(last, exec.Launch());
  }
  PS_RETURN_IF_ERROR(last.Wait());
  clock.Stop(options.runs);
  return absl::OkStatus();
}

int main(int argc, char** argv) { return pitfalls::Main(argc, argv, TinyNodes); }
