// The chain and the stencil as Penstock graphs, and the clock around Launch and Wait.
//
// Every task is a node, a Kernel with one thread or a ParallelFor over one element. What waits for what is left to the
// planner: it sees who reads and writes which cell.
//
// Threads: single-threaded.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "eager_work.cuh"
#include "harness.h"
#include "penstock/ps.h"

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

// Row 0 reads the input, which is one buffer; the row after the last becomes one again.
static __global__ void FirstRowKernel(const uint32_t* in, uint32_t* out, int left, int middle, int right, Constants k) {
  *out = StencilStep(in[left], in[middle], in[right], k);
}
static __global__ void GatherKernel(const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* d,
                                    const uint32_t* e, const uint32_t* f, const uint32_t* g, const uint32_t* h,
                                    uint32_t* out) {
  const uint32_t* const cells[kWidth] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < kWidth; ++i) out[i] = *cells[i];
}

inline ps::KernelShape OneThread() { return ps::Blocks({1, 1, 1}, {1, 1, 1}); }
inline std::string Numbered(const char* name, int a) { return std::string(name) + " " + std::to_string(a); }
inline std::string Numbered(const char* name, int a, int b) { return Numbered(name, a) + " " + std::to_string(b); }

// A graph compiled once and bound to memory once.
struct Bound {
  penstock::Executable exec;
  penstock::Bindings io;
};

inline Bound ChainOnPenstock(ps::Runtime& runtime, const std::vector<Constants>& tasks,
                             const ps::HostBuffer<uint32_t>& cell, bool kernels) {
  ps::Graph graph("chain");
  auto c = graph.InOut<uint32_t>("cell", 1, ps::kPinned);
  for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
    const Constants k = tasks[static_cast<size_t>(i)];
    if (kernels) {
      graph.Kernel(Numbered("task", i), ChainKernel, OneThread(), ps::ReadWrite(c), k)
          .HostTwin([](uint32_t* one, Constants by) { *one = ChainStep(*one, by); });
    } else {
      graph.ParallelFor(Numbered("task", i), 1, ChainFunctor{}, ps::ReadWrite(c), k);
    }
  }
  ps::Executable exec = Must(runtime.Compile(graph, {.slots = 1}));
  ps::Bindings io = exec.bindings();
  io.Set(c, cell);
  return {std::move(exec), std::move(io)};
}

// A row of cells, each a buffer of its own.
using Cells = std::array<ps::BufferHandle<uint32_t>, kWidth>;

inline void AddFirstRow(ps::Graph& graph, const std::vector<Constants>& tasks, ps::BufferHandle<uint32_t> in,
                        const Cells& to) {
  for (int i = 0; i < kWidth; ++i) {
    graph
        .Kernel(Numbered("task", 0, i), FirstRowKernel, OneThread(), ps::Read(in), ps::Write(to[i]), LeftOf(i), i,
                RightOf(i), tasks[static_cast<size_t>(i)])
        .HostTwin([](const uint32_t* row, uint32_t* out, int left, int middle, int right, Constants k) {
          *out = StencilStep(row[left], row[middle], row[right], k);
        });
  }
}

inline void AddRow(ps::Graph& graph, const std::vector<Constants>& tasks, int row, const Cells& from, const Cells& to,
                   bool kernels) {
  for (int i = 0; i < kWidth; ++i) {
    const Constants k = tasks[static_cast<size_t>(row * kWidth + i)];
    const auto left = ps::Read(from[LeftOf(i)]), middle = ps::Read(from[i]), right = ps::Read(from[RightOf(i)]);
    if (kernels) {
      graph.Kernel(Numbered("task", row, i), StencilKernel, OneThread(), left, middle, right, ps::Write(to[i]), k)
          .HostTwin([](const uint32_t* l, const uint32_t* m, const uint32_t* r, uint32_t* out, Constants by) {
            *out = StencilStep(*l, *m, *r, by);
          });
    } else {
      graph.ParallelFor(Numbered("task", row, i), 1, StencilFunctor{}, left, middle, right, ps::Write(to[i]), k);
    }
  }
}

inline void AddGather(ps::Graph& graph, const Cells& from, ps::BufferHandle<uint32_t> out) {
  graph
      .Kernel("gather", GatherKernel, OneThread(), ps::Read(from[0]), ps::Read(from[1]), ps::Read(from[2]),
              ps::Read(from[3]), ps::Read(from[4]), ps::Read(from[5]), ps::Read(from[6]), ps::Read(from[7]),
              ps::Write(out))
      .HostTwin([](const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* d, const uint32_t* e,
                   const uint32_t* f, const uint32_t* g, const uint32_t* h, uint32_t* to) {
        int i = 0;
        for (const uint32_t* cell : {a, b, c, d, e, f, g, h}) to[i++] = *cell;
      });
}

// As by hand: two rows of cells take turns.
inline Bound StencilOnPenstock(ps::Runtime& runtime, const std::vector<Constants>& tasks,
                               const ps::HostBuffer<uint32_t>& in, const ps::HostBuffer<uint32_t>& out, bool kernels) {
  ps::Graph graph("stencil");
  auto first = graph.Input<uint32_t>("in", kWidth, ps::kPinned);
  auto last = graph.Output<uint32_t>("out", kWidth, ps::kPinned);
  std::array<Cells, 2> rows;
  for (int parity = 0; parity < 2; ++parity) {
    for (int i = 0; i < kWidth; ++i) rows[parity][i] = graph.Buffer<uint32_t>(Numbered("cell", parity, i), 1);
  }
  const int count = static_cast<int>(tasks.size()) / kWidth;
  AddFirstRow(graph, tasks, first, rows[0]);
  for (int row = 1; row < count; ++row) AddRow(graph, tasks, row, rows[(row - 1) & 1], rows[row & 1], kernels);
  AddGather(graph, rows[(count - 1) & 1], last);
  ps::Executable exec = Must(runtime.Compile(graph, {.slots = 1, .max_lanes = kWidth}));
  ps::Bindings io = exec.bindings();
  io.Set(first, in).Set(last, out);
  return {std::move(exec), std::move(io)};
}

inline Sample TimePenstock(Bound& bound) {
  const Clock::time_point begin = Clock::now();
  absl::StatusOr<ps::Run> run = bound.exec.Launch(bound.io);
  const Clock::time_point submitted = Clock::now();
  Must(run.status());
  const absl::Status status = run->Wait();
  const Clock::time_point end = Clock::now();
  Must(status);
  return {Microseconds(submitted - begin), Microseconds(end - begin)};
}

}  // namespace bench
