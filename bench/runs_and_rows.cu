// Totals of runs of equal keys, and of the rows of a matrix, of floats in device memory: Penstock's ReduceByKey and
// ReduceRows against CUB's DeviceReduce::ReduceByKey and DeviceSegmentedReduce, and rows also against kernels by hand,
// on streams and as CUDA graphs.
//
// Penstock's results are compared with the host's bit by bit, CUB's and the kernels' within a tolerance.
//
// Without a CUDA device everything of Penstock runs on a host device, for its results only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <functional>
#include <memory>
#include <random>
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

// The tree of a Reduce, from the top.
float TreeOf(const float* values, size_t n) {
  if (n == 1) return values[0];
  size_t left = 1;
  while (2 * left < n) left *= 2;
  return TreeOf(values, left) + TreeOf(values + left, n - left);
}
// Adds what `size` elements from `first` on give pairwise, without those before `begin`, to what `found` says is there.
void Append(const float* values, size_t first, size_t size, size_t begin, float& all, bool& found) {
  if (first + size <= begin) return;
  if (first >= begin) {
    const float block = TreeOf(values + first, size);
    all = found ? all + block : block;
    found = true;
    return;
  }
  float left = 0, right = 0;
  bool has_left = false, has_right = false;
  Append(values, first, size / 2, begin, left, has_left);
  Append(values, first + size / 2, size / 2, begin, right, has_right);
  const float block = has_left ? left + right : right;
  all = found ? all + block : block;
  found = true;
}
// The order of penstock/reduce_by_key.h for the run [begin, end).
float TotalOf(const float* values, size_t begin, size_t end) {
  const size_t last = end - 1;
  float all = 0;
  bool found = false;
  for (size_t bit = size_t{1} << 40, at = 0; bit > 0; bit /= 2) {
    if ((last & bit) == 0) continue;
    Append(values, at, bit, begin, all, found);
    at += bit;
  }
  return found ? all + values[last] : values[last];
}

// What is computed, in each of the ways.
struct Problem {
  std::function<void(ps::Graph&)> declare;
  std::vector<std::pair<const char*, std::function<cudaError_t(void* scratch, size_t& bytes, cudaStream_t)>>> by_hand;
  std::function<void(bool same)> check;  // the results of the last run, bit by bit or nearly
};

void CheckTotals(const std::vector<float>& found, const std::vector<float>& want, bool same) {
  if (same) {
    if (std::memcmp(found.data(), want.data(), sizeof(float) * want.size()) != 0) Fail("Penstock: other bits");
    return;
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(found[i] - want[i]) <= 1e-5 * std::abs(want[i]))) Fail("by hand: the result is wrong");
  }
}

// Runs of about so many keys.
class Runs {
 public:
  Runs(ps::Runtime& runtime, int64_t n, uint32_t length, std::mt19937& random) {
    std::vector<int32_t> keys(static_cast<size_t>(n));
    std::vector<float> values(keys.size());
    size_t left = 0, begin = 0;
    for (size_t i = 0; i < keys.size(); ++i, --left) {
      values[i] = 1 + static_cast<float>(random() % 1000) / 1024;
      if (left == 0) {
        left = 1 + random() % (2 * length - 1);
        if (i > 0) want_.push_back(TotalOf(values.data(), begin, i));
        begin = i;
      }
      keys[i] = static_cast<int32_t>(want_.size());
    }
    want_.push_back(TotalOf(values.data(), begin, keys.size()));
    keys_ = Must(runtime.MakeState<int32_t>("keys", n, keys));
    values_ = Must(runtime.MakeState<float>("values", n, values));
    unique_ = Must(runtime.MakeState<int32_t>("unique", n));
    totals_ = Must(runtime.MakeState<float>("totals", n));
    count_ = Must(runtime.MakeState<int32_t>("count", 1));
    found_.resize(keys.size());
    found_keys_.resize(keys.size());
  }
  Problem AsProblem() {
    return {[this](ps::Graph& g) {
              ps::ReduceByKey(g, "totals", ps::Read(keys_), ps::Read(values_), ps::Write(unique_), ps::Write(totals_),
                              ps::Write(count_));
            },
            {{"CUB",
              [this](void* scratch, size_t& bytes, cudaStream_t stream) {
                return cub::DeviceReduce::ReduceByKey(scratch, bytes, keys_.data(), unique_.data(), values_.data(),
                                                      totals_.data(), count_.data(), cuda::std::plus<>(),
                                                      static_cast<int64_t>(found_.size()), stream);
              }}},
            [this](bool same) { CheckResult(same); }};
  }

