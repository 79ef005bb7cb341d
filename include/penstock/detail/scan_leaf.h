// What the nodes of a Scan and a Select run: functors of ParallelFor's code that take leaves (scan_tree.h) in place of
// elements. LeafTotals goes up a level, LeafPrefixes down.
//
// Arguments: the count of a CountOf, if there is one; what comes before each leaf, if the functor goes down and a row
// has several leaves; the values; and what is written. The node's extent is that of the elements at every level.
//
// In place: a leaf reads all of its values before it writes, so what is written may be what is read.
//
// Contraction: as in reduce_leaf.h, each result of the user's code is rounded before another call sees it. Sums and
// extremes of numbers have no multiplication to contract, and need no rounding.
//
// Threads: disjoint leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/counted.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/detail/reduce_leaf.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/reduce.h"
#include "penstock/view.h"

namespace penstock::detail {

// Whether a conversion from T has nothing that a compiler may contract.
template <class V, class T>
inline constexpr bool kConvertsRounded = std::is_same_v<T, V> || (std::is_arithmetic_v<T> && std::is_arithmetic_v<V>);

// An operation whose results are rounded. `zero` is 0, but not known to the compiler.
template <class Op, class V>
struct RoundedOp {
  const Op& op;
  [[maybe_unused]] uint32_t zero;

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V operator()(const V& a, const V& b) const {
    if constexpr (kIsRounded<Op, V>) return static_cast<V>(op(a, b));
    else return Round(static_cast<V>(op(a, b)));
  }
  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V Converted(const T& value) const {
    if constexpr (kConvertsRounded<V, T>) return static_cast<V>(value);
    else return Round(static_cast<V>(value));
  }
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V Round(V value) const {
#if defined(__CUDA_ARCH__)
    return Rounded(value, zero);
#else
    RoundOnHost(&value);
    return value;
#endif
  }
};

// The values of a level: elements of a buffer or a box, each converted to V; or those that a level has left.
template <bool kElements>
struct ScanValues {
  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static auto& At(const Range& range, const ScanRows& rows, View<T> of,
                                                       int64_t row, int64_t column) {
    if constexpr (!kElements) return of(row * rows.width + column);
    else if (range.depth == 1) return of(0, row, column);
    else return of(row / range.height, row % range.height, column);
  }
};

// What the functors of a Scan know of a run.
template <bool kHasCount>
struct ScanLevel {
  int32_t level;

  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE ScanRows RowsIn(const Range& range, const Stored&... args) const {
    if constexpr (kHasCount) {
      return ScanRows::Of(1, CountWithin(ArgumentAt<0>(args...)(0), range.width), level);
    } else {
      return ScanRows::Of(range.depth * range.height, range.width, level);
    }
  }
};

// How many blocks of kLeafThreads threads a multiprocessor shall have room for, so that enough loads are under way;
// with more, values of that size would not stay in registers.
template <class V>
inline constexpr int kMinBlocksOf = sizeof(V) <= 4   ? 5
                                    : sizeof(V) <= 8 ? 3
                                                     : 1;

// Combines adjacent values of a thread and gives what comes before each of them, or with each of them.
template <class V, class Op, bool kFull>
struct ChunkPrefixes {
  const RoundedOp<Op, V>& op;
  int count;  // of the values that are there, if not kFull
  V pair0, pair4, four;  // what values 0 and 1, 4 and 5, and 0 to 3 give

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE bool Has(int value) const { return kFull || value < count; }

  // Combines the values, and returns what all give, if all are there.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V Up(const V (&values)[kChunk]) {
    if (Has(1)) pair0 = op(values[0], values[1]);
    if (Has(3)) four = op(pair0, op(values[2], values[3]));
    if (Has(5)) pair4 = op(values[4], values[5]);
    return Has(7) ? op(four, op(pair4, op(values[6], values[7]))) : four;
  }
  // Replaces each value by what comes before it, the first of which is `before`, if there `is` something; or by that
  // combined with the value.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Down(V (&values)[kChunk], bool is, const V& before, bool inclusive) const {
    V x1 = values[0], x2 = pair0, x4 = four, x3 = x2, x5 = x4, x6 = x4, x7 = x4;
    if (is) {
      if (Has(0)) x1 = op(before, values[0]);
      if (Has(2)) x2 = op(before, pair0);
      if (Has(4)) x4 = op(before, four);
    }
    if (Has(2)) x3 = op(x2, values[2]);
    if (Has(4)) x5 = op(x4, values[4]);
    if (Has(6)) x6 = op(x4, pair4);
    if (Has(6)) x7 = op(x6, values[6]);
    if (inclusive) {
      if (Has(1)) values[1] = op(x1, values[1]);
      if (Has(3)) values[3] = op(x3, values[3]);
      if (Has(5)) values[5] = op(x5, values[5]);
      if (Has(7)) values[7] = op(x7, values[7]);
      values[0] = x1, values[2] = x3, values[4] = x5, values[6] = x7;
    } else {
      values[0] = before, values[1] = x1, values[2] = x2, values[3] = x3;
      values[4] = x4, values[5] = x5, values[6] = x6, values[7] = x7;
    }
  }
};

