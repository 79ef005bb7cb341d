// Counts of 256 bins: 2^26 elements in device memory, bytes, 32-bit numbers and floats. Penstock's Histogram against
// CUB's DeviceHistogram::HistogramEven, with 32-bit and with 64-bit counts of elements, and a kernel by hand whose
// blocks count in shared memory; on streams and as CUDA graphs. Elements are even over all bins, or all of one bin.
//
// Counts are compared with the host's after each run.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include "penstock/histogram.h"

#include <algorithm>
#include <cub/device/device_histogram.cuh>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

constexpr int kBins = 256;
using Counts = std::vector<uint32_t>;

// Elements on the device, and their counts.
template <class T>
struct Elements {
  Elements(ps::Runtime& runtime, int64_t n, bool one_bin, std::mt19937& random) : expected(kBins) {
    std::vector<T> values(static_cast<size_t>(n));
    for (T& value : values) {
      const uint32_t bin = one_bin ? 7 : static_cast<uint32_t>(random()) % kBins;
      value = static_cast<T>(bin);
      ++expected[bin];
    }
    on_device = Must(runtime.MakeState<T>("x", n, values));
  }
  int64_t n() const { return on_device.extent().dims[0].value; }

  ps::State<T> on_device;
  Counts expected;
};

template <class T>
class Penstock {
 public:
  Penstock(ps::Runtime& runtime, const Elements<T>& of, ps::Mode mode)
      : of_(of), found_(Must(runtime.MakeHostBuffer<uint32_t>(kBins))) {
    ps::Graph g("histogram");
    auto counts = g.Output<uint32_t>("counts", kBins, ps::kPinned);
    if constexpr (std::is_integral_v<T>) {
      ps::Histogram(g, "count", ps::Read(of.on_device), ps::Write(counts), ps::OwnBin());
    } else {
      ps::Histogram(g, "count", ps::Read(of.on_device), ps::Write(counts), ps::EvenBins<T>(0, kBins, kBins));
    }
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
    io_.Set(counts, found_);
  }
  Sample Run() {
    std::fill(found_.begin(), found_.end(), 0xDEADBEEF);
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    if (!std::equal(found_.begin(), found_.end(), of_.expected.begin())) Fail("Penstock: the counts are wrong");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  const Elements<T>& of_;
  ps::HostBuffer<uint32_t> found_;
  ps::Executable exec_;
  ps::Bindings io_;
};

// Several loads under way, one array of counts for each block of 512 threads.
constexpr int kBlock = 512;
template <class T>
__global__ void CountByHand(const T* x, int64_t n, uint32_t* out) {
  __shared__ unsigned counts[kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock) counts[i] = 0;
  __syncthreads();
  constexpr int kInWord = 16 / sizeof(T), kWords = 4;
  const auto* const words = reinterpret_cast<const uint4*>(x);
  const int64_t all = n / kInWord, step = static_cast<int64_t>(gridDim.x) * kBlock;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; i < all; i += kWords * step) {
    uint4 loaded[kWords];
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (i + k * step < all) loaded[k] = words[i + k * step];
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (i + k * step >= all) break;
      T elements[kInWord];
      memcpy(elements, &loaded[k], sizeof(uint4));
#pragma unroll
      for (int e = 0; e < kInWord; ++e) {
        const int bin = static_cast<int>(elements[e]);
        if (bin >= 0 && bin < kBins) atomicAdd(&counts[bin], 1u);
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock) {
    if (counts[i] > 0) atomicAdd(&out[i], counts[i]);
  }
}

enum class By { kInts, kLongs, kKernel };
constexpr std::pair<By, const char*> kByHand[] = {
    {By::kInts, "CUB, 32-bit"}, {By::kLongs, "CUB, 64-bit"}, {By::kKernel, "a kernel by hand"}};

template <class T>
class ByHand {
 public:
  ByHand(const Elements<T>& of, By by, bool graph)
      : of_(of), by_(by), stream_(MakeStream()), out_(MakeDeviceMemory<uint32_t>(kBins)) {
    Check(cudaMallocHost(&pinned_, kBins * sizeof(uint32_t)), "allocating pinned memory");
    Check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, 0), "asking for multiprocessors");
    if (by != By::kKernel) Check(Cub(nullptr), "asking for scratch");
    scratch_ = MakeDeviceMemory<char>(std::max<size_t>(scratch_bytes_, 1));
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
    std::fill(pinned_, pinned_ + kBins, 0xDEADBEEF);
    const Clock::time_point begin = Clock::now();
    if (exec_ != nullptr) Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    else Submit();
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    if (!std::equal(pinned_, pinned_ + kBins, of_.expected.begin())) Fail("by hand: the counts are wrong");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  cudaError_t Cub(void* scratch) {
    const auto count = [&](auto n) {
      return cub::DeviceHistogram::HistogramEven(scratch, scratch_bytes_, of_.on_device.data(), out_, kBins + 1, 0,
                                                 kBins, n, stream_);
    };
    return by_ == By::kInts ? count(static_cast<int>(of_.n())) : count(of_.n());
  }
  void Submit() {
    if (by_ == By::kKernel) {
      Check(cudaMemsetAsync(out_, 0, kBins * sizeof(uint32_t), stream_), "clearing");
      CountByHand<T>
          <<<static_cast<unsigned>(4 * processors_), kBlock, 0, stream_>>>(of_.on_device.data(), of_.n(), out_);
      Check(cudaGetLastError(), "launching the kernel");
    } else {
      Check(Cub(scratch_), "HistogramEven");
    }
    Check(cudaMemcpyAsync(pinned_, out_, kBins * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream_), "copying");
  }

