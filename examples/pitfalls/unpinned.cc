// Pitfall: memory that is not pinned. Host threads copy it through pinned memory before a device can have it.
#include <vector>

#include "penstock/ps.h"
#include "pitfall.h"

absl::Status Unpinned(const pitfalls::Options& options) {
  constexpr int64_t kSize = int64_t{4} << 20;
  ps::Graph graph("unpinned");
  auto in = graph.Input<float>("in", kSize);
  auto table = graph.Input<float>("table", kSize / 4);
  auto out = graph.Buffer<float>("out", kSize / 4);
  graph.ParallelFor("work", kSize / 4, pitfalls::Work{1}, ps::Read(in), ps::Write(out));
  graph.ParallelFor("look up", kSize / 4, pitfalls::Work{1}, ps::Read(table), ps::Write(out));

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  std::vector<float> pageable(kSize, 1.f);
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> pinned, runtime.MakeHostBuffer<float>(kSize));
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> pinned_table, runtime.MakeHostBuffer<float>(kSize / 4));
  for (float& value : pinned) value = 1;
  for (float& value : pinned_table) value = 1;
  ps::Bindings io = exec.bindings();
  io.Set(table, pinned_table);
  if (options.fixed) {
    io.Set(in, pinned);
  } else {
    io.Set(in, pageable);
  }

  pitfalls::Clock clock;
  ps::Run last;
  for (int r = -pitfalls::kWarmUp; r < options.runs; ++r) {
    if (r == 0) {
      PS_RETURN_IF_ERROR(last.Wait());
      clock.Start();
    }
    PS_ASSIGN_OR_RETURN(last, exec.Launch(io));
  }
  PS_RETURN_IF_ERROR(last.Wait());
  clock.Stop(options.runs);
  return absl::OkStatus();
}

int main(int argc, char** argv) { return pitfalls::Main(argc, argv, Unpinned); }
