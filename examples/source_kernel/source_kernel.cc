// A polynomial whose kernel is made while the program runs: its coefficients, which the command line may name, are
// constants of the kernel's text. No nvcc is needed; on a machine without a GPU the host fallback computes the same.
//
//   source_kernel 1 0.5 0.25          y = 1 + 0.5 x + 0.25 x^2
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "penstock/ps.h"
#include "penstock/source.h"

// "(c[0]) + x * ((c[1]) + x * (c[2]))", with all digits that a float has.
std::string Horner(const std::vector<float>& c) {
  std::string text = "0.0f";
  for (size_t i = c.size(); i-- > 0;) {
    char number[32];
    std::snprintf(number, sizeof number, "%af", static_cast<double>(c[i]));  // hexadecimal, so exact
    text = std::string(number) + " + x * (" + text + ")";
  }
  return text;
}

ps::Source KernelOf(const std::vector<float>& c) {
  const std::string text =
      "template <class T>\n"
      "__global__ void polynomial(const T* from, T* to, int n) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i >= n) return;\n"
      "  const T x = from[i];\n"
      "  to[i] = " +
      Horner(c) +
      ";\n"
      "}\n";
  return {text, "polynomial<float>", {.options = {"--std=c++20"}, .file = "polynomial.cu"}};
}

float At(const std::vector<float>& c, float x) {
  float y = 0;
  for (size_t i = c.size(); i-- > 0;) y = c[i] + x * y;
  return y;
}

absl::Status Run(const std::vector<float>& c) {
  constexpr int kN = 1 << 20;
  ps::Graph graph("polynomial");
  auto x = graph.Input<float>("x", kN);
  auto y = graph.Output<float>("y", kN);
  graph.Kernel("polynomial", KernelOf(c), ps::Threads(kN), ps::Read(x), ps::Write(y), kN)
      .HostFallback([c](const float* from, float* to, int n) {
        for (int i = 0; i < n; ++i) to[i] = At(c, from[i]);
      });

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create());
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph));  // compiles the text, or finds it on disk
  std::vector<float> hx(kN), hy(kN);
  for (int i = 0; i < kN; ++i) hx[i] = static_cast<float>(i) / kN;
  PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(exec.bindings().Set(x, hx).Set(y, hy)));
  PS_RETURN_IF_ERROR(run.Wait());

  double worst = 0;
  for (int i = 0; i < kN; ++i) worst = std::fmax(worst, std::fabs(hy[i] - At(c, hx[i])));
  std::printf("on %s: y(0) = %g, y(1) = %g\n", runtime.devices()[0].name.c_str(), hy.front(), hy.back());
  return worst < 1e-4 ? absl::OkStatus() : absl::InternalError("wrong result");
}

int main(int argc, char** argv) {
  std::vector<float> c;
  for (int i = 1; i < argc; ++i) c.push_back(std::strtof(argv[i], nullptr));
  if (c.empty()) c = {1, 0.5f, 0.25f};
  const absl::Status status = Run(c);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
