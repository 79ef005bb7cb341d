// Formulas of elements: 2^26 floats in device memory. Penstock's Maps, fused and apart, against kernels by hand: one
// for all in three variants, and one for each formula. "Three" is min(max(exp(2 x + y), 0), 8), which by hand moves 3
// numbers an element in one kernel and 7 in three. "GELU" is an activation as four Maps, which move 2 and 9. On streams
// and as CUDA graphs.
//
// Results are compared with the host's, at some elements, after each run.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

using ps::expr::Of;

constexpr int kRuns = 8;  // launched one after the other, and waited for together

// The formulas by hand. `kSteps` is how many kernels they are apart.
struct Three {
  static constexpr const char* kName = "three Maps";
  static constexpr int kSteps = 3;
  static constexpr bool kReadsY = true;

  __host__ __device__ static float At(float x, float y) { return Step(2, Step(1, Step(0, x, y), 0), 0); }
  __host__ __device__ static float Step(int step, float x, float y) {
    return step == 0 ? 2.0f * x + y : step == 1 ? expf(x) : fminf(fmaxf(x, 0.0f), 8.0f);
  }
  // Whether a step reads the second of its operands, which is y for the first and x for the others.
  __host__ __device__ static bool ReadsSecond(int step) { return step == 0; }

  static void Declare(ps::Graph& g, const ps::State<float>& x, const ps::State<float>& y, const ps::State<float>& z,
                      int64_t n) {
    auto t = g.Buffer<float>("t", n), e = g.Buffer<float>("e", n);
    ps::Map(g, "axpy", ps::Write(t), 2.0f * Of(x) + Of(y));
    ps::Map(g, "exp", ps::Write(e), ps::expr::Exp(Of(t)));
    ps::Map(g, "clamp", ps::Write(z), ps::expr::Clamp(Of(e), 0.0f, 8.0f));
  }
};
struct Gelu {
  static constexpr const char* kName = "GELU of four Maps";
  static constexpr int kSteps = 4;
  static constexpr bool kReadsY = false;

  __host__ __device__ static float At(float x, float) {
    const float scaled = Step(0, x, 0);
    return Step(3, Step(2, Step(1, scaled, 0), 0), scaled);
  }
  __host__ __device__ static float Step(int step, float x, float y) {
    return step == 0   ? 1.5f * x
           : step == 1 ? 0.7978845608f * (x + 0.044715f * x * x * x)
           : step == 2 ? 0.5f * (1.0f + tanhf(x))
                       : x * y;
  }
  __host__ __device__ static bool ReadsSecond(int step) { return step == 3; }

  static void Declare(ps::Graph& g, const ps::State<float>& from, const ps::State<float>&, const ps::State<float>& z,
                      int64_t n) {
    auto s = g.Buffer<float>("s", n), u = g.Buffer<float>("u", n), h = g.Buffer<float>("h", n);
    const auto x = Of(s);
    ps::Map(g, "scale", ps::Write(s), 1.5f * Of(from));
    ps::Map(g, "inner", ps::Write(u), 0.7978845608f * (x + 0.044715f * x * x * x));
    ps::Map(g, "half", ps::Write(h), 0.5f * (1.0f + ps::expr::Tanh(Of(u))));
    ps::Map(g, "gelu", ps::Write(z), Of(h) * x);
  }
};

struct Data {
  Data(ps::Runtime& runtime, int64_t count) : n(count) {
    std::vector<float> hx(static_cast<size_t>(n)), hy(hx.size());
    for (size_t i = 0; i < hx.size(); ++i) {
      hx[i] = static_cast<float>(i % 1013) / 512 - 1;
      hy[i] = static_cast<float>(i % 733) / 512 - 1;
    }
    x = Must(runtime.MakeState<float>("x", n, hx));
    y = Must(runtime.MakeState<float>("y", n, hy));
    z = Must(runtime.MakeState<float>("z", n));
  }
  template <class F>
  void CheckResult(const std::string& who) const {
    constexpr int64_t kLooks = 4096;
    std::vector<float> got(kLooks);
    for (const int64_t first : {int64_t{0}, n / 2 - 17, n - kLooks}) {
      Must(z->Read(std::span(got), ps::Slice(first, kLooks)));
      for (int64_t k = 0; k < kLooks; ++k) {
        const auto i = static_cast<size_t>(first + k);
        const float want = F::At(static_cast<float>(i % 1013) / 512 - 1, static_cast<float>(i % 733) / 512 - 1);
        if (!(std::fabs(got[static_cast<size_t>(k)] - want) <= 1e-5f * (1 + std::fabs(want)))) Fail(who + ": wrong");
      }
    }
  }

  int64_t n;
  std::optional<ps::State<float>> x, y, z;
};

