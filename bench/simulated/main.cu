// How far the simulator is from one and two GPUs: the copy pipeline, the random DAG and Jacobi's method, run after run
// without pause, and the Cholesky factor in tiles, whose runs begin with a new matrix, with a profile and without, and
// what `penstock simulate` says of that profile. Over two GPUs the copy pipeline has runs on both, the DAG half its
// columns on each, Jacobi's method a band on each, and every other column of tiles is on each.
//
// Raw is what was measured in the profile, Penstock what was predicted. The results are checked.
#include <algorithm>
#include <random>
#include <string>

#include "bench/copy_pipeline/penstock.cuh"
#include "bench/copy_pipeline/raw.cuh"
#include "bench/copy_pipeline/work.cuh"
#include "bench/random_dag/work.cuh"
#include "bench/simulated/jacobi.cuh"
#include "bench/tiled_cholesky/matrix.cuh"
#include "bench/tiled_cholesky/penstock.cuh"
#include "cuda_check.cuh"
#include "graph/simulate/simulate.h"
#include "harness.h"
#include "penstock/ps.h"
#include "src/analysis/sim_graph.h"

namespace bench {
namespace {

// What runs took without a profile: one after the other, or each by itself.
struct Unprofiled {
  double us = 0;
  bool alone = false;
};

// A figure that was taken once.
Spread Once(double figure) { return {figure, figure, figure}; }

// Of all graphs of that name, which run side by side.
struct Times {
  double run_us = 0, latency_us = 0;
  double runs_per_us = 0;
  int graphs = 0;
  void Add(double of_run, double of_latency) {
    runs_per_us += 1 / of_run;
    run_us = 1 / runs_per_us;
    latency_us = (latency_us * graphs + of_latency) / (graphs + 1);
    ++graphs;
  }
};

void AddTo(Report& report, const std::string& job, const ps::Runtime& runtime, const std::string& graph,
           const Unprofiled& unprofiled) {
  const ps::Profile profile = runtime.Profile();
  Times measured, predicted;
  for (size_t at = 0; at < profile.graphs.size(); ++at) {
    const bool is_profiled = std::any_of(profile.spans.begin(), profile.spans.end(), [&](const ps::Span& span) {
      return span.executable == profile.graphs[at].executable && span.node >= 0;
    });
    if (profile.graphs[at].name != graph || !is_profiled) continue;
    const auto simulated = Must(penstock::analysis::SimulatedGraphOf(profile, at, nullptr));
    const auto result = Must(penstock::graph::Simulate(simulated.graph, simulated.options));
    measured.Add(simulated.run_us, simulated.latency_us);
    predicted.Add(result.run_us, penstock::analysis::LatencyMicros(result));
  }
  if (measured.graphs == 0) Fail(job + ": the profile has no spans");
  report.Compare(job + ": time per run", "us", Once(measured.run_us), Once(predicted.run_us), 0);
  report.Compare(job + ": latency", "us", Once(measured.latency_us), Once(predicted.latency_us), 0);
  report.Compare(job + (unprofiled.alone ? ": latency" : ": time per run") + "; raw: without a profile", "us",
                 Once(unprofiled.us), Once(unprofiled.alone ? predicted.latency_us : predicted.run_us), 0);
}

std::string Over(int devices) { return devices == 1 ? "" : " over " + std::to_string(devices) + " GPUs"; }
ps::Runtime RuntimeOf(int devices) {
  return Must(ps::Runtime::Create({.devices = devices == 1 ? "cuda:0" : "cuda:0,1"}));
}

void Copies(const Options& options, Report& report, int devices) {
  ps::Runtime runtime = RuntimeOf(devices);
  Items items(&runtime, 64, int64_t{1} << 20);
  RawPipeline raw(items);
  MakeKernelAsLongAsUpload(items, raw);
  const auto shares = devices == 1 ? std::vector<ps::DeviceShare>() : runtime.all_devices();
  PenstockPipeline plain(runtime, items, options.slots, ps::kPinned, shares),
      profiled(runtime, items, options.slots, ps::kPinned, shares, true);
  const int rounds = options.quick ? 1 : options.repeats;
  double us = 0;
  for (PenstockPipeline* const pipeline : {&plain, &profiled}) {
    (void)pipeline->Run();
    items.Draw();
    const Sample sample = pipeline->RunRounds(rounds);
    items.CheckResult("the copy pipeline");
    if (pipeline == &plain) us = sample.total / (rounds * items.count);
  }
  AddTo(report, "copy pipeline" + Over(devices), runtime, "copy pipeline", {us});
}

void RandomDag(const Options& options, Report& report, ps::Mode mode, int devices) {
  const std::string job = "random DAG" + Over(devices) + (mode == ps::Mode::kGraph ? ", graphs" : ", streams");
  ps::Runtime runtime = RuntimeOf(devices);
  std::mt19937 random(20281);
  const Dag dag(32, random);
  PenstockDag plain(runtime, dag, {.slots = 1, .mode = mode}, devices),
      profiled(runtime, dag, {.slots = 1, .mode = mode, .profile = true}, devices);
  const int runs = options.quick ? 4 : 4 * options.repeats;
  double us = 0;
  for (PenstockDag* const work : {&plain, &profiled}) {
    const auto input = static_cast<uint32_t>(random());
    work->Fill(input);
    const Clock::time_point begin = Clock::now();
    for (int r = 0; r < runs; ++r) (void)work->Run();
    if (work == &plain) us = Microseconds(Clock::now() - begin) / runs;
    if (work->Words() != dag.OnCpu(input)) Fail(job + ": wrong result");
  }
  AddTo(report, job, runtime, "random dag", {us});
}

void Jacobis(const Options& options, Report& report, int64_t side, int devices) {
  const std::string job = "Jacobi of " + std::to_string(side) + " x " + std::to_string(side) + " cells" + Over(devices);
  ps::Runtime runtime = RuntimeOf(devices);
  Jacobi plain(runtime, side, {.slots = 1, .mode = ps::Mode::kGraph}),
      profiled(runtime, side, {.slots = 1, .mode = ps::Mode::kGraph, .profile = true});
  const int runs = options.quick ? 4 : 4 * options.repeats;
  double us = 0;
  for (Jacobi* const work : {&plain, &profiled}) {
    work->Check(job);
    const Clock::time_point begin = Clock::now();
    for (int r = 0; r < runs; ++r) work->Run();
    if (work == &plain) us = Microseconds(Clock::now() - begin) / runs;
  }
  AddTo(report, job, runtime, "jacobi", {us});
}

// Each run has a new matrix to factor and is checked, so the next one begins some time later.
void Cholesky(const Options& options, Report& report, int size, int devices) {
  const std::string job = "Cholesky factor of 16 x 16 tiles of " + std::to_string(size) + Over(devices);
  ps::Runtime runtime = RuntimeOf(devices);
  Matrix matrix(size, devices);
  const int block = FindFactorBlock(matrix).Find().size;
  PenstockOnGpus plain(runtime, matrix, block, {.slots = 1, .mode = ps::Mode::kGraph}),
      profiled(runtime, matrix, block, {.slots = 1, .mode = ps::Mode::kGraph, .profile = true});
  std::vector<double> us;
  for (int r = 0; r < (options.quick ? 4 : options.repeats); ++r) {
    us.push_back(plain.Run().total);
    (void)profiled.Run();
  }
  AddTo(report, job, runtime, "cholesky", {SpreadOf(us).median, true});
}

void Main(const Options& options) {
  Report report("The simulator against a GPU");
  if (const std::string missing = WhyNoDevice(); !missing.empty()) return report.Skip(missing, "");
  int gpus = 0;
  Check(cudaGetDeviceCount(&gpus), "counting devices");
  Check(cudaSetDevice(0), "choosing device 0");
  report.Note(
      "Raw is measured, Penstock predicted from the profile. The copy pipeline has 64 items of 4 MiB, pinned, " +
      std::to_string(options.slots) + " slots, and ran " + std::to_string(64 * options.repeats) +
      " times; the random DAG has 16 x 32 tasks of 20 us and one slot, and Jacobi's method " +
      std::to_string(Jacobi::kSteps) + " steps and one slot, as graphs; both ran " +
      std::to_string(4 * options.repeats) + " times. The Cholesky factor has one slot, as a graph, and ran " +
      std::to_string(options.repeats) + " times.");
  if (gpus < 2) report.Note("There is one GPU; what is over two GPUs did not run.");
  for (int devices = 1; devices <= std::min(gpus, 2); ++devices) {
    Copies(options, report, devices);
    RandomDag(options, report, ps::Mode::kGraph, devices);
    RandomDag(options, report, ps::Mode::kStream, devices);
    for (const int64_t side : options.quick ? std::vector<int64_t>{256} : std::vector<int64_t>{1024, 4096}) {
      Jacobis(options, report, side, devices);
    }
    for (const int size : options.quick ? std::vector<int>{64} : std::vector<int>{512, 1024}) {
      Cholesky(options, report, size, devices);
    }
  }
  report.Publish(options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "simulated", "How far the simulator is from a GPU."));
    return 0;
  });
}
