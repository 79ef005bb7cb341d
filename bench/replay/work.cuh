// What the replay benchmark adds to the work of the eager one: a value that changes from launch to launch.
#pragma once

#include <vector>

#include "bench/eager/work.cuh"

namespace bench {

// What takes the value: nothing; the middle task, as its constants; or all tasks, beside constants of their own.
enum class Takes { kNone, kMiddle, kAll };

// An odd mul stays odd, so that no task loses what was before it.
PENSTOCK_HOST_DEVICE inline Constants Mixed(Constants own, Constants value) {
  return {own.mul + 2 * value.mul, own.add ^ value.add};
}

inline int MiddleOf(const std::vector<Constants>& tasks) { return static_cast<int>(tasks.size() / 2); }

// The constants that tasks have in a run with this value.
inline std::vector<Constants> With(Constants value, Takes takes, std::vector<Constants> tasks) {
  if (takes == Takes::kMiddle) tasks[static_cast<size_t>(MiddleOf(tasks))] = value;
  if (takes == Takes::kAll) {
    for (Constants& k : tasks) k = Mixed(k, value);
  }
  return tasks;
}

// The tasks with the value as an argument.
static __global__ void ChainValueKernel(uint32_t* cell, Constants k, Constants value) {
  Await();
  *cell = ChainStep(*cell, Mixed(k, value));
}
static __global__ void StencilValueKernel(const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                          uint32_t* out, Constants k, Constants value) {
  Await();
  *out = StencilStep(*left, *middle, *right, Mixed(k, value));
}

}  // namespace bench
