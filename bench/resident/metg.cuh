// METG(50 %): the shortest tasks of a stencil with which at least half of the time is work. Tasks spin for so many
// cycles; how long one takes is measured with tasks that follow each other in one thread (SpinUs), and a stencil whose
// columns ran side by side without any cost would take that times its levels.
//
// Threads: single-threaded.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "context.h"
#include "trial.cuh"

namespace bench {

inline constexpr double kEfficiency = 0.5;

// One length of the tasks, and the time of a level in one of the ways, both in microseconds.
struct MetgPoint {
  double task, level;
  double efficiency() const { return task / level; }
};

// The first point that is efficient enough, or what lies between it and the one before, on a line between both;
// infinite if none is.
inline double MetgOf(const std::vector<MetgPoint>& points) {
  for (size_t p = 0; p < points.size(); ++p) {
    const double here = points[p].efficiency();
    if (here < kEfficiency) continue;
    if (p == 0) return points[p].task;
    const double before = points[p - 1].efficiency();
    return points[p - 1].task + (kEfficiency - before) / (here - before) * (points[p].task - points[p - 1].task);
  }
  return std::numeric_limits<double>::infinity();
}

// Of one way: the METG by the medians, by the shortest times and by the longest.
class MetgOfWay {
 public:
  void Add(double task, const Spread& level) {
    const std::array levels{level.median, level.min, level.max};
    for (size_t i = 0; i < points_.size(); ++i) points_[i].push_back({task, levels[i]});
  }
  Spread Find() const { return {MetgOf(points_[0]), MetgOf(points_[1]), MetgOf(points_[2])}; }

 private:
  std::array<std::vector<MetgPoint>, 3> points_;
};

inline void MeasureMetgOf(const Context& context, int width, double target, Report& report) {
  const int levels = context.options.quick ? 8 : 128;
  std::vector<uint32_t> cycles{0, 250, 500, 1000, 2000, 4000, 8000, 16'000, 40'000};
  if (context.options.quick) cycles = {0, 4000, 40'000};
  MetgOfWay raw, off, on;
  std::string lengths;
  for (const uint32_t length : cycles) {
    Trial trial(context, StencilOf(width, levels, Code::kSpin, length, context.random));
    trial.AddRaw(kOverExtent);
    trial.AddPenstock();
    trial.Run();
    if (!context.cuda) return;
    const double task = SpinUs(length), scale = 1.0 / levels;
    raw.Add(task, trial.OfRaw(scale)), off.Add(task, trial.Of(kOff, scale)), on.Add(task, trial.Of(kOn, scale));
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(length) + ": " + std::to_string(task);
    report.Details(trial.list().name + ", tasks of " + std::to_string(length) + " cycles, a level", "us", trial.ways(),
                   scale);
  }
  const std::string name = "stencil of " + Times(width, levels) + ", METG(50 %)";
  report.Note("Tasks " + std::to_string(width) + " abreast, cycles: us of one: " + lengths + ".");
  report.Alone(name + ", resident", "us", on.Find(), AtMost(on.Find().median, target));
  report.Compare(name + ", resident; raw: the best graph by hand", "us", raw.Find(), on.Find(), 0);
  report.Compare(name + ", graph mode; raw: the best graph by hand", "us", raw.Find(), off.Find(), 0);
}

}  // namespace bench
