// What the first and the last node of a ReduceByKey run: functors of ParallelFor's code that take leaves (scan_tree.h)
// in place of elements. RunTotals goes up from the elements, RunPrefixes down to them; between them are the levels of a
// Scan (scan_leaf.h).
//
// What they scan is, for each element, its value and whether a run begins there. Combining two of these adds up the
// beginnings; the values are combined only if no run begins on the right. What comes out for the last element of a run
// is thus the number of runs so far, and the total of this run. (The segmented scan of G. Blelloch, Prefix sums and
// their applications, CMU-CS-90-190, 1990, section 1.5.)
//
// Arguments: the count of a CountOf, if there is one; of RunPrefixes what comes before each leaf, if there are several;
// keys and values; and what is written.
//
// Threads: disjoint leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/packed_number.h"
#include "penstock/detail/reduce_leaf.h"
#include "penstock/detail/scan_leaf.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

inline constexpr int64_t kMostOfRuns = UINT32_MAX;  // elements, so that the number of a run takes 4 bytes

// Of adjacent elements: how many runs begin there, and what those of the last of these runs give.
template <class V>
struct RunSum {
  using Number = PackedNumber<4, alignof(V)>;
  V value;
  Number heads;
};
// Combines neighbours.
template <class Op, class V>
struct RunOp {
  Op op;

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE RunSum<V> operator()(const RunSum<V>& a, const RunSum<V>& b) const {
    const uint64_t right = b.heads.Get();
    const auto heads = RunSum<V>::Number::Of(a.heads.Get() + right);
    if (right != 0) return {b.value, heads};
    return {static_cast<V>(op(a.value, b.value)), heads};
  }
};
template <class Op, class V>
inline constexpr bool kIsRounded<RunOp<Op, V>, RunSum<V>> = kIsRounded<Op, V>;

// An element of keys and values.
template <class K>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline bool BeginsRun(const View<const K>& keys, int64_t i) {
  return i == 0 || !(keys(i - 1) == keys(i));
}
template <class K>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline bool EndsRun(const View<const K>& keys, int64_t n, int64_t i) {
  return i + 1 == n || !(keys(i) == keys(i + 1));
}
template <class Op, class V, class T>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline RunSum<V> RunAt(const RunOp<Op, V>& op, uint32_t zero, bool begins,
                                                            const T& value) {
  return {RoundedOp<Op, V>{op.op, zero}.Converted(value), RunSum<V>::Number::Of(begins ? 1 : 0)};
}

// What the elements of each leaf give.
template <class Op, class V, bool kHasCount>
struct RunTotals : ScanLevel<kHasCount> {
  RunOp<Op, V> op;
  RunSum<V> placeholder;
  uint32_t zero = 0;

  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = kMinBlocksOf<RunSum<V>>;
  RunTotals(const RunOp<Op, V>& o, const RunSum<V>& p) : ScanLevel<kHasCount>{1}, op(o), placeholder(p) {}
  bool later() const { return false; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE RunSum<V> At(int64_t i, const Stored&... args) const {
    const auto& keys = ArgumentAt<sizeof...(Stored) - 3>(args...);
    return RunAt(op, zero, BeginsRun(keys, i), ArgumentAt<sizeof...(Stored) - 2>(args...)(i));
  }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.width <= kLeaf || leaf >= rows.leaves()) return;
    ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) = FoldOnHost<RunSum<V>>(
        leaf * kLeaf, std::min((leaf + 1) * kLeaf, rows.width), op, [&](int64_t i) { return At(i, args...); });
  }

