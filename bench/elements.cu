// ParallelFor over large extents against kernels by hand, on the device alone: short functors, of which the device can
// take in as many as its memory brings. Raw kernels compute an element a thread, in blocks of 256 by one, 64 by 4 and
// 32 by 8, or four rows a thread in blocks of 256 by one.
//
// Both ways replay a graph of one kernel 20 times in a row and compute the same, into poisoned memory; the results are
// compared with the host's, of the largest extents for the first run of each way.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

constexpr int kRuns = 20;
constexpr int64_t kAlwaysChecked = 1 << 20;

// Five points of a grid with a row more above and below. Unsigned, so that every order of fusing gives the same bits.
struct Heat {
  using Value = uint32_t;
  static constexpr const char* kName = "five points, 4 bytes";
  static constexpr int64_t kMore = 2;
  PS_HOST_DEVICE static uint32_t At(const uint32_t* in, int64_t y, int64_t x, int64_t w) {
    const uint32_t* at = in + (y + 1) * w + x;
    return x == 0 || x == w - 1 ? *at : *at * 5 + at[-w] + at[-1] + at[1] + at[w];
  }
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint32_t> in, ps::View<uint32_t> out) const {
    const int64_t y = i.y + 1, x = i.x;
    const bool edge = x == 0 || x == in.width - 1;
    out(i.y, x) = edge ? in(y, x) : in(y, x) * 5 + in(y - 1, x) + in(y, x - 1) + in(y, x + 1) + in(y + 1, x);
  }
};
// Two bytes above each other.
struct Blur {
  using Value = uint8_t;
  static constexpr const char* kName = "two points, a byte";
  static constexpr int64_t kMore = 1;
  PS_HOST_DEVICE static uint8_t At(const uint8_t* in, int64_t y, int64_t x, int64_t w) {
    return static_cast<uint8_t>((in[y * w + x] + in[(y + 1) * w + x]) / 2);
  }
  PS_HOST_DEVICE void operator()(ps::Index2 i, ps::View<const uint8_t> in, ps::View<uint8_t> out) const {
    out(i.y, i.x) = static_cast<uint8_t>((in(i.y, i.x) + in(i.y + 1, i.x)) / 2);
  }
};
// One element after the other.
struct Scale {
  using Value = float;
  static constexpr const char* kName = "a line, 4 bytes";
  static constexpr int64_t kMore = 0;
  PS_HOST_DEVICE static float At(const float* in, int64_t, int64_t x, int64_t) { return in[x] * 2; }
  PS_HOST_DEVICE void operator()(int64_t i, ps::View<const float> in, ps::View<float> out) const { out(i) = in(i) * 2; }
};

template <class Work, int kRows>
__global__ void RawKernel(const typename Work::Value* in, typename Work::Value* out, int64_t h, int64_t w) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // with programmatic edges a kernel is launched while the one before is ending
#endif
  const int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t first = (static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y) * kRows;
  if (x >= w) return;
#pragma unroll
  for (int64_t y = first; y < first + kRows; ++y) {
    if (y < h) out[y * w + x] = Work::At(in, y, x, w);
  }
}

struct Context {
  const Options& options;
  bool cuda;
  ps::Runtime& runtime;
  std::mt19937& random;
};

template <class Work>
class Case {
 public:
  using Value = typename Work::Value;
  Case(Context& context, int64_t h, int64_t w) : h_(h), w_(w), host_(static_cast<size_t>((h + Work::kMore) * w)) {
    in_ = Must(context.runtime.MakeDeviceBuffer<Value>((h + Work::kMore) * w));
    out_ = Must(context.runtime.MakeDeviceBuffer<Value>(h * w));
    ps::Graph graph("elements");
    const ps::Extent from = h == 1 ? ps::Extent(w) : ps::Extent(h + Work::kMore, w);
    const ps::Extent to = h == 1 ? ps::Extent(w) : ps::Extent(h, w);
    auto in = graph.Input<Value>("in", from, ps::kDevice);
    auto out = graph.Output<Value>("out", to, ps::kDevice);
    for (int run = 0; run < kRuns; ++run) {
      graph.ParallelFor(ps::Name("run", run), to, Work{}, ps::Read(in), ps::Write(out));
    }
    exec_ = Must(context.runtime.Compile(graph, {.slots = 1, .mode = ps::Mode::kGraph}));
    io_ = exec_.bindings().Set(in, in_).Set(out, out_);
    for (Value& value : host_) value = static_cast<Value>(context.random());
    ps::Graph put("put"), poison("poison"), get("get");
    auto put_from = put.Input<Value>("from", from);
    auto put_to = put.Output<Value>("to", from, ps::kDevice), poisoned = poison.Output<Value>("out", to, ps::kDevice);
    put.Copy("put", put_from, put_to);
    poison.Fill("poison", poisoned, Value(0x5A));
    auto get_from = get.Input<Value>("from", to, ps::kDevice);
    auto get_to = get.Output<Value>("to", to);
    get.Copy("get", get_from, get_to);
    found_.resize(static_cast<size_t>(h * w));
    ps::Executable put_exec = Must(context.runtime.Compile(put));
    Must(Must(put_exec.Launch(put_exec.bindings().Set(put_from, host_).Set(put_to, in_))).Wait());
    poison_ = Must(context.runtime.Compile(poison));
    get_ = Must(context.runtime.Compile(get));
    poison_io_ = poison_.bindings().Set(poisoned, out_);
    get_io_ = get_.bindings().Set(get_from, out_).Set(get_to, found_);
    if (context.cuda) stream_ = MakeStream();
  }

