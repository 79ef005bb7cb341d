// The chain and the stencil as tasks for hand-made graphs: arguments that lie still, and the fewest dependencies.
//
// A value that changes from launch to launch is read where it lies, in pinned memory of the caller's, when a node's
// parameters are set; or the graph copies it to the device first, and tasks read it there.
//
// A task is one thread that takes what it is given, as in a Kernel node; or what people write for an extent, as of a
// ParallelFor node: blocks of threads, each of which asks whether its index is inside.
//
// Threads: single-threaded.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <vector>

#include "cuda_check.cuh"
#include "work.cuh"

namespace bench {

// The tasks with the value in device memory.
static __global__ void ChainBlockKernel(uint32_t* cell, Constants k, const Constants* value) {
  Await();
  *cell = ChainStep(*cell, Mixed(k, *value));
}
static __global__ void StencilBlockKernel(const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                          uint32_t* out, Constants k, const Constants* value) {
  Await();
  *out = StencilStep(*left, *middle, *right, Mixed(k, *value));
}

// The tasks over `n` elements, which is 1.
PENSTOCK_HOST_DEVICE inline Constants Taken(Constants own) { return own; }
PENSTOCK_HOST_DEVICE inline Constants Taken(Constants own, Constants value) { return Mixed(own, value); }
PENSTOCK_HOST_DEVICE inline Constants Taken(Constants own, const Constants* value) { return Mixed(own, *value); }
template <class... Values>
__global__ void ChainExtentKernel(uint32_t* cell, int n, Constants k, Values... value) {
  Await();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) *cell = ChainStep(*cell, Taken(k, value...));
}
template <class... Values>
__global__ void StencilExtentKernel(const uint32_t* left, const uint32_t* middle, const uint32_t* right, uint32_t* out,
                                    int n, Constants k, Values... value) {
  Await();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) *out = StencilStep(*left, *middle, *right, Taken(k, value...));
}

struct RawTask {
  const uint32_t *left = nullptr, *middle = nullptr, *right = nullptr;  // of a stencil's
  uint32_t* out = nullptr;
  Constants k{};
  std::array<void*, 7> argv{};
  std::vector<int> after{};  // tasks; none: what comes before all of them
};

struct RawCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  cudaMemcpyKind kind = cudaMemcpyHostToDevice;
};

// Tasks are numbered row by row, a row having one in each lane; copies come before the first and behind the last.
// Not to be copied or moved: arguments point into it.
struct RawWork {
  RawWork() = default;
  RawWork(const RawWork&) = delete;
  ~RawWork() {
    for (const cudaStream_t stream : streams) (void)cudaStreamDestroy(stream);
    for (const cudaEvent_t event : events) (void)cudaEventDestroy(event);
    (void)cudaEventDestroy(hub);
    (void)cudaFree(ends);
    (void)cudaFree(block);
  }

  const void* stub = nullptr;
  CUfunction function = nullptr;  // of the current context
  unsigned int threads = 1;  // of a task's block
  int extent = 1;            // an argument of tasks that are over one
  int lanes = 1;
  std::vector<RawTask> tasks;
  std::vector<RawCopy> before, behind;

  uint32_t* ends = nullptr;    // a stencil's input and output on the device
  Constants* block = nullptr;  // the value, on the device; null: tasks have it as an argument
  // For captures.
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;
  cudaEvent_t hub = MakeEvent();
};

// What takes the value, where it lies, and whether it is copied to the device in every run.
struct RawValue {
  Takes takes = Takes::kNone;
  Constants* at = nullptr;
  bool in_block = false;
};

// The kernels: for one thread, and over an extent.
struct Stubs {
  const void *constants, *value, *block;
};
using BothStubs = std::array<Stubs, 2>;

// How a task is launched: one thread, or one block over an extent.
struct RawShape {
  const char* name;
  bool over_extent;
  unsigned int threads;
};
inline constexpr RawShape kRawShapes[] = {
    {"", false, 1}, {", `if (i < n)`, 256 threads", true, 256}, {", `if (i < n)`, 32 threads", true, 32}};