#if defined(__CUDACC__)
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.width <= kLeaf) return;
    const int64_t leaves = rows.leaves();
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < leaves; leaf += gridDim.x) {
      const int64_t left = rows.width - leaf * kLeaf;
      if (left >= kLeaf) OfBlock<true>(leaf, kLeaf, args...);
      else OfBlock<false>(leaf, static_cast<int>(left), args...);
    }
  }
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfBlock(int64_t leaf, int count, const Stored&... args) const {
    using Tree = BlockTree<RunSum<V>, RunOp<Op, V>, kFull>;
    __shared__ alignas(RunSum<V>) unsigned char shared[size_t{Tree::kWarps} * sizeof(RunSum<V>)];
    const int first =
        static_cast<int>(threadIdx.x) / Tree::kLanes * Tree::kInWarp + static_cast<int>(threadIdx.x) % Tree::kLanes;
    RunSum<V> mine[Tree::kRows] = {placeholder, placeholder, placeholder, placeholder,
                                   placeholder, placeholder, placeholder, placeholder};
#pragma unroll
    for (int k = 0; k < Tree::kRows; ++k) {
      const int number = first + k * Tree::kLanes;
      if (kFull || number < count) mine[k] = At(leaf * kLeaf + number, args...);
    }
    const Tree tree{op, zero, {count}};
    const RunSum<V> of_warp = tree.OfWarp(mine);
    auto* const warps = reinterpret_cast<RunSum<V>*>(shared);
    __syncthreads();  // the warps' values of the leaf before have been read
    if (threadIdx.x % Tree::kLanes == 0) warps[threadIdx.x / Tree::kLanes] = of_warp;
    __syncthreads();
    if (threadIdx.x != 0) return;
    Fold(warps, kFull ? Tree::kWarps : (count - 1) / Tree::kInWarp + 1, RoundedOp<RunOp<Op, V>, RunSum<V>>{op, zero});
    ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) = warps[0];
  }
#endif
};

// Writes the key of each run where it begins, its total where it ends, and the number of runs with the last element.
template <class Op, class V, bool kHasCount, bool kCarried>
struct RunPrefixes : LeafPrefixes<RunOp<Op, V>, RunSum<V>, true, kHasCount, kCarried> {
  using Base = LeafPrefixes<RunOp<Op, V>, RunSum<V>, true, kHasCount, kCarried>;
  RunPrefixes(const RunOp<Op, V>& o, const RunSum<V>& placeholder) : Base(1, o, placeholder, false, true, kCarried) {}

  // The arguments from the keys on, which are the last five.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static const auto& Keys(const Stored&... args) {
    return ArgumentAt<sizeof...(Stored) - 5>(args...);
  }
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE RunSum<V> At(int64_t i, bool begins, const Stored&... args) const {
    return RunAt(this->op, this->zero, begins, ArgumentAt<sizeof...(Stored) - 4>(args...)(i));
  }
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static void PutCount(uint64_t count, const Stored&... args) {
    auto& to = ArgumentAt<sizeof...(Stored) - 1>(args...)(0);
    to = static_cast<std::remove_cvref_t<decltype(to)>>(count);
  }
  // What element i of n has come to.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static void Put(int64_t n, int64_t i, bool begins, bool ends,
                                                       const RunSum<V>& sum, const Stored&... args) {
    const uint64_t runs = sum.heads.Get();
    const auto run = static_cast<int64_t>(runs) - 1;
    if (begins) {
      auto& key = ArgumentAt<sizeof...(Stored) - 3>(args...)(run);
      key = static_cast<std::remove_cvref_t<decltype(key)>>(Keys(args...)(i));
    }
    if (ends) ArgumentAt<sizeof...(Stored) - 2>(args...)(run) = sum.value;
    if (i + 1 == n) PutCount(runs, args...);
  }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0 && leaf == 0) PutCount(0, args...);
    if (leaf >= rows.leaves()) return;
    const ScanLeaf at = ScanLeaf::Of(rows, leaf);
    const auto& keys = Keys(args...);
    this->RowOnHost(
        at.column, std::min(rows.width - at.column, kLeaf), this->BeforeLeaf(rows, at, args...),
        [&](int64_t i) { return At(i, BeginsRun(keys, i), args...); },
        [&](int64_t i, const RunSum<V>& sum) {
          Put(rows.width, i, BeginsRun(keys, i), EndsRun(keys, rows.width, i), sum, args...);
        });
  }

