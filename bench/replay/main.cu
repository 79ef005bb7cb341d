// What replaying costs: CUDA graphs made by hand (raw.cuh) and Penstock's graph mode, of the same chain and
// stencil of tiny tasks as the eager benchmark's, in parts that `--parts` chooses from:
//
//   memory       what a slot takes of the device's memory: by hand an exec, by Penstock in either mode; measured first
//   replay       nothing changes but the data: about 100 and about 1000 tasks
//   scalar       every launch gives the task in the middle other constants
//   all_scalars  every launch gives all tasks another value, which they take beside constants of their own
//   compile      from a declared graph to an executable of one slot; by hand: building and instantiating
//   trace        what a trace costs: about 200 tasks in a chain and 8 abreast, with one and without, Penstock alone
//
// Timed for Penstock: from before what is set for the launch to Launch's return (submit), and to the return of Wait
// (total). The device is idle when a run starts, and bindings of memory do not change. The input, and the value where
// there is one, are drawn anew for every run, and every result is compared with the CPU's: a task left out shows, and
// so does an argument of the run before.
//
// What is compared with what, so that a ratio is of the two halves and of nothing else:
//
//   memory       All ways of a workload work on the same device words, since the same graph takes up to 15 % longer on
//                another word: it depends on the part of the L2 cache that the word falls to. The words are
//                DeviceBuffers of Penstock's, bound kDevice and given to the raw graphs too. No graph copies the
//                chain's cell: input and result are copied while no clock runs. Of the stencil both halves upload the
//                first row and download the last inside the graph, from and to memory of their own; the rows between
//                are shared.
//   Kernel       Nodes run the very kernels of the raw graphs, of one thread that asks nothing.
//   ParallelFor  Nodes find out their index and whether it is inside the extent, which alone takes a tenth of a tiny
//                task. They compete with raw kernels that do so, as people write them: `if (i < n)`, in blocks of 256
//                or of 32 threads, of which the faster counts. Raw graphs of one-thread kernels are shown for scale.
//
// Without a CUDA device the Penstock half runs on a host device, for its results only.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_check.cuh"
#include "harness.h"
#include "penstock.cuh"
#include "penstock/ps.h"
#include "raw.cuh"
#include "ways.cuh"
#include "workload.cuh"