template <class F>
class Penstock {
 public:
  Penstock(ps::Runtime& runtime, const Data& of, ps::Mode mode, bool fuse) : of_(of) {
    ps::Graph g("maps");
    F::Declare(g, *of.x, *of.y, *of.z, of.n);
    exec_ = Must(runtime.Compile(g, {.slots = kRuns, .mode = mode, .fuse_maps = fuse}));
    io_ = exec_.bindings();
    if (exec_.submission_report().fused.size() != (fuse ? 1u : 0u)) Fail("not fused as asked for");
  }
  Sample Run() {
    std::optional<absl::StatusOr<ps::Run>> runs[kRuns];
    const Clock::time_point begin = Clock::now();
    for (auto& run : runs) run.emplace(exec_.Launch(io_));
    const Clock::time_point submitted = Clock::now();
    for (auto& run : runs) {
      Must(run->status());
      Must((*run)->Wait());
    }
    const Clock::time_point end = Clock::now();
    of_.CheckResult<F>("Penstock");
    return {Microseconds(submitted - begin) / kRuns, Microseconds(end - begin) / kRuns};
  }

 private:
  const Data& of_;
  ps::Executable exec_;
  ps::Bindings io_;
};

constexpr int kBlock = 256;
// An element a thread.
template <class F>
__global__ void Plain(const float* x, const float* y, float* z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i < n) z[i] = F::At(x[i], F::kReadsY ? y[i] : 0);
}
// Four elements a thread.
template <class F>
__global__ void Vectors(const float4* __restrict__ x, const float4* __restrict__ y, float4* __restrict__ z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i >= n / 4) return;
  const float4 a = x[i], b = F::kReadsY ? y[i] : float4{};
  z[i] = {F::At(a.x, b.x), F::At(a.y, b.y), F::At(a.z, b.z), F::At(a.w, b.w)};
}
// As many blocks as run at a time, each thread with four vectors under way.
template <class F>
__global__ void Strided(const float4* __restrict__ x, const float4* __restrict__ y, float4* __restrict__ z, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBlock;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; i < n / 4; i += 4 * step) {
    float4 a[4], b[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i + k * step < n / 4) a[k] = x[i + k * step], b[k] = F::kReadsY ? y[i + k * step] : float4{};
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i + k * step >= n / 4) break;
      z[i + k * step] = {F::At(a[k].x, b[k].x), F::At(a[k].y, b[k].y), F::At(a[k].z, b[k].z), F::At(a[k].w, b[k].w)};
    }
  }
}
// One of the formulas, four elements a thread.
template <class F>
__global__ void OneStep(int step, const float4* x, const float4* y, float4* z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i >= n / 4) return;
  const float4 a = x[i], b = F::ReadsSecond(step) ? y[i] : float4{};
  z[i] = {F::Step(step, a.x, b.x), F::Step(step, a.y, b.y), F::Step(step, a.z, b.z), F::Step(step, a.w, b.w)};
}

enum class By { kPlain, kVectors, kStrided, kSteps };
constexpr std::pair<By, const char*> kByHand[] = {{By::kPlain, "one kernel, plain"},
                                                  {By::kVectors, "one kernel, float4"},
                                                  {By::kStrided, "one kernel, 4 x float4 a thread"},
                                                  {By::kSteps, "a kernel for each formula, float4"}};

template <class F>
class ByHand {
 public:
  ByHand(const Data& of, By by, bool graph) : of_(of), by_(by), stream_(MakeStream()) {
    Check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, 0), "asking for multiprocessors");
    if (by == By::kSteps) {
      for (float*& t : between_) t = MakeDeviceMemory<float>(static_cast<size_t>(of.n));
    }
    if (!graph) return;
    cudaGraph_t captured = nullptr;
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing");
    Submit();
    Check(cudaStreamEndCapture(stream_, &captured), "capturing");
    Check(cudaGraphInstantiate(&exec_, captured, 0), "instantiating");
    Check(cudaGraphDestroy(captured), "destroying a graph");
  }
  ByHand(const ByHand&) = delete;
  ~ByHand() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    for (float* const t : between_) cudaFree(t);
    cudaStreamDestroy(stream_);
  }

  Sample Run() {
    const Clock::time_point begin = Clock::now();
    for (int run = 0; run < kRuns; ++run) {
      if (exec_ != nullptr) Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
      else Submit();
    }
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    of_.CheckResult<F>("by hand");
    return {Microseconds(submitted - begin) / kRuns, Microseconds(end - begin) / kRuns};
  }

 private:
  static auto Words(const float* of) { return reinterpret_cast<const float4*>(of); }
  static auto Words(float* of) { return reinterpret_cast<float4*>(of); }

  void Submit() {
    const float *const x = of_.x->data(), *const y = of_.y->data();
    float* const z = of_.z->data();
    const int64_t n = of_.n;
    const auto blocks = static_cast<unsigned>((n + kBlock - 1) / kBlock), quarter = (blocks + 3) / 4;
    switch (by_) {
      case By::kPlain: Plain<F><<<blocks, kBlock, 0, stream_>>>(x, y, z, n); break;
      case By::kVectors: Vectors<F><<<quarter, kBlock, 0, stream_>>>(Words(x), Words(y), Words(z), n); break;
      case By::kStrided:
        Strided<F><<<static_cast<unsigned>(8 * processors_), kBlock, 0, stream_>>>(Words(x), Words(y), Words(z), n);
        break;
      case By::kSteps: SubmitSteps(x, y, z, quarter);
    }
    Check(cudaGetLastError(), "launching a kernel");
  }
  // The second operand of a later step is what the first has made.
  void SubmitSteps(const float* x, const float* y, float* z, unsigned blocks) {
    const float* from = x;
    for (int step = 0; step < F::kSteps; ++step) {
      float* const to = step + 1 == F::kSteps ? z : between_[step];
      OneStep<F>
          <<<blocks, kBlock, 0, stream_>>>(step, Words(from), Words(step == 0 ? y : between_[0]), Words(to), of_.n);
      from = to;
    }
  }

  const Data& of_;
  const By by_;
  const cudaStream_t stream_;
  float* between_[F::kSteps - 1] = {};
  cudaGraphExec_t exec_ = nullptr;
  int processors_ = 1;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

