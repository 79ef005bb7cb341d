// How far the simulator is from a GPU: the copy pipeline and the random DAG, run after run without pause, with a
// profile and without, and what `penstock simulate` says of that profile.
//
// Raw is what was measured in the profile, Penstock what was predicted. The results are checked.
#include <random>
#include <string>

#include "bench/copy_pipeline/penstock.cuh"
#include "bench/copy_pipeline/raw.cuh"
#include "bench/copy_pipeline/work.cuh"
#include "bench/random_dag/work.cuh"
#include "cuda_check.cuh"
#include "graph/simulate/simulate.h"
#include "harness.h"
#include "penstock/ps.h"
#include "src/analysis/sim_graph.h"

namespace bench {
namespace {

// A figure that was taken once.
Spread Once(double figure) { return {figure, figure, figure}; }

void AddTo(Report& report, const std::string& job, const ps::Runtime& runtime, const std::string& graph,
           double unprofiled_us) {
  const ps::Profile profile = runtime.Profile();
  size_t at = 0;
  while (at < profile.graphs.size() && profile.graphs[at].name != graph) ++at;
  const auto simulated = Must(penstock::analysis::SimulatedGraphOf(profile, at, nullptr));
  const auto result = Must(penstock::graph::Simulate(simulated.graph, simulated.options));
  double latency_us = 0;
  const size_t runs = result.ended_us.size();
  for (size_t r = 0; r < runs; ++r) latency_us += result.ended_us[r] - result.launched_us[r];
  report.Compare(job + ": time per run", "us", Once(simulated.run_us), Once(result.run_us), 0);
  report.Compare(job + ": latency", "us", Once(simulated.latency_us), Once(latency_us / static_cast<double>(runs)), 0);
  report.Compare(job + ": time per run; raw: without a profile", "us", Once(unprofiled_us), Once(result.run_us), 0);
}

void Copies(const Options& options, Report& report) {
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "cuda:0"}));
  Items items(&runtime, 64, int64_t{1} << 20);
  RawPipeline raw(items);
  MakeKernelAsLongAsUpload(items, raw);
  PenstockPipeline plain(runtime, items, options.slots, ps::kPinned),
      profiled(runtime, items, options.slots, ps::kPinned, {}, true);
  const int rounds = options.quick ? 1 : options.repeats;
  double us = 0;
  for (PenstockPipeline* const pipeline : {&plain, &profiled}) {
    (void)pipeline->Run();
    items.Draw();
    const Sample sample = pipeline->RunRounds(rounds);
    items.CheckResult("the copy pipeline");
    if (pipeline == &plain) us = sample.total / (rounds * items.count);
  }
  AddTo(report, "copy pipeline", runtime, "copy pipeline", us);
}

void RandomDag(const Options& options, Report& report, ps::Mode mode, const std::string& job) {
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "cuda:0"}));
  std::mt19937 random(20281);
  const Dag dag(32, random);
  PenstockDag plain(runtime, dag, {.slots = 1, .mode = mode}),
      profiled(runtime, dag, {.slots = 1, .mode = mode, .profile = true});
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
  AddTo(report, job, runtime, "random dag", us);
}

void Main(const Options& options) {
  Report report("The simulator against a GPU");
  if (const std::string missing = WhyNoDevice(); !missing.empty()) return report.Skip(missing, "");
  Check(cudaSetDevice(0), "choosing device 0");
  report.Note(
      "Raw is measured, Penstock predicted from the profile. The copy pipeline has 64 items of 4 MiB, pinned, " +
      std::to_string(options.slots) + " slots, and ran " + std::to_string(64 * options.repeats) +
      " times; the random DAG has 16 x 32 tasks of 20 us and one slot, and ran " + std::to_string(4 * options.repeats) +
      " times.");
  Copies(options, report);
  RandomDag(options, report, ps::Mode::kGraph, "random DAG, graphs");
  RandomDag(options, report, ps::Mode::kStream, "random DAG, streams");
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
