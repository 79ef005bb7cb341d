// One value of many, and nothing else: the sum of floats, and the dot product of two vectors, in device memory. Graph's
// Reduce against CUB's DeviceReduce and a tree of two kernels by hand, on streams and as CUDA graphs. All ways copy the
// value to pinned memory.
//
// Penstock's results are compared with the host's bit by bit, the others' within a tolerance: their order is their own.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <cub/device/device_reduce.cuh>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

struct Product {
  PS_HOST_DEVICE float operator()(int64_t i, const float* p, const float* q) const { return p[i] * q[i]; }
};
// The same for iterators; a sum has no q.
struct ValueAt {
  const float *p, *q;
  PS_HOST_DEVICE float operator()(int64_t i) const { return q == nullptr ? p[i] : p[i] * q[i]; }
};

// The tree of penstock/detail/reduce_tree.h, from the top.
float TreeOf(const float* values, size_t n) {
  if (n == 1) return values[0];
  size_t left = 1;
  while (2 * left < n) left *= 2;
  return TreeOf(values, left) + TreeOf(values + left, n - left);
}

// Two vectors on the device, and what is expected of them.
struct Vectors {
  std::vector<float> p, q;
  ps::State<float> on_device_p, on_device_q;
  float sum = 0, dot = 0;
  double near_sum = 0, near_dot = 0;  // with more digits
  double most_sum = 0, most_dot = 0;  // of the absolute values

  Vectors(ps::Runtime& runtime, int64_t n, std::mt19937& random) : p(static_cast<size_t>(n)), q(p.size()) {
    std::uniform_real_distribution<float> any(-1, 1);
    for (size_t i = 0; i < p.size(); ++i) p[i] = any(random), q[i] = any(random);
    on_device_p = Must(runtime.MakeState<float>("p", n, p));
    on_device_q = Must(runtime.MakeState<float>("q", n, q));
    std::vector<float> products(p.size());
    for (size_t i = 0; i < p.size(); ++i) products[i] = p[i] * q[i];
    sum = TreeOf(p.data(), p.size());
    dot = TreeOf(products.data(), products.size());
    for (size_t i = 0; i < p.size(); ++i) {
      near_sum += p[i], most_sum += std::abs(p[i]);
      near_dot += products[i], most_dot += std::abs(products[i]);
    }
  }
  void CheckNear(const std::string& way, bool dots, float found) const {
    const double off = std::abs(found - (dots ? near_dot : near_sum));
    if (!(off <= 1e-5 * (dots ? most_dot : most_sum))) Fail(way + ": the result is wrong");
  }
  void CheckSame(bool dots, float found) const {
    if (std::memcmp(&found, dots ? &dot : &sum, sizeof(float)) != 0) Fail("Penstock: the result has other bits");
  }
};

class Penstock {
 public:
  Penstock(ps::Runtime& runtime, const Vectors& of, bool dots, ps::Mode mode)
      : of_(of), dots_(dots), out_(Must(runtime.MakeHostBuffer<float>(1))) {
    ps::Graph g("reduce");
    auto out = g.Output<float>("out", 1, ps::kPinned);
    const auto n = static_cast<int64_t>(of.p.size());
    if (dots) {
      g.TransformReduce("dot", n, Product{}, ps::Plus(), 0, ps::Read(of.on_device_p), ps::Read(of.on_device_q),
                        ps::Write(out));
    } else {
      g.Reduce("sum", ps::Read(of.on_device_p), ps::Write(out));
    }
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
    io_.Set(out, out_);
  }
  Sample Run() {
    out_[0] = NAN;
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    of_.CheckSame(dots_, out_[0]);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const Vectors& of_;
  const bool dots_;
  ps::HostBuffer<float> out_;
  ps::Executable exec_;
  ps::Bindings io_;
};

// Each block adds up elements a grid apart, then its threads' sums.
constexpr int kBlock = 512;
__global__ void AddUp(ValueAt value, int64_t n, float* out) {
  float sum = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBlock;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    sum += (value(i) + value(i + step)) + (value(i + 2 * step) + value(i + 3 * step));
  }
  for (; i < n; i += step) sum += value(i);
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  __shared__ float warps[kBlock / 32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < kBlock / 32 ? warps[threadIdx.x] : 0;
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// CUB, the two kernels, or a copy of half of the elements, which moves as many bytes and shows what memory can do; on a
// stream or captured from it.
enum class Hand { kCub, kKernels, kCopy };
constexpr const char* kHands[] = {"CUB, ", "two kernels, ", "a copy of half of them, "};
class ByHand {
 public:
  ByHand(const Vectors& of, bool dots, Hand hand, bool graph)
      : of_(of),
        dots_(dots),
        hand_(hand),
        value_{of.on_device_p.data(), dots ? of.on_device_q.data() : nullptr},
        stream_(MakeStream()),
        out_(MakeDeviceMemory<float>(1)) {
    Check(cudaMallocHost(&pinned_, sizeof(float)), "allocating pinned memory");
    int processors = 0;
    Check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "asking for multiprocessors");
    const auto n = static_cast<int64_t>(of.p.size());
    blocks_ = static_cast<unsigned>(std::min<int64_t>((n + 4 * kBlock - 1) / (4 * kBlock), 4 * processors));
    if (hand == Hand::kCub) Check(Cub(nullptr), "asking for scratch");
    if (hand == Hand::kCopy) scratch_bytes_ = HalfBytes();
    scratch_ = MakeDeviceMemory<char>(std::max(scratch_bytes_, blocks_ * sizeof(float)));
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
    cudaFree(scratch_);
    cudaFree(out_);
    cudaFreeHost(pinned_);
    cudaStreamDestroy(stream_);
  }

  Sample Run() {
    *pinned_ = NAN;
    const Clock::time_point begin = Clock::now();
    if (exec_ != nullptr) Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    else Submit();
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    if (hand_ != Hand::kCopy) of_.CheckNear(hand_ == Hand::kCub ? "CUB" : "two kernels", dots_, *pinned_);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  cudaError_t Cub(void* scratch) {
    const auto n = static_cast<int64_t>(of_.p.size());
    if (!dots_) return cub::DeviceReduce::Sum(scratch, scratch_bytes_, value_.p, out_, n, stream_);
    const auto products = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), value_);
    return cub::DeviceReduce::Sum(scratch, scratch_bytes_, products, out_, n, stream_);
  }
  size_t HalfBytes() const { return of_.p.size() / 2 * sizeof(float); }
  void Submit() {
    if (hand_ == Hand::kCub) {
      Check(Cub(scratch_), "DeviceReduce::Sum");
    } else if (hand_ == Hand::kCopy) {
      Check(cudaMemcpyAsync(scratch_, value_.p, HalfBytes(), cudaMemcpyDeviceToDevice, stream_), "copying");
    } else {
      auto* const sums = reinterpret_cast<float*>(scratch_);
      AddUp<<<blocks_, kBlock, 0, stream_>>>(value_, static_cast<int64_t>(of_.p.size()), sums);
      AddUp<<<1, kBlock, 0, stream_>>>(ValueAt{sums, nullptr}, blocks_, out_);
      Check(cudaGetLastError(), "launching kernels");
    }
    Check(cudaMemcpyAsync(pinned_, out_, sizeof(float), cudaMemcpyDeviceToHost, stream_), "copying");
  }

