// What the first and the last node of a Select run: functors of ParallelFor's code that take leaves (scan_tree.h) in
// place of elements. LeafCounts counts what is kept of each leaf, and SelectLeaf writes it. Between them the levels of
// a Scan add up the counts.
//
// Arguments: the count of a CountOf, if there is one; of a SelectLeaf, if there are several leaves, how many are kept
// before each; the values; and what is written.
//
// Threads: disjoint leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstdint>

#include "penstock/detail/reduce_leaf.h"
#include "penstock/detail/scan_leaf.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

#if defined(__CUDACC__)
// Which of a block's values are kept. Thread l of warp w has values number w * 256 + 32 k + l for each k.
struct BlockSelection {
  static constexpr int kRows = 8, kLanes = 32, kInWarp = kRows * kLanes,
                       kWarps = static_cast<int>(kLeafThreads) / kLanes;
  uint32_t kept[kRows];  // of the warp's values, a bit for each lane

  PENSTOCK_HIDDEN __device__ __forceinline__ static int Lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  PENSTOCK_HIDDEN __device__ __forceinline__ static int Warp() { return static_cast<int>(threadIdx.x) / kLanes; }
  PENSTOCK_HIDDEN __device__ __forceinline__ static int Number(int k) { return Warp() * kInWarp + k * kLanes + Lane(); }
  PENSTOCK_HIDDEN __device__ __forceinline__ int OfWarp() const {
    int count = 0;
#pragma unroll
    for (int k = 0; k < kRows; ++k) count += __popc(kept[k]);
    return count;
  }
  // Puts the number of each warp into `warps`, which all threads may then read.
  PENSTOCK_HIDDEN __device__ __forceinline__ void Share(int (&warps)[kWarps]) const {
    __syncthreads();  // those of the leaf before have been read
    if (Lane() == 0) warps[Warp()] = OfWarp();
    __syncthreads();
  }
};
#endif

// How many values of each leaf are kept.
template <class F, bool kHasCount>
struct LeafCounts : ScanLevel<kHasCount> {
  F keep;

  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = 1;
  explicit LeafCounts(const F& f) : ScanLevel<kHasCount>{1}, keep(f) {}
  bool later() const { return false; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.width <= kLeaf || leaf >= rows.leaves()) return;
    const auto& from = ArgumentAt<sizeof...(Stored) - 2>(args...);
    const int64_t end = std::min((leaf + 1) * kLeaf, rows.width);
    int64_t count = 0;
    for (int64_t i = leaf * kLeaf; i < end; ++i) count += static_cast<bool>(keep(from(i))) ? 1 : 0;
    ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) = count;
  }

#if defined(__CUDACC__)
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.width <= kLeaf) return;
    const auto& from = ArgumentAt<sizeof...(Stored) - 2>(args...);
    __shared__ int warps[BlockSelection::kWarps];
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < rows.leaves(); leaf += gridDim.x) {
      BlockSelection selection;
#pragma unroll
      for (int k = 0; k < BlockSelection::kRows; ++k) {
        const int64_t i = leaf * kLeaf + BlockSelection::Number(k);
        selection.kept[k] = __ballot_sync(0xffffffffu, i < rows.width && static_cast<bool>(keep(from(i))));
      }
      selection.Share(warps);
      if (threadIdx.x != 0) continue;
      int64_t count = 0;
      for (int w = 0; w < BlockSelection::kWarps; ++w) count += warps[w];
      ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) = count;
    }
  }
#endif
};

// Writes what is kept of each leaf, and the last leaf the count.
template <class F, class V, bool kHasCount, bool kCarried>
struct SelectLeaf : ScanLevel<kHasCount> {
  F keep;

  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = 1;
  explicit SelectLeaf(const F& f) : ScanLevel<kHasCount>{1}, keep(f) {}
  bool later() const { return kCarried; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  // How many are kept before a leaf.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t BeforeLeaf([[maybe_unused]] int64_t leaf,
                                                          [[maybe_unused]] const Stored&... args) const {
    if constexpr (kCarried) {
      if (leaf > 0) return ArgumentAt<kHasCount ? 1 : 0>(args...)(leaf);
    }
    return 0;
  }
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void PutCount(int64_t count, const Stored&... args) const {
    const auto& to = ArgumentAt<sizeof...(Stored) - 1>(args...);
    to(0) = static_cast<std::remove_cvref_t<decltype(to(0))>>(count);
  }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0 && leaf == 0) PutCount(0, args...);
    if (leaf >= rows.leaves()) return;
    const auto& from = ArgumentAt<sizeof...(Stored) - 3>(args...);
    const auto& to = ArgumentAt<sizeof...(Stored) - 2>(args...);
    const int64_t end = std::min((leaf + 1) * kLeaf, rows.width);
    int64_t at = BeforeLeaf(leaf, args...);
    for (int64_t i = leaf * kLeaf; i < end; ++i) {
      if (static_cast<bool>(keep(from(i)))) to(at++) = static_cast<V>(from(i));
    }
    if (end == rows.width) PutCount(at, args...);
  }

#if defined(__CUDACC__)
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0 && blockIdx.x == 0 && threadIdx.x == 0) PutCount(0, args...);
    const auto& from = ArgumentAt<sizeof...(Stored) - 3>(args...);
    const auto& to = ArgumentAt<sizeof...(Stored) - 2>(args...);
    __shared__ int warps[BlockSelection::kWarps];
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < rows.leaves(); leaf += gridDim.x) {
      const int64_t first = leaf * kLeaf;
      BlockSelection selection;
#pragma unroll
      for (int k = 0; k < BlockSelection::kRows; ++k) {
        const int64_t i = first + BlockSelection::Number(k);
        selection.kept[k] = __ballot_sync(0xffffffffu, i < rows.width && static_cast<bool>(keep(from(i))));
      }
      selection.Share(warps);
      int64_t at = BeforeLeaf(leaf, args...);
      for (int w = 0; w < BlockSelection::Warp(); ++w) at += warps[w];
      const uint32_t before = (1u << BlockSelection::Lane()) - 1;
#pragma unroll
      for (int k = 0; k < BlockSelection::kRows; ++k) {
        if ((selection.kept[k] >> BlockSelection::Lane() & 1) != 0) {
          to(at + __popc(selection.kept[k] & before)) = static_cast<V>(from(first + BlockSelection::Number(k)));
        }
        at += __popc(selection.kept[k]);
      }
      if (rows.width - first <= kLeaf && threadIdx.x == kLeafThreads - 1) PutCount(at, args...);
    }
  }
#endif
};

template <class F, bool kHasCount>
inline constexpr bool kTakesLeaves<LeafCounts<F, kHasCount>> = true;
template <class F, bool kHasCount>
inline constexpr bool kTakesAnyExtent<LeafCounts<F, kHasCount>> = true;
template <class F, class V, bool kHasCount, bool kCarried>
inline constexpr bool kTakesLeaves<SelectLeaf<F, V, kHasCount, kCarried>> = true;
template <class F, class V, bool kHasCount, bool kCarried>
inline constexpr bool kTakesAnyExtent<SelectLeaf<F, V, kHasCount, kCarried>> = true;

}  // namespace penstock::detail
