// One step of a layer, y = max(alpha * A * x + b, 0), replayed with a new alpha and a new x each time: a call of cuBLAS
// and a kernel of one's own in one graph. The weights stay on the device.
//
//   gemv_step [--devices LIST] [--steps N]
//
// Built by nvcc where CUDA and cuBLAS are there, by the C++ compiler where not; the program is the same. Every number
// is a small integer, so sums are exact in whatever order, and each result is compared with a plain loop's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "penstock/ps.h"
#if defined(__CUDACC__)
#include "penstock/cublas.h"
#endif

constexpr int kN = 512;

#if defined(__CUDACC__)
absl::Status Gemv(ps::LaunchContext& launch, const float* alpha, const float* a, const float* x, float* y) {
  PS_ASSIGN_OR_RETURN(ps::Cublas * blas, launch.Get<ps::Cublas>());  // made once a device, lane and slot
  return ps::ToStatus(cublasSgemv(blas->handle(), CUBLAS_OP_T, kN, kN, alpha, a, kN, x, 1, launch.Zero<float>(), y, 1),
                      "cublasSgemv");
}
#endif
void GemvOnHost(const float* alpha, const float* a, const float* x, float* y) {
  for (int row = 0; row < kN; ++row) {
    float sum = 0;
    for (int i = 0; i < kN; ++i) sum += a[row * kN + i] * x[i];
    y[row] = *alpha * sum;
  }
}

#if defined(__CUDACC__)
__global__ void Relu(int n, const float* b, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = fmaxf(y[i] + b[i], 0.f);
}
#else
void Relu(int, const float*, float*) {}
#endif
void ReluOnHost(int n, const float* b, float* y) {
  for (int i = 0; i < n; ++i) y[i] = std::max(y[i] + b[i], 0.f);
}

// What one row must be: by itself, column by column from the end.
float Expected(int row, float alpha, const std::vector<float>& a, const std::vector<float>& b, const float* x) {
  double sum = b[static_cast<size_t>(row)];
  for (int i = kN - 1; i >= 0; --i) sum += double{alpha} * x[i] * a[static_cast<size_t>(row * kN + i)];
  return sum > 0 ? static_cast<float>(sum) : 0.f;
}

absl::Status Train(const std::string& devices, int steps) {
  std::mt19937 random(1);
  const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
  std::vector<float> weights(size_t{kN} * kN), bias(kN);
  std::generate(weights.begin(), weights.end(), small);
  std::generate(bias.begin(), bias.end(), small);

  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = devices}));
  PS_ASSIGN_OR_RETURN(ps::State<float> a, runtime.MakeState<float>("A", {kN, kN}, weights));
  PS_ASSIGN_OR_RETURN(ps::State<float> b, runtime.MakeState<float>("b", kN, bias));
  ps::Graph graph("step");
  auto alpha = graph.Param<float>("alpha");
  auto x = graph.Input<float>("x", kN, ps::kPinned);
  auto y = graph.Output<float>("y", kN, ps::kPinned);
  graph.Launch("gemv", PS_ON_CUDA(Gemv), ps::OnDevice(alpha), ps::Read(a), ps::Read(x), ps::Write(y))
      .HostFallback(GemvOnHost);
  graph.Kernel("relu", Relu, ps::Threads(kN), kN, ps::Read(b), ps::ReadWrite(y)).HostFallback(ReluOnHost);
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 2, .mode = ps::Mode::kGraph}));

  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> hx, runtime.MakeHostBuffer<float>(kN));
  PS_ASSIGN_OR_RETURN(ps::HostBuffer<float> hy, runtime.MakeHostBuffer<float>(kN));
  ps::Bindings io = exec.bindings();
  io.Set(x, hx).Set(y, hy);
  for (int step = 0; step < steps; ++step) {
    const float scale = small();
    std::generate(hx.begin(), hx.end(), small);
    std::fill(hy.begin(), hy.end(), -1.f);
    PS_ASSIGN_OR_RETURN(ps::Run run, exec.Launch(io.Set(alpha, scale)));  // no capture: one small copy brings alpha
    PS_RETURN_IF_ERROR(run.Wait());
    for (int row = 0; row < kN; ++row) {
      if (hy[row] != Expected(row, scale, weights, bias, hx.data())) {
        return absl::InternalError("step " + std::to_string(step) + ": y[" + std::to_string(row) + "] is wrong");
      }
    }
  }
  std::printf("%d steps on %s, each as expected\n%s", steps, runtime.devices()[0].name.c_str(),
              exec.submission_report().Text().c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string devices;
  int steps = 100;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--devices" && !value.empty()) {
      devices = value;
    } else if (flag == "--steps" && std::atoi(value.c_str()) > 0) {
      steps = std::atoi(value.c_str());
    } else {
      std::fprintf(stderr, "usage: gemv_step [--devices LIST] [--steps N]\n");
      return 2;
    }
  }
  const absl::Status status = Train(devices, steps);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
