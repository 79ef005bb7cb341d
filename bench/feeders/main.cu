// What several threads that submit one run gain: a random DAG of 20 us tasks, which is bound by submission, and chains
// of tiny kernels that nothing joins, which are nothing else. By hand by one thread and split over 2, 4 and 8
// (dag.cuh, rate.cuh), and as Penstock graphs in stream mode with 0, 1, 3, 5, 7 and the default number
// of submission threads, in a runtime each.
//
// Then the chains with tasks of 8 to 128 us: the shortest tasks that fill half of a run, which is the
// minimum effective task granularity of Slaughter et al., Task Bench (2020), METG(50 %).
//
// The raw threads spin from run to run; Penstock's submission threads sleep between, since what is between takes longer
// than they stay awake. Inputs are drawn again and outputs poisoned before each run, and each word is compared with the
// CPU's. Timed: from before the launch until all is submitted, and until the work is done.
//
// Without a CUDA device the Penstock halves run on a host device, for their results only.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/random_dag/work.cuh"
#include "crew.cuh"
#include "cuda_check.cuh"
#include "dag.cuh"
#include "harness.h"
#include "penstock/ps.h"
#include "rate.cuh"

namespace bench {
namespace {

constexpr std::array<int, 6> kFeeders{0, 1, 3, 5, 7, -1};
constexpr std::array<int, 4> kThreads{1, 2, 4, 8};

std::string PenstockName(int submission_threads) {
  return "Penstock, " + (submission_threads < 0 ? "default" : std::to_string(submission_threads)) +
         " submission threads";
}
std::string RawName(int threads) {
  return threads == 1 ? "raw, one thread" : "raw, " + std::to_string(threads) + " threads";
}

// What both parts share: the runtimes, and the crews of raw threads.
struct Bench {
  bool cuda;
  std::vector<std::unique_ptr<ps::Runtime>> runtimes;  // parallel to kFeeders
  std::vector<std::unique_ptr<Crew>> crews;  // parallel to kThreads; none without a device
  std::mt19937 random{20281};

