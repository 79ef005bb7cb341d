// Tutorial, chapter 1: y = a * x + y. Declares one graph, compiles it, and launches it several times.
//
// docs/tutorial/1-saxpy.md explains the program. It is built by nvcc where CUDA is available, and by the C++ compiler
// otherwise.
#include <cstdio>
#include <string>
#include <vector>

#include "penstock/ps.h"

constexpr int kN = 1000;

// The work for one element. The same code runs on a GPU and on the host.
struct Saxpy {
  PS_HOST_DEVICE void operator()(int64_t i, float a, const float* x, float* y) const { y[i] += a * x[i]; }
};

// The expected result, computed independently: y starts at 1, and x[i] is i.
float Expected(int i, float sum_of_a) { return 1.f + sum_of_a * static_cast<float>(i); }

absl::Status Tutorial() {
  // Declare the data and the work. Nothing runs yet.
  ps::Graph graph("saxpy");
  auto a = graph.Param<float>("a");
  auto x = graph.Input<float>("x", kN);
  auto y = graph.InOut<float>("y", kN);
  graph.ParallelFor("axpy", kN, Saxpy{}, a, ps::Read(x), ps::ReadWrite(y));

  // Compile: plan the graph for a device, and allocate everything that its runs need.
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  std::printf("running on %s\n", runtime.devices()[0].name.c_str());

  // Launch a run with these values and this memory, and wait for it.
  std::vector<float> hx(kN), hy(kN, 1.f);
  for (int i = 0; i < kN; ++i) hx[i] = static_cast<float>(i);
  ps::Bindings io = exec.bindings();
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(a, 2.f).Set(x, hx).Set(y, hy)));
  PS_RETURN_IF_ERROR(run.Wait());
  std::printf("after one run, y[10] = %g\n", hy[10]);

  // Launch it again. The bindings keep x and y, so only the new value of a has to be set.
  for (const float value : {3.f, 4.f}) {
    PS_ASSIGN_OR_RETURN(run, exec.Launch(io.Set(a, value)));
    PS_RETURN_IF_ERROR(run.Wait());
  }
  std::printf("after three runs, y[10] = %g\n", hy[10]);
  for (int i = 0; i < kN; ++i) {
    if (hy[i] != Expected(i, 2.f + 3.f + 4.f)) return absl::InternalError("y[" + std::to_string(i) + "] is wrong");
  }

  // A mistake is a Status. This launch binds no memory to x and y.
  const absl::Status mistake = exec.Launch(exec.bindings().Set(a, 1.f)).status();
  std::printf("without memory: %s\n", mistake.ToString().c_str());
  return mistake.ok() ? absl::InternalError("the launch without memory succeeded") : absl::OkStatus();
}

int main() {
  const absl::Status status = Tutorial();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