  const Vectors& of_;
  const bool dots_;
  const Hand hand_;
  const ValueAt value_;
  const cudaStream_t stream_;
  float* const out_;
  float* pinned_ = nullptr;
  char* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  unsigned blocks_ = 1;
  cudaGraphExec_t exec_ = nullptr;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

void MeasureOne(ps::Runtime& runtime, bool cuda, const Options& options, const Vectors& of, bool dots,
                const std::string& name, Report& report) {
  std::vector<std::unique_ptr<Penstock>> penstock;
  std::vector<std::unique_ptr<ByHand>> raw;
  std::vector<Way> ways;
  for (int graph = 0; graph < 2; ++graph) {
    penstock.push_back(std::make_unique<Penstock>(runtime, of, dots, kModeOf[graph]));
    ways.push_back({Kind::kPenstock, std::string("Penstock, ") + kModes[graph],
                    [&way = *penstock.back()] { return way.Run(); }, graph});
    for (const Hand hand : {Hand::kCub, Hand::kKernels, Hand::kCopy}) {
      if (!cuda || (dots && hand == Hand::kCopy)) continue;
      raw.push_back(std::make_unique<ByHand>(of, dots, hand, graph == 1));
      ways.push_back({Kind::kRaw, std::string(kHands[static_cast<int>(hand)]) + kModes[graph],
                      [&way = *raw.back()] { return way.Run(); }, hand == Hand::kCopy ? 2 + graph : graph});
    }
  }
  Measure(ways, 3, options.repeats);
  if (!cuda) return;
  for (int graph = 0; graph < 2; ++graph) {
    const Way& best = Best(ways, Kind::kRaw, &Sample::total, graph);
    const Way& ours = Best(ways, Kind::kPenstock, &Sample::total, graph);
    report.Compare(name + ", " + kModes[graph] + "; raw: the best by hand", "us", SpreadOf(best, &Sample::total, 1),
                   SpreadOf(ours, &Sample::total, 1), 0);
    if (dots) continue;
    report.Compare(name + ", " + kModes[graph] + "; raw: a copy of half of them", "us",
                   SpreadOf(Best(ways, Kind::kRaw, &Sample::total, 2 + graph), &Sample::total, 1),
                   SpreadOf(ours, &Sample::total, 1), 0);
  }
  report.Details(name, "us", ways, 1);
}

int Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20260);
  Report report("Reduce");
  report.Note("One slot; the vectors are in device memory, the result goes to pinned memory.");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ".");
  const std::pair<int64_t, const char*> kSizes[] = {
      {4 << 10, "4 Ki"}, {64 << 10, "64 Ki"}, {1 << 20, "1 Mi"}, {64 << 20, "64 Mi"}};
  for (const auto& [n, text] : kSizes) {
    if (options.quick && n > 1 << 20) continue;
    const Vectors vectors(runtime, n, random);
    for (const bool dots : {false, true}) {
      MeasureOne(runtime, cuda, options, vectors, dots, std::string(dots ? "dot of " : "sum of ") + text, report);
    }
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
    return bench::Main(bench::ParseOptions(argc, argv, "reduce", "One value of many: sums and dot products."));
  });
}
