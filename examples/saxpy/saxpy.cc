// y = a * x + y on whatever device there is: the smallest whole program.
//
// Built by nvcc where CUDA is there, by the C++ compiler where not; the program is the same.
#include <cstdio>
#include <vector>

#include "penstock/ps.h"

struct Saxpy {
  PS_HOST_DEVICE void operator()(int64_t i, float a, const float* x, float* y) const { y[i] += a * x[i]; }
};

absl::Status Run(int n) {
  ps::Graph graph("saxpy");
  auto a = graph.Param<float>("a");
  auto x = graph.Input<float>("x", n);  // host memory, bound at launch
  auto y = graph.InOut<float>("y", n);
  graph.ParallelFor("axpy", n, Saxpy{}, a, ps::Read(x), ps::ReadWrite(y));  // copies in and out are planned

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  std::vector<float> hx(n, 2.f), hy(n, 1.f);
  ps::Bindings io = exec.bindings();  // reused from launch to launch
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(a, 3.f).Set(x, hx).Set(y, hy)));
  PS_RETURN_IF_ERROR(run.Wait());

  std::printf("on %s: y[0] = %g, y[%d] = %g\n", runtime.devices()[0].name.c_str(), hy.front(), n - 1, hy.back());
  return hy.front() == 7.f && hy.back() == 7.f ? absl::OkStatus() : absl::InternalError("wrong result");
}

int main() {
  const absl::Status status = Run(1 << 20);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