// One value for each leaf: what the leaf's values give.
template <class Op, class V, bool kElements, bool kHasCount>
struct LeafTotals : ScanLevel<kHasCount> {
  Op op;
  V placeholder;
  uint32_t zero = 0;

  using Level = ScanLevel<kHasCount>;
  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = kMinBlocksOf<V>;
  static constexpr bool kReleasesDependents = true;  // the next level has few blocks
  LeafTotals(int32_t of, const Op& o, const V& p) : Level{of}, op(o), placeholder(p) {}
  bool later() const { return this->level > 1; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V At(const Range& range, const ScanRows& rows, int64_t row, int64_t column,
                                            const Stored&... args) const {
    const auto& from = ArgumentAt<kHasCount ? 1 : 0>(args...);
    return RoundedOp<Op, V>{op, zero}.Converted(ScanValues<kElements>::At(range, rows, from, row, column));
  }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.width <= kLeaf || leaf >= rows.leaves()) return;
    const ScanLeaf at = ScanLeaf::Of(rows, leaf);
    ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) =
        FoldOnHost<V>(at.column, std::min(at.column + kLeaf, rows.width), op,
                      [&](int64_t column) { return At(range, rows, at.row, column, args...); });
  }

#if defined(__CUDACC__)
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.width <= kLeaf) return;
    const int64_t leaves = rows.leaves();
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < leaves; leaf += gridDim.x) {
      const ScanLeaf at = ScanLeaf::Of(rows, leaf);
      if (rows.width - at.column >= kLeaf) OfBlock<true>(range, rows, at, leaf, kLeaf, args...);
      else OfBlock<false>(range, rows, at, leaf, static_cast<int>(rows.width - at.column), args...);
    }
  }
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfBlock(const Range& range, const ScanRows& rows, const ScanLeaf& at,
                                                          int64_t leaf, int count, const Stored&... args) const {
    using Tree = BlockTree<V, Op, kFull>;
    __shared__ alignas(V) unsigned char shared[size_t{Tree::kWarps} * sizeof(V)];
    const int warp = static_cast<int>(threadIdx.x) / Tree::kLanes;
    const int first = warp * Tree::kInWarp + static_cast<int>(threadIdx.x) % Tree::kLanes;
    V mine[Tree::kRows] = {placeholder, placeholder, placeholder, placeholder,
                           placeholder, placeholder, placeholder, placeholder};
    // A leaf is in one row, where elements lie side by side.
    const auto* const from =
        &ScanValues<kElements>::At(range, rows, ArgumentAt<kHasCount ? 1 : 0>(args...), at.row, at.column);
    const RoundedOp<Op, V> rounded{op, zero};
#pragma unroll
    for (int k = 0; k < Tree::kRows; ++k) {
      const int number = first + k * Tree::kLanes;
      if (kFull || number < count) mine[k] = rounded.Converted(from[number]);
    }
    const Tree tree{op, zero, { count }};
    const V of_warp = tree.OfWarp(mine);
    V* const warps = reinterpret_cast<V*>(shared);
    __syncthreads();  // the warps' values of the leaf before have been read
    if (threadIdx.x % Tree::kLanes == 0) warps[warp] = of_warp;
    __syncthreads();
    if (threadIdx.x != 0) return;
    Fold(warps, kFull ? Tree::kWarps : (count - 1) / Tree::kInWarp + 1, rounded);
    ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) = warps[0];
  }
#endif
};

// What comes before each value of a leaf, or that combined with it.
template <class Op, class V, bool kElements, bool kHasCount, bool kCarried>
struct LeafPrefixes : ScanLevel<kHasCount> {
  Op op;
  V initial;  // a placeholder if there is none
  bool has_initial, inclusive, is_later;
  uint32_t zero = 0;