  const Elements<T>& of_;
  const By by_;
  const cudaStream_t stream_;
  uint32_t* const out_;
  uint32_t* pinned_ = nullptr;
  char* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  int processors_ = 1;
  cudaGraphExec_t exec_ = nullptr;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

template <class T>
void MeasureOne(ps::Runtime& runtime, bool cuda, const Options& options, const Elements<T>& of, const std::string& name,
                Report& report) {
  std::vector<std::unique_ptr<Penstock<T>>> penstock;
  std::vector<std::unique_ptr<ByHand<T>>> raw;
  std::vector<Way> ways;
  for (int graph = 0; graph < 2; ++graph) {
    penstock.push_back(std::make_unique<Penstock<T>>(runtime, of, kModeOf[graph]));
    ways.push_back({Kind::kPenstock, std::string("Penstock, ") + kModes[graph],
                    [&way = *penstock.back()] { return way.Run(); }, graph});
    for (const auto& [by, text] : kByHand) {
      if (!cuda) continue;
      raw.push_back(std::make_unique<ByHand<T>>(of, by, graph == 1));
      ways.push_back(
          {Kind::kRaw, std::string(text) + ", " + kModes[graph], [&way = *raw.back()] { return way.Run(); }, graph});
    }
  }
  Measure(ways, 3, options.repeats);
  if (!cuda) return;
  for (int graph = 0; graph < 2; ++graph) {
    const Way& best = Best(ways, Kind::kRaw, &Sample::total, graph);
    const Way& ours = Best(ways, Kind::kPenstock, &Sample::total, graph);
    const Spread found = SpreadOf(ours, &Sample::total, 1);
    std::vector<Way> cub;
    std::copy_if(ways.begin(), ways.end(), std::back_inserter(cub),
                 [](const Way& way) { return way.name.starts_with("CUB"); });
    report.Compare(name + ", " + kModes[graph] + "; raw: the best by hand", "us", SpreadOf(best, &Sample::total, 1),
                   found, 0);
    report.Compare(name + ", " + kModes[graph] + "; raw: CUB", "us",
                   SpreadOf(Best(cub, Kind::kRaw, &Sample::total, graph), &Sample::total, 1), found, 0);
  }
  report.Details(name, "us", ways, 1);
}

template <class T>
void MeasureType(ps::Runtime& runtime, bool cuda, const Options& options, const std::string& type, Report& report) {
  std::mt19937 random(20272);
  const std::pair<int64_t, const char*> kSizes[] = {{1 << 20, "1 Mi "}, {64 << 20, "64 Mi "}};
  for (const auto& [n, text] : kSizes) {
    if (options.quick && n > 1 << 20) continue;
    for (const bool one_bin : {false, true}) {
      const Elements<T> elements(runtime, n, one_bin, random);
      MeasureOne<T>(runtime, cuda, options, elements, text + type + (one_bin ? ", one bin" : ""), report);
    }
  }
}

int Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  Report report("Histogram");
  report.Note("256 bins, one slot; elements are in device memory, and the counts go to pinned memory. Medians of " +
              std::to_string(options.repeats) + " runs each, the ways in turn, on " + runtime.devices()[0].description +
              ".");
  MeasureType<uint8_t>(runtime, cuda, options, "bytes", report);
  MeasureType<int32_t>(runtime, cuda, options, "numbers", report);
  MeasureType<float>(runtime, cuda, options, "floats", report);
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
  return bench::Guard([&] { return bench::Main(bench::ParseOptions(argc, argv, "histogram", "Counts of 256 bins.")); });
}
