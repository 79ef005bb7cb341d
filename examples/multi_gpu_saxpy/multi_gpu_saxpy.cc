// y = a * x + y over all devices there are: the vectors go block by block to whichever device is free first.
//
//   multi_gpu_saxpy [--devices cuda | host:4]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"

struct Saxpy {
  PS_HOST_DEVICE void operator()(int64_t i, float a, const float* x, float* y) const { y[i] += a * x[i]; }
};

absl::Status Run(const std::string& devices, int64_t n) {
  constexpr int64_t kBlock = 1 << 18;
  ps::Graph graph("saxpy");
  auto size = graph.Param<int64_t>("size", ps::AtMost(kBlock));  // the last block is shorter
  auto a = graph.Param<float>("a");
  auto x = graph.Input<float>("x", size);
  auto y = graph.InOut<float>("y", size);
  graph.ParallelFor("axpy", size, Saxpy{}, a, ps::Read(x), ps::ReadWrite(y));

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices}));
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 3, .devices = runtime.all_devices()}));

  PS_ASSIGN_OR_RETURN(auto hx, runtime.MakeHostBuffer<float>(n));  // pinned: copied at full speed
  PS_ASSIGN_OR_RETURN(auto hy, runtime.MakeHostBuffer<float>(n));
  for (int64_t i = 0; i < n; ++i) hx[i] = static_cast<float>(i % 1000), hy[i] = 1;

  ps::Bindings io = exec.bindings();
  std::vector<ps::Run> runs;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t block = std::min(kBlock, n - at);
    io.Set(size, block).Set(a, 3.f).Set(x, std::span(&hx[at], block)).Set(y, std::span(&hy[at], block));
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));  // waits while every slot of every device is taken
    runs.push_back(std::move(run));
  }
  for (const ps::Run& run : runs) PS_RETURN_IF_ERROR(run.Wait());

  for (const int device : exec.devices()) {
    PS_ASSIGN_OR_RETURN(const ps::Executable on, exec.On(device));
    std::printf("%s: %lld blocks\n", runtime.devices()[device].name.c_str(), static_cast<long long>(on.launches()));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (hy[i] != 3 * static_cast<float>(i % 1000) + 1)
      return absl::InternalError("y[" + std::to_string(i) + "] is wrong");
  }
  std::printf("y = 3 x + y: %lld elements are right\n", static_cast<long long>(n));
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const std::string devices = argc == 3 && std::strcmp(argv[1], "--devices") == 0 ? argv[2] : "";
  const absl::Status status = Run(devices, 10'000'000);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