  using Level = ScanLevel<kHasCount>;
  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = kMinBlocksOf<V>;
  LeafPrefixes(int32_t of, const Op& o, const V& i, bool has, bool with, bool after)
      : Level{of}, op(o), initial(i), has_initial(has), inclusive(with), is_later(after) {}
  bool later() const { return is_later; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  // Whether something comes before a leaf, and what.
  struct Before {
    bool is;
    V value;
  };
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Before BeforeLeaf([[maybe_unused]] const ScanRows& rows, const ScanLeaf& at,
                                                         [[maybe_unused]] const Stored&... args) const {
    if constexpr (kCarried) {
      if (at.column > 0) {
        return {true, ArgumentAt<kHasCount ? 1 : 0>(args...)(at.row * rows.leaves_of_row() + at.column / kLeaf)};
      }
    }
    return {has_initial, initial};
  }
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V At(const Range& range, const ScanRows& rows, int64_t row, int64_t column,
                                            const Stored&... args) const {
    const auto& from = ArgumentAt<sizeof...(Stored) - 2>(args...);
    return RoundedOp<Op, V>{op, zero}.Converted(ScanValues<kElements>::At(range, rows, from, row, column));
  }
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Put(const V& value, const Range& range, const ScanRows& rows, int64_t row,
                                                int64_t column, const Stored&... args) const {
    ScanValues<kElements>::At(range, rows, ArgumentAt<sizeof...(Stored) - 1>(args...), row, column) = value;
  }
  // A later level has nothing to do if the one before fits into a leaf.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t LeavesOf(const ScanRows& rows, const Range& range,
                                                        const Stored&... args) const {
    if constexpr (!kElements) {
      if (Level{this->level - 1}.RowsIn(range, args...).width <= kLeaf) return 0;
    }
    return rows.leaves();
  }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (leaf >= LeavesOf(rows, range, args...)) return;
    const ScanLeaf at = ScanLeaf::Of(rows, leaf);
    const int64_t rows_of_leaf = int64_t{1} << (kLeafBits - at.bits);
    const Before before = BeforeLeaf(rows, at, args...);
    for (int64_t row = at.row; row < std::min(at.row + rows_of_leaf, rows.rows); ++row) {
      RowOnHost(
          at.column, std::min(rows.width - at.column, kLeaf), before,
          [&](int64_t column) { return At(range, rows, row, column, args...); },
          [&](int64_t column, const V& value) { Put(value, range, rows, row, column, args...); });
    }
  }
  // The chunks of a row from left to right. Of those that are done, blocks[k] has what the block gives that is the k-th
  // largest by the digits of their number, and folds[k] that and all before it. `get` gives the value of a column, and
  // `put` takes its result.
  template <class Get, class PutResult>
  PENSTOCK_HIDDEN void RowOnHost(int64_t column, int64_t count, const Before& before, Get get, PutResult put) const {
    constexpr int kMost = kLeafBits - kChunkBits + 1;
    alignas(V) std::byte block_bytes[kMost * sizeof(V)], fold_bytes[kMost * sizeof(V)];
    V *const blocks = reinterpret_cast<V*>(block_bytes), *const folds = reinterpret_cast<V*>(fold_bytes);
    const RoundedOp<Op, V> rounded{op, zero};
    int top = 0;
    for (int64_t chunk = 0; chunk * kChunk < count; ++chunk) {
      const int64_t first = column + chunk * kChunk;
      const int there = static_cast<int>(std::min<int64_t>(count - chunk * kChunk, kChunk));
      const Before here = top == 0 ? before : Before{true, folds[top - 1]};
      V values[kChunk] = {initial, initial, initial, initial, initial, initial, initial, initial};
      for (int i = 0; i < there; ++i) values[i] = get(first + i);
      V sum =
          there == kChunk ? OfChunk<true>(rounded, values, there, here) : OfChunk<false>(rounded, values, there, here);
      for (int i = 0; i < there; ++i) put(first + i, values[i]);
      if (there < kChunk) return;
      for (int64_t bits = chunk; (bits & 1) != 0; bits >>= 1) sum = rounded(blocks[--top], sum);
      const Before left = top == 0 ? before : Before{true, folds[top - 1]};
      ::new (blocks + top) V(sum);
      ::new (folds + top) V(left.is ? rounded(left.value, sum) : sum);
      ++top;
    }
  }
  template <bool kFull>
  PENSTOCK_HIDDEN V OfChunk(const RoundedOp<Op, V>& rounded, V (&values)[kChunk], int there,
                            const Before& before) const {
    ChunkPrefixes<V, Op, kFull> chunk{rounded, there, values[0], values[0], values[0]};
    const V sum = chunk.Up(values);
    chunk.Down(values, before.is, before.value, inclusive);
    return sum;
  }

