// What a kernel begins with that may be launched while what it depends on is still ending (CUDA's programmatic
// dependent launch): every thread of it waits here until that has ended and its memory can be seen.
//
// A kernel without that is launched when what it depends on has ended. Launched early, as graphs do it where the kernel
// begins so, a node of a chain of small kernels begins 0.28 us sooner (H100, of 0.96). What ends without having waited
// would let what depends on it begin too early, so all threads wait, and wait first.
//
// Compiled for devices of less than compute capability 9.0 it is nothing; cudaFuncAttributes::ptxVersion tells which.
#pragma once

namespace penstock::detail {

inline constexpr int kAwaitsFromPtx = 90;  // cudaFuncAttributes::ptxVersion of kernels that wait here

#if defined(__CUDACC__)
__device__ inline void AwaitDependencies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

}  // namespace penstock::detail
