// What more GPUs give: one program on 1, 2 and 4 of them, as many as there are, by hand and with Penstock.
//
// pipeline  64 items of 4 MiB for each GPU up, through a kernel as long as the upload, and down. By hand: a thread for
//           each GPU, which spins between jobs, with the best loop for one (bench/copy_pipeline/raw.cuh) and a fixed
//           share of the items. Penstock: one executable on all GPUs and a Pipeline that one thread pulls, whose items
//           go to the GPU that will be free first; they come out in their order, or as they are ready. For scale, a
//           thread for each GPU with Launch and Wait on the executable's part there. All use the same pinned memory;
//           the floor is what the copies alone, or the kernels alone, take on all GPUs at once. Every word is checked.
// rate      Tiny kernels for each GPU, in one chain or four: the time a launch, until all is done. By hand: one thread
//           that goes round the GPUs, after each step of the chains there or after 64 launches; and a thread for each
//           GPU, for scale. Penstock has one submission thread for each GPU. One graph has chains on all GPUs: the
//           thread that launches it and the submission threads submit it together. And a Pipeline on all GPUs has
//           chains of 256 as items, in ordinary stages: pulled by one thread, which finds hardly ever more to launch
//           than it can itself; and behind a host stage of as many threads as GPUs, which let items wait for whoever is
//           free, submission threads too. Words are drawn again for each run and compared with the CPU's.
//
// Without a CUDA device the Penstock halves run on two host devices, for their results only.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/copy_pipeline/penstock.cuh"
#include "bench/copy_pipeline/work.cuh"
#include "bench/feeders/crew.cuh"
#include "bench/feeders/rate.cuh"
#include "cuda_check.cuh"
#include "harness.h"
#include "penstock/ps.h"
#include "pipeline.cuh"
#include "rate.cuh"

namespace bench {
namespace {

struct Bench {
  const Options& options;
  bool cuda;
  std::mt19937 random{20291};
  uint32_t rounds = 0;  // of the kernel that is as long as an upload; 0: not known yet

