// Keys in order: 32-bit numbers in device memory, alone and with a 32-bit value each. Penstock's Sort and SortPairs
// against CUB's DeviceRadixSort by hand, on streams and as CUDA graphs. All ways keep what they sort.
//
// By hand there are CUB's call with 32-bit and with 64-bit counts, and a copy that is sorted in place by a
// DoubleBuffer. Results are compared with the host's, whose sort is std::sort of keys and indices, after each run.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include "penstock/sort.h"

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"

namespace bench {
namespace {

// Counts where two arrays differ.
__global__ void CountDifferent(const uint32_t* a, const uint32_t* b, int64_t n, uint32_t* count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n && a[i] != b[i]) atomicAdd(count, 1u);
}

using Words = std::vector<uint32_t>;

// Keys and values on the device, what is expected of them, and where results go.
class Arrays {
 public:
  Arrays(ps::Runtime& runtime, int64_t n, bool cuda, std::mt19937& random)
      : keys(static_cast<size_t>(n)), values(keys.size()), sorted_keys_(keys.size()), sorted_values_(keys.size()) {
    std::vector<uint64_t> both(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = static_cast<uint32_t>(random()) >> (i % 2);
      values[i] = static_cast<uint32_t>(i);
      both[i] = uint64_t{keys[i]} << 32 | i;
    }
    std::sort(both.begin(), both.end());
    for (size_t i = 0; i < both.size(); ++i) {
      sorted_keys_[i] = static_cast<uint32_t>(both[i] >> 32);
      sorted_values_[i] = static_cast<uint32_t>(both[i]);
    }
    keys_in = Must(runtime.MakeState<uint32_t>("keys", n, keys));
    values_in = Must(runtime.MakeState<uint32_t>("values", n, values));
    keys_out = Must(runtime.MakeState<uint32_t>("sorted keys", n));
    values_out = Must(runtime.MakeState<uint32_t>("sorted values", n));
    if (!cuda) return;
    for (const Words* of : {&sorted_keys_, &sorted_values_}) {
      expected_.push_back(MakeDeviceMemory<uint32_t>(of->size()));
      Check(cudaMemcpy(expected_.back(), of->data(), of->size() * 4, cudaMemcpyHostToDevice), "copying");
    }
    different_ = MakeDeviceMemory<uint32_t>(1);
  }
  Arrays(const Arrays&) = delete;
  ~Arrays() {
    for (uint32_t* memory : expected_) cudaFree(memory);
    cudaFree(different_);
  }

  int64_t n() const { return static_cast<int64_t>(keys.size()); }
  void Poison() {
    if (expected_.empty()) return;
    for (auto* state : {&keys_out, &values_out}) {
      Check(cudaMemset(state->data(), 0x5a, keys.size() * 4), "poisoning");
    }
    Check(cudaDeviceSynchronize(), "poisoning");
  }
  void CheckResult(const std::string& way, bool pairs) {
    for (int which = 0; which <= int{pairs}; ++which) {
      ps::State<uint32_t>& found = which == 0 ? keys_out : values_out;
      if (expected_.empty()) {
        Words words(keys.size());
        Must(found.Read(words));
        if (words != (which == 0 ? sorted_keys_ : sorted_values_)) Fail(way + ": the result is wrong");
        continue;
      }
      uint32_t different = 0;
      Check(cudaMemset(different_, 0, 4), "clearing");
      CountDifferent<<<static_cast<unsigned>((n() + 255) / 256), 256>>>(
          found.data(), expected_[static_cast<size_t>(which)], n(), different_);
      Check(cudaMemcpy(&different, different_, 4, cudaMemcpyDeviceToHost), "comparing");
      if (different != 0) Fail(way + ": " + std::to_string(different) + " elements are wrong");
    }
  }

  Words keys, values;
  ps::State<uint32_t> keys_in, values_in, keys_out, values_out;

 private:
  Words sorted_keys_, sorted_values_;
  std::vector<uint32_t*> expected_;
  uint32_t* different_ = nullptr;
};

class Penstock {
 public:
  Penstock(ps::Runtime& runtime, Arrays& of, bool pairs, ps::Mode mode) : of_(of), pairs_(pairs) {
    ps::Graph g("sort");
    if (pairs) {
      ps::SortPairs(g, "pairs", ps::Read(of.keys_in), ps::Write(of.keys_out), ps::Read(of.values_in),
                    ps::Write(of.values_out));
    } else {
      ps::Sort(g, "keys", ps::Read(of.keys_in), ps::Write(of.keys_out));
    }
    exec_ = Must(runtime.Compile(g, {.slots = 1, .mode = mode}));
    io_ = exec_.bindings();
  }
  Sample Run() {
    of_.Poison();
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<ps::Run> run = exec_.Launch(io_);
    const Clock::time_point submitted = Clock::now();
    Must(run.status());
    Must(run->Wait());
    const Clock::time_point end = Clock::now();
    of_.CheckResult("Penstock", pairs_);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  Arrays& of_;
  const bool pairs_;
  ps::Executable exec_;
  ps::Bindings io_;
};

enum class By { kInts, kLongs, kDoubleBuffer };
constexpr std::pair<By, const char*> kByHand[] = {{By::kInts, "CUB, 32-bit counts"},
                                                  {By::kLongs, "CUB, 64-bit counts"},
                                                  {By::kDoubleBuffer, "CUB in place, of a copy"}};

// CUB on a stream, or captured from it.
class ByHand {
 public:
  ByHand(Arrays& of, bool pairs, By by, bool graph) : of_(of), pairs_(pairs), by_(by), stream_(MakeStream()) {
    if (by == By::kDoubleBuffer) {
      for (uint32_t*& spare : spare_) spare = MakeDeviceMemory<uint32_t>(of.keys.size());
    }
    Check(Cub(nullptr), "asking for scratch");
    scratch_ = MakeDeviceMemory<char>(scratch_bytes_);
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
    for (uint32_t* spare : spare_) cudaFree(spare);
    cudaStreamDestroy(stream_);
  }