 private:
  void CheckResult(bool same) {
    std::vector<int32_t> count(1);
    Must(count_.Read(count));
    Must(totals_.Read(found_));
    Must(unique_.Read(found_keys_));
    if (count[0] != static_cast<int32_t>(want_.size())) Fail("the number of runs is wrong");
    for (int32_t i = 0; i < count[0]; ++i) {
      if (found_keys_[static_cast<size_t>(i)] != i) Fail("a key is wrong");
    }
    CheckTotals(found_, want_, same);
    Must(totals_.Reset());
  }

  std::vector<float> want_, found_;
  std::vector<int32_t> found_keys_;
  ps::State<int32_t> keys_, unique_, count_;
  ps::State<float> values_, totals_;
};

// A warp adds up 32 rows of 32 elements, four at a time, of which each lane loads four elements.
__global__ void RowsByWarps(const float4* x, float* y, int64_t rows) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32 * 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float mine = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int64_t row = first + 4 * k + lane / 8;
    const float4 part = row < rows ? x[row * 8 + lane % 8] : float4{0, 0, 0, 0};
    float sum = (part.x + part.y) + (part.z + part.w);
    for (int mask = 4; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane % 8 == k) mine = sum;
  }
  const int64_t row = first + 4 * (lane % 8) + lane / 8;
  if (row < rows) y[row] = mine;
}

struct BeginOfRow {
  int64_t width;
  PS_HOST_DEVICE int64_t operator()(int64_t row) const { return row * width; }
};

class Rows {
 public:
  Rows(ps::Runtime& runtime, int64_t rows, int64_t width, std::mt19937& random) : rows_(rows), width_(width) {
    std::vector<float> values(static_cast<size_t>(rows * width));
    for (float& v : values) v = 1 + static_cast<float>(random() % 1000) / 1024;
    for (int64_t row = 0; row < rows; ++row) {
      want_.push_back(TreeOf(values.data() + row * width, static_cast<size_t>(width)));
    }
    x_ = Must(runtime.MakeState<float>("x", {rows, width}, values));
    y_ = Must(runtime.MakeState<float>("y", rows));
    found_.resize(want_.size());
  }
  Problem AsProblem() {
    Problem problem{[this](ps::Graph& g) { ps::ReduceRows(g, "sums", ps::Read(x_), ps::Write(y_)); },
                    {{"CUB",
                      [this](void* scratch, size_t& bytes, cudaStream_t stream) {
                        const auto begins =
                            thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), BeginOfRow{width_});
                        return cub::DeviceSegmentedReduce::Sum(scratch, bytes, x_.data(), y_.data(), rows_, begins,
                                                               begins + 1, stream);
                      }}},
                    [this](bool same) {
                      Must(y_.Read(found_));
                      CheckTotals(found_, want_, same);
                      Must(y_.Reset());
                    }};
    if (width_ == 32) {
      problem.by_hand.emplace_back("a kernel", [this](void* scratch, size_t& bytes, cudaStream_t stream) {
        bytes = 1;
        if (scratch == nullptr) return cudaSuccess;
        const auto* const x = reinterpret_cast<const float4*>(x_.data());
        RowsByWarps<<<static_cast<unsigned>((rows_ + 255) / 256), 256, 0, stream>>>(x, y_.data(), rows_);
        return cudaGetLastError();
      });
    } else {
      problem.by_hand.emplace_back("CUB for each row", [this](void* scratch, size_t& bytes, cudaStream_t stream) {
        cudaError_t code = cudaSuccess;
        for (int64_t row = 0; row < (scratch == nullptr ? 1 : rows_) && code == cudaSuccess; ++row) {
          code = cub::DeviceReduce::Sum(scratch, bytes, x_.data() + row * width_, y_.data() + row, width_, stream);
        }
        return code;
      });
    }
    return problem;
  }

 private:
  const int64_t rows_, width_;
  std::vector<float> want_, found_;
  ps::State<float> x_, y_;
};

