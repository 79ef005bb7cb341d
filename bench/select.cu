// The elements of a vector that are kept, half of them, and nothing else, in device memory: Penstock's Select against
// CUB's DeviceSelect, on streams and as CUDA graphs. Then a kernel over what is kept: Penstock's over a CountOf,
// without a trip to the host, against programs by hand that read the count back to launch it.
//
// Everything that is kept is compared with std::copy_if.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include <algorithm>
#include <cub/device/device_select.cuh>
#include <iterator>
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

struct IsOdd {
  PENSTOCK_HOST_DEVICE bool operator()(int32_t x) const { return (x & 1) != 0; }
  PENSTOCK_HOST_DEVICE bool operator()(float x) const { return x > 0; }
};
struct Use {
  template <class T>
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, ps::View<const T> kept, ps::View<T> to) const {
    to(i) = kept(i) + 1;
  }
};
template <class T>
__global__ void UseKept(const T* kept, T* to, int32_t n) {
  const int32_t i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = kept[i] + 1;
}

template <class T>
struct Vectors {
  std::vector<T> want, found;
  ps::State<T> x, kept, used;
  ps::State<int32_t> count;

  Vectors(ps::Runtime& runtime, int64_t n, std::mt19937& random) : found(static_cast<size_t>(n)) {
    std::vector<T> values(found.size());
    for (T& v : values) v = static_cast<T>(static_cast<int32_t>(random()) >> 4);
    x = Must(runtime.MakeState<T>("x", n, values));
    kept = Must(runtime.MakeState<T>("kept", n));
    used = Must(runtime.MakeState<T>("used", n));
    count = Must(runtime.MakeState<int32_t>("count", 1));
    std::copy_if(values.begin(), values.end(), std::back_inserter(want), IsOdd());
  }
  int64_t n() const { return static_cast<int64_t>(found.size()); }

  void CheckKept() { Check(kept, 0); }
  void CheckUsed() { Check(used, 1); }

 private:
  void Check(ps::State<T>& state, T more) {
    std::vector<int32_t> counted(1);
    Must(count.Read(counted));
    Must(state.Read(found));
    bool same = counted[0] == static_cast<int32_t>(want.size());
    for (size_t i = 0; same && i < want.size(); ++i) same = found[i] == want[i] + more;
    if (!same) Fail("what is kept is wrong");
    Must(state.Reset());
  }
};

