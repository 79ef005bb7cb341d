// What a level of a ReduceRows runs: a functor of ParallelFor's code that takes leaves (scan_tree.h) in place of
// elements. A leaf is a part of a long row, or several short rows.
//
// Arguments: the values, and what is written: one value for each leaf of a long row, or for each short row. The node's
// extent is that of the elements at every level. The last level writes the result of each row.
//
// Contraction: as in reduce_leaf.h, each result of the user's code is rounded before another call sees it.
//
// Threads: disjoint leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/pack_tree.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/detail/reduce_leaf.h"
#include "penstock/detail/scan_leaf.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

#if defined(__CUDACC__)
// Which slots of a leaf have a value: those of its rows up to their width there.
struct SlotsOfRows {
  int bits, rows, width;

  PENSTOCK_HIDDEN __device__ __forceinline__ static SlotsOfRows Of(const ScanRows& of, const ScanLeaf& at) {
    const int64_t rows = of.rows - at.row, width = of.width - at.column;
    const int most = 1 << (kLeafBits - at.bits);
    return {at.bits, rows < most ? static_cast<int>(rows) : most, width < kLeaf ? static_cast<int>(width) : int{kLeaf}};
  }
  PENSTOCK_HIDDEN __device__ __forceinline__ int RowOf(int slot) const { return slot >> bits; }
  PENSTOCK_HIDDEN __device__ __forceinline__ int ColumnOf(int slot) const { return slot & ((1 << bits) - 1); }
  PENSTOCK_HIDDEN __device__ __forceinline__ bool Has(int slot) const {
    return RowOf(slot) < rows && ColumnOf(slot) < width;
  }
  // Whether all have one.
  PENSTOCK_HIDDEN __device__ __forceinline__ bool IsFull() const {
    return (rows << bits) == kLeaf && width >> bits != 0;
  }
};
#endif

// `kPacks`: the rows are probably such as PutPacks takes. What other rows need would else take more registers, and
// longer.
template <class Op, class V, bool kElements, bool kLast, bool kPacks = false>
struct RowsLeaf {
  Op op;
  V identity;
  int32_t level;  // from 1
  uint32_t zero = 0;  // for Rounded

  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = kMinBlocksOf<V>;
  RowsLeaf(const Op& o, const V& none, int32_t of) : op(o), identity(none), level(of) {}
  bool later() const { return level > 1; }

  // For FunctorRank: never called.
  template <class T, class R>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, View<const T>, View<R>) const {}

  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V At(const Range& range, const ScanRows& rows, int64_t row, int64_t column,
                                            const View<const T>& from) const {
    return RoundedOp<Op, V>{op, zero}.Converted(ScanValues<kElements>::At(range, rows, from, row, column));
  }
  // Puts what a row gives, or its leaf that begins at `column`.
  template <class R>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Put(const Range& range, const ScanRows& rows, int64_t row, int64_t column,
                                                const V& value, const View<R>& to) const {
    if constexpr (!kLast) to(row * ValuesAfter(rows.width, 1) + column / kLeaf) = value;
    else if (range.depth == 1) to(row) = value;
    else to(row / range.height, row % range.height) = value;
  }
  // Rows without elements have the identity, which the last level puts.
  template <class R>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void PutIdentities(const Range& range, int64_t first, int64_t step,
                                                          const View<R>& to) const {
    if constexpr (kLast) {
      const ScanRows none{range.depth * range.height, 0};
      for (int64_t row = first; row < none.rows; row += step) Put(range, none, row, 0, identity, to);
    }
  }

  template <int kRank, class T, class R>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const View<const T>& from, const View<R>& to) const {
    if (range.width == 0) {
      if (leaf == 0) PutIdentities(range, 0, 1, to);
      return;
    }
    const ScanRows rows = ScanRows::Of(range.depth * range.height, range.width, level);
    if (leaf >= rows.leaves()) return;
    const ScanLeaf at = ScanLeaf::Of(rows, leaf);
    const int64_t end_row = std::min(at.row + (int64_t{1} << (kLeafBits - at.bits)), rows.rows);
    const int64_t end = std::min(at.column + kLeaf, rows.width);
    for (int64_t row = at.row; row < end_row; ++row) {
      const auto value_at = [&](int64_t column) { return At(range, rows, row, column, from); };
      Put(range, rows, row, at.column, FoldOnHost<V>(at.column, end, op, value_at), to);
    }
  }

