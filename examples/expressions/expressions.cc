// A GELU, the activation of many neural networks, as four formulas: no nvcc is needed, and the three buffers between
// them take no memory and no time, for all becomes one kernel. The library has the kernels of the Reduce that adds up
// the results. On a machine without a GPU host threads compute the same.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "penstock/ps.h"

absl::Status Run() {
  constexpr int kN = 1 << 20;
  ps::Graph graph("gelu");
  auto scale = graph.Param<float>("scale");
  auto input = graph.Input<float>("input", kN);
  auto output = graph.Output<float>("output", kN);
  auto sum = graph.Output<double>("sum", 1);
  auto scaled = graph.Buffer<float>("scaled", kN);
  auto inner = graph.Buffer<float>("inner", kN);
  auto half = graph.Buffer<float>("half", kN);

  using ps::expr::Of;
  ps::Map(graph, "scale", ps::Write(scaled), Of(input) * scale);
  const auto x = Of(scaled);
  ps::Map(graph, "inner", ps::Write(inner), 0.7978845608f * (x + 0.044715f * x * x * x));
  ps::Map(graph, "half", ps::Write(half), 0.5f * (1.0f + ps::expr::Tanh(Of(inner))));
  ps::Map(graph, "gelu", ps::Write(output), x * Of(half));
  graph.Reduce("sum", ps::Read(output), ps::Write(sum));

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));
  std::vector<float> from(kN), to(kN);
  for (int i = 0; i < kN; ++i) from[i] = static_cast<float>(i - kN / 2) / (kN / 8);
  double total = 0;
  ps::Bindings io = exec.bindings();
  io.Set(scale, 1.5f).Set(input, from).Set(output, to).Set(sum, std::span(&total, 1));
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io));
  PS_RETURN_IF_ERROR(run.Wait());

  double worst = 0, added = 0;
  for (int i = 0; i < kN; ++i) {
    const double v = 1.5 * from[i];
    added += to[i];
    worst = std::fmax(worst, std::fabs(to[i] - 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)))));
  }
  std::printf("on %s: at most %.1e from the exact value\n", runtime.devices()[0].name.c_str(), worst);
  for (const auto& fused : exec.submission_report().fused) std::printf("%s\n", fused.text.c_str());
  return worst < 1e-5 && std::fabs(total - added) < 1e-6 * added ? absl::OkStatus()
                                                                 : absl::InternalError("wrong result");
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
