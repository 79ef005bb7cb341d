// A user's program: declares a graph, runs it on a host device, checks the result. Exit code 0 if it is right.
#include <cstdio>
#include <vector>

#include "penstock/penstock.h"

namespace {

struct Axpy {
  void operator()(int64_t i, float a, penstock::View<const float> x, penstock::View<float> y) const {
    y(i) = a * x(i) + y(i);
  }
};

absl::Status Saxpy(std::vector<float>& x, std::vector<float>& y) {
  penstock::RuntimeOptions options;
  options.devices = "host";
  PENSTOCK_ASSIGN_OR_RETURN(penstock::Runtime runtime, penstock::Runtime::Create(options));
  const auto n = static_cast<int64_t>(x.size());
  penstock::Graph graph("saxpy");
  auto a = graph.Param<float>("a");
  auto in = graph.Input<float>("x", n);
  auto out = graph.InOut<float>("y", n);
  auto most = graph.Output<float>("most", 1);
  graph.ParallelFor("axpy", n, Axpy{}, a, penstock::Read(in), penstock::ReadWrite(out));
  graph.Reduce("most", penstock::Read(out), penstock::Write(most), penstock::Max());
  PENSTOCK_ASSIGN_OR_RETURN(penstock::Executable exec, runtime.Compile(graph));
  penstock::Bindings io = exec.bindings();
  std::vector<float> greatest(1);
  PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, exec.Launch(io.Set(a, 2.f).Set(in, x).Set(out, y).Set(most, greatest)));
  PENSTOCK_RETURN_IF_ERROR(run.Wait());
  return greatest[0] == 7.f ? absl::OkStatus() : absl::InternalError("the greatest is not 7");
}

}  // namespace

int main() {
  std::vector<float> x(1000, 3.f), y(1000, 1.f);
  if (absl::Status status = Saxpy(x, y); !status.ok()) {
    std::printf("%s\n", status.ToString().c_str());
    return 1;
  }
  for (float value : y) {
    if (value != 7.f) return 1;
  }
  return 0;
}
