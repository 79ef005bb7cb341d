// Pitfall: a host node in the middle. The second half of each step waits until the host has written the field down,
// though it needs nothing from there: it only must not change what is still being read.
#include <span>
#include <thread>

#include "penstock/ps.h"
#include "pitfall.h"

// Stands for a file or a network.
void WriteDown(std::span<const float>) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

absl::Status HostNodeInTheMiddle(const pitfalls::Options& options) {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  const auto [size, rounds] = pitfalls::AMillisecond(runtime);
  PS_ASSIGN_OR_RETURN(ps::State<float> field, runtime.MakeState<float>("field", size));
  ps::Graph graph("steps");
  graph.ParallelFor("first half", size, pitfalls::WorkInPlace{rounds}, ps::ReadWrite(field));
  if (options.fixed) {
    auto copy = graph.Buffer<float>("copy of the field", size);
    graph.Copy("copy", graph.Use(field), copy);
    graph.Host("write down", WriteDown, ps::Read(copy));
  } else {
    graph.Host("write down", WriteDown, ps::Read(field));
  }
  graph.ParallelFor("second half", size, pitfalls::WorkInPlace{rounds}, ps::ReadWrite(field));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 3}));

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

int main(int argc, char** argv) { return pitfalls::Main(argc, argv, HostNodeInTheMiddle); }
