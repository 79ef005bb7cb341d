// Pitfall: a slow source. The thread that launches also gets the input of each run, and the device waits for it.
#include <optional>
#include <thread>

#include "penstock/ps.h"
#include "pitfall.h"

// Stands for a disk, a network or a camera.
void Get() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

absl::Status SlowSource(const pitfalls::Options& options) {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  const auto [size, rounds] = pitfalls::AMillisecond(runtime);
  ps::Graph graph("slow source");
  auto in = graph.Input<float>("in", size, ps::kPinned);
  auto out = graph.Buffer<float>("out", size);
  graph.ParallelFor("work", size, pitfalls::Work{rounds}, ps::Read(in), ps::Write(out));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 3}));
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> memory, runtime.MakeHostBuffer<float>(size));
  for (float& value : memory) value = 1;
  ps::Bindings io = exec.bindings();
  io.Set(in, memory);  // which the runs only read
  pitfalls::Clock clock;

  if (!options.fixed) {
    for (int r = -pitfalls::kWarmUp; r < options.runs; ++r) {
      if (r == 0) clock.Start();
      Get();
      PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
      PS_RETURN_IF_ERROR(run.Wait());
    }
    clock.Stop(options.runs);
    return absl::OkStatus();
  }

  // The stage's threads get inputs while the device works.
  ps::Stages<int> stages;
  stages.Host("get", [](int&) { Get(); }, {.workers = 4});
  stages.Run("work", exec, [&](ps::Item<int>& item) { item.Set(in, memory); });
  PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<int>::Create(std::move(stages), {.window = 8}));
  int next = -pitfalls::kWarmUp;
  return pipe.Run([&]() -> std::optional<int> { return next < options.runs ? std::optional(next++) : std::nullopt; },
                  [&](ps::Item<int>& item) {
                    if (item.value() == -1) clock.Start();
                    if (item.value() == options.runs - 1) clock.Stop(options.runs);
                  });
}

int main(int argc, char** argv) { return pitfalls::Main(argc, argv, SlowSource); }
