// Reduce and Sort on a host device against oneTBB, both with two threads: the sum of 2^24 floats, and 2^24 numbers of
// 32 bits in order. All ways keep what they read. TBB has parallel_reduce and parallel_deterministic_reduce, of which
// the better counts, and parallel_sort of a copy, which parallel_for makes.
//
// Sums are compared with one of doubles, sorted numbers with those of std::sort, after each run.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"
#include "penstock/sort.h"

namespace bench {
namespace {

namespace tbb = oneapi::tbb;
constexpr int kThreads = 2;

ps::Runtime MakeRuntime() {
  return Must(ps::Runtime::Create({.devices = "host", .workers = kThreads, .host_device_threads = kThreads}));
}

Sample Timed(const std::function<void()>& run) {
  const Clock::time_point begin = Clock::now();
  run();
  return {0, Microseconds(Clock::now() - begin)};
}

class Sums {
 public:
  Sums(int64_t n, std::mt19937& random) : values_(static_cast<size_t>(n)) {
    std::uniform_real_distribution<float> any(-1, 1);
    for (float& value : values_) value = any(random), exact_ += value, most_ += std::abs(value);
    state_ = Must(runtime_.MakeState<float>("x", n, values_));
    ps::Graph graph("sum");
    auto out = graph.Output<float>("out", 1);
    graph.Reduce("sum", ps::Read(state_), ps::Write(out));
    exec_ = Must(runtime_.Compile(graph, {.slots = 1}));
    io_ = exec_.bindings();
    io_.Set(out, std::span(&found_, 1));
  }

  std::vector<Way> Ways() {
    return {{Kind::kPenstock, "Penstock", [this] { return Checked([this] { Run(); }); }},
            {Kind::kRaw, "parallel_reduce", [this] { return Checked([this] { found_ = Tbb(false); }); }},
            {Kind::kRaw, "parallel_deterministic_reduce", [this] { return Checked([this] { found_ = Tbb(true); }); }}};
  }

 private:
  void Run() {
    const ps::Run run = Must(exec_.Launch(io_));
    Must(run.Wait());
  }
  float Tbb(bool fixed) const {
    const auto add = [](const tbb::blocked_range<const float*>& range, float sum) {
      return std::accumulate(range.begin(), range.end(), sum);
    };
    const float* const begin = values_.data();
    if (!fixed) {
      return tbb::parallel_reduce(tbb::blocked_range<const float*>(begin, begin + values_.size()), 0.0f, add,
                                  std::plus<float>());
    }
    return tbb::parallel_deterministic_reduce(tbb::blocked_range<const float*>(begin, begin + values_.size(), 4096),
                                              0.0f, add, std::plus<float>());
  }
  Sample Checked(const std::function<void()>& run) {
    found_ = NAN;
    const Sample sample = Timed(run);
    if (!(std::abs(found_ - exact_) <= 1e-4 * most_)) Fail("the sum is wrong");
    return sample;
  }

  ps::Runtime runtime_ = MakeRuntime();
  std::vector<float> values_;
  double exact_ = 0, most_ = 0;
  ps::State<float> state_;
  float found_ = 0;
  ps::Executable exec_;
  ps::Bindings io_;
};

class Orders {
 public:
  Orders(int64_t n, std::mt19937& random) : keys_(static_cast<size_t>(n)), found_(keys_.size()) {
    for (uint32_t& key : keys_) key = static_cast<uint32_t>(random());
    expected_ = keys_;
    std::sort(expected_.begin(), expected_.end());
    from_ = Must(runtime_.MakeState<uint32_t>("keys", n, keys_));
    to_ = Must(runtime_.MakeState<uint32_t>("sorted", n));
    ps::Graph graph("sort");
    ps::Sort(graph, "sort", ps::Read(from_), ps::Write(to_));
    exec_ = Must(runtime_.Compile(graph, {.slots = 1}));
  }

  std::vector<Way> Ways() {
    return {{Kind::kPenstock, "Penstock", [this] { return Run(); }},
            {Kind::kRaw, "parallel_sort of a copy", [this] { return Tbb(); }}};
  }

 private:
  Sample Run() {
    const Sample sample = Timed([this] {
      const ps::Run run = Must(exec_.Launch(exec_.bindings()));
      Must(run.Wait());
    });
    Must(to_.Read(found_));
    CheckResult();
    Must(to_.Reset());
    return sample;
  }
  Sample Tbb() {
    const Sample sample = Timed([this] {
      tbb::parallel_for(tbb::blocked_range<size_t>(0, keys_.size()), [this](const auto& range) {
        std::copy(keys_.begin() + static_cast<int64_t>(range.begin()),
                  keys_.begin() + static_cast<int64_t>(range.end()),
                  found_.begin() + static_cast<int64_t>(range.begin()));
      });
      tbb::parallel_sort(found_.begin(), found_.end());
    });
    CheckResult();
    return sample;
  }
  void CheckResult() {
    if (found_ != expected_) Fail("the keys are not in order");
    std::fill(found_.begin(), found_.end(), 0xDEADBEEF);
  }

  ps::Runtime runtime_ = MakeRuntime();
  std::vector<uint32_t> keys_, expected_, found_;
  ps::State<uint32_t> from_, to_;
  ps::Executable exec_;
};

void Tell(const std::string& what, std::vector<Way> ways, const Options& options, Report& report) {
  Measure(ways, 1, options.repeats);
  const Way& ours = Best(ways, Kind::kPenstock, &Sample::total);
  report.Compare(what, "us", SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1),
                 SpreadOf(ours, &Sample::total, 1), 1 / 0.8);
  report.Details(what, "us", ways, 1);
}

void Main(const Options& options) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, kThreads);
  const int64_t n = int64_t{1} << (options.quick ? 16 : 24);
  std::mt19937 random(20271);
  Report report("Algorithms on a host device");
  report.Note("Two threads, " + std::to_string(n) + " elements. Raw is the best of oneTBB's. Medians of " +
              std::to_string(options.repeats) + " runs each, the ways in turn; every result is checked.");
  Sums sums(n, random);
  Tell("the sum of floats", sums.Ways(), options, report);
  Orders orders(n, random);
  Tell("numbers in order", orders.Ways(), options, report);
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "host_algorithms", "Reduce and Sort on a host device against oneTBB."));
    return 0;
  });
}
