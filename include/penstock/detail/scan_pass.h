// What the two nodes of a Scan in one pass (look_back.h) run: functors of ParallelFor's code that take tiles of several
// leaves in place of leaves. PassBegin forgets the states of the tiles, and on a host puts there what each leaf gives;
// ScanPass writes the result.
//
// Arguments: the count of a CountOf, if there is one; of a ScanPass the states; the values; and what is written, of a
// PassBegin the states.
//
// In place: a tile reads all of its values before it writes, so what is written may be what is read.
//
// Threads: disjoint ranges of leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/look_back.h"
#include "penstock/detail/scan_leaf.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/reduce.h"
#include "penstock/view.h"

namespace penstock::detail {

// The largest values that are worth one pass: the tile of a block has to fit into its shared memory.
template <class V>
inline constexpr bool kFitsOnePass = sizeof(V) <= 16;
// How many leaves a tile of values of that size has.
template <class V>
inline constexpr int kLeavesOfTile = sizeof(V) <= 4   ? 4
                                     : sizeof(V) <= 8 ? 2
                                                      : 1;

// The tiles of one run, which do not reach beyond a row.
struct Tiles {
  int64_t of_row, all;

  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static Tiles Of(const ScanRows& rows, int64_t values) {
    const int64_t of_row = (rows.width - 1) / values + 1;
    return {of_row, rows.rows * of_row};
  }
};

// `Leaf`: LeafTotals or LeafCounts, of a value for each leaf, whose host code it has. A block forgets many states.
template <class Leaf, bool kHasCount>
struct PassBegin : Leaf {
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = 1;
  static constexpr int kLeavesOfBlock = static_cast<int>(kLeaf), kWorking = kHasCount ? 2 : 1;
  static constexpr bool kReleasesDependents = true;  // it is short
  explicit PassBegin(const Leaf& leaf) : Leaf(leaf) {}

#if defined(__CUDACC__)
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    TileStates(ArgumentAt<sizeof...(Stored) - 1>(args...)).Forget(rows.rows * rows.leaves_of_row());
  }
#endif
};

