// Tutorial, chapter 5: inside an application that uses CUDA itself. The application has a kernel, streams, an event and
// device memory of its own, and Penstock's runs are ordered with its stream.
//
// docs/tutorial/5-cuda.md explains the program. On host devices it does the same in host memory.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"
#if defined(__CUDACC__)
#include "5_application_cuda.h"
#endif

constexpr int kN = 1 << 16, kSteps = 10;
constexpr float kDt = 0.5f, kPush = 2.f;

// Penstock's part of each step.
struct Move {
  PS_HOST_DEVICE void operator()(int64_t i, const float* velocity, const float* wind, float* position) const {
    position[i] += kDt * (velocity[i] + wind[i]);
  }
};

// The graph, and the handles of its buffers.
struct Step {
  explicit Step(ps::Where where)
      : velocity(graph.Input<float>("velocity", kN, where)),
        wind(graph.Input<float>("wind", kN, where)),
        position(graph.InOut<float>("position", kN, where)) {
    graph.ParallelFor("move", kN, Move{}, ps::Read(velocity), ps::Read(wind), ps::ReadWrite(position));
  }
  ps::Graph graph{"step"};
  ps::BufferHandle<float> velocity, wind, position;
};

#if defined(__CUDACC__)
absl::Status OnCuda(const Step& step, ps::Executable& exec, const std::vector<float>& wind,
                    std::vector<float>& result) {
  Application app;
  PS_RETURN_IF_ERROR(app.Open(kN));

  // The application loads the wind on a stream of its own, and records an event there.
  PS_RETURN_IF_ERROR(Copy(wind.data(), app.wind, kN, app.loader));
  PS_RETURN_IF_ERROR(ps::ToStatus(cudaEventRecord(app.loaded, app.loader), "recording an event"));

  // Runs use the application's memory in place, after that event, and in the order of its other stream.
  ps::Bindings io = exec.bindings();
  io.Set(step.velocity, std::span(app.velocity, kN)).Set(step.position, std::span(app.position, kN));
  io.Set(step.wind, std::span(app.wind, kN)).After(step.wind, ps::Native(app.loaded));
  io.On(ps::Native(app.stream));

  // A kernel, a run, a kernel, a run, ..., and a copy: the stream orders all of them.
  std::vector<ps::Run> runs;
  for (int n = 0; n < kSteps; ++n) {
    Push<<<(kN + 255) / 256, 256, 0, app.stream>>>(kN, kPush, app.velocity);
    PS_RETURN_IF_ERROR(ps::ToStatus(cudaGetLastError(), "launching Push"));
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
    runs.push_back(run);
  }
  PS_RETURN_IF_ERROR(Copy(app.position, result.data(), kN, app.stream));
  PS_RETURN_IF_ERROR(ps::ToStatus(cudaStreamSynchronize(app.stream), "waiting for the stream"));
  for (const ps::Run& run : runs) PS_RETURN_IF_ERROR(run.Wait());
  return absl::OkStatus();
}
#endif

// The same steps on a host device: the memory is the host's, and the host waits for each run.
absl::Status OnHost(const Step& step, ps::Executable& exec, const std::vector<float>& wind,
                    std::vector<float>& result) {
  std::vector<float> velocity(kN);
  ps::Bindings io = exec.bindings();
  io.Set(step.velocity, velocity).Set(step.wind, wind).Set(step.position, result);
  for (int n = 0; n < kSteps; ++n) {
    for (float& v : velocity) v += kPush;
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
    PS_RETURN_IF_ERROR(run.Wait());
  }
  return absl::OkStatus();
}

absl::Status Tutorial() {
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  const bool cuda = runtime.devices()[0].is_cuda;
  const Step step(cuda ? ps::kDevice : ps::kHost);
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(step.graph));

  std::vector<float> wind(kN), result(kN);
  for (int i = 0; i < kN; ++i) wind[i] = static_cast<float>(i % 8);
#if defined(__CUDACC__)
  PS_RETURN_IF_ERROR(cuda ? OnCuda(step, exec, wind, result) : OnHost(step, exec, wind, result));
#else
  PS_RETURN_IF_ERROR(OnHost(step, exec, wind, result));
#endif

  // The expected position in closed form: in step n the velocity is n * kPush.
  for (int i = 0; i < kN; ++i) {
    const float expected = kDt * (kPush * kSteps * (kSteps + 1) / 2 + kSteps * static_cast<float>(i % 8));
    if (result[i] != expected) return absl::InternalError("position " + std::to_string(i) + " is wrong");
  }
  std::printf("%d steps on %s, %s: all positions are right; number 3 is at %g\n", kSteps,
              runtime.devices()[0].name.c_str(), cuda ? "on the application's stream" : "in host memory", result[3]);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Tutorial();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
