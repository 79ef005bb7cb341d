// The chain and the stencil as Penstock graphs, and the clock around Launch and Wait.
//
// Every task is a node, a Kernel with one thread or a ParallelFor over one element. What waits for what is left to the
// planner: it sees who reads and writes which cell.
//
// Threads: single-threaded.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"
#include "work.cuh"

namespace bench {

struct ChainFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, uint32_t* cell, Constants k) const { *cell = ChainStep(*cell, k); }
};
struct StencilFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                       uint32_t* out, Constants k) const {
    *out = StencilStep(*left, *middle, *right, k);
  }
};

inline ps::KernelShape OneThread() { return ps::Blocks({1, 1, 1}, {1, 1, 1}).Programmatic(); }
inline std::string Numbered(const char* name, int a) { return std::string(name) + " " + std::to_string(a); }
inline std::string Numbered(const char* name, int a, int b) { return Numbered(name, a) + " " + std::to_string(b); }

// A graph, and what binds it to its memory, which must outlive it.
struct Declared {
  ps::Graph graph;
  std::function<void(ps::Bindings&)> bind{};
};
// Compiled once and bound to memory once.
struct Bound {
  ps::Executable exec;
  ps::Bindings io;
};

inline ps::Executable CompileOneSlot(ps::Runtime& runtime, const Declared& declared, ps::Mode mode,
                                     std::shared_ptr<ps::Trace> trace = nullptr) {
  ps::CompileOptions options;
  options.slots = 1;
  options.max_lanes = kWidth;
  options.mode = mode;
  options.trace = std::move(trace);
  return Must(runtime.Compile(declared.graph, options));
}
inline Bound Bind(const Declared& declared, ps::Executable exec) {
  ps::Bindings io = exec.bindings();
  declared.bind(io);
  return {std::move(exec), std::move(io)};
}

// A task; `k` is Constants or a parameter of them.
template <class K>
void AddTask(ps::Graph& graph, int i, ps::BufferHandle<uint32_t> cell, K k, bool kernels) {
  const std::string name = Numbered("task", i);
  if (kernels) {
    graph.Kernel(name, ChainKernel, OneThread(), ps::ReadWrite(cell), k).HostFallback([](uint32_t* one, Constants by) {
      *one = ChainStep(*one, by);
    });
  } else {
    graph.ParallelFor(name, 1, ChainFunctor{}, ps::ReadWrite(cell), k);
  }
}

// `add(i, cell)` adds task i. The cell is a HostBuffer, or a DeviceBuffer and kDevice.
template <class Cell, class Add>
Declared DeclareChain(ps::Graph graph, int tasks, const Cell& cell, ps::Where where, Add add) {
  auto c = graph.InOut<uint32_t>("cell", 1, where);
  for (int i = 0; i < tasks; ++i) add(graph, i, c);
  return {std::move(graph), [c, &cell](ps::Bindings& io) { io.Set(c, cell); }};
}

// What a task of the stencil reads and writes.
struct StencilCells {
  ps::AccessOf<uint32_t, ps::AccessMode::kRead> left, middle, right;
  ps::AccessOf<uint32_t, ps::AccessMode::kWrite> to;
};

template <class K>
void AddTask(ps::Graph& graph, int i, const StencilCells& cells, K k, bool kernels) {
  const std::string name = Numbered("task", i / kWidth, i % kWidth);
  if (kernels) {
    graph.Kernel(name, StencilKernel, OneThread(), cells.left, cells.middle, cells.right, cells.to, k)
        .HostFallback([](const uint32_t* l, const uint32_t* m, const uint32_t* r, uint32_t* out, Constants by) {
          *out = StencilStep(*l, *m, *r, by);
        });
  } else {
    graph.ParallelFor(name, 1, StencilFunctor{}, cells.left, cells.middle, cells.right, cells.to, k);
  }
}