#if defined(__CUDACC__)
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0 && blockIdx.x == 0 && threadIdx.x == 0) PutCount(0, args...);
    const int64_t leaves = rows.leaves();
    __shared__ alignas(RunSum<V>) unsigned char warp_bytes[size_t{Base::kWarps} * sizeof(RunSum<V>)];
    __shared__ alignas(RunSum<V>) unsigned char
        shared_bytes[Base::kExchange ? size_t{Base::kWarps} * Base::kShared * sizeof(RunSum<V>) : 1];
    const typename Base::BlockMemory memory{reinterpret_cast<RunSum<V>*>(warp_bytes),
                                            reinterpret_cast<RunSum<V>*>(shared_bytes)};
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < leaves; leaf += gridDim.x) {
      const ScanLeaf at = ScanLeaf::Of(rows, leaf);
      if (rows.width - at.column >= kLeaf) OfBlock<true>(memory, rows, at, args...);
      else OfBlock<false>(memory, rows, at, args...);
    }
  }
  // A thread loads and stores the same elements: bit k says whether a run begins, or ends, with the k-th of them.
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfBlock(const typename Base::BlockMemory& memory,
                                                          const ScanRows& rows, const ScanLeaf& of,
                                                          const Stored&... args) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % Base::kLanes;
    constexpr int kStep = Base::kExchange ? Base::kLanes : 1;
    const int first = Base::kExchange ? thread / Base::kLanes * Base::kInWarp + lane : thread * kChunk;
    RunSum<V>* const mine = memory.values + thread / Base::kLanes * Base::kShared;
    const ScanLeaf at = kFull ? ScanLeaf{of.row, of.column, kLeafBits} : of;
    const auto& keys = Keys(args...);
    const RunSum<V>& none = this->initial;
    RunSum<V> values[kChunk] = {none, none, none, none, none, none, none, none};
    uint32_t begins = 0, ends = 0;
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      const int slot = first + k * kStep;
      if (!Base::template IsThere<kFull>(rows, at, slot)) continue;
      const int64_t i = at.column + slot;
      const bool is_first = BeginsRun(keys, i);
      begins |= (is_first ? 1U : 0U) << k;
      ends |= (EndsRun(keys, rows.width, i) ? 1U : 0U) << k;
      values[k] = At(i, is_first, args...);
    }
    if constexpr (Base::kExchange) {
#pragma unroll
      for (int k = 0; k < kChunk; ++k) mine[Base::SharedAt(k * Base::kLanes + lane)] = values[k];
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kChunk; ++k) values[k] = mine[Base::SharedAt(lane * kChunk + k)];
    }
    this->template Combine<kFull>(values, memory.warps, rows, at, args...);
    if constexpr (Base::kExchange) {
#pragma unroll
      for (int k = 0; k < kChunk; ++k) mine[Base::SharedAt(lane * kChunk + k)] = values[k];
      __syncwarp();
    }
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      if (((begins | ends) >> k & 1) == 0) continue;
      const RunSum<V> sum = Base::kExchange ? mine[Base::SharedAt(k * Base::kLanes + lane)] : values[k];
      Put(rows.width, at.column + first + k * kStep, (begins >> k & 1) != 0, (ends >> k & 1) != 0, sum, args...);
    }
    if constexpr (Base::kExchange) __syncwarp();  // the next leaf's values go there
  }
#endif
};

template <class Op, class V, bool kHasCount>
inline constexpr bool kTakesLeaves<RunTotals<Op, V, kHasCount>> = true;
template <class Op, class V, bool kHasCount>
inline constexpr bool kTakesAnyExtent<RunTotals<Op, V, kHasCount>> = true;
template <class Op, class V, bool kHasCount, bool kCarried>
inline constexpr bool kTakesLeaves<RunPrefixes<Op, V, kHasCount, kCarried>> = true;
template <class Op, class V, bool kHasCount, bool kCarried>
inline constexpr bool kTakesAnyExtent<RunPrefixes<Op, V, kHasCount, kCarried>> = true;

}  // namespace penstock::detail
