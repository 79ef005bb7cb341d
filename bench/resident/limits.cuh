// From which numbers of nodes and elements on regions pay: short chains and sets of chains with regions and without,
// both in graph mode. The limits of Resident::kAuto (src/runtime/executable/tuning.h) are checked here.
//
// A node makes each element of its lane's words from that element, by a ParallelFor. Or all but the first node copy
// them within the device, to a second row of words and back in turn.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "context.h"
#include "tasks.cuh"
#include "words.cuh"

namespace bench {

struct EachFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, ps::View<uint32_t> x, Constants k) const {
    x(i) = ChainStep(x(i), k);
  }
};

struct Shape {
  int lanes, levels, elements;
  bool copies;

  std::string Name() const {
    const std::string chains = lanes == 1 ? "chain of " : std::to_string(lanes) + " chains of ";
    return chains + std::to_string(levels) + (copies ? " copies of " : " nodes of ") + std::to_string(elements) +
           (copies          ? " words"
            : elements == 1 ? " element"
                            : " elements");
  }
  int words() const { return 2 * lanes * elements; }
};

inline Declared DeclareShape(const Shape& shape, Constants k, const Words& words) {
  ps::Graph graph("limits");
  const auto all = graph.InOut<uint32_t>("words", shape.words(), words.where());
  for (int lane = 0; lane < shape.lanes; ++lane) {
    const auto part = [&](int row) { return ps::Slice((2 * lane + row) * shape.elements, shape.elements); };
    const auto first = graph.Alias("first" + std::to_string(lane), all, part(0));
    const auto second = graph.Alias("second" + std::to_string(lane), all, part(1));
    for (int level = 0; level < shape.levels; ++level) {
      const std::string name = std::to_string(lane) + " " + std::to_string(level);
      if (shape.copies && level > 0) graph.Copy(name, level % 2 != 0 ? first : second, level % 2 != 0 ? second : first);
      else graph.ParallelFor(name, shape.elements, EachFunctor{}, ps::ReadWrite(first), k);
    }
  }
  return {std::move(graph), [all, &words](ps::Bindings& io) { words.Bind(io, all); }};
}

inline void MeasureShape(const Context& context, const Shape& shape, Report& report) {
  const Words words(context.runtime, context.cuda, shape.words());
  const Constants k{2 * static_cast<uint32_t>(context.random()) + 1, static_cast<uint32_t>(context.random())};
  std::vector<Way> ways;
  for (const Regions& regions : kRegions) {
    const Declared declared = DeclareShape(shape, k, words);
    const ps::CompileOptions options{.slots = 1, .mode = ps::Mode::kGraph, .resident = regions.resident};
    auto bound = std::make_shared<Bound>(Bind(declared, Must(context.runtime.Compile(declared.graph, options))));
    const bool resident = regions.resident == ps::Resident::kOn;
    const bool has_regions = bound->exec.submission_report().region_nodes > 0;
    if (context.cuda && has_regions != resident) Fail(shape.Name() + ": not as asked");
    ways.push_back({Kind::kPenstock, regions.name, [&, bound, name = std::string(regions.name)] {
                      std::vector<uint32_t> expected(static_cast<size_t>(shape.words()));
                      for (uint32_t& word : expected) word = static_cast<uint32_t>(context.random());
                      words.Put(expected);
                      const Sample sample = TimePenstock(*bound);
                      for (int lane = 0; lane < shape.lanes; ++lane) {
                        uint32_t* const first = expected.data() + size_t{2} * lane * shape.elements;
                        for (int i = 0; i < shape.elements; ++i) {
                          for (int n = 0; n < (shape.copies ? 1 : shape.levels); ++n) first[i] = ChainStep(first[i], k);
                          if (shape.copies) first[shape.elements + i] = first[i];
                        }
                      }
                      if (words.Get() != expected) Fail(shape.Name() + ", " + name + ": wrong result");
                      return sample;
                    }});
  }
  context.Run(ways);
  if (!context.cuda) return;
  const auto of = [&](const Regions& regions) { return SpreadOf(Find(ways, regions.name), &Sample::total, 1); };
  report.Compare(shape.Name() + ", resident; raw: graph mode", "us", of(kOff), of(kOn), 0);
}

inline void MeasureLimits(const Context& context, Report& report) {
  for (const int levels : {2, 3, 4, 8, 16}) {
    for (const int elements : {1, 32}) MeasureShape(context, {1, levels, elements, false}, report);
  }
  for (const int elements : {64, 128, 256, 512, 1024}) MeasureShape(context, {1, 8, elements, false}, report);
  for (const int elements : {1, 32, 128, 512, 1024}) MeasureShape(context, {8, 4, elements, false}, report);
  for (const int elements : {1, 32, 128, 1024}) MeasureShape(context, {32, 8, elements, false}, report);
  for (const int elements : {16, 64, 256, 512}) MeasureShape(context, {1, 8, elements, true}, report);
}

}  // namespace bench