  Sample Penstock() {
    return Timed("Penstock", [&] { Must(Must(exec_.Launch(io_)).Wait()); });
  }
  template <int kRows>
  Sample Raw(const std::string& way, dim3 block) {
    const auto blocks = [](int64_t n, int64_t by) { return static_cast<unsigned>((n + by - 1) / by); };
    const dim3 grid(blocks(w_, block.x), blocks(h_, int64_t{block.y} * kRows));
    cudaGraphExec_t& exec = raw_[way];
    if (exec == nullptr) exec = Capture(RawKernel<Work, kRows>, grid, block);
    return Timed(way, [&] {
      Check(cudaGraphLaunch(exec, stream_), "launching a graph");
      Check(cudaStreamSynchronize(stream_), "waiting");
    });
  }

 private:
  using Kernel = void (*)(const Value*, Value*, int64_t, int64_t);
  // A graph of kRuns kernels in a row, with programmatic edges.
  cudaGraphExec_t Capture(Kernel kernel, dim3 grid, dim3 block) {
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int run = 0; run < kRuns; ++run) {
      cudaLaunchAttribute early{};
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = grid;
      config.blockDim = block;
      config.stream = stream_;
      config.attrs = &early;
      config.numAttrs = run > 0 ? 1 : 0;
      const Value* in = in_.data();
      Check(cudaLaunchKernelEx(&config, kernel, in, out_.data(), h_, w_), "capturing a kernel");
    }
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Check(cudaStreamEndCapture(stream_, &graph), "capturing");
    Check(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    Check(cudaGraphDestroy(graph), "destroying a graph");
    return exec;
  }

  template <class F>
  Sample Timed(const std::string& way, F run) {
    Must(Must(poison_.Launch(poison_io_)).Wait());
    const Clock::time_point begin = Clock::now();
    run();
    const double took = Microseconds(Clock::now() - begin);
    if (h_ * w_ > kAlwaysChecked && !checked_.insert(way).second) return {took, took};
    Must(Must(get_.Launch(get_io_)).Wait());
    for (int64_t i = 0; i < h_ * w_; ++i) {
      if (found_[static_cast<size_t>(i)] != Work::At(host_.data(), i / w_, i % w_, w_)) {
        Fail(way + ": element " + std::to_string(i) + " is wrong");
      }
    }
    return {took, took};
  }

  const int64_t h_, w_;
  std::vector<Value> host_, found_;
  std::set<std::string> checked_;
  std::map<std::string, cudaGraphExec_t> raw_;
  ps::DeviceBuffer<Value> in_, out_;
  ps::Executable exec_, poison_, get_;
  ps::Bindings io_, poison_io_, get_io_;
  cudaStream_t stream_ = nullptr;
};

template <class Work>
void MeasureCase(Context& context, Report& report, int64_t h, int64_t w, double target) {
  Case<Work> of(context, h, w);
  std::vector<Way> ways;
  if (context.cuda) {
    const auto raw = [&](const char* name, dim3 block) {
      const std::string way = std::string("an element a thread, ") + name;
      ways.push_back({Kind::kRaw, way, [&of, way, block] { return of.template Raw<1>(way, block); }});
    };
    raw("256 x 1", dim3(256, 1)), raw("64 x 4", dim3(64, 4)), raw("32 x 8", dim3(32, 8));
    const std::string way = "four rows a thread, 256 x 1";
    ways.push_back({Kind::kScale, way, [&of, way] { return of.template Raw<4>(way, dim3(256, 1)); }});
  }
  ways.push_back({Kind::kPenstock, "Penstock", [&] { return of.Penstock(); }});
  Measure(ways, 1, context.options.repeats);
  if (!context.cuda) return;
  const std::string name =
      std::string(Work::kName) + ", " + (h > 1 ? std::to_string(h) + " x " : "") + std::to_string(w);
  const Spread ours = SpreadOf(Find(ways, "Penstock"), &Sample::total, 1.0 / kRuns);
  report.Compare(name + "; raw: an element a thread", "us",
                 SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1.0 / kRuns), ours, target);
  report.Compare(name + "; raw: four rows a thread", "us",
                 SpreadOf(Find(ways, "four rows a thread, 256 x 1"), &Sample::total, 1.0 / kRuns), ours, 0);
  report.Details(name, "us", ways, 1.0 / kRuns);
}

int Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20227);
  Context context{options, cuda, runtime, random};
  Report report("Elements");
  report.Note("A kernel of " + std::to_string(kRuns) + " in a row, medians of " + std::to_string(options.repeats) +
              " rounds, the ways in turn, on " + runtime.devices()[0].description + "; results are checked.");
  for (const int64_t n : options.quick ? std::vector<int64_t>{96} : std::vector<int64_t>{512, 1024, 2048, 4096, 8192}) {
    MeasureCase<Heat>(context, report, n, n, 1.02);
    MeasureCase<Blur>(context, report, n, n, 1.02);
    MeasureCase<Scale>(context, report, 1, n * n, 1.02);
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
  return bench::Guard([&] {
    return bench::Main(
        bench::ParseOptions(argc, argv, "elements", "ParallelFor over large extents, beside kernels by hand."));
  });
}