  Sample Run() {
    of_.Poison();
    const Clock::time_point begin = Clock::now();
    if (exec_ != nullptr) Check(cudaGraphLaunch(exec_, stream_), "launching a graph");
    else Submit();
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    of_.CheckResult("CUB", pairs_);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  cudaError_t Cub(void* scratch) {
    uint32_t *const keys = of_.keys_in.data(), *const keys_out = of_.keys_out.data();
    uint32_t *const values = of_.values_in.data(), *const values_out = of_.values_out.data();
    using Sort = cub::DeviceRadixSort;
    if (by_ == By::kDoubleBuffer) {  // four passes, so the result is where the copy was
      cub::DoubleBuffer<uint32_t> key_buffers(keys_out, spare_[0]), value_buffers(values_out, spare_[1]);
      const auto n = static_cast<int>(of_.n());
      return pairs_ ? Sort::SortPairs(scratch, scratch_bytes_, key_buffers, value_buffers, n, 0, 32, stream_)
                    : Sort::SortKeys(scratch, scratch_bytes_, key_buffers, n, 0, 32, stream_);
    }
    const auto sort = [&](auto n) {
      return pairs_ ? Sort::SortPairs(scratch, scratch_bytes_, keys, keys_out, values, values_out, n, 0, 32, stream_)
                    : Sort::SortKeys(scratch, scratch_bytes_, keys, keys_out, n, 0, 32, stream_);
    };
    return by_ == By::kInts ? sort(static_cast<int>(of_.n())) : sort(of_.n());
  }
  void Submit() {
    if (by_ == By::kDoubleBuffer) {
      const size_t bytes = of_.keys.size() * 4;
      Check(cudaMemcpyAsync(of_.keys_out.data(), of_.keys_in.data(), bytes, cudaMemcpyDeviceToDevice, stream_),
            "copying");
      if (pairs_) {
        Check(cudaMemcpyAsync(of_.values_out.data(), of_.values_in.data(), bytes, cudaMemcpyDeviceToDevice, stream_),
              "copying");
      }
    }
    Check(Cub(scratch_), "sorting");
  }

  Arrays& of_;
  const bool pairs_;
  const By by_;
  const cudaStream_t stream_;
  uint32_t* spare_[2] = {};
  char* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  cudaGraphExec_t exec_ = nullptr;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

void MeasureOne(ps::Runtime& runtime, bool cuda, const Options& options, Arrays& of, bool pairs,
                const std::string& name, Report& report) {
  std::vector<std::unique_ptr<Penstock>> penstock;
  std::vector<std::unique_ptr<ByHand>> raw;
  std::vector<Way> ways;
  for (int graph = 0; graph < 2; ++graph) {
    penstock.push_back(std::make_unique<Penstock>(runtime, of, pairs, kModeOf[graph]));
    ways.push_back({Kind::kPenstock, std::string("Penstock, ") + kModes[graph],
                    [&way = *penstock.back()] { return way.Run(); }, graph});
    for (const auto& [by, text] : kByHand) {
      if (!cuda) continue;
      raw.push_back(std::make_unique<ByHand>(of, pairs, by, graph == 1));
      ways.push_back(
          {Kind::kRaw, std::string(text) + ", " + kModes[graph], [&way = *raw.back()] { return way.Run(); }, graph});
    }
  }
  Measure(ways, 3, options.repeats);
  if (!cuda) return;
  for (int graph = 0; graph < 2; ++graph) {
    const Way& best = Best(ways, Kind::kRaw, &Sample::total, graph);
    const Way& ours = Best(ways, Kind::kPenstock, &Sample::total, graph);
    report.Compare(name + ", " + kModes[graph] + "; raw: the best by hand", "us", SpreadOf(best, &Sample::total, 1),
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
  std::mt19937 random(20270);
  Report report("Sort");
  report.Note("One slot; everything is in device memory. Half the keys have 32 random bits, half 31.");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ".");
  const std::pair<int64_t, const char*> kSizes[] = {{64 << 10, "64 Ki"}, {1 << 20, "1 Mi"}, {64 << 20, "64 Mi"}};
  for (const auto& [n, text] : kSizes) {
    if (options.quick && n > 1 << 20) continue;
    Arrays arrays(runtime, n, cuda, random);
    for (const bool pairs : {false, true}) {
      MeasureOne(runtime, cuda, options, arrays, pairs, std::string(pairs ? "pairs, " : "keys, ") + text, report);
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
  return bench::Guard(
      [&] { return bench::Main(bench::ParseOptions(argc, argv, "sort", "Keys in order, alone and with values.")); });
}
