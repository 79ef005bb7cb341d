// What the nodes of a Select run, in one pass (look_back.h): functors of ParallelFor's code that take leaves, or tiles
// of several, in place of elements. LeafCounts counts what is kept of each leaf, on a host, if there are several, and
// SelectPass writes what is kept.
//
// Arguments: the count of a CountOf, if there is one; of a SelectPass over several leaves the states of the tiles; the
// values; and what is written, of LeafCounts the states.
//
// Threads: disjoint ranges of leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/look_back.h"
#include "penstock/detail/scan_pass.h"
#include "penstock/detail/scan_tree.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

// How many values of each leaf are kept: the host code of the first node, which is a PassBegin.
template <class F, bool kHasCount>
struct LeafCounts : ScanLevel<kHasCount> {
  F keep;

  static constexpr bool kByRows = true;
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
    ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf) = TileCount{count};
  }
};

// Writes what is kept of values of type T, and then the count. `kSeveral`: there may be several leaves.
template <class F, class T, class V, bool kHasCount, bool kSeveral>
struct SelectPass : ScanLevel<kHasCount> {
  F keep;

  static constexpr bool kByRows = true;
  static constexpr int kBlockThreads = kLeafThreads, kMinBlocks = sizeof(T) <= 4 ? 3 : 2;
  static constexpr int kLeavesOfBlock = kLeavesOfTile<T>, kWorking = !kSeveral ? -1 : kHasCount ? 1 : 0;
  static constexpr bool kReleasesDependents = true;  // tiles are short, and all have begun by then
  explicit SelectPass(const F& f) : ScanLevel<kHasCount>{1}, keep(f) {}
  bool later() const { return kSeveral; }

  // For FunctorRank: never called.
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index3, Stored...) const {}

  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void PutCount(int64_t count, const Stored&... args) const {
    const auto& to = ArgumentAt<sizeof...(Stored) - 1>(args...);
    to(0) = static_cast<std::remove_cvref_t<decltype(to(0))>>(count);
  }

  // Leaves [first, end), of which only the first looks for how many are kept before it.
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHostRange(const Range& range, int64_t first, int64_t end, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0 && first == 0) PutCount(0, args...);
    end = std::min(end, rows.leaves());
    if (first >= end) return;
    const auto& from = ArgumentAt<sizeof...(Stored) - 3>(args...);
    const auto& to = ArgumentAt<sizeof...(Stored) - 2>(args...);
    const int64_t end_value = std::min(end * kLeaf, rows.width);
    int64_t at = 0;
    if constexpr (kSeveral) {
      for (int64_t leaf = 0; leaf < first; ++leaf) at += ArgumentAt<kWorking>(args...)(leaf).Value({0}).count;
    }
    for (int64_t i = first * kLeaf; i < end_value; ++i) {
      if (static_cast<bool>(keep(from(i)))) to(at++) = static_cast<V>(from(i));
    }
    if (end_value == rows.width) PutCount(at, args...);
  }

