// Pitfall: one slot. The upload, the kernel and the download of a run take turns, since no other run may be in flight.
#include <vector>

#include "penstock/ps.h"
#include "pitfall.h"

absl::Status OneSlot(const pitfalls::Options& options) {
  constexpr int64_t kSize = int64_t{1} << 20;
  ps::Graph graph("one slot");
  auto in = graph.Input<float>("in", kSize, ps::kPinned);
  auto out = graph.Output<float>("out", kSize, ps::kPinned);
  graph.ParallelFor("work", kSize, pitfalls::Work{8}, ps::Read(in), ps::Write(out));

  // On a host device copies run beside the functor's one thread.
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.host_device_threads = 1}));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = options.fixed ? 3 : 1}));
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> memory, runtime.MakeHostBuffer<float>(kSize));
  for (float& value : memory) value = 1;
  ps::Bindings io = exec.bindings();
  io.Set(in, memory);

  // More than runs are ever in flight, so that no two of these write the same memory.
  std::vector<ps::HostBuffer<float>> results;
  for (int b = 0; b < 8; ++b) {
    PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> result, runtime.MakeHostBuffer<float>(kSize));
    results.push_back(std::move(result));
  }

  // Launch waits for a free slot; so the program is never ahead by more than the slots.
  pitfalls::Clock clock;
  ps::Run last;
  for (int r = -pitfalls::kWarmUp; r < options.runs; ++r) {
    if (r == 0) {
      PS_RETURN_IF_ERROR(last.Wait());
      clock.Start();
    }
    io.Set(out, results[static_cast<size_t>(r + pitfalls::kWarmUp) % results.size()]);
    PS_ASSIGN_OR_RETURN(last, exec.Launch(io));
  }
  PS_RETURN_IF_ERROR(last.Wait());
  clock.Stop(options.runs);
  return absl::OkStatus();
}

int main(int argc, char** argv) { return pitfalls::Main(argc, argv, OneSlot); }
