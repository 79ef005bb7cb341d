// The work of the eager benchmark: tiny tasks of integer arithmetic on 32-bit cells, each with constants of its own,
// and the same on the CPU.
//
// Chain:   every task maps the one cell c to c * mul + add. Such maps do not commute, so any wrong order shows.
// Stencil: rows of eight cells; a task makes a cell from the three around it in the row before, the borders repeated.
//          A cell that is stale, skipped or early changes what comes out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "penstock/view.h"

namespace bench {

inline constexpr int kWidth = 8;
using Row = std::array<uint32_t, kWidth>;

struct Constants {
  uint32_t mul, add;
};

PENSTOCK_HOST_DEVICE inline uint32_t ChainStep(uint32_t cell, Constants k) { return cell * k.mul + k.add; }
PENSTOCK_HOST_DEVICE inline uint32_t StencilStep(uint32_t left, uint32_t middle, uint32_t right, Constants k) {
  return left * k.mul + (middle ^ k.add) * 3 + (right + k.add) * 5;
}

inline int LeftOf(int i) { return std::max(i - 1, 0); }
inline int RightOf(int i) { return std::min(i + 1, kWidth - 1); }

inline std::vector<Constants> RandomConstants(int count, std::mt19937& random) {
  std::vector<Constants> constants;
  for (int i = 0; i < count; ++i) {
    const uint32_t mul = static_cast<uint32_t>(random()) | 1;
    constants.push_back({mul, static_cast<uint32_t>(random())});
  }
  return constants;
}

inline uint32_t ChainOnCpu(const std::vector<Constants>& tasks, uint32_t cell) {
  for (const Constants& k : tasks) cell = ChainStep(cell, k);
  return cell;
}

// `tasks` are those of row 0, then of row 1, and so on.
inline Row StencilOnCpu(const std::vector<Constants>& tasks, Row row) {
  for (size_t first = 0; first < tasks.size(); first += kWidth) {
    Row next;
    for (int i = 0; i < kWidth; ++i) {
      next[i] = StencilStep(row[LeftOf(i)], row[i], row[RightOf(i)], tasks[first + static_cast<size_t>(i)]);
    }
    row = next;
  }
  return row;
}

#if defined(__CUDACC__)
// What kernels begin with that a graph may launch while what they depend on is ending (programmatic dependent launch);
// launched in any other way they do not wait.
static __device__ inline void Await() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
#endif

// The raw ways and Penstock's Kernel nodes launch the very same kernels, with one thread. Static: nvcc knows no inline
// kernels.
static __global__ void ChainKernel(uint32_t* cell, Constants k) {
  Await();
  *cell = ChainStep(*cell, k);
}
static __global__ void StencilKernel(const uint32_t* left, const uint32_t* middle, const uint32_t* right, uint32_t* out,
                                     Constants k) {
  Await();
  *out = StencilStep(*left, *middle, *right, k);
}

}  // namespace bench