class Penstock {
 public:
  Penstock(ps::Runtime& runtime, const Problem& of, ps::Mode mode) {
    ps::Graph g("totals");
    of.declare(g);
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

// On a stream or captured from it.
class ByHand {
 public:
  ByHand(const Problem& of, size_t way, bool graph) : submit_(of.by_hand[way].second), stream_(MakeStream()) {
    Check(submit_(nullptr, scratch_bytes_, stream_), "asking for scratch");
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
  void Submit() { Check(submit_(scratch_, scratch_bytes_, stream_), "submitting"); }

  const std::function<cudaError_t(void*, size_t&, cudaStream_t)>& submit_;
  const cudaStream_t stream_;
  char* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  cudaGraphExec_t exec_ = nullptr;
};

constexpr const char* kModes[] = {"streams", "graphs"};
constexpr ps::Mode kModeOf[] = {ps::Mode::kStream, ps::Mode::kGraph};

void MeasureOne(ps::Runtime& runtime, bool cuda, const Options& options, const Problem& problem,
                const std::string& name, Report& report) {
  std::vector<std::unique_ptr<Penstock>> penstock;
  std::vector<std::unique_ptr<ByHand>> raw;
  std::vector<Way> ways;
  for (int graph = 0; graph < 2; ++graph) {
    penstock.push_back(std::make_unique<Penstock>(runtime, problem, kModeOf[graph]));
    penstock.back()->Run();
    problem.check(true);
    ways.push_back({Kind::kPenstock, std::string("Penstock, ") + kModes[graph],
                    [&way = *penstock.back()] { return way.Run(); }, graph});
    for (size_t way = 0; cuda && way < problem.by_hand.size(); ++way) {
      raw.push_back(std::make_unique<ByHand>(problem, way, graph == 1));
      raw.back()->Run();
      problem.check(false);
      ways.push_back({Kind::kRaw, std::string(problem.by_hand[way].first) + ", " + kModes[graph],
                      [&hand = *raw.back()] { return hand.Run(); }, graph});
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
  std::mt19937 random(20262);
  Report report("Runs and rows");
  report.Note("One slot; everything is in device memory and stays there. Penstock's order is fixed, CUB's is not.");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
              runtime.devices()[0].description + ".");
  const int64_t most = options.quick ? 1 << 18 : 1 << 25;
  for (const uint32_t length : {5U, 1000U}) {
    Runs runs(runtime, most, length, random);
    const std::string size = options.quick ? "256 Ki" : "32 Mi";
    MeasureOne(runtime, cuda, options, runs.AsProblem(), size + " keys in runs of " + std::to_string(length), report);
  }
  const int64_t many = options.quick ? 1000 : 1'000'000, wide = options.quick ? 1 << 16 : 1 << 22;
  const std::pair<int64_t, int64_t> kShapes[] = {{many, 32}, {4, wide}};
  for (const auto& [rows, width] : kShapes) {
    Rows of(runtime, rows, width, random);
    MeasureOne(runtime, cuda, options, of.AsProblem(), std::to_string(rows) + " rows of " + std::to_string(width),
               report);
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
    return bench::Main(bench::ParseOptions(argc, argv, "runs_and_rows", "Totals of runs of keys, and of rows."));
  });
}