  ps::Runtime MakeRuntime(int devices, int submission_threads) const {
    std::string names = "host:" + std::to_string(devices);
    if (cuda) names = "cuda:0";
    for (int d = 1; cuda && d < devices; ++d) names.append(",").append(std::to_string(d));
    return Must(ps::Runtime::Create({.devices = names, .submission_threads = submission_threads}));
  }
};

std::string GpusOf(int gpus) { return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"); }

constexpr const char *kInOrderWay = "Penstock, a Pipeline in order", *kAsReadyWay = "Penstock, a Pipeline as ready",
                     *kEachWay = "Penstock, a thread a GPU";

std::vector<Way> PenstockWays(Items& items, PenstockPipeline& penstock, PenstockOnEach& each) {
  return {
      Checked(Kind::kPenstock, kInOrderWay, items, [&penstock] { return penstock.RunPipe(); }),
      Checked(Kind::kPenstock, kAsReadyWay, items, [&penstock] { return penstock.RunPipe(ps::Order::kAsReady); }),
      Checked(Kind::kScale, kEachWay, items, [&each] { return each.Run(); }),
  };
}

void AddRawWays(std::vector<Way>& ways, Items& items, RawOnEach& raw, int slots) {
  const std::string sets = std::to_string(slots) + " pairs of buffers";
  const int all = raw.share(items);
  ways.push_back({Kind::kFloor, "both directions at once", [&raw] { return raw.Alone(true, false, true); }});
  ways.push_back({Kind::kFloor, "kernels alone", [&raw] { return raw.Alone(false, true, false); }});
  ways.push_back(Checked(Kind::kRaw, "engines, " + sets, items, [&raw, slots] { return raw.Engines(slots); }));
  ways.push_back(Checked(Kind::kRaw, "engines, a pair an item", items, [&raw, all] { return raw.Engines(all); }));
  ways.push_back(Checked(Kind::kRaw, "slots, " + sets, items, [&raw, slots] { return raw.Slots(slots); }));
}

void AddPipelineTo(Report& report, const std::vector<Way>& ways, const Items& items, int gpus) {
  const std::string what = GpusOf(gpus) + ", " + std::to_string(items.count) + " x " +
                           std::to_string(items.words * 4 / 1024) + " KiB up, kernel, down";
  const Spread best = SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1);
  for (const Way& way : ways) {
    const bool pipe = way.kind == Kind::kPenstock;
    if (!pipe && way.name != kEachWay) continue;
    report.Compare(what + "; " + way.name, "us", best, SpreadOf(way, &Sample::total, 1), pipe ? 1 / 0.97 : 0);
  }
  report.Details(what, "us", ways, 1);
}

void MeasurePipeline(Bench& bench, int gpus, Report& report) {
  const int count = gpus * (bench.options.quick ? 8 : 64), slots = bench.options.slots;
  const int64_t words = bench.cuda ? int64_t{1} << 20 : 20000;
  ps::Runtime runtime = bench.MakeRuntime(gpus, -1);
  Items items(&runtime, count, words);
  Crew crew(gpus);
  std::unique_ptr<RawOnEach> raw;
  if (bench.cuda) raw = std::make_unique<RawOnEach>(items, crew);
  if (bench.cuda && bench.rounds == 0) {
    MakeKernelAsLongAsUpload(items, raw->first());
    bench.rounds = items.rounds;
  }
  items.rounds = bench.cuda ? bench.rounds : 10;
  PenstockPipeline penstock(runtime, items, slots, ps::kPinned, runtime.all_devices());
  PenstockOnEach each(penstock, items, crew);
  std::vector<Way> ways = PenstockWays(items, penstock, each);
  if (bench.cuda) AddRawWays(ways, items, *raw, slots);
  Measure(ways, bench.cuda ? 2 : 0, bench.options.repeats);
  if (bench.cuda) AddPipelineTo(report, ways, items, gpus);
}

// Their samples are in nanoseconds a launch.
class RateWays {
 public:
  RateWays(Bench& bench, int gpus)
      : runtime_(bench.MakeRuntime(gpus, 1)),
        length_(bench.options.quick ? 1024 : 4096),
        one_{gpus, length_, gpus},
        four_{4 * gpus, length_ / 4, gpus},
        items_{gpus * kLonger * length_ / kItem, kItem, gpus},
        threads_(gpus) {
    for (const Chains* chains : {&one_, &four_}) {
      const int on_each = chains->on_device();
      const std::string of = on_each == 1 ? ", a chain a GPU" : ", " + std::to_string(on_each) + " chains a GPU";
      graphs_.push_back(std::make_unique<PenstockChains>(runtime_, *chains));
      Add(bench, Kind::kPenstock, kGraph + of, *chains, *graphs_.back());
      if (!bench.cuda) continue;
      AddRaw(bench, Kind::kRaw, "one thread, GPUs in turn" + of, *chains, alone_, 1);
      if (gpus == 1) continue;  // else the same
      AddRaw(bench, Kind::kRaw, "one thread, 64 launches to a GPU" + of, *chains, alone_, 64 / on_each);
      AddRaw(bench, Kind::kScale, "a thread a GPU" + of, *chains, threads_, 0);
    }
    for (const int host_threads : {0, gpus}) {
      pipes_.push_back(std::make_unique<PenstockItems>(runtime_, items_, bench.options.slots, host_threads));
      Add(bench, Kind::kPenstock, host_threads == 0 ? kPulled : kStage, items_, *pipes_.back());
    }
  }

  static constexpr const char *kGraph = "Penstock, one graph", *kStage = "Penstock, a Pipeline behind a host stage",
                              *kPulled = "Penstock, a Pipeline";
  std::vector<Way> ways;

 private:
  static constexpr int kItem = 256;  // kernels
  static constexpr int kLonger = 4;  // than a graph runs a Pipeline, whose submission threads need a while to be called