#if defined(__CUDACC__)
  static constexpr int kLanes = 32, kWarps = static_cast<int>(kLeafThreads) / kLanes, kInWarp = kLanes * kChunk;
  // Values of which several lie in a sector of memory go through shared memory, so that adjacent threads access
  // adjacent ones there. A gap after every 128 bytes keeps threads off each other's banks.
  static constexpr bool kExchange = sizeof(V) <= 16;
  static constexpr int kGapAfter = 128 / (sizeof(V) < 4 ? 4 : static_cast<int>(sizeof(V)));
  static constexpr int kShared = kInWarp + kInWarp / (kGapAfter < 1 ? 1 : kGapAfter);
  __device__ static int SharedAt(int number) { return number + number / kGapAfter; }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    const int64_t leaves = LeavesOf(rows, range, args...);
    __shared__ alignas(V) unsigned char warp_bytes[size_t{kWarps} * sizeof(V)];
    __shared__ alignas(V) unsigned char shared_bytes[kExchange ? size_t{kWarps} * kShared * sizeof(V) : 1];
    const BlockMemory memory{reinterpret_cast<V*>(warp_bytes), reinterpret_cast<V*>(shared_bytes)};
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < leaves; leaf += gridDim.x) {
      const ScanLeaf at = ScanLeaf::Of(rows, leaf);
      if (rows.width - at.column >= kLeaf) OfBlock<true>(memory, range, rows, at, args...);
      else OfBlock<false>(memory, range, rows, at, args...);
    }
  }

  // What each warp's values give, and room for all values.
  struct BlockMemory {
    V *warps, *values;
  };
  // Whether a slot has a value.
  template <bool kFull>
  PENSTOCK_HIDDEN __device__ __forceinline__ static bool IsThere(const ScanRows& rows, const ScanLeaf& at, int slot) {
    return kFull || (at.RowOf(slot) < rows.rows && at.ColumnOf(slot) < rows.width);
  }
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfBlock(const BlockMemory& memory, const Range& range,
                                                          const ScanRows& rows, const ScanLeaf& of,
                                                          const Stored&... args) const {
    V* const mine = memory.values + static_cast<int>(threadIdx.x) / kLanes * kShared;
    const ScanLeaf at = kFull ? ScanLeaf{of.row, of.column, kLeafBits} : of;
    V values[kChunk] = {initial, initial, initial, initial, initial, initial, initial, initial};
    Load<kFull>(values, mine, range, rows, at, args...);
    Combine<kFull>(values, memory.warps, rows, at, args...);
    Store<kFull>(values, mine, range, rows, at, args...);
  }
  // Replaces the values of each thread's chunk by their results.
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void Combine(V (&values)[kChunk], V* warps, const ScanRows& rows,
                                                          const ScanLeaf& at, const Stored&... args) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes;
    const RoundedOp<Op, V> rounded{op, zero};
    int there = kChunk;
    if constexpr (!kFull) {
      const int64_t left = at.RowOf(thread * kChunk) < rows.rows ? rows.width - at.ColumnOf(thread * kChunk) : 0;
      there = left < 0 ? 0 : left < kChunk ? static_cast<int>(left) : kChunk;
    }
    ChunkPrefixes<V, Op, kFull> chunk{rounded, there, values[0], values[0], values[0]};
    V sum = chunk.Up(values), lefts[5] = {sum, sum, sum, sum, sum};
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      if (!kFull && kChunkBits + k >= at.bits) break;
      const bool upper = (lane >> k & 1) != 0;
      lefts[k] = FromLane(sum, 1 << k);
      const int right = ((thread & ~((2 << k) - 1)) + (1 << k)) * kChunk;
      const V a = Choose(upper, lefts[k], sum), b = Choose(upper, sum, lefts[k]);
      sum = a;
      if (IsThere<kFull>(rows, at, right)) sum = rounded(a, b);
    }
    __syncthreads();  // the warps' values of the leaf before have been read
    if (lane == 0) warps[warp] = sum;
    __syncthreads();
    Before before = BeforeLeaf(rows, at, args...);
    if (there > 0) {
      BeforeWarp(before, rounded, warps, warp, at.bits);
#pragma unroll
      for (int k = 4; k >= 0; --k) {
        if ((lane >> k & 1) != 0 && (kFull || kChunkBits + k < at.bits)) Append(before, rounded, lefts[k]);
      }
      chunk.Down(values, before.is, before.value, inclusive);
    }
  }
  // Gives each thread the values of its chunk. If all are there, they lie side by side.
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void Load(V (&values)[kChunk], V* mine, const Range& range,
                                                       const ScanRows& rows, const ScanLeaf& at,
                                                       const Stored&... args) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes;
    const int first = kExchange ? thread / kLanes * kInWarp + lane : thread * kChunk;
    constexpr int kStep = kExchange ? kLanes : 1;
    if constexpr (kFull) {
      const auto* const from =
          &ScanValues<kElements>::At(range, rows, ArgumentAt<sizeof...(Stored) - 2>(args...), at.row, at.column) +
          first;
#pragma unroll
      for (int k = 0; k < kChunk; ++k) values[k] = RoundedOp<Op, V>{op, zero}.Converted(from[k * kStep]);
    } else {
#pragma unroll kExchange ? 1 : kChunk
      for (int k = 0; k < kChunk; ++k) {
        const int slot = first + k * kStep;
        if (!IsThere<kFull>(rows, at, slot)) continue;
        const V value = At(range, rows, at.RowOf(slot), at.ColumnOf(slot), args...);
        if constexpr (kExchange) mine[SharedAt(k * kLanes + lane)] = value;
        else values[k] = value;
      }
    }
    if constexpr (kExchange) {
      if constexpr (kFull) {
#pragma unroll
        for (int k = 0; k < kChunk; ++k) mine[SharedAt(k * kLanes + lane)] = values[k];
      }
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kChunk; ++k) values[k] = mine[SharedAt(lane * kChunk + k)];
    }
  }
  template <bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void Store(const V (&values)[kChunk], V* mine, const Range& range,
                                                        const ScanRows& rows, const ScanLeaf& at,
                                                        const Stored&... args) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes;
    const int first = kExchange ? thread / kLanes * kInWarp + lane : thread * kChunk;
    constexpr int kStep = kExchange ? kLanes : 1;
    if constexpr (kExchange) {
#pragma unroll
      for (int k = 0; k < kChunk; ++k) mine[SharedAt(lane * kChunk + k)] = values[k];
      __syncwarp();
    }
    V* to = nullptr;
    if constexpr (kFull) {
      to = &ScanValues<kElements>::At(range, rows, ArgumentAt<sizeof...(Stored) - 1>(args...), at.row, at.column) +
           first;
    }