inline std::shared_ptr<RawWork> MakeWork(const std::vector<Constants>& constants, int lanes, const BothStubs& both,
                                         const RawShape& shape, const RawValue& value) {
  auto work = std::make_shared<RawWork>();
  const Stubs& stubs = both[shape.over_extent ? 1 : 0];
  work->threads = shape.threads;
  work->stub = value.in_block ? stubs.block : value.takes == Takes::kAll ? stubs.value : stubs.constants;
  cudaFunction_t function = nullptr;
  Check(cudaGetFuncBySymbol(&function, work->stub), "asking for a function");
  work->function = function;
  work->lanes = lanes;
  if (value.in_block) {
    work->block = MakeDeviceMemory<Constants>(1);
    work->before.push_back({work->block, value.at, sizeof(Constants), cudaMemcpyHostToDevice});
  }
  work->tasks.resize(constants.size());
  for (size_t t = 0; t < constants.size(); ++t) work->tasks[t].k = constants[t];
  for (int i = 0; i < lanes; ++i) work->streams.push_back(MakeStream());
  for (int i = 0; i < 2 * lanes; ++i) work->events.push_back(MakeEvent());
  return work;
}

// Fills in the arguments behind the first `count`: the extent, the constants, and the value where all tasks take it.
inline void FinishArguments(RawWork& work, size_t count, const RawShape& shape, const RawValue& value) {
  if (shape.over_extent) {
    for (RawTask& task : work.tasks) task.argv[count] = &work.extent;
    ++count;
  }
  for (RawTask& task : work.tasks) {
    task.argv[count] = &task.k;
    task.argv[count + 1] = value.in_block ? static_cast<void*>(&work.block) : value.at;
  }
  if (value.takes == Takes::kMiddle) work.tasks[work.tasks.size() / 2].argv[count] = value.at;
}

// The cell is on the device, and not the graph's to copy.
inline std::shared_ptr<RawWork> RawChainWork(const std::vector<Constants>& constants, uint32_t* cell,
                                             const RawShape& shape, const RawValue& value) {
  const auto stub = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
  const BothStubs stubs{
      {{stub(&ChainKernel), stub(&ChainValueKernel), stub(&ChainBlockKernel)},
       {stub(&ChainExtentKernel<>), stub(&ChainExtentKernel<Constants>), stub(&ChainExtentKernel<const Constants*>)}}};
  auto work = MakeWork(constants, 1, stubs, shape, value);
  for (size_t t = 0; t < work->tasks.size(); ++t) {
    RawTask& task = work->tasks[t];
    task.out = cell;
    task.argv[0] = &task.out;
    if (t > 0) task.after = {static_cast<int>(t) - 1};
  }
  FinishArguments(*work, 1, shape, value);
  return work;
}

// Row 0 reads what was uploaded, and the last writes what is downloaded; between them the two rows of `cells`, on the
// device, take turns. A task waits for the three it reads from, which are also those that have read what it overwrites.
inline std::shared_ptr<RawWork> RawStencilWork(const std::vector<Constants>& constants, const uint32_t* host_in,
                                               uint32_t* host_out, uint32_t* cells, const RawShape& shape,
                                               const RawValue& value) {
  const auto stub = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
  const BothStubs stubs{{{stub(&StencilKernel), stub(&StencilValueKernel), stub(&StencilBlockKernel)},
                         {stub(&StencilExtentKernel<>), stub(&StencilExtentKernel<Constants>),
                          stub(&StencilExtentKernel<const Constants*>)}}};
  auto work = MakeWork(constants, kWidth, stubs, shape, value);
  work->ends = MakeDeviceMemory<uint32_t>(2 * kWidth);
  const int rows = static_cast<int>(constants.size()) / kWidth;
  const auto row_at = [&](int row) {
    if (row < 0) return work->ends;
    return row + 1 == rows ? work->ends + kWidth : cells + (row & 1) * kWidth;
  };
  work->before.push_back({row_at(-1), host_in, sizeof(Row), cudaMemcpyHostToDevice});
  work->behind.push_back({host_out, row_at(rows - 1), sizeof(Row), cudaMemcpyDeviceToHost});
  for (int t = 0; t < rows * kWidth; ++t) {
    const int row = t / kWidth, i = t % kWidth;
    RawTask& task = work->tasks[static_cast<size_t>(t)];
    task.left = row_at(row - 1) + LeftOf(i);
    task.middle = row_at(row - 1) + i;
    task.right = row_at(row - 1) + RightOf(i);
    task.out = row_at(row) + i;
    task.argv = {&task.left, &task.middle, &task.right, &task.out};
    for (int j = LeftOf(i); row > 0 && j <= RightOf(i); ++j) task.after.push_back((row - 1) * kWidth + j);
  }
  FinishArguments(*work, 4, shape, value);
  return work;
}

}  // namespace bench