// As by hand: two rows of cells take turns, but for the first, which is the input, and the last, which is the output.
// They are memory inside the run, or `between`, both rows of it. `add(i, cells)` adds task i of all.
template <class Add>
Declared DeclareStencil(ps::Graph graph, int rows, const ps::HostBuffer<uint32_t>& in,
                        const ps::HostBuffer<uint32_t>& out, const ps::DeviceBuffer<uint32_t>* between, Add add) {
  auto first = graph.Input<uint32_t>("in", kWidth, ps::kPinned);
  auto last = graph.Output<uint32_t>("out", kWidth, ps::kPinned);
  ps::BufferHandle<uint32_t> given;
  std::array<std::array<ps::BufferHandle<uint32_t>, kWidth>, 2> made;
  if (between != nullptr) given = graph.InOut<uint32_t>("cells", 2 * kWidth, ps::kDevice);
  for (int parity = 0; between == nullptr && parity < 2; ++parity) {
    for (int i = 0; i < kWidth; ++i) made[parity][i] = graph.Buffer<uint32_t>(Numbered("cell", parity, i), 1);
  }
  const auto given_at = [&](int row, int i) { return ps::Slice({(row & 1) * kWidth + i}, {1}); };
  const auto from = [&](int row, int i) {
    if (row < 0) return ps::Read(first, ps::Slice({i}, {1}));
    return between != nullptr ? ps::Read(given, given_at(row, i)) : ps::Read(made[row & 1][i]);
  };
  const auto to = [&](int row, int i) {
    if (row + 1 == rows) return ps::Write(last, ps::Slice({i}, {1}));
    return between != nullptr ? ps::Write(given, given_at(row, i)) : ps::Write(made[row & 1][i]);
  };
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < kWidth; ++i) {
      add(graph, row * kWidth + i,
          StencilCells{from(row - 1, LeftOf(i)), from(row - 1, i), from(row - 1, RightOf(i)), to(row, i)});
    }
  }
  return {std::move(graph), [first, last, given, &in, &out, between](ps::Bindings& io) {
            io.Set(first, in).Set(last, out);
            if (between != nullptr) io.Set(given, *between);
          }};
}

inline Declared ChainOfConstants(const std::vector<Constants>& tasks, const ps::HostBuffer<uint32_t>& cell,
                                 bool kernels) {
  return DeclareChain(ps::Graph("chain"), static_cast<int>(tasks.size()), cell, ps::kPinned,
                      [&](ps::Graph& graph, int i, ps::BufferHandle<uint32_t> c) {
                        AddTask(graph, i, c, tasks[static_cast<size_t>(i)], kernels);
                      });
}
inline Declared StencilOfConstants(const std::vector<Constants>& tasks, const ps::HostBuffer<uint32_t>& in,
                                   const ps::HostBuffer<uint32_t>& out, bool kernels) {
  return DeclareStencil(ps::Graph("stencil"), static_cast<int>(tasks.size()) / kWidth, in, out, nullptr,
                        [&](ps::Graph& graph, int i, const StencilCells& cells) {
                          AddTask(graph, i, cells, tasks[static_cast<size_t>(i)], kernels);
                        });
}

inline Bound ChainOnPenstock(ps::Runtime& runtime, const std::vector<Constants>& tasks,
                             const ps::HostBuffer<uint32_t>& cell, bool kernels, ps::Mode mode = ps::Mode::kStream) {
  const Declared declared = ChainOfConstants(tasks, cell, kernels);
  return Bind(declared, CompileOneSlot(runtime, declared, mode));
}
inline Bound StencilOnPenstock(ps::Runtime& runtime, const std::vector<Constants>& tasks,
                               const ps::HostBuffer<uint32_t>& in, const ps::HostBuffer<uint32_t>& out, bool kernels,
                               ps::Mode mode = ps::Mode::kStream) {
  const Declared declared = StencilOfConstants(tasks, in, out, kernels);
  return Bind(declared, CompileOneSlot(runtime, declared, mode));
}

// `set(io)` is part of what is timed.
template <class Set>
Sample TimePenstock(Bound& bound, Set set) {
  const Clock::time_point begin = Clock::now();
  set(bound.io);
  absl::StatusOr<ps::Run> run = bound.exec.Launch(bound.io);
  const Clock::time_point submitted = Clock::now();
  Must(run.status());
  const absl::Status status = run->Wait();
  const Clock::time_point end = Clock::now();
  Must(status);
  return {Microseconds(submitted - begin), Microseconds(end - begin)};
}
inline Sample TimePenstock(Bound& bound) {
  return TimePenstock(bound, [](ps::Bindings&) {});
}

}  // namespace bench