#if defined(__CUDACC__)
  static constexpr int kLanes = 32, kWarps = static_cast<int>(kLeafThreads) / kLanes;
  static constexpr int kItems = kLeavesOfTile<T> * static_cast<int>(kLeaf / kLeafThreads);  // of a thread
  static constexpr int kInWarp = kLanes * kItems, kInTile = kWarps * kInWarp;
  // Whether a thread keeps its values, or reads those again that it writes.
  static constexpr bool kKeepsValues = sizeof(T) <= 16 && std::is_default_constructible_v<T>;

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const ScanRows rows = this->RowsIn(range, args...);
    if (rows.rows == 0) {
      if (blockIdx.x == 0 && threadIdx.x == 0) PutCount(0, args...);
      return;
    }
    __shared__ BlockCounts counts;
    if constexpr (!kSeveral) {
      OfTile<false>(NoStates(), {0, true, static_cast<int>(rows.width)}, counts, args...);
    } else {
      const Tiles tiles = Tiles::Of(rows, kInTile);
      const TileStates states(ArgumentAt<kWorking>(args...));
      __shared__ int64_t taken;
      do {
        __syncthreads();  // all have read what was taken before
        if (threadIdx.x == 0) taken = states.Take();
        __syncthreads();
        if (taken >= tiles.all) return;
        const int64_t left = rows.width - taken * kInTile;
        if (left >= kInTile) OfTile<true>(states, {taken, left == kInTile, kInTile}, counts, args...);
        else OfTile<false>(states, {taken, true, static_cast<int>(left)}, counts, args...);
      } while (gridDim.x < tiles.all);  // otherwise each block has one
    }
  }

  struct NoStates {};
  struct Tile {
    int64_t number;
    bool is_last;
    int count;  // of the values that are there
  };
  // How many values are kept before the tile, and by each warp.
  struct BlockCounts {
    int64_t before;
    int of_warp[kWarps];
  };
  // Thread l of a warp has its values number 32 * k + l.
  template <bool kFull, class States, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfTile(const States& states, const Tile& tile, BlockCounts& counts,
                                                         const Stored&... args) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
    const View<const T>& all = ArgumentAt<sizeof...(Stored) - 3>(args...);
    const T* const from = all.data + tile.number * kInTile + warp * kInWarp + lane;
    const int count = tile.count - (warp * kInWarp + lane);
    T values[kKeepsValues ? kItems : 1];
    if constexpr (kKeepsValues) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (kFull || k * kLanes < count) values[k] = from[k * kLanes];
      }
    }
    uint32_t kept[kItems];  // a bit for each lane
    int of_warp = 0;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      bool is = kFull || k * kLanes < count;
      if constexpr (kKeepsValues) is = is && static_cast<bool>(keep(values[k]));
      else is = is && static_cast<bool>(keep(from[k * kLanes]));
      kept[k] = __ballot_sync(0xffffffffu, is);
      of_warp += __popc(kept[k]);
    }
    if (lane == 0) counts.of_warp[warp] = of_warp;
    __syncthreads();
    if (warp == 0) LookBack(states, tile, counts, args...);
    __syncthreads();
    const View<V>& result = ArgumentAt<sizeof...(Stored) - 2>(args...);
    V* to = result.data + counts.before;
    for (int w = 0; w < warp; ++w) to += counts.of_warp[w];
    const uint32_t lower = (1u << lane) - 1;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if ((kept[k] >> lane & 1) != 0) {
        V* const mine = to + __popc(kept[k] & lower);
        if constexpr (kKeepsValues) *mine = static_cast<V>(values[k]);
        else *mine = static_cast<V>(from[k * kLanes]);
      }
      to += __popc(kept[k]);
    }
  }
  // By the first warp, when each has counted.
  template <class States, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void LookBack([[maybe_unused]] const States& states, const Tile& tile,
                                                           BlockCounts& counts, const Stored&... args) const {
    TileCount all{0}, earlier{0};
    for (const int count : counts.of_warp) all.count += count;
    if constexpr (kSeveral) {
      if (tile.number > 0) {
        if (threadIdx.x == 0 && !tile.is_last) states.Publish(tile.number, States::kAlone, all);
        earlier = states.Before(tile.number, AddCounts(), earlier);
      }
    }
    if (threadIdx.x != 0) return;
    counts.before = earlier.count;
    if constexpr (kSeveral) {
      if (!tile.is_last) states.Publish(tile.number, States::kWithBefore, {earlier.count + all.count});
    }
    if (tile.is_last) PutCount(earlier.count + all.count, args...);
  }
#endif
};

template <class F, bool kHasCount>
inline constexpr bool kTakesLeaves<LeafCounts<F, kHasCount>> = true;
template <class F, bool kHasCount>
inline constexpr bool kTakesAnyExtent<LeafCounts<F, kHasCount>> = true;
template <class F, class T, class V, bool kHasCount, bool kSeveral>
inline constexpr bool kTakesLeaves<SelectPass<F, T, V, kHasCount, kSeveral>> = true;
template <class F, class T, class V, bool kHasCount, bool kSeveral>
inline constexpr bool kTakesAnyExtent<SelectPass<F, T, V, kHasCount, kSeveral>> = true;

}  // namespace penstock::detail
