// The same tasks for graphs made by hand (bench/replay/raw.cuh), whose kernels are one block over an extent of one
// element, as those of ParallelFor nodes; or one thread that asks nothing.
//
// Threads: single-threaded.
#pragma once

#include <memory>
#include <vector>

#include "bench/replay/raw.cuh"
#include "tasks.cuh"
#include "words.cuh"

namespace bench {

static __global__ void SpinExtentKernel(const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                        uint32_t* out, int n, Constants k, uint32_t cycles) {
  Await();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) *out = SpinStep(left, middle, right, k, cycles);
}

inline CUfunction FunctionOf(const void* kernel) {
  cudaFunction_t function = nullptr;
  Check(cudaGetFuncBySymbol(&function, kernel), "asking for a function");
  return function;
}

inline const void* KernelOf(Code code, const RawShape& shape) {
  if (code == Code::kStep && !shape.over_extent) return reinterpret_cast<const void*>(&ChainKernel);
  if (!shape.over_extent || code == Code::kHeavy) Fail("there is no such kernel");
  if (code == Code::kStep) return reinterpret_cast<const void*>(&ChainExtentKernel<>);
  if (code == Code::kMix) return reinterpret_cast<const void*>(&StencilExtentKernel<>);
  return reinterpret_cast<const void*>(&SpinExtentKernel);
}

// Its arguments point into the list, which must outlive it.
inline std::shared_ptr<const RawWork> MakeRaw(const TaskList& list, const RawShape& shape, uint32_t* words) {
  auto work = std::make_shared<RawWork>();
  work->threads = shape.threads;
  work->stub = KernelOf(list.code, shape);
  work->function = FunctionOf(work->stub);
  work->lanes = list.lanes;
  for (int i = 0; i < list.lanes; ++i) work->streams.push_back(MakeStream());
  for (int i = 0; i < 2 * list.lanes; ++i) work->events.push_back(MakeEvent());
  work->tasks.resize(list.tasks.size());
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const Task& task = list.tasks[t];
    RawTask& raw = work->tasks[t];
    raw.after = task.after;
    raw.left = words + task.left, raw.middle = words + task.middle, raw.right = words + task.right;
    raw.out = words + task.out;
    const auto constant = [](const auto& value) { return const_cast<void*>(static_cast<const void*>(&value)); };
    void* const k = constant(task.k);
    if (list.code != Code::kStep) {
      raw.argv = {&raw.left, &raw.middle, &raw.right, &raw.out, &work->extent, k, constant(task.turns)};
    } else if (shape.over_extent) {
      raw.argv = {&raw.out, &work->extent, k};
    } else {
      raw.argv = {&raw.out, k};
    }
  }
  return work;
}

// --- how long tasks that spin take ---

static __global__ void SpinsKernel(uint32_t* word, Constants k, uint32_t cycles, int count) {
  for (int i = 0; i < count; ++i) *word = SpinStep(word, word, word, k, cycles);
}

// Microseconds that one such task takes if one thread does one after the other: what twice as many take longer.
inline double SpinUs(uint32_t cycles) {
  const int count = std::max(static_cast<int>(2'000'000 / (cycles + 1000)), 100);
  uint32_t* const word = MakeDeviceMemory<uint32_t>(1);
  const cudaStream_t stream = MakeStream();
  cudaEvent_t begin = nullptr, end = nullptr;
  Check(cudaEventCreate(&begin), "creating an event");
  Check(cudaEventCreate(&end), "creating an event");
  const auto time = [&](int many) {
    Check(cudaEventRecord(begin, stream), "recording an event");
    SpinsKernel<<<1, 1, 0, stream>>>(word, Constants{3, 1}, cycles, many);
    Check(cudaEventRecord(end, stream), "recording an event");
    Check(cudaEventSynchronize(end), "running tasks that spin");
    float ms = 0;
    Check(cudaEventElapsedTime(&ms, begin, end), "measuring tasks that spin");
    return 1e3 * ms;
  };
  time(count);
  std::vector<double> each;
  for (int i = 0; i < 5; ++i) each.push_back((time(2 * count) - time(count)) / count);
  (void)cudaEventDestroy(begin), (void)cudaEventDestroy(end);
  (void)cudaStreamDestroy(stream);
  (void)cudaFree(word);
  return SpreadOf(std::move(each)).median;
}
// Cycles of a task that takes so long.
inline uint32_t CyclesOf(double us) { return static_cast<uint32_t>(us * 10'000 / (SpinUs(20'000) - SpinUs(10'000))); }

}  // namespace bench
