// What a level of a Reduce runs: a functor of ParallelFor's code that takes leaves (reduce_tree.h) in place of
// elements.
//
// The node's extent is that of the elements at every level, so a parameter changes all levels alike. A level finds the
// number of its values from the extent and its own number. Over a CountOf it reads the number of elements instead, from
// the first of its arguments; the functor does not get that (WithoutCount).
//
// Contraction: the value of each call of the user's code is rounded before another call sees it, on the host by a
// barrier for the compiler (RoundOnHost), on the device by an integer operation on its bits, whose operand is 0 but not
// known to the compiler: neither nvcc nor ptxas may look through that for a multiplication to fuse.
//
// Threads: disjoint leaves may run concurrently.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "penstock/detail/block_tree.h"
#include "penstock/detail/counted.h"
#include "penstock/detail/pack_tree.h"
#include "penstock/detail/parallel_for.h"
#include "penstock/detail/reduce_tree.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

// An element of a buffer or box of any rank: by its number if all of them lie side by side, as the values of a level
// do, or by its index.
template <class V>
struct ElementAt {
  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V operator()(int64_t i, View<const T> from) const {
    return static_cast<V>(from(i));
  }
};
template <class V>
struct ElementOfRows {
  template <class T>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V operator()(Index3 i, View<const T> from) const {
    return static_cast<V>(from(i.z, i.y, i.x));
  }
};
// Functors of the library's own, whose index may have another rank than the extent.
template <class F>
inline constexpr bool kTakesAnyExtent = false;
template <class V>
inline constexpr bool kTakesAnyExtent<ElementAt<V>> = true;
template <class V>
inline constexpr bool kTakesAnyExtent<ElementOfRows<V>> = true;

// Whether a functor gives elements that lie side by side.
template <class F>
inline constexpr bool kGivesElements = false;
template <class V>
inline constexpr bool kGivesElements<ElementAt<V>> = true;

// A functor of a node whose first argument is a count that the functor does not take.
template <class F>
struct WithoutCount {
  F f;

  template <class Index, class C, class... Stored>
    requires std::is_invocable_v<const F&, Index, const Stored&...>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE auto operator()(Index i, View<const C> /*count*/, const Stored&... args) const {
    return f(i, args...);
  }
};
template <class F>
inline constexpr bool kTakesAnyExtent<WithoutCount<F>> = kTakesAnyExtent<F>;
template <class F>
inline constexpr bool kGivesElements<WithoutCount<F>> = kGivesElements<F>;

// Argument I of some.
template <size_t I, class A, class... Rest>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline const auto& ArgumentAt(const A& first, const Rest&... rest) {
  if constexpr (I == 0) return first;
  else return ArgumentAt<I - 1>(rest...);
}

// Whether F takes an index and all of these but the last, and returns what converts to V.
template <class F, class V, class Index, class Stored, class = std::make_index_sequence<std::tuple_size_v<Stored> - 1>>
inline constexpr bool kGivesValue = false;
template <class F, class V, class Index, class Stored, size_t... I>
inline constexpr bool kGivesValue<F, V, Index, Stored, std::index_sequence<I...>> =
    std::is_invocable_r_v<V, const F&, Index, std::tuple_element_t<I, Stored>...>;

// The index of an element in an extent.
struct Position {
  int64_t z, y, x;

  template <int kRank>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE static Position Of(const Range& range, int64_t element) {
    if (kRank == 1 || range.depth * range.height == 1) return {0, 0, element};
    const int64_t row = element / range.width;
    return {row / range.height, row % range.height, element % range.width};
  }
  // Goes on by so many elements; none of the divisions is needed if rows are as long.
  template <int kRank>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Advance(const Range& range, int64_t by) {
    x += by;
    if (kRank == 1 || x < range.width) return;
    const int64_t rows = by <= range.width ? 1 : x / range.width;
    x -= rows * range.width;
    y += rows;
    if (y < range.height) return;
    const int64_t slices = rows <= range.height ? 1 : y / range.height;
    y -= slices * range.height;
    z += slices;
  }
};

