// Sums of all elements before each, and nothing else, in device memory: Penstock's Scan against CUB's DeviceScan, which
// chooses its order while it runs, and a copy, which is the least that anything takes; on streams and as CUDA graphs.
//
// Penstock's results are compared with the host's bit by bit; CUB's are not looked at.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <cub/device/device_scan.cuh>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

// What comes before each element and with it, from sums of aligned blocks: the order of penstock/scan.h.
template <class T>
std::vector<T> SumsOf(const std::vector<T>& x) {
  std::vector<std::vector<T>> blocks{x};
  while (blocks.back().size() > 1) {
    std::vector<T> next(blocks.back().size() / 2);
    for (size_t i = 0; i < next.size(); ++i) next[i] = blocks.back()[2 * i] + blocks.back()[2 * i + 1];
    blocks.push_back(std::move(next));
  }
  std::vector<T> sums(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    T sum = 0;
    bool is = false;
    size_t at = 0;
    for (size_t k = blocks.size(); k-- > 0;) {
      if ((i >> k & 1) == 0) continue;
      sum = is ? sum + blocks[k][at >> k] : blocks[k][at >> k];
      is = true;
      at += size_t{1} << k;
    }
    sums[i] = is ? sum + x[i] : x[i];
  }
  return sums;
}

template <class T>
struct Vectors {
  std::vector<T> sums, found;
  ps::State<T> x, y;

  Vectors(ps::Runtime& runtime, int64_t n, std::mt19937& random) : found(static_cast<size_t>(n)) {
    std::uniform_real_distribution<double> any(-1000, 1000);
    std::vector<T> values(found.size());
    for (T& v : values) v = static_cast<T>(any(random));
    x = Must(runtime.MakeState<T>("x", n, values));
    y = Must(runtime.MakeState<T>("y", n));
    sums = SumsOf(values);
  }
  int64_t n() const { return static_cast<int64_t>(sums.size()); }
};

template <class T>
class Penstock {
 public:
  Penstock(ps::Runtime& runtime, const Vectors<T>& of, ps::Mode mode) {
    ps::Graph g("scan");
    ps::Scan(g, "sums", ps::Read(of.x), ps::Write(of.y));
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
  }
  Sample Run() {
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    return {Microseconds(submitted - begin), Microseconds(Clock::now() - begin)};
  }

 private:
  ps::Executable exec_;
  ps::Bindings io_;
};

// CUB, on a stream or captured from it; or a copy in its place, the least that anything takes.
template <class T>
class ByHand {
 public:
  ByHand(const Vectors<T>& of, bool copies, bool graph) : of_(of), copies_(copies), stream_(MakeStream()) {
    Check(Cub(nullptr), "asking for scratch");
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
    cudaStreamDestroy(stream_);
  }

  Sample Run() {
    const Clock::time_point begin = Clock::now();
    if (exec_ != nullptr) Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    else Submit();
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    return {Microseconds(submitted - begin), Microseconds(Clock::now() - begin)};
  }

 private:
  cudaError_t Cub(void* scratch) {
    return cub::DeviceScan::InclusiveSum(scratch, scratch_bytes_, of_.x.data(), of_.y.data(), of_.n(), stream_);
  }
  void Submit() {
    if (!copies_) return Check(Cub(scratch_), "DeviceScan::InclusiveSum");
    Check(cudaMemcpyAsync(of_.y.data(), of_.x.data(), sizeof(T) * of_.sums.size(), cudaMemcpyDeviceToDevice, stream_),
          "copying");
  }

  const Vectors<T>& of_;
  const bool copies_;
  const cudaStream_t stream_;
  char* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  cudaGraphExec_t exec_ = nullptr;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

template <class T>
void CheckSame(Vectors<T>& of) {
  Must(of.y.Read(of.found));
  if (std::memcmp(of.found.data(), of.sums.data(), sizeof(T) * of.sums.size()) != 0) {
    Fail("Penstock: the result has other bits");
  }
  Must(of.y.Reset());
}

template <class T>
void MeasureOne(ps::Runtime& runtime, bool cuda, const Options& options, int64_t n, const std::string& name,
                std::mt19937& random, Report& report) {
  Vectors<T> of(runtime, n, random);
  std::vector<std::unique_ptr<Penstock<T>>> penstock;
  std::vector<std::unique_ptr<ByHand<T>>> raw;
  std::vector<Way> ways;
  for (int graph = 0; graph < 2; ++graph) {
    penstock.push_back(std::make_unique<Penstock<T>>(runtime, of, kModeOf[graph]));
    penstock.back()->Run();
    CheckSame(of);
    ways.push_back({Kind::kPenstock, std::string("Penstock, ") + kModes[graph],
                    [&way = *penstock.back()] { return way.Run(); }, graph});
    if (!cuda) continue;
    raw.push_back(std::make_unique<ByHand<T>>(of, false, graph == 1));
    ways.push_back(
        {Kind::kRaw, std::string("CUB, ") + kModes[graph], [&way = *raw.back()] { return way.Run(); }, graph});
    raw.push_back(std::make_unique<ByHand<T>>(of, true, graph == 1));
    ways.push_back(
        {Kind::kRaw, std::string("a copy, ") + kModes[graph], [&way = *raw.back()] { return way.Run(); }, 2 + graph});
  }
  Measure(ways, 3, options.repeats);
  if (!cuda) return;
  for (int graph = 0; graph < 2; ++graph) {
    const Way& best = Best(ways, Kind::kRaw, &Sample::total, graph);
    const Way& ours = Best(ways, Kind::kPenstock, &Sample::total, graph);
    report.Compare(name + ", " + kModes[graph] + "; raw: CUB", "us", SpreadOf(best, &Sample::total, 1),
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
  std::mt19937 random(20261);
  Report report("Scan");
  report.Note("One slot; the vectors are in device memory and stay there. Penstock's order is fixed, CUB's is not.");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ".");
  const std::pair<int64_t, const char*> kSizes[] = {{64 << 10, "64 Ki"}, {1 << 20, "1 Mi"}, {64 << 20, "64 Mi"}};
  for (const auto& [n, text] : kSizes) {
    if (options.quick && n > 1 << 20) continue;
    MeasureOne<float>(runtime, cuda, options, n, std::string("sums of ") + text + " floats", random, report);
    MeasureOne<int32_t>(runtime, cuda, options, n, std::string("sums of ") + text + " int32_t", random, report);
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
      [&] { return bench::Main(bench::ParseOptions(argc, argv, "scan", "Sums of all elements before each.")); });
}