  explicit Bench(bool with_cuda) : cuda(with_cuda) {
    for (const int submission_threads : kFeeders) {
      runtimes.push_back(std::make_unique<ps::Runtime>(
          Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host", .submission_threads = submission_threads}))));
    }
    for (const int threads : kThreads) {
      if (cuda) crews.push_back(std::make_unique<Crew>(threads));
    }
  }
  uint32_t Draw() { return static_cast<uint32_t>(random()); }
};

void MeasureDag(Bench& bench, const Options& options, Report& report) {
  const Dag dag(options.quick ? 4 : 32, bench.random);
  std::vector<std::unique_ptr<PenstockDag>> mine;
  std::vector<std::unique_ptr<EagerDag>> raw;
  std::vector<Way> ways;
  const auto add = [&](Kind kind, const std::string& name, PenstockDag& words, auto* way) {
    ways.push_back({kind, name, [&bench, &dag, &words, way, name] {
                      const uint32_t input = bench.Draw();
                      words.Fill(input);
                      const Sample sample = way->Run();
                      if (words.Words() != dag.OnCpu(input)) Fail(name + ": wrong result");
                      return sample;
                    }});
  };
  for (size_t f = 0; f < kFeeders.size(); ++f) {
    mine.push_back(std::make_unique<PenstockDag>(
        *bench.runtimes[f], dag, ps::CompileOptions{.slots = 1, .mode = ps::Mode::kStream, .max_lanes = kWidth}));
    add(Kind::kPenstock, PenstockName(kFeeders[f]), *mine[f], mine[f].get());
  }
  const auto add_raw = [&](Kind kind, const std::string& name, int streams, bool clocks, Crew& crew) {
    raw.push_back(std::make_unique<EagerDag>(dag, mine[0]->words(), streams, clocks, crew));
    add(kind, name, *mine[0], raw.back().get());
  };
  for (size_t c = 0; c < bench.crews.size(); ++c) {
    const std::string name = RawName(kThreads[c]);
    const Kind kind = c == 0 ? Kind::kRaw : Kind::kScale;
    add_raw(kind, name + ", 16 streams", kWidth, true, *bench.crews[c]);
    if (c > 0) continue;
    add_raw(kind, name + ", 16 streams, all waits", kWidth, false, *bench.crews[c]);
    add_raw(kind, name + ", 8 streams", kWidth / 2, true, *bench.crews[c]);
  }
  Measure(ways, options.quick ? 1 : 3, options.repeats);
  if (!bench.cuda) return;
  report.Note("Random DAG: " + std::to_string(kWidth) + " x " + std::to_string(dag.rows) +
              " tasks of 20 us, each behind one to three of the row before; nothing can take less than " +
              std::to_string(dag.rows * 20) + " us.");
  for (const int submission_threads : kFeeders) {
    const Way& way = Find(ways, PenstockName(submission_threads));
    report.Compare("random DAG, until done, " + way.name + ", to the best of one raw thread", "us",
                   SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1), SpreadOf(way, &Sample::total, 1),
                   submission_threads == -1 ? 0.75 : 0);
  }
  report.Compare("random DAG, until done, the best of Penstock to the best split by hand", "us",
                 SpreadOf(Best(ways, Kind::kScale, &Sample::total), &Sample::total, 1),
                 SpreadOf(Best(ways, Kind::kPenstock, &Sample::total), &Sample::total, 1), 1.05);
  report.Details("random DAG", "us", ways, 1);
}

void MeasureRate(Bench& bench, int count, const Options& options, Report& report) {
  const Chains chains{count, options.quick ? 8 : 4096 / count};
  std::vector<std::unique_ptr<PenstockChains>> mine;
  std::vector<std::unique_ptr<RawChains>> raw;
  std::vector<Way> ways;
  const auto add = [&](Kind kind, const std::string& name, auto& way) {
    ways.push_back(CheckedChains(kind, name, chains, bench.random, way));
  };
  for (size_t f = 0; f < kFeeders.size(); ++f) {
    mine.push_back(std::make_unique<PenstockChains>(*bench.runtimes[f], chains));
    add(Kind::kPenstock, PenstockName(kFeeders[f]), *mine.back());
  }
  for (size_t c = 0; c < bench.crews.size(); ++c) {
    raw.push_back(std::make_unique<RawChains>(chains, *bench.crews[c]));
    add(c == 0 ? Kind::kRaw : Kind::kScale, RawName(kThreads[c]), *raw.back());
  }
  Measure(ways, options.quick ? 1 : 3, options.repeats);
  if (!bench.cuda) return;
  const std::string what = std::to_string(count) + " chains of " + std::to_string(chains.length) + " tiny kernels";
  const auto rate = [&](const Way& way) {  // launches a second
    std::vector<double> rates;
    for (const Sample& sample : way.samples) rates.push_back(chains.kernels() / sample.submit);
    return SpreadOf(rates);
  };
  const Spread one = rate(BestRaw(ways, &Sample::submit));
  report.Alone(what + ", " + RawName(1), "M launches/s", one, "-");
  for (const Way& way : ways) {
    if (way.kind == Kind::kRaw) continue;
    const Spread of = rate(way);
    const double times = of.median / one.median;
    const std::string target = way.name == PenstockName(-1) ? AtLeast(times, 2.3) : std::to_string(times).substr(0, 4);
    report.Alone(what + ", " + way.name + ", times one raw thread: " + std::to_string(times).substr(0, 4),
                 "M launches/s", of, target);
  }
  report.Details(what, "us", ways, 1);
}

// The time of a task, in us, at which a run takes twice as long as its chains would alone: between those of `tasks`
// (us, rising) whose runs took `totals` (us), as if the efficiency were linear in the logarithm of the time.
double Metg(const std::vector<double>& tasks, const std::vector<double>& totals, int length) {
  double before = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const double efficiency = tasks[t] * length / totals[t];
    if (efficiency >= 0.5) {
      if (t == 0) return tasks[0];
      return tasks[t - 1] * std::pow(tasks[t] / tasks[t - 1], (0.5 - before) / (efficiency - before));
    }
    before = efficiency;
  }
  Fail("no task was long enough for half of the time");
}

void MeasureMetg(Bench& bench, const Options& options, Report& report) {
  constexpr int kChains = 16;
  const int length = options.quick ? 8 : 256;
  const std::vector<double> tasks{8, 16, 32, 64, 128};
  std::vector<Chains> chains;
  for (const double us : tasks) chains.push_back({kChains, length, 1, static_cast<uint64_t>(us * 1000)});
  std::vector<std::unique_ptr<PenstockChains>> mine;
  std::vector<std::unique_ptr<RawChains>> raw;
  std::vector<Way> ways;
  std::vector<std::string> names;
  for (const size_t f : {size_t{0}, kFeeders.size() - 1}) {
    names.push_back(PenstockName(kFeeders[f]));
    for (const Chains& of : chains) {
      mine.push_back(std::make_unique<PenstockChains>(*bench.runtimes[f], of));
      ways.push_back(CheckedChains(Kind::kPenstock, names.back(), of, bench.random, *mine.back()));
    }
  }
  if (bench.cuda) names.push_back(RawName(1));
  for (size_t t = 0; bench.cuda && t < tasks.size(); ++t) {
    raw.push_back(std::make_unique<RawChains>(chains[t], *bench.crews[0]));
    ways.push_back(CheckedChains(Kind::kRaw, names.back(), chains[t], bench.random, *raw.back()));
  }
  Measure(ways, options.quick ? 1 : 3, options.repeats);
  if (!bench.cuda) return;
  std::vector<Spread> metg;  // parallel to names
  for (size_t n = 0; n < names.size(); ++n) {
    std::vector<double> values;
    for (size_t r = 0; r < ways[0].samples.size(); ++r) {
      std::vector<double> totals;
      for (size_t t = 0; t < tasks.size(); ++t) totals.push_back(ways[n * tasks.size() + t].samples[r].total);
      values.push_back(Metg(tasks, totals, length));
    }
    metg.push_back(SpreadOf(values));
  }
  const std::string what = std::to_string(kChains) + " chains of " + std::to_string(length) + " tasks, METG(50 %), ";
  const Spread& one = metg.back();
  for (size_t n = 0; n + 1 < names.size(); ++n) {
    report.Compare(what + names[n] + "; raw: one thread", "us", one, metg[n], 1.05);
    report.Compare(what + names[n] + ", the worst run; raw: one thread, the median", "us",
                   {one.median, one.median, one.median}, {metg[n].max, metg[n].max, metg[n].max}, 1.15);
  }
}

void Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  const auto asked = [&](const char* part) {
    return options.parts.empty() || std::count(options.parts.begin(), options.parts.end(), part) > 0;
  };
  Bench bench(cuda);
  Report report("Several threads submit a run");
  if (cuda) {
    report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on " +
                bench.runtimes[0]->devices()[0].description + ", " +
                std::to_string(std::thread::hardware_concurrency()) + " cores.");
  }
  if (asked("dag")) MeasureDag(bench, options, report);
  if (asked("rate")) {
    MeasureRate(bench, 16, options, report);
    MeasureRate(bench, 32, options, report);
  }
  if (asked("metg")) MeasureMetg(bench, options, report);
  if (!cuda) return report.Skip(missing, "On a host device the Penstock halves gave the right results.");
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "feeders", "What several threads that submit one run gain.",
                                    {"dag", "rate", "metg"}));
    return 0;
  });
}