#if defined(__CUDACC__)
  template <int kRank, class T, class R>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const View<const T>& from,
                                                           const View<R>& to) const {
    if (range.width == 0) {
      return PutIdentities(range, static_cast<int64_t>(blockIdx.x) * kLeafThreads + threadIdx.x,
                           static_cast<int64_t>(gridDim.x) * kLeafThreads, to);
    }
    const ScanRows rows = ScanRows::Of(range.depth * range.height, range.width, level);
    const int64_t leaves = rows.leaves();
    __shared__ alignas(V) unsigned char shared[size_t{kLeafThreads} / 32 * sizeof(V)];
    // Rows of all slices are a pitch apart, except in a box that ends a slice; if they are dense, so are the slots of
    // whole rows.
    const bool is_even = !kElements || range.depth == 1 || from.slice == range.height * from.pitch;
    const int64_t pitch = kElements ? from.pitch : rows.width;
    const bool is_dense = is_even && pitch == rows.width;
    int64_t leaf = blockIdx.x;
    if constexpr (kPacks) {
      if (is_dense) leaf = PutPacks(leaf, range, rows, from, to);
    }
#pragma unroll 1
    for (; leaf < leaves; leaf += gridDim.x) {
      const ScanLeaf at = ScanLeaf::Of(rows, leaf);
      V mine[8] = {identity, identity, identity, identity, identity, identity, identity, identity};
      const bool is_part = rows.width - at.column >= kLeaf;  // all of the leaf is of one row
      const SlotsOfRows slots = SlotsOfRows::Of(rows, at);
      if (is_part || (is_dense && slots.IsFull())) {
        LoadAll(mine, &ScanValues<kElements>::At(range, rows, from, at.row, at.column));
        constexpr SlotsOfRows kPart{kLeafBits, 1, kLeaf};  // the same, but known to the compiler
        if (is_part) OfBlock<true>(mine, reinterpret_cast<V*>(shared), range, rows, at, kPart, to);
        else OfBlock<true>(mine, reinterpret_cast<V*>(shared), range, rows, at, slots, to);
        continue;
      }
      if (is_even) LoadRows(mine, slots, from.data + at.row * pitch + at.column, pitch);
      else LoadElements(mine, slots, range, rows, at, from);
      OfBlock<false>(mine, reinterpret_cast<V*>(shared), range, rows, at, slots, to);
    }
  }
  // Puts what rows give that lie side by side and fill their slots, several of a warp, which are loaded as packs.
  // Returns the leaf at which this ends: the first if there are no packs, or else one that is not full, or none.
  template <class T, class R>
  PENSTOCK_HIDDEN __device__ __forceinline__ int64_t PutPacks(int64_t leaf, const Range& range, const ScanRows& rows,
                                                              const View<const T>& from, const View<R>& to) const {
    using Packs = PackTree<V, T, Op>;
    if constexpr (Packs::kExist) {
      const int bits = rows.bits();
      if (rows.width != int64_t{1} << bits || rows.width > Packs::kInPart || !Packs::AreAt(from.data)) return leaf;
      const int first = static_cast<int>(threadIdx.x) / 32 * Packs::kInPart, slot = first + Packs::FirstOfLane();
#pragma unroll 1
      for (; (leaf + 1) << (kLeafBits - bits) <= rows.rows; leaf += gridDim.x) {
        const V value = Packs{op, zero}.OfRows(from.data + leaf * kLeaf + first, bits);
        if ((slot & ((1 << bits) - 1)) != 0) continue;
        Put(range, rows, (leaf << (kLeafBits - bits)) + (slot >> bits), 0, value, to);
      }
    }
    return leaf;
  }
  // Each thread loads every 32nd slot of its warp, as a BlockTree takes them.
  PENSTOCK_HIDDEN __device__ __forceinline__ static int FirstSlot() {
    return static_cast<int>(threadIdx.x) / 32 * 256 + static_cast<int>(threadIdx.x) % 32;
  }
  template <class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ void LoadAll(V (&mine)[8], const T* from) const {
    from += FirstSlot();
#pragma unroll
    for (int k = 0; k < 8; ++k) mine[k] = RoundedOp<Op, V>{op, zero}.Converted(from[k * 32]);
  }
  template <class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ void LoadRows(V (&mine)[8], const SlotsOfRows& slots, const T* from,
                                                           int64_t pitch) const {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int slot = FirstSlot() + k * 32;
      if (!slots.Has(slot)) continue;
      mine[k] = RoundedOp<Op, V>{op, zero}.Converted(from[slots.RowOf(slot) * pitch + slots.ColumnOf(slot)]);
    }
  }
  template <class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ void LoadElements(V (&mine)[8], const SlotsOfRows& slots,
                                                               const Range& range, const ScanRows& rows,
                                                               const ScanLeaf& at, const View<const T>& from) const {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int slot = FirstSlot() + k * 32;
      if (slots.Has(slot)) mine[k] = At(range, rows, at.RowOf(slot), at.ColumnOf(slot), from);
    }
  }
  template <bool kFull, class R>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfBlock(V (&mine)[8], V* warps, const Range& range,
                                                          const ScanRows& rows, const ScanLeaf& at,
                                                          const SlotsOfRows& slots, const View<R>& to) const {
    using Tree = BlockTree<V, Op, kFull, SlotsOfRows>;
    static_assert(Tree::kRows == 8 && Tree::kLanes == 32);
    const V of_warp = Tree{op, zero, slots}.OfWarp(mine, slots.bits);
    const int thread = static_cast<int>(threadIdx.x), warp = thread / Tree::kLanes;
    if (slots.bits <= Tree::kBits) {  // a warp has whole rows
      const int slot = warp * Tree::kInWarp + Tree::FirstOfLane();
      if (slots.ColumnOf(slot) != 0 || slots.RowOf(slot) >= slots.rows) return;
      return Put(range, rows, at.row + slots.RowOf(slot), 0, of_warp, to);
    }
    __syncthreads();  // the warps' values of the leaf before have been read
    if (thread % Tree::kLanes == 0) warps[warp] = of_warp;
    __syncthreads();
    const int each = 1 << (slots.bits - Tree::kBits), first = thread * each;
    if (first >= Tree::kWarps || thread >= slots.rows) return;
    Fold(warps + first, (slots.width - 1) / Tree::kInWarp + 1, RoundedOp<Op, V>{op, zero});
    Put(range, rows, at.row + thread, at.column, warps[first], to);
  }
#endif
};

template <class Op, class V, bool kElements, bool kLast, bool kPacks>
inline constexpr bool kTakesLeaves<RowsLeaf<Op, V, kElements, kLast, kPacks>> = true;
template <class Op, class V, bool kElements, bool kLast, bool kPacks>
inline constexpr bool kTakesAnyExtent<RowsLeaf<Op, V, kElements, kLast, kPacks>> = true;

}  // namespace penstock::detail