namespace bench {
namespace {

void MeasureReplay(Context& context, Report& report) {
  ForEachWorkload(context, context.sizes(), Takes::kNone, [&](Workload& work) {
    if (context.cuda) {
      AddRaw<ByRuntimeApi>(work, &RawReplay<ByRuntimeApi>::Run);
      AddRaw<ByDriverApi>(work, &RawReplay<ByDriverApi>::Run);
      AddRaw<ByDriverApiOneRoot>(work, &RawReplay<ByDriverApiOneRoot>::Run);
      AddRaw<ByProgrammaticEdges>(work, &RawReplay<ByProgrammaticEdges>::Run);
      AddRaw<ByProgrammaticEdgesOneRoot>(work, &RawReplay<ByProgrammaticEdgesOneRoot>::Run);
      AddRaw<ByCapture>(work, &RawReplay<ByCapture>::Run);
    }
    AddPenstock(context, work);
    work.Run(context.options, 3);
    if (!context.cuda) return;
    for (const Nodes& nodes : kNodes) {
      const Spread submit = BestOf(work, nodes, &Sample::submit), total = BestOf(work, nodes, &Sample::total);
      const Way& way = Find(work.ways(), NameOf(nodes));
      const std::string what = work.name() + ", " + nodes.name;
      report.CompareSums(what + ", submit", "us", submit, Of(way, &Sample::submit), 0.5);
      if (IsLarge(work)) {
        report.Compare(what + ", until done", "us", total, Of(way, &Sample::total), 1.02);
      } else {
        report.CompareSums(what + ", until done", "us", total, Of(way, &Sample::total), 1.5);
      }
      if (!nodes.kernels) {
        const Spread one_thread = BestOf(work, kNodes[0], &Sample::total);
        report.Compare(what + ", until done; raw: one thread", "us", one_thread, Of(way, &Sample::total), 0);
      }
    }
    report.Details(work.name(), "us", work.ways(), 1);
  });
}

void MeasureScalar(Context& context, Report& report) {
  ForEachWorkload(context, context.sizes(), Takes::kMiddle, [&](Workload& work) {
    if (context.cuda) {
      AddRaw<ByRuntimeApi>(work, &RawReplay<ByRuntimeApi>::RunSettingMiddle, ", one set");
      AddRaw<ByDriverApi>(work, &RawReplay<ByDriverApi>::RunSettingMiddle, ", one set");
      AddRaw<ByProgrammaticEdges>(work, &RawReplay<ByProgrammaticEdges>::RunSettingMiddle, ", one set");
    }
    AddPenstock(context, work);
    work.Run(context.options, 3);
    if (!context.cuda) return;
    for (const Nodes& nodes : kNodes) {
      const Way& way = Find(work.ways(), NameOf(nodes));
      const auto compare = [&](const char* when, double Sample::* figure, double target) {
        report.Compare(work.name() + ", " + nodes.name + ", " + when, "us", BestOf(work, nodes, figure),
                       Of(way, figure), target);
      };
      compare("submit", &Sample::submit, 1.15);
      compare("until done", &Sample::total, 0);
    }
    report.Details(work.name(), "us", work.ways(), 1);
  });
}

// Replays whose value does not change are the floor.
template <class By>
void AddUnchanged(Workload& work) {
  AddRaw<By>(work, &RawReplay<By>::Run, ", unchanged", Kind::kFloor, false);
}
void AddUnchangedPenstock(Context& context, Workload& work) {
  for (const Nodes& nodes : kNodes) {
    const Valued valued = work.Declare(nodes.kernels);
    auto bound = std::make_shared<Bound>(
        Bind(valued.declared, CompileOneSlot(context.runtime, valued.declared, ps::Mode::kGraph)));
    bound->io.Set(valued.value, work.value());
    work.Add(Kind::kScale, NameOf(nodes) + ", unchanged", [bound] { return TimePenstock(*bound); }, false);
  }
}

template <class By>
void AddChangesByNode(Workload& work) {
  AddRaw<By>(work, &RawReplay<By>::RunSettingAll, ", each set");
  AddRaw<By>(work, &RawReplay<By>::RunRewritten, ", each set in the graph, whole update");
  AddRaw<By>(work, &RawReplay<By>::RunRebuilt, ", built anew, whole update");
}

// Kernel nodes take the value as an argument, which by hand, too, costs a call a node; so only ParallelFor nodes have a
// target.
void ReportAllScalars(const Workload& work, Report& report) {
  for (const Nodes& nodes : kNodes) {
    const Way& way = Find(work.ways(), NameOf(nodes));
    const auto compare = [&](const char* how, double Sample::* figure, Kind kind, double target) {
      report.Compare(work.name() + ", " + nodes.name + ", " + how, "us", BestOf(work, nodes, figure, kind),
                     Of(way, figure), target);
    };
    compare("until done; raw: unchanged", &Sample::total, Kind::kFloor, IsLarge(work) && !nodes.kernels ? 1.05 : 0);
    compare("until done; raw: changed by hand", &Sample::total, Kind::kRaw, 0);
    compare("submit; raw: changed by hand", &Sample::submit, Kind::kRaw, 0);
  }
  report.Details(work.name(), "us", work.ways(), 1);
}

void MeasureAllScalars(Context& context, Report& report) {
  ForEachWorkload(context, context.sizes(), Takes::kAll, [&](Workload& work) {
    if (context.cuda) {
      AddUnchanged<ByRuntimeApi>(work), AddUnchanged<ByDriverApi>(work), AddUnchanged<ByCapture>(work);
      AddUnchanged<ByProgrammaticEdges>(work);
      AddChangesByNode<ByRuntimeApi>(work), AddChangesByNode<ByDriverApi>(work);
      AddRaw<ByCapture>(work, &RawReplay<ByCapture>::RunRebuilt, " anew, whole update");
      AddRaw<ByDriverApi>(work, &RawReplay<ByDriverApi>::Run, ", a block in device memory, one copy", Kind::kScale,
                          true, true);
    }
    AddPenstock(context, work);
    AddUnchangedPenstock(context, work);
    work.Run(context.options, 3);
    if (context.cuda) ReportAllScalars(work, report);
  });
}

// What was made runs once, for its result.
template <class By>
void AddRawCompile(Workload& work) {
  for (const RawShape& shape : kRawShapes) {
    const auto raw = work.MakeRaw(shape, false);
    const auto add = [&](Kind kind, const char* how, Sample (RawReplay<By>::*made)() const) {
      const auto time = [raw, made] {
        RawReplay<By> replay(raw);
        replay.Run();
        return (replay.*made)();
      };
      work.Add(kind, std::string(By::kName) + how + shape.name, time, true, GroupOf(shape));
    };
    add(Kind::kRaw, "", &RawReplay<By>::uploaded);
    add(Kind::kScale, ", not uploaded", &RawReplay<By>::made);
  }
}
void AddPenstockCompile(Context& context, Workload& work) {
  for (const Nodes& nodes : kNodes) {
    auto valued = std::make_shared<Valued>(work.Declare(nodes.kernels));
    for (const ModeName& mode : kModes) {
      work.Add(mode.kind, NameOf(nodes, mode), [&context, valued, &mode] {
        const Clock::time_point begin = Clock::now();
        ps::Executable exec = CompileOneSlot(context.runtime, valued->declared, mode.mode);
        const double made = Microseconds(Clock::now() - begin);
        Bound bound = Bind(valued->declared, std::move(exec));
        TimePenstock(bound);
        return Sample{made, made};
      });
    }
  }
}

using Kept = std::vector<std::shared_ptr<void>>;

// What `make` takes of the device's memory, launched once; of 16, since the driver takes memory for many graphs at
// once. All are kept: what is given back, the driver gives to the next one, of whom nothing is seen then.
template <class Make>
Spread MemoryOf(Kept& kept, Make make) {
  constexpr int kMany = 16;
  size_t before = 0, after = 0, total = 0;
  Check(cudaMemGetInfo(&before, &total), "asking for free memory");
  for (int i = 0; i < kMany; ++i) kept.push_back(make());
  Check(cudaMemGetInfo(&after, &total), "asking for free memory");
  const double kib = (static_cast<double>(before) - static_cast<double>(after)) / kMany / 1024;
  return {kib, kib, kib};
}

// Before anything else has taken memory and given it back.
void MeasureMemory(Context& context, Report& report) {
  Kept kept;
  ForEachWorkload(context, {context.sizes().back()}, Takes::kNone, [&](Workload& work) {
    if (!context.cuda) return;
    const auto raw = work.MakeRaw(kRawShapes[0], false);
    const Spread by_hand = MemoryOf(kept, [&] {
      auto replay = std::make_shared<RawReplay<ByDriverApi>>(raw);
      replay->Run();
      return replay;
    });
    const auto valued = std::make_shared<Valued>(work.Declare(true));
    kept.push_back(valued);
    for (const ModeName& mode : kModes) {
      const Spread ours = MemoryOf(kept, [&] {
        auto bound = std::make_shared<Bound>(
            Bind(valued->declared, CompileOneSlot(context.runtime, valued->declared, mode.mode)));
        TimePenstock(*bound);
        return bound;
      });
      report.Compare(work.name() + ", " + NameOf(kNodes[0], mode) + ", device memory a slot", "KiB", by_hand, ours, 0);
    }
  });
}

void MeasureCompile(Context& context, Report& report) {
  ForEachWorkload(context, {context.sizes().back()}, Takes::kNone, [&](Workload& work) {
    if (context.cuda) {
      AddRawCompile<ByRuntimeApi>(work), AddRawCompile<ByDriverApi>(work), AddRawCompile<ByCapture>(work);
      AddRawCompile<ByProgrammaticEdges>(work);
    }
    AddPenstockCompile(context, work);
    work.Run(context.options, 1);
    if (!context.cuda) return;
    const double scale = 1.0 / work.tasks();
    for (const Nodes& nodes : kNodes) {
      report.Compare(work.name() + ", " + nodes.name, "us a node",
                     SpreadOf(Best(work.ways(), Kind::kRaw, &Sample::total, GroupOf(nodes)), &Sample::total, scale),
                     SpreadOf(Find(work.ways(), NameOf(nodes)), &Sample::total, scale),
                     work.name().starts_with("chain") ? 1.3 : 1.4);
    }
    report.Details(work.name(), "us a node", work.ways(), scale);
  });
}

// Of a traced run: from the first node's begin to the last one's end, as its spans say. What recording them takes is
// not in it.
Spread OnDevice(const ps::Trace& trace) {
  struct Bounds {
    double begin = 0, end = 0;
  };
  std::map<int64_t, Bounds> runs;
  for (const ps::Span& span : trace.spans()) {
    if (span.device < 0) continue;
    Bounds& of = runs.try_emplace(span.run, Bounds{span.begin_us, span.end_us}).first->second;
    of = {std::min(of.begin, span.begin_us), std::max(of.end, span.end_us)};
  }
  std::vector<double> lengths;
  for (const auto& [run, of] : runs) lengths.push_back(of.end - of.begin);
  return SpreadOf(std::move(lengths));
}

// Until done: with the spans recorded, which Wait returns behind.
void MeasureTrace(Context& context, Report& report) {
  ForEachWorkload(context, {context.options.quick ? 80 : 200}, Takes::kNone, [&](Workload& work) {
    const Valued valued = work.Declare(true);
    std::vector<std::shared_ptr<ps::Trace>> traces;  // a mode each
    for (const ModeName& mode : kModes) {
      traces.push_back(ps::Trace::Create());
      for (const bool traced : {false, true}) {
        auto bound =
            std::make_shared<Bound>(Bind(valued.declared, CompileOneSlot(context.runtime, valued.declared, mode.mode,
                                                                         traced ? traces.back() : nullptr)));
        const Kind kind = mode.kind == Kind::kScale ? Kind::kScale : traced ? Kind::kPenstock : Kind::kRaw;
        work.Add(kind, NameOf(kNodes[0], mode) + (traced ? ", traced" : ""), [bound] { return TimePenstock(*bound); });
      }
    }
    work.Run(context.options, 3);
    if (!context.cuda) return;
    for (size_t m = 0; m < traces.size(); ++m) {
      const Way& plain = Find(work.ways(), NameOf(kNodes[0], kModes[m]));
      const Way& traced = Find(work.ways(), NameOf(kNodes[0], kModes[m]) + ", traced");
      const std::string what = work.name() + ", " + kModes[m].name + ", traced; raw: not traced";
      report.Compare(what + ", submit", "us", Of(plain, &Sample::submit), Of(traced, &Sample::submit), 0);
      report.Compare(what + ", until done", "us", Of(plain, &Sample::total), Of(traced, &Sample::total), 0);
      report.Alone(work.name() + ", " + kModes[m].name + ", traced, first begin to last end", "us",
                   OnDevice(*traces[m]), "");
    }
    report.Details(work.name(), "us", work.ways(), 1);
  });
}

struct Part {
  const char* name;
  const char* title;
  const char* note;
  void (*measure)(Context&, Report&);
};
constexpr Part kParts[] = {
    {"memory", "Replay: memory of the device", "What 16 take, each with a slot, divided by 16.", MeasureMemory},
    {"replay", "Replay", "Nothing changes but the data.", MeasureReplay},
    {"scalar", "Replay: one node's scalar", "Every launch gives the task in the middle other constants.",
     MeasureScalar},
    {"all_scalars", "Replay: all nodes' scalar", "Every launch gives all tasks another value.", MeasureAllScalars},
    {"compile", "Compiling for replay",
     "Until done: raw, built, instantiated and uploaded (submit: built); Penstock, compiled with one slot.",
     MeasureCompile},
    {"trace", "Replay: what a trace costs", "Raw is Penstock without a trace.", MeasureTrace},
};

std::vector<std::string> PartNames() {
  std::vector<std::string> names;
  for (const Part& part : kParts) names.push_back(part.name);
  return names;
}

void Main(Options options) {
  const std::string missing = WhyNoDevice();
  const bool cuda = missing.empty();
  if (cuda) Check(cudaSetDevice(0), "choosing device 0");
  if (!cuda) options.quick = true, options.repeats = 1;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = cuda ? "cuda:0" : "host"}));
  std::mt19937 random(20271);
  Context context{options, cuda, runtime, random};
  Report all("Replay");
  for (const Part& part : kParts) {
    if (std::find(options.parts.begin(), options.parts.end(), part.name) == options.parts.end()) continue;
    Report report(part.title);
    report.Note(std::string(part.note) + " Medians of " + std::to_string(options.repeats) +
                " runs each, the ways in turn, on " + runtime.devices()[0].description +
                ". Raw is the best of the raw ways below, whose kernels for ParallelFor rows ask `if (i < n)` and for "
                "Kernel rows are of one thread; Penstock has one slot. All work on the same device words, but for a "
                "stencil's first and last row.");
    part.measure(context, report);
    if (!cuda) continue;
    report.Print();
    std::printf("\n");
    all.Append(report);
    all.Save(options);
  }
  if (!cuda) all.Skip(missing, "On a host device the Penstock half gave the right results.");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::Guard([&] {
    bench::Main(bench::ParseOptions(argc, argv, "replay", "What replaying graphs costs, by hand and with Penstock.",
                                    bench::PartNames()));
    return 0;
  });
}
