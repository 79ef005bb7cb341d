// The graphs of bench/eager/penstock.cuh with a parameter: for the middle task, or for all.
//
// Threads: single-threaded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/eager/penstock.cuh"
#include "work.cuh"

namespace bench {

struct ChainValueFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, uint32_t* cell, Constants k, Constants value) const {
    *cell = ChainStep(*cell, Mixed(k, value));
  }
};
struct StencilValueFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                       uint32_t* out, Constants k, Constants value) const {
    *out = StencilStep(*left, *middle, *right, Mixed(k, value));
  }
};

using Value = ps::ParamHandle<Constants>;

inline void AddTask(ps::Graph& graph, int i, ps::BufferHandle<uint32_t> cell, Constants k, Value value, bool kernels) {
  const std::string name = Numbered("task", i);
  if (kernels) {
    graph.Kernel(name, ChainValueKernel, OneThread(), ps::ReadWrite(cell), k, value)
        .HostFallback([](uint32_t* one, Constants own, Constants by) { *one = ChainStep(*one, Mixed(own, by)); });
  } else {
    graph.ParallelFor(name, 1, ChainValueFunctor{}, ps::ReadWrite(cell), k, value);
  }
}
inline void AddTask(ps::Graph& graph, int i, const StencilCells& cells, Constants k, Value value, bool kernels) {
  const std::string name = Numbered("task", i / kWidth, i % kWidth);
  if (kernels) {
    graph.Kernel(name, StencilValueKernel, OneThread(), cells.left, cells.middle, cells.right, cells.to, k, value)
        .HostFallback([](const uint32_t* l, const uint32_t* m, const uint32_t* r, uint32_t* out, Constants own,
                         Constants by) { *out = StencilStep(*l, *m, *r, Mixed(own, by)); });
  } else {
    graph.ParallelFor(name, 1, StencilValueFunctor{}, cells.left, cells.middle, cells.right, cells.to, k, value);
  }
}

// A graph and the parameter that `takes` says who takes; it has none where nothing does.
struct Valued {
  Declared declared;
  Value value{};
};

// `declare(graph, add)` is DeclareChain or DeclareStencil.
template <class Declare>
Valued DeclareValued(const std::vector<Constants>& tasks, Takes takes, bool kernels, Declare declare) {
  ps::Graph graph("replayed");
  const Value value = takes == Takes::kNone ? Value() : graph.Param<Constants>("value");
  const auto add = [&](ps::Graph& to, int i, const auto& cells) {
    const Constants k = tasks[static_cast<size_t>(i)];
    if (takes == Takes::kAll) {
      AddTask(to, i, cells, k, value, kernels);
    } else if (takes == Takes::kMiddle && i == MiddleOf(tasks)) {
      AddTask(to, i, cells, value, kernels);
    } else {
      AddTask(to, i, cells, k, kernels);
    }
  };
  return {declare(std::move(graph), add), value};
}

}  // namespace bench