template <class T>
class Penstock {
 public:
  Penstock(ps::Runtime& runtime, const Vectors<T>& of, ps::Mode mode, bool uses) {
    ps::Graph g("select");
    ps::Select(g, "kept", ps::Read(of.x), ps::Write(of.kept), ps::Write(of.count), IsOdd());
    if (uses) {
      g.ParallelFor("use", ps::CountOf(ps::Read(of.count), of.n()), Use(), ps::Read(of.kept), ps::Write(of.used));
    }
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

// CUB, with counts of type N, on a stream or captured from it. `read`: how the count comes back to launch what uses it.
enum class ReadBack { kNot, kCopy, kMapped };
template <class T, class N>
class ByHand {
 public:
  ByHand(const Vectors<T>& of, bool graph, ReadBack read) : of_(of), read_(read), stream_(MakeStream()) {
    Check(cudaHostAlloc(&on_host_, sizeof(int32_t), cudaHostAllocMapped), "allocating pinned memory");
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
    cudaFreeHost(on_host_);
    cudaStreamDestroy(stream_);
  }

  Sample Run() {
    const Clock::time_point begin = Clock::now();
    if (exec_ != nullptr) Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    else Submit();
    Clock::time_point submitted = Clock::now();
    if (read_ != ReadBack::kNot) {
      Check(cudaStreamSynchronize(stream_), "waiting for the count");
      const int32_t n = *on_host_;
      if (n > 0) UseKept<<<(n + 255) / 256, 256, 0, stream_>>>(of_.kept.data(), of_.used.data(), n);
      Check(cudaGetLastError(), "launching a kernel");
      submitted = Clock::now();
    }
    Check(cudaStreamSynchronize(stream_), "waiting");
    return {Microseconds(submitted - begin), Microseconds(Clock::now() - begin)};
  }

 private:
  int32_t* Count() const { return read_ == ReadBack::kMapped ? on_host_ : of_.count.data(); }
  cudaError_t Cub(void* scratch) {
    return cub::DeviceSelect::If(scratch, scratch_bytes_, of_.x.data(), of_.kept.data(), Count(),
                                 static_cast<N>(of_.n()), IsOdd(), stream_);
  }
  void Submit() {
    Check(Cub(scratch_), "DeviceSelect::If");
    if (read_ != ReadBack::kCopy) return;
    Check(cudaMemcpyAsync(on_host_, of_.count.data(), sizeof(int32_t), cudaMemcpyDeviceToHost, stream_), "copying");
  }

  const Vectors<T>& of_;
  const ReadBack read_;
  const cudaStream_t stream_;
  char* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  int32_t* on_host_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

// All ways of one program, to measure in turn.
class Ways {
 public:
  template <class W>
  void Add(Kind kind, const std::string& name, int group, std::unique_ptr<W> way) {
    const std::shared_ptr<W> shared = std::move(way);
    shared->Run();
    ways_.push_back({kind, name, [shared] { return shared->Run(); }, group});
  }
  void Report(class Report& report, const Options& options, const std::string& name, const char* raw) {
    Measure(ways_, 3, options.repeats);
    for (int graph = 0; graph < 2; ++graph) {
      report.Compare(name + ", " + kModes[graph] + "; raw: " + raw, "us",
                     SpreadOf(Best(ways_, Kind::kRaw, &Sample::total, graph), &Sample::total, 1),
                     SpreadOf(Best(ways_, Kind::kPenstock, &Sample::total, graph), &Sample::total, 1), 0);
    }
    report.Details(name, "us", ways_, 1);
  }

 private:
  std::vector<Way> ways_;
};

template <class T>
void MeasureOne(ps::Runtime& runtime, bool cuda, const Options& options, int64_t n, const std::string& name,
                std::mt19937& random, Report& report) {
  Vectors<T> of(runtime, n, random);
  Ways keep, use;
  for (int graph = 0; graph < 2; ++graph) {
    const std::string mode = std::string(", ") + kModes[graph];
    keep.Add(Kind::kPenstock, "Penstock" + mode, graph,
             std::make_unique<Penstock<T>>(runtime, of, kModeOf[graph], false));
    of.CheckKept();
    use.Add(Kind::kPenstock, "Penstock" + mode, graph,
            std::make_unique<Penstock<T>>(runtime, of, kModeOf[graph], true));
    of.CheckUsed();
    if (!cuda) continue;
    const auto keep_by_hand = [&](auto type, const char* bits) {
      keep.Add(Kind::kRaw, std::string("CUB, ") + bits + mode, graph,
               std::make_unique<ByHand<T, decltype(type)>>(of, graph == 1, ReadBack::kNot));
      of.CheckKept();
    };
    keep_by_hand(int32_t{}, "32-bit");
    keep_by_hand(int64_t{}, "64-bit");
    const auto use_by_hand = [&](ReadBack read, const char* how) {
      use.Add(Kind::kRaw, std::string("the count ") + how + mode, graph,
              std::make_unique<ByHand<T, int32_t>>(of, graph == 1, read));
    };
    use_by_hand(ReadBack::kCopy, "copied");
    of.CheckUsed();
    use_by_hand(ReadBack::kMapped, "in mapped memory");
  }
  if (!cuda) return;
  keep.Report(report, options, name, "CUB");
  use.Report(report, options, name + ", and use them", "the count read back");
}

int Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20262);
  Report report("Select");
  report.Note("One slot; the vectors are in device memory and stay there. Half of the elements are kept.");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ".");
  const std::pair<int64_t, const char*> kSizes[] = {{64 << 10, "64 Ki"}, {1 << 20, "1 Mi"}, {64 << 20, "64 Mi"}};
  for (const auto& [n, text] : kSizes) {
    if (options.quick && n > 1 << 20) continue;
    MeasureOne<float>(runtime, cuda, options, n, std::string("half of ") + text + " floats", random, report);
    MeasureOne<int32_t>(runtime, cuda, options, n, std::string("half of ") + text + " int32_t", random, report);
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
      [&] { return bench::Main(bench::ParseOptions(argc, argv, "select", "The elements that are kept.")); });
}