template <class Op, class V, bool kHasCount>
struct ScanPass : ScanLevel<kHasCount> {
  Op op;
  V initial;  // a placeholder if there is none
  bool has_initial, inclusive;
  uint32_t zero = 0;

  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = sizeof(V) <= 8 ? 4 : 1;
  static constexpr int kLeavesOfBlock = kLeavesOfTile<V>, kWorking = kHasCount ? 1 : 0;
  ScanPass(const Op& o, const V& i, bool has, bool with)
      : ScanLevel<kHasCount>{1}, op(o), initial(i), has_initial(has), inclusive(with) {}
  bool later() const { return true; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  // Whether something comes before a value, and what.
  struct Before {
    bool is;
    V value;

    PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Append(const RoundedOp<Op, V>& rounded, const V& next) {
      value = is ? rounded(value, next) : next;
      is = true;
    }
    // Appends `next`, and returns its result.
    PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V Put(const RoundedOp<Op, V>& rounded, const V& next, bool with_next) {
      const V before = value;
      Append(rounded, next);
      return with_next ? value : before;
    }
  };

  // Leaves [first, end), of which only the first looks for what comes before it.
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHostRange(const Range& range, int64_t first, int64_t end, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    const RoundedOp<Op, V> rounded{op, zero};
    Before before{has_initial, initial};
    for (int64_t leaf = first; leaf < std::min(end, rows.leaves()); ++leaf) {
      const ScanLeaf at = ScanLeaf::Of(rows, leaf);
      if (leaf == first && at.column > 0) {
        const auto& totals = ArgumentAt<kHasCount ? 1 : 0>(args...);
        for (int64_t k = leaf - at.column / kLeaf; k < leaf; ++k) before.Append(rounded, totals(k).Value(initial));
      }
      const int64_t rows_of_leaf = int64_t{1} << (kLeafBits - at.bits);
      for (int64_t row = at.row; row < std::min(at.row + rows_of_leaf, rows.rows); ++row) {
        if (at.column == 0) before = {has_initial, initial};
        for (int64_t x = at.column; x < std::min(at.column + kLeaf, rows.width); ++x) {
          const V value =
              rounded.Converted(ScanValues<true>::At(range, rows, ArgumentAt<sizeof...(Stored) - 2>(args...), row, x));
          ScanValues<true>::At(range, rows, ArgumentAt<sizeof...(Stored) - 1>(args...), row, x) =
              before.Put(rounded, value, inclusive);
        }
      }
    }
  }

#if defined(__CUDACC__)
  static constexpr int kLanes = 32, kWarps = static_cast<int>(kLeafThreads) / kLanes;
  static constexpr int kItems = kLeavesOfTile<V> * static_cast<int>(kLeaf / kLeafThreads);  // of a thread
  static constexpr int kInWarp = kLanes * kItems, kInTile = kWarps * kInWarp;
  // A gap after the values of each thread keeps threads off each other's banks.
  static constexpr int kShared = kInWarp + kLanes;  // of a warp
  __device__ static int SharedAt(int number) { return number + number / kItems; }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0) return;
    const Tiles tiles = Tiles::Of(rows, kInTile);
    const TileStates states(ArgumentAt<kHasCount ? 1 : 0>(args...));
    __shared__ int64_t taken;
    __shared__ alignas(V) unsigned char value_bytes[size_t{kWarps} * kShared * sizeof(V)];
    __shared__ alignas(V) unsigned char warp_bytes[size_t{kWarps} * sizeof(V)], before_bytes[sizeof(V)];
    const BlockMemory memory{reinterpret_cast<V*>(value_bytes), reinterpret_cast<V*>(warp_bytes),
                             reinterpret_cast<V*>(before_bytes)};
    do {
      __syncthreads();  // all have read what was taken before
      if (threadIdx.x == 0) taken = states.Take();
      __syncthreads();
      if (taken >= tiles.all) return;
      const int64_t row = taken / tiles.of_row, column = (taken - row * tiles.of_row) * kInTile;
      const auto* const from =
          &ScanValues<true>::At(range, rows, ArgumentAt<sizeof...(Stored) - 2>(args...), row, column);
      auto* const to = &ScanValues<true>::At(range, rows, ArgumentAt<sizeof...(Stored) - 1>(args...), row, column);
      const int64_t left = rows.width - column;
      if (left >= kInTile) OfTile<true>(memory, states, taken, {column == 0, left == kInTile}, kInTile, from, to);
      else OfTile<false>(memory, states, taken, {column == 0, true}, static_cast<int>(left), from, to);
    } while (gridDim.x < tiles.all);  // otherwise each block has one
  }

  // All values, what each warp's give, and what comes before the tile.
  struct BlockMemory {
    V *values, *warps, *before;
  };
  struct InRow {
    bool is_first, is_last;
  };
  // `count`: the values that are there.
  template <bool kFull, class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfTile(const BlockMemory& memory, const TileStates<V>& states,
                                                         int64_t tile, InRow in_row, int count, const T* from,
                                                         V* to) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
    V* const mine = memory.values + warp * kShared;
    const int in_warp = kFull ? kInWarp : max(0, min(count - warp * kInWarp, kInWarp));
    const RoundedOp<Op, V> rounded{op, zero};
    Load<kFull>(mine, in_warp, from + warp * kInWarp);
    const int there = kFull ? kItems : max(0, min(in_warp - lane * kItems, kItems));
    V* const values = mine + SharedAt(lane * kItems);  // adjacent ones, for this thread alone
    // What the thread's values give, and then with all before them in the warp.
    V sum = kFull || there > 0 ? values[0] : initial;
#pragma unroll kFull ? kItems : 1
    for (int k = 1; k < (kFull ? kItems : there); ++k) sum = rounded(sum, values[k]);
#pragma unroll
    for (int by = 1; by < kLanes; by *= 2) {
      const V lower = FromLowerLane(sum, by);
      if (lane >= by && (kFull || there > 0)) sum = rounded(lower, sum);
    }
    const V in_lower = FromLowerLane(sum, 1);
    if (in_warp > 0 && lane == (kFull ? kLanes - 1 : (in_warp - 1) / kItems)) memory.warps[warp] = sum;
    Before before = BeforeTile<kFull>(memory, states, tile, in_row, count);
    for (int w = 0; w < warp; ++w) {
      if (kFull || w * kInWarp < count) before.Append(rounded, memory.warps[w]);
    }
    if (lane > 0) before.Append(rounded, in_lower);
