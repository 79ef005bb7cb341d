// What Graph::ParallelFor runs: one loop for host threads and, if nvcc compiles it, one kernel. Graph::Task runs the
// same with kTaskRank, where the functor is called once by each thread of a block.
//
// Both are templates over the functor, its stored arguments, and whether nvcc compiles them: the instances of a .cc and
// a .cu are different functions, so link order cannot decide whether a kernel exists.
//
// Argument block: Range, the functor, then its arguments.
#pragma once

#include <algorithm>
#include <utility>

#include "penstock/detail/algorithm_code.h"
#include "penstock/detail/arguments.h"
#include "penstock/detail/counted.h"
#include "penstock/export.h"
#include "penstock/task.h"

#if defined(__CUDACC__)
#define PENSTOCK_COMPILED_BY_NVCC 1
// For a parameter of a kernel whose address may be taken without a copy in each thread.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define PENSTOCK_GRID_CONSTANT
#else
#define PENSTOCK_GRID_CONSTANT const __grid_constant__
#endif
#include "penstock/detail/cuda_kernel.h"
#include "penstock/detail/programmatic.h"
#include "penstock/detail/resident_cuda.h"
#else
#define PENSTOCK_COMPILED_BY_NVCC 0
#endif

namespace penstock::detail {

PENSTOCK_HIDDEN inline constexpr int kAnyRank = 0;  // for an extent whose rank the compiler does not know

// An extent whose rank the compiler knows.
template <size_t kRank>
PENSTOCK_HIDDEN Extent ExtentOf(const Dim (&list)[kRank]) {
  static_assert(kRank <= kMaxRank, "an extent has at most three dimensions");
  if constexpr (kRank == 1) return {list[0]};
  else if constexpr (kRank == 2) return {list[0], list[1]};
  else return {list[0], list[1], list[2]};
}

template <int kRank>
using IndexOf = std::conditional_t<kRank == 1, int64_t, std::conditional_t<kRank == 2, Index2, Index3>>;

// Whether a functor takes an index of this rank. If the extent's rank is known and fits, no other rank is tested, since
// testing a generic functor compiles its body for that index.
template <int kRank, int kExtentRank, class F, class... Stored>
PENSTOCK_HIDDEN constexpr bool TakesRank() {
  if constexpr (kExtentRank != kAnyRank && kExtentRank != kRank) {
    if constexpr (TakesRank<kExtentRank, kExtentRank, F, Stored...>()) return false;
    else return TakesRank<kRank, kAnyRank, F, Stored...>();
  } else {
    return std::is_invocable_v<const F&, IndexOf<kRank>, Stored...>;
  }
}

// The rank of a functor's index: the extent's rank if the functor takes it, otherwise the first rank it takes; 0: it
// takes none with these arguments.
template <int kExtentRank, class F, class... Stored>
PENSTOCK_HIDDEN constexpr int FunctorRank(int extent_rank) {
  constexpr bool k1 = TakesRank<1, kExtentRank, F, Stored...>(), k2 = TakesRank<2, kExtentRank, F, Stored...>(),
                 k3 = TakesRank<3, kExtentRank, F, Stored...>();
  if (k3 && (extent_rank == 3 || !(k1 || k2))) return 3;
  if (k2 && (extent_rank == 2 || !k1)) return 2;
  return k1 ? 1 : 0;
}

// What the functor gets for an argument: the passed value, what a parameter by reference points to, or the Views of a
// table.
template <class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline const T& Given(const T& passed) {
  return passed;  // NOLINT: never a temporary, but an argument of the kernel or of the block
}
template <class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline const T& Given(const Ref<T>& passed) {
  return *passed.at;
}
template <class T, size_t kMost>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline Views<T> Given(const ViewTable<T, kMost>& passed) {
  return passed;
}
// The same on the host, where `at` in the block is an argument of type Passed.
template <class Passed>
PENSTOCK_HIDDEN decltype(auto) GivenAt(const void* at) {
  if constexpr (kIsViews<Passed>) return ViewsAt<typename TableOf<Passed>::element>(at);
  else return Given(*static_cast<const Passed*>(at));
}

// A functor that takes leaves of many elements, one at a time, in place of elements: see reduce_leaf.h.
template <class F>
inline constexpr bool kTakesLeaves = false;
// One of which a block takes several: see look_back.h.
template <class F>
inline constexpr bool kTakesTiles = requires { F::kLeavesOfBlock; };

// Runs rows [first, end). Rows of all slices are counted together; over a 1-D extent each element is a row of its own,
// and so is a leaf. A Task is one row.
template <int kRank, class F, class... Stored>
PENSTOCK_HIDDEN void RunRows(const Range& range, int64_t first, int64_t end, const F& f, const Stored&... args) {
  if constexpr (kRank == kTaskRank) {
    if (first < end) f(Block(TaskMemory(range.width), range.width), args...);
  } else if constexpr (requires { f.template OnHostRange<kRank>(range, first, end, args...); }) {
    f.template OnHostRange<kRank>(range, first, end, args...);
  } else if constexpr (kTakesLeaves<F>) {
    for (int64_t leaf = first; leaf < end; ++leaf) f.template OnHost<kRank>(range, leaf, args...);
  } else if constexpr (kIsCounted<F>) {
    f.OnHost(first, end, args...);
  } else if constexpr (kRank == 1) {
    for (int64_t x = first; x < end; ++x) CallAt<1>(f, 0, 0, x, args...);
  } else {
    for (int64_t row = first; row < end; ++row) {
      const int64_t z = row / range.height, y = row % range.height;
      for (int64_t x = 0; x < range.width; ++x) CallAt<kRank>(f, z, y, x, args...);
    }
  }
}

// Copies the arguments, so that the loop need not reload them.
template <int kRank, class F, class... Passed, size_t... I>
PENSTOCK_HIDDEN void RunPassed(void* const* argv, int64_t first, int64_t end, std::index_sequence<I...>) {
  const std::tuple args(GivenAt<Passed>(argv[I + 2])...);
  RunRows<kRank>(*static_cast<const Range*>(argv[0]), first, end, *static_cast<const F*>(argv[1]),
                 std::get<I>(args)...);
}

// Runs rows [first, end); thread-safe: disjoint ranges may run concurrently. `Passed`: argument types as in the block.
template <bool kNvcc, int kRank, class F, class... Passed>
PENSTOCK_HIDDEN void RunRange(void* const* argv, int64_t first, int64_t end) {
  RunPassed<kRank, F, Passed...>(argv, first, end, std::index_sequence_for<Passed...>());
}

// How many Views each table of a kernel can have room for. A kernel takes 4 KiB of arguments on every device, and each
// launch passes the whole table, so there are three instances of the kernel.
struct ViewRooms {
  int64_t few, some, most;
};
template <class F, class... Stored>
PENSTOCK_HIDDEN constexpr ViewRooms RoomsForViews() {
  constexpr int64_t kMostBytes = 4096, kTables = (int64_t{0} + ... + int64_t{kIsViews<Stored>});
  if constexpr (kTables == 0) {
    return {0, 0, 0};
  } else {
    // A parameter may be passed by its address. The rest is what aligning an argument may take.
    constexpr int64_t kOthers =
        int64_t{sizeof(Range) + sizeof(F) + alignof(F)} +
        (int64_t{0} + ... +
         int64_t{std::max(sizeof(Stored), sizeof(void*)) + std::max(alignof(Stored), alignof(void*))});
    constexpr int64_t kMost = std::max((kMostBytes - kOthers) / (kTables * int64_t{sizeof(View<char>)}), int64_t{1});
    return {std::min(kMost, int64_t{8}), std::min(kMost, int64_t{32}), kMost};
  }
}
// The room for the tables of a ParallelFor with these arguments: the least that is enough, or the most; 0: there is no
// kernel, or no table.
template <bool kNvcc, class F, class... A>
PENSTOCK_HIDDEN int64_t RoomForViews([[maybe_unused]] const A&... args) {
  if constexpr (kNvcc && (IsAll<A>::value || ...)) {
    constexpr ViewRooms kRooms = RoomsForViews<F, ViewStoredT<A>...>();
    const auto views = static_cast<int64_t>(std::max({ViewsIn(args)...}));
    return views <= kRooms.few ? kRooms.few : views <= kRooms.some ? kRooms.some : kRooms.most;
  } else {
    return 0;
  }
}

#if defined(__CUDACC__)
// The threads of a kernel of one block.
PENSTOCK_HIDDEN __device__ __forceinline__ Block BlockOfKernel(int64_t shared_bytes) {
  extern __shared__ __align__(16) unsigned char penstock_task_memory[];
  return {reinterpret_cast<std::byte*>(penstock_task_memory), shared_bytes, threadIdx.x, blockDim.x};
}

// Loops in every dimension, so that any extent fits any grid the runtime chooses. The grid covers a small extent, where
// each loop runs once, so unrolling would only delay its start; over a large one the innermost loop runs a few times
// (src/runtime/slot/kernel_grid.h). In x and z they stride by the grid. In y a block goes through adjacent rows, whose
// common neighbours are then in its cache: a thread has the least power of two that covers the extent, which takes no
// argument and no loop to find (docs/adr/087). With parameters by reference the first iteration is peeled: its loads
// are then awaited together, instead of first the loop-invariant parameters and then the rest.
template <int kRank, class F, class... Passed>
PENSTOCK_HIDDEN __device__ __forceinline__ void RunElements(const Range& range, F& f, const Passed&... args) {
  if constexpr (kTakesLeaves<F>) return f.template OnDevice<kRank>(range, Given(args)...);
  if constexpr (kIsCounted<F>) return f.OnDevice(range, Given(args)...);
  if constexpr (kTakesBlock<F>) return RunByBlock(f, Given(args)...);
  int64_t first_x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step_x = static_cast<int64_t>(gridDim.x) * blockDim.x;
  if constexpr (kRank == 1) {
    if constexpr ((kIsRef<Passed> || ...)) {
      if (first_x >= range.width) return;
      f(first_x, Given(args)...);
      first_x += step_x;
    }
#pragma unroll 1
    for (int64_t x = first_x; x < range.width; x += step_x) f(x, Given(args)...);
  } else {
    const int64_t covered = int64_t{gridDim.y} * blockDim.y;  // by a row a thread
    int doublings = max(__clzll(covered) - __clzll(range.height), 0);
    if ((covered << doublings) < range.height) ++doublings;
    const int64_t rows = int64_t{blockDim.y} << doublings;  // of a block
    const int64_t begin_y = blockIdx.y * rows, end_y = begin_y + rows < range.height ? begin_y + rows : range.height;
#pragma unroll 1
    for (int64_t z = blockIdx.z; z < range.depth; z += gridDim.z)
#pragma unroll 1
      for (int64_t x = first_x; x < range.width; x += step_x)
#pragma unroll 1
        for (int64_t y = begin_y + threadIdx.y; y < end_y; y += blockDim.y) CallAt<kRank>(f, z, y, x, Given(args)...);
  }
}

// Whether dependents of the kernel may be launched as soon as it runs (programmatic.h).
template <class F>
inline constexpr bool kReleasesDependents = requires { requires F::kReleasesDependents; };

// Everything a kernel does.
template <int kRank, class F, class... Passed>
PENSTOCK_HIDDEN __device__ __forceinline__ void RunKernel(const Range& range, F& f, const Passed&... args) {
  AwaitDependencies();
  if constexpr (kReleasesDependents<F>) ReleaseDependents();
  if constexpr (kRank == kTaskRank) static_cast<const F&>(f)(BlockOfKernel(range.width), Given(args)...);
  else RunElements<kRank>(range, f, args...);
}

template <int kRank, class F, class... Passed>
PENSTOCK_HIDDEN __global__ void ParallelForKernel(Range range, F f, Passed... args) {
  RunKernel<kRank>(range, f, args...);
}
// The same with tables of Views, which no thread may copy. Other kernels are compiled differently, not better, if their
// arguments are grid constants.
template <int kRank, class F, class... Passed>
PENSTOCK_HIDDEN __global__ void TableKernel(Range range, F f, PENSTOCK_GRID_CONSTANT Passed... args) {
  RunKernel<kRank>(range, f, args...);
}

// The same of a functor that says how many threads a block has, and how many blocks a multiprocessor shall have room
// for.
template <int kRank, class F, class... Passed>
PENSTOCK_HIDDEN __global__ void __launch_bounds__(F::kBlockThreads, F::kMinBlocks)
    BoundKernel(Range range, F f, Passed... args) {
  RunKernel<kRank>(range, f, args...);
}

// How a kernel takes an argument if tables have room for kRoom Views.
template <int64_t kRoom, class Passed>
struct InKernel {
  using type = Passed;
};
template <int64_t kRoom, class T>
struct InKernel<kRoom, Views<T>> {
  using type = ViewTable<T, static_cast<size_t>(kRoom)>;
};

// The instance of the kernel whose tables have that room, one of RoomsForViews.
template <int kRank, ViewRooms kRooms, class F, class... Passed>
PENSTOCK_HIDDEN const void* KernelWithRoom([[maybe_unused]] int64_t room) {
  if constexpr (kRooms.most > 0) {
    if (room <= kRooms.few) {
      return reinterpret_cast<const void*>(&TableKernel<kRank, F, typename InKernel<kRooms.few, Passed>::type...>);
    }
    if (room <= kRooms.some) {
      return reinterpret_cast<const void*>(&TableKernel<kRank, F, typename InKernel<kRooms.some, Passed>::type...>);
    }
    return reinterpret_cast<const void*>(&TableKernel<kRank, F, typename InKernel<kRooms.most, Passed>::type...>);
  } else if constexpr (requires { F::kMinBlocks; }) {
    return reinterpret_cast<const void*>(&BoundKernel<kRank, F, Passed...>);
  } else {
    return reinterpret_cast<const void*>(&ParallelForKernel<kRank, F, Passed...>);
  }
}
#endif

// Fills in the code for one rank of the index, or that of a Task, if tables of Views have `room`.
template <bool kNvcc, int kRank, class F, class... A>
PENSTOCK_HIDDEN void FillCodeOfRank(NodeCode& code, [[maybe_unused]] int64_t room) {
  constexpr bool kTakesParams = (kParams<A...>) > 0;
  code.range = &RunRange<kNvcc, kRank, F, ViewStoredT<A>...>;
  if constexpr (kTakesParams) code.indirect_range = &RunRange<kNvcc, kRank, F, RefStoredT<A>...>;
#if defined(__CUDACC__)
  if constexpr (!kTakesLeaves<F> && !kOwnsData<F> && !(kIsViews<ViewStoredT<A>> || ...)) {
    code.cuda_region = reinterpret_cast<const void*>(&ResidentKernel<ThisUnit>);
    code.cuda_task = reinterpret_cast<const void*>(&ResidentTaskAddress<ThisUnit, kRank, F, std::decay_t<A>...>);
    code.cuda_task_variable = kResidentTaskVariable;
  }
  code.cuda_kernel = &LoadCudaKernel;
  constexpr ViewRooms kRooms = RoomsForViews<F, ViewStoredT<A>...>();
  code.cuda_self = KernelWithRoom<kRank, kRooms, F, ViewStoredT<A>...>(room);
  if constexpr (kTakesParams) code.cuda_self_indirect = KernelWithRoom<kRank, kRooms, F, RefStoredT<A>...>(room);
#endif
  if constexpr (kTakesLeaves<F>) {
    code.algorithm = TypeOf<LeavesOf<kRank, F, typename NameOfStored<ViewStoredT<A>>::type...>>();
    if constexpr (!kNvcc) UseCompiledCode(code);
  }
}

// Fills in the code for declared arguments A and an index of `rank`, which the functor takes. It is instantiated for
// each rank that the functor takes and the extent may have.
template <bool kNvcc, int kExtentRank, class F, class... A>
PENSTOCK_HIDDEN void FillParallelForCode(NodeCode& code, int rank, int64_t room) {
  if constexpr (TakesRank<1, kExtentRank, F, ViewStoredT<A>...>()) {
    if (rank == 1) FillCodeOfRank<kNvcc, 1, F, A...>(code, room);
  }
  if constexpr (TakesRank<2, kExtentRank, F, ViewStoredT<A>...>()) {
    if (rank == 2) FillCodeOfRank<kNvcc, 2, F, A...>(code, room);
  }
  if constexpr (TakesRank<3, kExtentRank, F, ViewStoredT<A>...>()) {
    if (rank == 3) FillCodeOfRank<kNvcc, 3, F, A...>(code, room);
  }
}

}  // namespace penstock::detail