template <int kRank>
PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE inline IndexOf<kRank> IndexAt(const Position& at) {
  if constexpr (kRank == 1) return at.x;
  else if constexpr (kRank == 2) return {at.y, at.x};
  else return {at.z, at.y, at.x};
}

// Reduces values [begin, end) of a leaf, at least one, tile by tile. `at` gives each, in their order.
template <class V, class Op, class At>
PENSTOCK_HIDDEN V FoldOnHost(int64_t begin, int64_t end, const Op& op, At at) {
  constexpr int64_t kTile = 256;
  alignas(V) std::byte tile_bytes[kTile * sizeof(V)], leaf_bytes[kLongLeaf / kTile * sizeof(V)];
  V *const tile = reinterpret_cast<V*>(tile_bytes), *const tiles = reinterpret_cast<V*>(leaf_bytes);
  int64_t count = 0;
  for (; begin < end; begin += kTile) {
    const int64_t values = std::min(kTile, end - begin);
    for (int64_t i = 0; i < values; ++i) ::new (tile + i) V(at(begin + i));
    Fold(tile, values, op);
    ::new (tiles + count++) V(*tile);
  }
  Fold(tiles, count, op);
  return *tiles;
}

template <class F, class Op, class V, bool kHasCount = false>
struct Leaf {
  F f;
  Op op;
  V identity;
  int32_t level;  // from 1
  uint32_t zero = 0;  // for Rounded

  static constexpr bool kByRows = false;  // NodeDecl::by_rows
  // A bound on the threads of a block alone has the compiler put more loads before their use. More room for blocks
  // leaves fewer registers, so it is asked for where no code of the user's runs.
  static constexpr int kBlockThreads = kLeafThreads;
  static constexpr int kMinBlocks = !kGivesElements<F> || !kIsRounded<Op, V> ? 1 : sizeof(V) <= 4 ? 6 : 3;
  // A level of several blocks has the next as its dependent, which has few, and one of one block is short.
  static constexpr bool kReleasesDependents = true;
  bool later() const { return level > 1; }  // NodeDecl::later

  // For FunctorRank: never called.
  template <class Index, class... Stored>
    requires kGivesValue<F, V, Index, std::tuple<Stored...>>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index, Stored...) const {}

  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t ValuesIn(const Range& range,
                                                        [[maybe_unused]] const Stored&... args) const {
    if constexpr (kHasCount) return PartialsAfter(CountWithin(ArgumentAt<0>(args...)(0), range.width), level - 1);
    else return PartialsAfter(range.depth * range.height * range.width, level - 1);
  }
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V At(const Position& at, const Stored&... args) const {
    return AtIndex(IndexAt<kRank>(at), std::make_index_sequence<sizeof...(Stored) - 1>(), args...);
  }
  template <class Index, size_t... I, class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE V AtIndex(Index index, std::index_sequence<I...>, const Stored&... args) const {
    return static_cast<V>(f(index, ArgumentAt<I>(args...)...));
  }
  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void Put(int64_t leaf, const V& value, const Stored&... args) const {
    auto& to = ArgumentAt<sizeof...(Stored) - 1>(args...)(leaf);
    to = static_cast<std::remove_cvref_t<decltype(to)>>(value);
  }

  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN void OnHost(const Range& range, int64_t leaf, const Stored&... args) const {
    const int64_t values = ValuesIn(range, args...), of_leaf = LeafOfReduce(values, level);
    const int64_t first = leaf * of_leaf, end = std::min(first + of_leaf, values);
    if (first >= end) {
      if (leaf == 0) Put(leaf, identity, args...);
      return;
    }
    Position at = Position::Of<kRank>(range, first);
    const auto next = [&](int64_t number) {
      if constexpr (kRank == 1) return At<1>({0, 0, number}, args...);
      const Position here = at;
      at.template Advance<kRank>(range, 1);
      return At<kRank>(here, args...);
    };
    Put(leaf, FoldOnHost<V>(first, end, op, next), args...);
  }

