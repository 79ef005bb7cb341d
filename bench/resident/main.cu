// What graphs of tiny nodes cost: with Penstock's regions, which run without launches (docs/explanation/resident.md),
// with its graph mode without them, and as CUDA graphs made by hand to win, in parts that `--parts` chooses from:
//
//   chain    1000 tasks, one after the other
//   chains   8 chains of 125
//   stencil  8, 64 and 128 tasks wide, 128 levels
//   metg     the shortest tasks of these stencils with which at least half of the time is work
//   dag      a random DAG, 16 wide, 32 levels, of tasks of 0 and of 1 us
//   short    a region of ten tasks against one kernel by hand
//   limits   with how few nodes, and how many elements, regions are faster
//   beside   what launching another kernel takes while a region works
//   loop     a While of tiny nodes against a WHILE node by hand
//   host     regions on a host device against a plain loop
//
// What is compared with what, so that a ratio is of the ways and of nothing else:
//
//   Nodes    Penstock's are ParallelFor nodes over one element. Kernels by hand are one block of 32 threads that ask
//            `if (i < n)` with n = 1, as such nodes do and people write them; of the chain also kernels of one thread.
//   Edges    By hand those that order the tasks and no others; Penstock's planner finds the same (tasks.cuh).
//   Memory   All ways work on the same words of device memory, and copy nothing while a clock runs.
//   Runs     One slot. The device is idle when a run starts, but in `beside`. Data is random, what is to be written is
//            poisoned, and every run's result is compared with the CPU's.
//
// Targets are absolute where CUDA graphs have no way to come near: an edge costs them a launch. Without a CUDA device
// the Penstock ways run on a host device, for their results only; `host` is measured there too.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "beside.cuh"
#include "context.h"
#include "cuda_check.cuh"
#include "harness.h"
#include "host.cuh"
#include "limits.cuh"
#include "loop.h"
#include "metg.cuh"
#include "penstock/ps.h"
#include "short.cuh"
#include "trial.cuh"

namespace bench {
namespace {

// Of microseconds a task.
void MeasureTasks(const Context& context, TaskList list, const Aim& aim, bool one_thread, Report& report) {
  Trial trial(context, std::move(list));
  trial.AddRaw(kOverExtent);
  if (one_thread) trial.AddRaw(kOneThread);
  trial.AddPenstock();
  trial.Run();
  if (!context.cuda) return;
  ReportTrial(trial, trial.list().name, "us a task", 1.0 / static_cast<double>(trial.tasks_count()), aim, report);
}

void MeasureChain(const Context& context, Report& report) {
  const int levels = context.options.quick ? 100 : 1000;
  MeasureTasks(context, Chains(1, levels, context.random), {0.55, 0.32}, true, report);
}

void MeasureChains(const Context& context, Report& report) {
  const int levels = context.options.quick ? 20 : 125;
  MeasureTasks(context, Chains(8, levels, context.random), {0.085, 0.055}, true, report);
}

// Widths of the stencils, and what they are to reach.
struct Wide {
  int width;
  double task_us, metg_us;
};
constexpr Wide kWide[] = {{8, 0.088, 0.75}, {64, 0.023, 1.5}, {128, 0.012, 1.5}};

void MeasureStencil(const Context& context, Report& report) {
  const int levels = context.options.quick ? 8 : 128;
  for (const Wide& wide : kWide) {
    MeasureTasks(context, StencilOf(wide.width, levels, Code::kMix, 0, context.random), {wide.task_us}, false, report);
  }
}

void MeasureMetg(const Context& context, Report& report) {
  for (const Wide& wide : kWide) MeasureMetgOf(context, wide.width, wide.metg_us, report);
}

void MeasureDag(const Context& context, Report& report) {
  const int levels = context.options.quick ? 8 : 32;
  for (const bool spins : {false, true}) {
    const uint32_t cycles = spins && context.cuda ? CyclesOf(1) : 0;
    Trial trial(context, RandomDag(16, levels, spins ? Code::kSpin : Code::kMix, cycles, context.random));
    trial.AddRaw(kOverExtent);
    trial.AddPenstock();
    trial.Run();
    if (!context.cuda) continue;
    const std::string name = trial.list().name + (spins ? ", tasks of 1 us" : ", tasks of 0 us");
    ReportTrial(trial, name, "us", 1, {spins ? 72.0 : 34.0}, report);
  }
}

void MeasureBeside(const Context& context, Report& report) {
  for (const bool all_busy : {true, false}) MeasureBesideOf(context, all_busy, report);
}

void MeasureOnHost(const Context& context, Report& report) {
  for (const int tasks : {1000, 10'000}) {
    if (tasks > 1000 && context.options.quick) return;
    for (const int width : {1, 8}) MeasureOnHostOf(context, tasks, width, report);
  }
}

struct Part {
  const char* name;
  const char* title;
  const char* note;
  void (*measure)(const Context&, Report&);
};
constexpr Part kParts[] = {
    {"chain", "Resident: a chain", "Time a task.", MeasureChain},
    {"chains", "Resident: eight chains", "Time a task.", MeasureChains},
    {"stencil", "Resident: stencils", "Time a task.", MeasureStencil},
    {"metg", "Resident: METG(50 %)", "The shortest tasks with which at least half of the time is work.", MeasureMetg},
    {"dag", "Resident: a random DAG", "Time of a run.", MeasureDag},
    {"short", "Resident: a short region", "Time of a run, with its launch and the wait for it.", MeasureShort},
    {"limits", "Resident: where regions pay", "Time of a run, with its launch and the wait for it.", MeasureLimits},
    {"beside", "Resident: work beside a region", "Time of an empty kernel, with its launch and the wait for it.",
     MeasureBeside},
    {"loop", "Resident: a loop", "Time of an iteration.", MeasureLoop},
};
constexpr Part kHostPart = {"host", "Resident: on a host device",
                            "Time of a run; raw is a plain loop over the same functors on one thread.", MeasureOnHost};

std::vector<std::string> PartNames() {
  std::vector<std::string> names;
  for (const Part& part : kParts) names.push_back(part.name);
  names.push_back(kHostPart.name);
  return names;
}

// The report of a part, printed and kept in `all`, unless it was run for its results only.
void RunPart(const Part& part, const Context& context, bool figures, Report& all) {
  const auto& parts = context.options.parts;
  if (std::find(parts.begin(), parts.end(), part.name) == parts.end()) return;
  Report report(part.title);
  report.Note(std::string(part.note) + " Medians of " + std::to_string(context.options.repeats) +
              " runs each, the ways in turn, on " + context.runtime.devices()[0].description +
              ". Penstock has one slot; all work on the same words.");
  part.measure(context, report);
  if (!figures) return;
  report.Print();
  std::printf("\n");
  all.Append(report);
  all.Save(context.options);
}

void Main(const Options& options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  Options on_device = options;
  if (!cuda) on_device.quick = true, on_device.repeats = 1;
  std::mt19937 random(20293);
  Report all("Resident regions");
  {
    ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
    const Context context{on_device, cuda, runtime, random};
    for (const Part& part : kParts) RunPart(part, context, cuda, all);
  }
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host:2"}));
  RunPart(kHostPart, {options, false, runtime, random}, true, all);
  const bool only_host = options.parts == std::vector<std::string>{kHostPart.name};
  if (cuda || only_host) return;
  Report("Resident regions on a CUDA device").Skip(missing, "On a host device Penstock's ways gave the right results.");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "resident", "What graphs of tiny nodes cost, with regions and without.",
                                    bench::PartNames()));
    return 0;
  });
}