#pragma unroll kFull || !kExchange ? kChunk : 1
    for (int k = 0; k < kChunk; ++k) {
      const int slot = first + k * kStep;
      const V& value = kExchange ? mine[SharedAt(k * kLanes + lane)] : values[k];
      if constexpr (kFull) to[k * kStep] = value;
      else if (IsThere<kFull>(rows, at, slot)) Put(value, range, rows, at.RowOf(slot), at.ColumnOf(slot), args...);
    }
    if constexpr (kExchange) __syncwarp();  // the next leaf's values go there
  }
  PENSTOCK_HIDDEN __device__ __forceinline__ static void Append(Before& before, const RoundedOp<Op, V>& rounded,
                                                                const V& block) {
    V value = block;
    if (before.is) value = rounded(before.value, block);
    before = {true, value};
  }
  // Appends the warps of the row before this one, four, two and one of them.
  PENSTOCK_HIDDEN __device__ __forceinline__ static void BeforeWarp(Before& before, const RoundedOp<Op, V>& rounded,
                                                                    const V* warps, int warp, int bits) {
    if ((warp & 4) != 0 && bits > 10) {
      Append(before, rounded, rounded(rounded(warps[0], warps[1]), rounded(warps[2], warps[3])));
    }
    if ((warp & 2) != 0 && bits > 9) Append(before, rounded, rounded(warps[warp & 4], warps[(warp & 4) + 1]));
    if ((warp & 1) != 0 && bits > 8) Append(before, rounded, warps[warp - 1]);
  }
#endif
};

template <class Op, class V, bool kElements, bool kHasCount>
inline constexpr bool kTakesLeaves<LeafTotals<Op, V, kElements, kHasCount>> = true;
template <class Op, class V, bool kElements, bool kHasCount>
inline constexpr bool kTakesAnyExtent<LeafTotals<Op, V, kElements, kHasCount>> = true;
template <class Op, class V, bool kElements, bool kHasCount, bool kCarried>
inline constexpr bool kTakesLeaves<LeafPrefixes<Op, V, kElements, kHasCount, kCarried>> = true;
template <class Op, class V, bool kElements, bool kHasCount, bool kCarried>
inline constexpr bool kTakesAnyExtent<LeafPrefixes<Op, V, kElements, kHasCount, kCarried>> = true;

}  // namespace penstock::detail