template <class F>
void MeasureFormula(ps::Runtime& runtime, bool cuda, const Options& options, const Data& of, const std::string& size,
                    Report& report) {
  std::vector<std::unique_ptr<Penstock<F>>> penstock;
  std::vector<std::unique_ptr<ByHand<F>>> raw;
  std::vector<Way> ways;
  for (int graph = 0; graph < 2; ++graph) {
    for (const bool fuse : {true, false}) {
      penstock.push_back(std::make_unique<Penstock<F>>(runtime, of, kModeOf[graph], fuse));
      ways.push_back({Kind::kPenstock, std::string("Penstock, ") + (fuse ? "fused, " : "apart, ") + kModes[graph],
                      [&way = *penstock.back()] { return way.Run(); }, 2 * graph + (fuse ? 0 : 1)});
    }
    for (const auto& [by, text] : kByHand) {
      if (!cuda) continue;
      raw.push_back(std::make_unique<ByHand<F>>(of, by, graph == 1));
      ways.push_back({Kind::kRaw, std::string(text) + ", " + kModes[graph], [&way = *raw.back()] { return way.Run(); },
                      2 * graph + (by == By::kSteps ? 1 : 0)});
    }
  }
  Measure(ways, 3, options.repeats);
  if (!cuda) return;
  const std::string name = size + F::kName;
  for (int graph = 0; graph < 2; ++graph) {
    const auto spread = [&](Kind kind, int apart) {
      return SpreadOf(Best(ways, kind, &Sample::total, 2 * graph + apart), &Sample::total, 1);
    };
    const Spread fused = spread(Kind::kPenstock, 0), apart = spread(Kind::kPenstock, 1);
    const double most = of.n > 1 << 20 ? 1.03 : 0;  // what is short takes as long as its launch
    report.Compare(name + ", fused, " + kModes[graph] + "; raw: the best kernel by hand", "us", spread(Kind::kRaw, 0),
                   fused, most);
    report.Compare(name + ", apart, " + kModes[graph] + "; raw: a kernel for each by hand", "us", spread(Kind::kRaw, 1),
                   apart, most);
    report.Compare(name + ", fused, " + kModes[graph] + "; raw: Penstock, apart", "us", apart, fused, 0);
  }
  report.Details(name, "us", ways, 1);
}

int Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  Report report("Formulas");
  report.Note("All arrays are in device memory. Times are those of " + std::to_string(kRuns) +
              " runs in a row, for each run. Medians of " + std::to_string(options.repeats) +
              " times each, the ways in turn, on " + runtime.devices()[0].description + ".");
  const std::pair<int64_t, const char*> kSizes[] = {{1 << 20, "1 Mi floats, "}, {64 << 20, "64 Mi floats, "}};
  for (const auto& [n, text] : kSizes) {
    if (options.quick && n > 1 << 20) continue;
    const Data data(runtime, n);
    MeasureFormula<Three>(runtime, cuda, options, data, text, report);
    MeasureFormula<Gelu>(runtime, cuda, options, data, text, report);
  }
  if (!cuda) {
    report.Skip(missing, "On a host device everything gave the right results.");
    return 0;
  }
  report.Publish(options);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard(
      [&] { return bench::Main(bench::ParseOptions(argc, argv, "formulas", "Formulas of elements.")); });
}
