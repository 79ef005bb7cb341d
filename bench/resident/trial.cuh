// A list of tasks, the ways to do it, and the check of what each run leaves behind.
//
// By hand, of which the best counts:
//
//   nodes by the driver API  with full edges, behind one root
//   programmatic edges       a kernel is launched while those that it depends on are ending, and begins by waiting;
//                            with a root before all, and without
//   captured                 from a stream a lane and events
//
// Every node has just the edges that order the tasks. Penstock's graphs are compiled with one slot and without regions,
// where each node is a node of a CUDA graph, and with them. Before each run a new input is drawn and all other words
// are poisoned; after it all words are compared with the CPU's. Timed: from before the launch to its return (submit),
// and until it is known to have ended (total).
//
// Threads: single-threaded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "context.h"
#include "raw.cuh"
#include "tasks.cuh"
#include "words.cuh"

namespace bench {

// Blocks of one thread, and of 32 that ask `if (i < n)`.
inline constexpr const RawShape &kOneThread = kRawShapes[0], &kOverExtent = kRawShapes[2];
static_assert(kOneThread.threads == 1 && kOverExtent.threads == 32);

class Trial {
 public:
  Trial(const Context& context, TaskList list)
      : context_(context), list_(std::move(list)), words_(context.runtime, context.cuda, list_.words) {}
  Trial(const Trial&) = delete;

  // Adds nothing without a CUDA device.
  void AddRaw(const RawShape& shape, Kind kind = Kind::kRaw) {
    if (!context_.cuda) return;
    const auto work = MakeRaw(list_, shape, words_.data());
    AddRawBy<ByDriverApiOneRoot>(work, kind, "nodes by the driver API, one root", shape);
    AddRawBy<ByProgrammaticEdges>(work, kind, ByProgrammaticEdges::kName, shape);
    AddRawBy<ByProgrammaticEdgesOneRoot>(work, kind, ByProgrammaticEdgesOneRoot::kName, shape);
    AddRawBy<ByCapture>(work, kind, ByCapture::kName, shape);
  }
  void AddPenstock(const Regions& regions) {
    auto bound = std::make_shared<Bound>(Compile(regions));
    regions_ = bound->exec.submission_report().regions;
    Add(Kind::kPenstock, regions.name, [bound] { return TimePenstock(*bound); });
  }
  void AddPenstock() {
    for (const Regions& regions : kRegions) AddPenstock(regions);
  }
  // Fails unless nearly all tasks are in regions, or none is. On a host device a task whose words no other task touches
  // has copies of its own, and runs beside the region.
  Bound Compile(const Regions& regions) const {
    const Declared declared = Declare(list_, words_);
    const ps::CompileOptions options{.slots = 1, .mode = ps::Mode::kGraph, .resident = regions.resident};
    Bound bound = Bind(declared, Must(context_.runtime.Compile(declared.graph, options)));
    const int64_t nodes = bound.exec.submission_report().region_nodes, tasks = tasks_count(),
                  least = tasks - tasks / 20;
    if (regions.resident == ps::Resident::kOn ? nodes < least : nodes > 0) {
      Fail(list_.name + ", " + regions.name + ": " + std::to_string(nodes) + " of " + std::to_string(tasks) +
           " nodes are in regions");
    }
    return bound;
  }

  void Add(Kind kind, const std::string& name, std::function<Sample()> time) {
    ways_.push_back({kind, name, [this, name, time = std::move(time)] {
                       const std::vector<uint32_t> input = Draw();
                       words_.Put(input);
                       const Sample sample = time();
                       if (words_.Get() != list_.OnCpu(input)) Fail(list_.name + ", " + name + ": wrong result");
                       return sample;
                     }});
  }
  void Run() { context_.Run(ways_); }

  const TaskList& list() const { return list_; }
  const Words& words() const { return words_; }
  const std::vector<Way>& ways() const { return ways_; }
  int64_t regions() const { return regions_; }  // of the last of Penstock's ways
  int64_t tasks_count() const { return static_cast<int64_t>(list_.tasks.size()); }
  // Until done, times `scale`.
  Spread Of(const Regions& regions, double scale) const {
    return SpreadOf(Find(ways_, regions.name), &Sample::total, scale);
  }
  Spread OfRaw(double scale) const { return SpreadOf(BestRaw(ways_, &Sample::total), &Sample::total, scale); }

 private:
  static constexpr uint32_t kPoison = 0xDEADBEEF;

  template <class By>
  void AddRawBy(const std::shared_ptr<const RawWork>& work, Kind kind, const std::string& name, const RawShape& shape) {
    auto replay = std::make_shared<RawReplay<By>>(work);
    Add(kind, name + shape.name, [replay] { return replay->Run(); });
  }
  std::vector<uint32_t> Draw() const {
    std::vector<uint32_t> words(static_cast<size_t>(list_.words), kPoison);
    for (int i = 0; i < list_.inputs; ++i) words[static_cast<size_t>(i)] = static_cast<uint32_t>(context_.random());
    return words;
  }

  const Context& context_;
  const TaskList list_;
  const Words words_;
  std::vector<Way> ways_;
  int64_t regions_ = 0;
};

inline std::string RegionsOf(const Trial& trial) {
  return "All " + std::to_string(trial.tasks_count()) + " nodes of the " + trial.list().name + " are in " +
         std::to_string(trial.regions()) + (trial.regions() == 1 ? " region." : " regions.");
}

// All ways of a list, and what is to be reached with regions: at most `target`, and hoped for: `hoped` (0: no more).
struct Aim {
  double target, hoped = 0;
};
inline void ReportTrial(const Trial& trial, const std::string& name, const std::string& unit, double scale,
                        const Aim& aim, Report& report) {
  const Spread on = trial.Of(kOn, scale), raw = trial.OfRaw(scale);
  report.Note(RegionsOf(trial));
  report.Alone(name + ", resident", unit, on, AtMost(on.median, aim.target));
  if (aim.hoped > 0) report.Alone(name + ", resident, hoped for", unit, on, AtMost(on.median, aim.hoped));
  report.Compare(name + ", resident; raw: the best graph by hand", unit, raw, on, 0);
  report.Compare(name + ", graph mode; raw: the best graph by hand", unit, raw, trial.Of(kOff, scale), 0);
  report.Details(name, unit, trial.ways(), scale);
}

}  // namespace bench
