// Many small runs: each is a dozen small kernels, of which some could run side by side.
#include "tuning_job.h"

absl::Status SmallRuns(ps::Runtime& runtime, int runs) {
  constexpr int64_t kSize = 1024;
  constexpr int kChains = 3, kSteps = 4;
  ps::Graph graph("small runs");
  for (int c = 0; c < kChains; ++c) {
    auto from = graph.Buffer<float>(ps::Name("from", c), kSize);
    graph.Fill(ps::Name("begin", c), from, 1.f);
    for (int s = 0; s < kSteps; ++s) {
      auto to = graph.Buffer<float>(ps::Name("to", kSteps * c + s), kSize);
      graph.ParallelFor(ps::Name("step", kSteps * c + s), kSize, tuning::Work{8}, ps::Read(from), ps::Write(to));
      from = to;
    }
  }
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  ps::Run last;
  for (int r = 0; r < runs; ++r) {
    PS_ASSIGN_OR_RETURN(last, exec.Launch());
  }
  return last.Wait();
}

int main(int argc, char** argv) { return tuning::Main(argc, argv, SmallRuns); }
