// The ways that the parts of the replay benchmark share, and the workloads that each goes through.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "penstock.cuh"
#include "raw.cuh"
#include "workload.cuh"

namespace bench {

// The ways of Penstock: kinds of nodes, and modes, of which graph mode is compared. Kernel nodes compete with tasks of
// one thread, ParallelFor nodes with tasks over an extent: groups of raw ways.
struct Nodes {
  const char* name;
  bool kernels;
};
inline constexpr Nodes kNodes[] = {{"Kernel nodes", true}, {"ParallelFor nodes", false}};
struct ModeName {
  ps::Mode mode;
  const char* name;
  Kind kind;
};
inline constexpr ModeName kModes[] = {{ps::Mode::kGraph, "graph mode", Kind::kPenstock},
                                      {ps::Mode::kStream, "stream mode", Kind::kScale}};

inline std::string NameOf(const Nodes& nodes, const ModeName& mode) {
  return std::string("Penstock, ") + nodes.name + ", " + mode.name;
}
inline std::string NameOf(const Nodes& nodes) { return NameOf(nodes, kModes[0]); }

struct Context {
  const Options& options;
  const bool cuda;
  ps::Runtime& runtime;
  std::mt19937& random;

  std::vector<int> sizes() const { return options.quick ? std::vector{32, 80} : std::vector{100, 1000}; }
};

// Where ratios count: of fewer tasks what a launch costs by itself is the larger part.
inline bool IsLarge(const Workload& work) { return work.tasks() >= 1000; }

inline int GroupOf(const RawShape& shape) { return shape.over_extent ? 1 : 0; }
inline int GroupOf(const Nodes& nodes) { return nodes.kernels ? 0 : 1; }

// Of tasks of each shape.
template <class By>
void AddRaw(Workload& work, Sample (RawReplay<By>::*run)(), const std::string& how = "", Kind kind = Kind::kRaw,
            bool changing = true, bool in_block = false) {
  for (const RawShape& shape : kRawShapes) {
    auto replay = std::make_shared<RawReplay<By>>(work.MakeRaw(shape, in_block));
    const auto time = [replay, run] { return ((*replay).*run)(); };
    work.Add(kind, By::kName + how + shape.name, time, changing, GroupOf(shape));
  }
}

inline void AddPenstock(Context& context, Workload& work) {
  for (const Nodes& nodes : kNodes) {
    const Valued valued = work.Declare(nodes.kernels);
    for (const ModeName& mode : kModes) {
      auto bound =
          std::make_shared<Bound>(Bind(valued.declared, CompileOneSlot(context.runtime, valued.declared, mode.mode)));
      work.Add(mode.kind, NameOf(nodes, mode), [bound, &work, value = valued.value] {
        return TimePenstock(*bound, [&](ps::Bindings& io) {
          if (work.takes() != Takes::kNone) io.Set(value, work.value());
        });
      });
    }
  }
}

// A chain and a stencil of each size; `measure(work)` for each.
template <class Measure>
void ForEachWorkload(Context& context, const std::vector<int>& sizes, Takes takes, Measure measure) {
  for (const int tasks : sizes) {
    Chain chain(context.runtime, context.cuda, tasks, takes, context.random);
    measure(chain);
    Stencil stencil(context.runtime, tasks / kWidth, takes, context.random);
    measure(stencil);
  }
}

inline Spread Of(const Way& way, double Sample::* figure) { return SpreadOf(way, figure, 1); }
// Of the best way of that kind that nodes of these compete with.
inline Spread BestOf(const Workload& work, const Nodes& nodes, double Sample::* figure, Kind kind = Kind::kRaw) {
  return Of(Best(work.ways(), kind, figure, GroupOf(nodes)), figure);
}

}  // namespace bench