  template <class Ran>
  void Add(Bench& bench, Kind kind, const std::string& name, const Chains& chains, Ran& way) {
    Way whole = CheckedChains(kind, name, chains, bench.random, way);
    ways.push_back({kind, name, [&chains, run = whole.run] {
                      const Sample sample = run();
                      const double launches = chains.kernels();
                      return Sample{1e3 * sample.submit / launches, 1e3 * sample.total / launches};
                    }});
  }
  void AddRaw(Bench& bench, Kind kind, const std::string& name, const Chains& chains, Crew& crew, int burst) {
    raw_.push_back(std::make_unique<RawChains>(chains, crew, burst));
    Add(bench, kind, name, chains, *raw_.back());
  }

  ps::Runtime runtime_;
  const int length_;  // kernels for a device
  const Chains one_, four_, items_;
  Crew alone_{1}, threads_;
  std::vector<std::unique_ptr<PenstockChains>> graphs_;
  std::vector<std::unique_ptr<RawChains>> raw_;
  std::vector<std::unique_ptr<PenstockItems>> pipes_;
};

void AddRateTo(Report& report, const RateWays& of, int gpus) {
  const std::string what = GpusOf(gpus) + ", tiny kernels, ";
  const auto rate_of = [](const Way& way) {
    std::vector<double> rates;
    for (const Sample& sample : way.samples) rates.push_back(1e3 / sample.total);
    return SpreadOf(rates);
  };
  const Spread one = rate_of(BestRaw(of.ways, &Sample::total));
  report.Alone(what + "the best of one raw thread", "M launches/s", one, "-");
  for (const Way& way : of.ways) {
    if (way.kind == Kind::kRaw) continue;
    const Spread rate = rate_of(way);
    const double times = rate.median / one.median;
    const bool counts = gpus == 4 && way.kind == Kind::kPenstock && way.name != RateWays::kPulled;
    report.Alone(what + way.name + ", times one raw thread: " + std::to_string(times).substr(0, 4), "M launches/s",
                 rate, counts ? AtLeast(times, 3.5) : "-");
  }
  report.Details(what + "a launch", "ns", of.ways, 1);
}

void MeasureRate(Bench& bench, int gpus, Report& report) {
  RateWays of(bench, gpus);
  Measure(of.ways, bench.cuda ? 3 : 0, bench.options.repeats);
  if (bench.cuda) AddRateTo(report, of, gpus);
}

// Of 1, 2 and 4: those that there are.
std::vector<int> Counts(bool cuda) {
  if (!cuda) return {2};
  int there = 0;
  Check(cudaGetDeviceCount(&there), "counting devices");
  std::vector<int> counts;
  for (const int gpus : {1, 2, 4}) {
    if (gpus <= there) counts.push_back(gpus);
  }
  return counts;
}

void Main(Options options) {
  const std::string missing = WhyNoDevice();
  if (!missing.empty()) options.quick = true, options.repeats = 1;
  Bench bench{options, missing.empty()};
  const auto asked = [&](const char* part) {
    return std::find(options.parts.begin(), options.parts.end(), part) != options.parts.end();
  };
  Report report("More GPUs");
  const std::vector<int> counts = Counts(bench.cuda);
  for (const int gpus : counts) {
    if (asked("pipeline")) MeasurePipeline(bench, gpus, report);
  }
  for (const int gpus : counts) {
    if (asked("rate")) MeasureRate(bench, gpus, report);
  }
  if (!bench.cuda) return report.Skip(missing, "On two host devices the Penstock halves gave the right results.");
  report.Note("Medians of " + std::to_string(options.repeats) + " runs each, the ways in turn, on up to " +
              std::to_string(counts.back()) + " x " + bench.MakeRuntime(1, 0).devices()[0].description + ", " +
              std::to_string(std::thread::hardware_concurrency()) + " cores; " + std::to_string(options.slots) +
              " slots on each.");
  if (bench.rounds > 0) {
    report.Note("The kernel was made as long as the upload, on one GPU alone (" + std::to_string(bench.rounds) +
                " rounds a word).");
  }
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "many_gpus", "What more GPUs give.", {"pipeline", "rate"}));
    return 0;
  });
}
