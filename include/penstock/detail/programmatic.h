// The prologue of a kernel that may be launched while its predecessors are still ending (CUDA's programmatic dependent
// launch): every thread waits here until they have ended and their memory is visible.
//
// A kernel without the prologue is launched when its predecessors have ended. Graphs launch one with it early, so a
// node in a chain of small kernels begins 0.28 us sooner (H100, of 0.96). A thread that ended without waiting would let
// successors begin too early, so all threads wait, and wait before they touch what a kernel may write.
//
// Compiled for less than compute capability 9.0 it does nothing; cudaFuncAttributes::ptxVersion shows which.
#pragma once

namespace penstock::detail {

inline constexpr int kAwaitsFromPtx = 90;  // cudaFuncAttributes::ptxVersion of kernels that wait here

#if defined(__CUDACC__)
__device__ inline void AwaitDependencies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the kernels that depend on this one be launched as soon as all of its blocks have come here. They still await
// its end, but their blocks take room meanwhile, so this is for kernels that are short or have small dependents.
__device__ inline void ReleaseDependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
#endif

}  // namespace penstock::detail

// The first statement of a __global__ function whose Kernel node says Programmatic(): waits until all that the node
// depends on has ended and its memory is visible. Every thread executes it. Elsewhere it does nothing.
//
//   __global__ void Scale(int n, float* x) {
//     PS_AWAIT_DEPENDENCIES();
//     ...
//   }
//   graph.Kernel("scale", Scale, ps::Threads(n).Programmatic(), n, ps::ReadWrite(x));
#if defined(__CUDACC__)
#define PENSTOCK_AWAIT_DEPENDENCIES() ::penstock::detail::AwaitDependencies()
#else
#define PENSTOCK_AWAIT_DEPENDENCIES() static_cast<void>(0)
#endif
