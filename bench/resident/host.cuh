// Regions on host devices, where one is a call of each functor after the other, against a plain loop on one thread that
// calls the same functors with the same arguments. Tasks do about 2 us of arithmetic. A run of Penstock's copies the
// words, at most 64 bytes, there and back.
//
// Threads: the runtime's.
#pragma once

#include <algorithm>
#include <string>

#include "trial.cuh"

namespace bench {

inline constexpr double kHeavyUs = 2;

// Rounds of a task that takes so long here, by the fastest of some trials.
inline uint32_t RoundsOf(double us) {
  constexpr uint32_t kMany = 1'000'000;
  double best = 1e9;
  volatile uint32_t x = 1, mul = 2'654'435'761;  // constants that the compiler knew would be faster
  const Constants k{mul, x};
  for (int i = 0; i < 7; ++i) {
    const Clock::time_point begin = Clock::now();
    x = HeavyStep(x, x, x, k, kMany);
    best = std::min(best, Microseconds(Clock::now() - begin));
  }
  return static_cast<uint32_t>(us * kMany / best);
}

inline Sample PlainLoop(const TaskList& list, uint32_t* w) {
  constexpr HeavyFunctor kFunctor;
  const Clock::time_point begin = Clock::now();
  for (const Task& t : list.tasks) kFunctor(0, w + t.left, w + t.middle, w + t.right, w + t.out, t.k, t.turns);
  const double total = Microseconds(Clock::now() - begin);
  return {total, total};
}

// Each way has a trial of its own with the loop, since a graph of so many tasks disturbs what runs after it.
inline void MeasureOnHostOf(const Context& context, const TaskList& list, const Regions& regions, Report& report) {
  Trial trial(context, list);
  trial.Add(Kind::kRaw, "a plain loop",
            [&list = trial.list(), words = trial.words().data()] { return PlainLoop(list, words); });
  trial.AddPenstock(regions);
  trial.Run();
  const std::string name = list.name + " on a host device";
  const Spread loop = trial.OfRaw(1), way = trial.Of(regions, 1);
  if (regions.resident == ps::Resident::kOn) {
    const Spread rate{loop.median / way.median, loop.median / way.max, loop.median / way.min};
    report.Note(RegionsOf(trial));
    report.Alone(name + ", resident, rate to a plain loop", "times", rate, AtLeast(rate.median, 0.9));
    report.Compare(name + ", resident; raw: a plain loop", "us", loop, way, 0);
  } else {
    report.Compare(name + ", graph mode; raw: a plain loop", "us", loop, way, 0);
  }
  report.Details(name, "us", trial.ways(), 1);
}

inline void MeasureOnHostOf(const Context& context, int tasks, int width, Report& report) {
  TaskList list = StencilOf(width, tasks / width, Code::kHeavy, RoundsOf(kHeavyUs), context.random);
  if (width == 1) list.name = "chain of " + std::to_string(tasks);
  for (const Regions& regions : {kOn, kOff}) MeasureOnHostOf(context, list, regions, report);
}

}  // namespace bench
