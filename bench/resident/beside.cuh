// What others notice of a region at work: an empty kernel on a stream of its own, from before its launch until it is
// known to have ended, with nothing beside it, and while a region of 16 blocks works for about 10 ms. In one of two
// regions all workers are busy, since each task spins; in the other one column's tasks do, and the workers of all
// others soon poll the progress of their neighbours, whom it holds up. For scale: beside a kernel of as many blocks of
// as many threads that only spin.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "short.cuh"
#include "trial.cuh"

namespace bench {

inline constexpr int kBesideWidth = 128, kBesideLevels = 128, kProbes = 50;
inline constexpr double kBesideUs = 10'000;

static __global__ void BusyKernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

inline void BusyWait(double us) {
  const Clock::time_point begin = Clock::now();
  while (Microseconds(Clock::now() - begin) < us) {
  }
}

// Medians of several launches, which together take far less time than what is beside them.
inline Sample Probe(const ByKernel& empty) {
  std::vector<double> submits, totals;
  for (int p = 0; p < kProbes; ++p) {
    const Sample sample = empty.Run(nullptr);
    submits.push_back(sample.submit), totals.push_back(sample.total);
  }
  return {SpreadOf(std::move(submits)).median, SpreadOf(std::move(totals)).median};
}
// The same once `run` is surely at work. Fails if it ended too soon.
inline Sample ProbeBeside(const ByKernel& empty, Bound& bound) {
  const ps::Run run = Must(bound.exec.Launch(bound.io));
  BusyWait(500);
  const Sample sample = Probe(empty);
  if (run.done()) Fail("the region ended before the kernels beside it did");
  Must(run.Wait());
  return sample;
}

inline TaskList BesideList(bool all_busy, uint32_t cycles, std::mt19937& random) {
  TaskList list = StencilOf(kBesideWidth, kBesideLevels, Code::kSpin, cycles, random);
  list.name += all_busy ? ", all columns busy" : ", one column busy";
  for (size_t t = 0; t < list.tasks.size() && !all_busy; ++t) {
    if (t % kBesideWidth != kBesideWidth / 2) list.tasks[t].turns = 0;
  }
  return list;
}

inline void MeasureBesideOf(const Context& context, bool all_busy, Report& report) {
  const uint32_t cycles = context.cuda ? CyclesOf(kBesideUs / kBesideLevels) : 0;
  Trial trial(context, BesideList(all_busy, cycles, context.random));
  const std::string& name = trial.list().name;
  auto bound = std::make_shared<Bound>(trial.Compile(kOn));
  if (!context.cuda) {
    trial.Add(Kind::kPenstock, "beside a region", [bound] { return TimePenstock(*bound); });
    return trial.Run();
  }
  const auto empty = std::make_shared<ByKernel>(reinterpret_cast<const void*>(&NothingKernel), 1);
  const cudaStream_t stream = MakeStream();
  std::vector<Way> ways;
  trial.Add(Kind::kPenstock, "beside a region", [empty, bound] { return ProbeBeside(*empty, *bound); });
  ways.push_back({Kind::kRaw, "nothing beside it", [&] { return Probe(*empty); }});
  ways.push_back(trial.ways().back());
  ways.push_back({Kind::kScale, "beside a kernel that spins", [&] {
                    BusyKernel<<<16, 256, 0, stream>>>(static_cast<long long>(cycles) * kBesideLevels);
                    BusyWait(500);
                    const Sample sample = Probe(*empty);
                    if (cudaStreamQuery(stream) != cudaErrorNotReady) Fail("the kernel that spins ended too soon");
                    (void)cudaGetLastError();  // "not ready" is not an error
                    Check(cudaStreamSynchronize(stream), "spinning");
                    return sample;
                  }});
  context.Run(ways);
  (void)cudaStreamDestroy(stream);
  report.Compare("an empty kernel beside a " + name + "; raw: nothing beside it", "us",
                 SpreadOf(BestRaw(ways, &Sample::total), &Sample::total, 1),
                 SpreadOf(Find(ways, "beside a region"), &Sample::total, 1), 1.1);
  report.Details("an empty kernel, " + name, "us", ways, 1);
}

}  // namespace bench