#pragma unroll kFull ? kItems : 1
    for (int k = 0; k < (kFull ? kItems : there); ++k) values[k] = before.Put(rounded, values[k], inclusive);
    __syncwarp();
    Store<kFull>(mine, in_warp, to + warp * kInWarp);
  }
  // What comes before the tile, for all threads, when each warp has put down what its values give.
  template <bool kFull>
  PENSTOCK_HIDDEN __device__ __forceinline__ Before BeforeTile(const BlockMemory& memory, const TileStates<V>& states,
                                                               int64_t tile, InRow in_row, int count) const {
    const V* const warps = memory.warps;
    const RoundedOp<Op, V> rounded{op, zero};
    __syncthreads();
    if (threadIdx.x < kLanes) {
      V all = warps[0];
      for (int w = 1; w < kWarps; ++w) {
        if (kFull || w * kInWarp < count) all = rounded(all, warps[w]);
      }
      Before before{has_initial, initial};
      if (!in_row.is_first) {
        if (threadIdx.x == 0 && !in_row.is_last) states.Publish(tile, TileStates<V>::kAlone, all);
        before = {true, states.Before(tile, rounded, initial)};
      }
      if (threadIdx.x == 0) {
        *memory.before = before.value;
        before.Append(rounded, all);
        if (!in_row.is_last) states.Publish(tile, TileStates<V>::kWithBefore, before.value);
      }
    }
    __syncthreads();
    return {has_initial || !in_row.is_first, *memory.before};
  }
  // Adjacent threads load and store adjacent values, 16 bytes at a time where all are there and lie so.
  template <class T>
  static constexpr int kAtOnce = std::is_default_constructible_v<T> && std::is_default_constructible_v<V> &&
                                         sizeof(T) < 16 && 16 % sizeof(T) == 0 && 16 / sizeof(T) <= kItems
                                     ? static_cast<int>(16 / sizeof(T))
                                     : 1;
  template <class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ static bool IsAligned(const T* at) {
    return kAtOnce<T> > 1 && reinterpret_cast<uintptr_t>(at) % sizeof(uint4) == 0;
  }
  template <bool kFull, class T>
  PENSTOCK_HIDDEN __device__ __forceinline__ void Load(V* mine, int in_warp, const T* from) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const RoundedOp<Op, V> rounded{op, zero};
    if constexpr (kFull && kAtOnce<T> > 1) {
      if (IsAligned(from)) {
        constexpr int kWords = kItems / kAtOnce<T>;
        uint4 words[kWords];
#pragma unroll
        for (int k = 0; k < kWords; ++k) words[k] = reinterpret_cast<const uint4*>(from)[k * kLanes + lane];
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
          T values[kAtOnce<T>];
          memcpy(values, &words[k], sizeof(uint4));
          V* const to = mine + SharedAt((k * kLanes + lane) * kAtOnce<T>);
#pragma unroll
          for (int i = 0; i < kAtOnce<T>; ++i) to[i] = rounded.Converted(values[i]);
        }
        return __syncwarp();
      }
    }
#pragma unroll kFull ? 8 : 1
    for (int slot = lane; slot < (kFull ? kInWarp : in_warp); slot += kLanes) {
      mine[SharedAt(slot)] = rounded.Converted(from[slot]);
    }
    __syncwarp();
  }
  template <bool kFull>
  PENSTOCK_HIDDEN __device__ __forceinline__ static void Store(const V* mine, int in_warp, V* to) {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    if constexpr (kFull && kAtOnce<V> > 1) {
      if (IsAligned(to)) {
#pragma unroll
        for (int k = 0; k < kItems / kAtOnce<V>; ++k) {
          const int word = k * kLanes + lane;
          V values[kAtOnce<V>];
#pragma unroll
          for (int i = 0; i < kAtOnce<V>; ++i) values[i] = mine[SharedAt(word * kAtOnce<V>) + i];
          uint4 bytes;
          memcpy(&bytes, values, sizeof(uint4));
          reinterpret_cast<uint4*>(to)[word] = bytes;
        }
        return;
      }
    }
#pragma unroll kFull ? 8 : 1
    for (int slot = lane; slot < (kFull ? kInWarp : in_warp); slot += kLanes) to[slot] = mine[SharedAt(slot)];
  }
#endif
};

template <class Leaf, bool kHasCount>
inline constexpr bool kTakesLeaves<PassBegin<Leaf, kHasCount>> = true;
template <class Leaf, bool kHasCount>
inline constexpr bool kTakesAnyExtent<PassBegin<Leaf, kHasCount>> = true;
template <class Op, class V, bool kHasCount>
inline constexpr bool kTakesLeaves<ScanPass<Op, V, kHasCount>> = true;
template <class Op, class V, bool kHasCount>
inline constexpr bool kTakesAnyExtent<ScanPass<Op, V, kHasCount>> = true;

}  // namespace penstock::detail