#if defined(__CUDACC__)
  static constexpr int kLanes = 32, kWarps = static_cast<int>(kLeafThreads) / kLanes;
  static constexpr int kInWarp = static_cast<int>(kLeaf) / kWarps;  // values of a warp at a time
  static constexpr int kParts = static_cast<int>(kLongLeaf) / kInWarp;  // of a leaf, at most
  static_assert(kParts <= kLanes);

  // Reduces leaves, each with a block of kLeafThreads threads.
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const int64_t values = ValuesIn(range, args...), of_leaf = LeafOfReduce(values, level);
    if (values == 0) {
      if (blockIdx.x == 0 && threadIdx.x == 0) Put(0, identity, args...);
      return;
    }
    __shared__ alignas(V) unsigned char shared[size_t{kParts} * sizeof(V)];
    V* const parts = reinterpret_cast<V*>(shared);
#pragma unroll 1
    for (int64_t leaf = blockIdx.x, first = leaf * of_leaf; first < values;) {
      const int count = static_cast<int>(values - first < of_leaf ? values - first : of_leaf);
      PutParts<kRank>(parts, range, first, count, args...);
      __syncthreads();
      if (threadIdx.x < kLanes) PutLeaf(leaf, parts, (count - 1) / kInWarp + 1, args...);
      leaf += gridDim.x;
      first = leaf * of_leaf;
      if (first < values) __syncthreads();  // the parts have been read
    }
  }

 private:
  // Each warp puts what parts of `count` values give, of which the first is number `first`.
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void PutParts(V* parts, const Range& range, int64_t first, int count,
                                                           const Stored&... args) const {
    if constexpr (kGivesElements<F>) {
      const auto* const from = ArgumentAt<sizeof...(Stored) - 2>(args...).data + first;
      using Packs = PackTree<V, std::remove_cv_t<std::remove_pointer_t<decltype(from)>>, Op>;
      if constexpr (Packs::kExist) {
        const int taken = count > kLeaf && Packs::AreAt(from) ? Packs{op, zero}.Put(parts, from, count) : 0;
        first += taken, count -= taken, parts += taken / kInWarp;
      }
    }
#pragma unroll 1
    for (; count >= kLeaf; count -= kLeaf, first += kLeaf, parts += kWarps) {
      PutPart<kRank, true>(parts, range, first, kLeaf, args...);
    }
    if (count > 0) PutPart<kRank, false>(parts, range, first, count, args...);
  }
  template <int kRank, bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void PutPart(V* parts, const Range& range, int64_t first, int count,
                                                          const Stored&... args) const {
    using Tree = BlockTree<V, Op, kFull>;
    const int warp = static_cast<int>(threadIdx.x) / kLanes;
    int number = warp * kInWarp + static_cast<int>(threadIdx.x) % kLanes;
    Position at = Position::Of<kRank>(range, first + number);
    V mine[Tree::kRows] = {identity, identity, identity, identity, identity, identity, identity, identity};
#pragma unroll
    for (int k = 0; k < Tree::kRows; ++k, number += kLanes, at.template Advance<kRank>(range, kLanes)) {
      if (kFull || number < count) mine[k] = Rounded(At<kRank>(at, args...), zero);
    }
    const V of_warp = Tree{op, zero, {count}}.OfWarp(mine);
    if (threadIdx.x % kLanes == 0) parts[warp] = of_warp;
  }

  // By the first warp: what the parts of a leaf give.
  template <class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void PutLeaf(int64_t leaf, const V* parts, int count,
                                                          const Stored&... args) const {
    const int lane = static_cast<int>(threadIdx.x);
    V value = identity;
    if (lane < count) value = parts[lane];
    const BlockTree<V, Op, false> tree{op, zero, {count}};
#pragma unroll 1
    for (int mask = 1; mask < count; mask *= 2) value = tree.WithLane(value, mask, (lane & ~(2 * mask - 1)) + mask);
    if (lane == 0) Put(leaf, value, args...);
  }
#endif
};
template <class F, class Op, class V, bool kHasCount>
inline constexpr bool kTakesLeaves<Leaf<F, Op, V, kHasCount>> = true;
template <class F, class Op, class V, bool kHasCount>
inline constexpr bool kTakesAnyExtent<Leaf<F, Op, V, kHasCount>> = kTakesAnyExtent<F>;

}  // namespace penstock::detail
