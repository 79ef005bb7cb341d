// The code behind Graph::ParallelFor: one loop for host threads and, where nvcc compiles it, one kernel.
//
// Both are templates over the functor and its stored arguments, and over kCompiledByNvcc: the instances of a .cc and a
// .cu are different functions, so link order cannot decide whether a kernel exists.
//
// Argument block: Range, the functor, then its arguments.
#pragma once

#include "penstock/detail/arguments.h"
#include "penstock/export.h"

#if defined(__CUDACC__)
#define PENSTOCK_COMPILED_BY_NVCC 1
#include "penstock/detail/cuda_kernel.h"
#include "penstock/detail/programmatic.h"
#else
#define PENSTOCK_COMPILED_BY_NVCC 0
#endif

namespace penstock::detail {

// The rank of the index a functor takes: 1, 2 or 3; 0 if it takes none of them with these arguments.
template <class F, class... Stored>
PENSTOCK_HIDDEN constexpr int FunctorRank() {
  if constexpr (std::is_invocable_v<const F&, int64_t, Stored...>) return 1;
  else if constexpr (std::is_invocable_v<const F&, Index2, Stored...>) return 2;
  else if constexpr (std::is_invocable_v<const F&, Index3, Stored...>) return 3;
  else return 0;
}

// The elements of one row. `row` counts rows of all slices; over a 1-D extent each element is a row of its own.
template <int kRank, class F, class... Stored>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline void CallAt(const F& f, int64_t z, int64_t y, int64_t x,
                                                        const Stored&... args) {
  if constexpr (kRank == 1) f(x, args...);
  else if constexpr (kRank == 2) f(Index2{y, x}, args...);
  else f(Index3{z, y, x}, args...);
}

// Where an argument lies: in what is passed, or where a parameter by reference points.
template <class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline const T* Where(const T& passed) {
  return &passed;
}
template <class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline const T* Where(const Ref<T>& passed) {
  return passed.at;
}

template <int kRank, class F, class... Stored>
PENSTOCK_HIDDEN void RunRows(const Range& range, int64_t first, int64_t end, const F& f, const Stored&... args) {
  if constexpr (kRank == 1) {
    for (int64_t x = first; x < end; ++x) CallAt<1>(f, 0, 0, x, args...);
  } else {
    for (int64_t row = first; row < end; ++row) {
      const int64_t z = row / range.height, y = row % range.height;
      for (int64_t x = 0; x < range.width; ++x) CallAt<kRank>(f, z, y, x, args...);
    }
  }
}

// Arguments are copied, so that the loop need not look at them again.
template <int kRank, class F, class... Passed, size_t... I>
PENSTOCK_HIDDEN void RunPassed(void* const* argv, int64_t first, int64_t end, std::index_sequence<I...>) {
  const std::tuple args(*Where(*static_cast<const Passed*>(argv[I + 2]))...);
  RunRows<kRank>(*static_cast<const Range*>(argv[0]), first, end, *static_cast<const F*>(argv[1]),
                 std::get<I>(args)...);
}

// Runs rows [first, end); thread-safe, disjoint parts may run at once. `Passed`: as the arguments lie in the block.
template <bool kNvcc, int kRank, class F, class... Passed>
PENSTOCK_HIDDEN void RunRange(void* const* argv, int64_t first, int64_t end) {
  RunPassed<kRank, F, Passed...>(argv, first, end, std::index_sequence_for<Passed...>());
}

#if defined(__CUDACC__)
// Grid-stride in every dimension there is, so that any extent fits any grid the runtime chooses. Nearly every grid
// covers its extent, so a loop is one turn as a rule, and unrolled it would only begin later. With parameters by
// reference the first turn stands before the loop: what it reads is waited for once then, not for the parameters, which
// stay as they are from turn to turn, and then for the rest.
template <int kRank, class F, class... Passed>
PENSTOCK_HIDDEN __global__ void ParallelForKernel(Range range, F f, Passed... args) {
  AwaitDependencies();
  int64_t first_x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step_x = static_cast<int64_t>(gridDim.x) * blockDim.x;
  if constexpr (kRank == 1) {
    if constexpr ((kIsRef<Passed> || ...)) {
      if (first_x >= range.width) return;
      f(first_x, *Where(args)...);
      first_x += step_x;
    }
#pragma unroll 1
    for (int64_t x = first_x; x < range.width; x += step_x) f(x, *Where(args)...);
  } else {
    const int64_t step_y = static_cast<int64_t>(gridDim.y) * blockDim.y;
#pragma unroll 1
    for (int64_t z = blockIdx.z; z < range.depth; z += gridDim.z)
#pragma unroll 1
      for (int64_t y = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; y < range.height; y += step_y)
#pragma unroll 1
        for (int64_t x = first_x; x < range.width; x += step_x) CallAt<kRank>(f, z, y, x, *Where(args)...);
  }
}
#endif

// The code for declared arguments A.
template <bool kNvcc, class F, class... A>
PENSTOCK_HIDDEN void FillParallelForCode(NodeCode& code) {
  constexpr int kRank = FunctorRank<F, ViewStoredT<A>...>();
  constexpr bool kTakesParams = (kParams<A...>) > 0;
  code.range = &RunRange<kNvcc, kRank, F, ViewStoredT<A>...>;
  if constexpr (kTakesParams) code.range_by_ref = &RunRange<kNvcc, kRank, F, RefStoredT<A>...>;
#if defined(__CUDACC__)
  code.cuda_kernel = &LoadCudaKernel;
  code.cuda_self = reinterpret_cast<const void*>(&ParallelForKernel<kRank, F, ViewStoredT<A>...>);
  if constexpr (kTakesParams) {
    code.cuda_self_by_ref = reinterpret_cast<const void*>(&ParallelForKernel<kRank, F, RefStoredT<A>...>);
  }
#endif
}

}  // namespace penstock::detail
