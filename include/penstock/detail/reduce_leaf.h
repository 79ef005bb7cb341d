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

#include "penstock/detail/counted.h"
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

#if defined(__CUDACC__)
// A value as the words that threads exchange. They are as long as its parts, which else would go through memory.
template <class V>
struct Words {
  using Word = std::conditional_t<alignof(V) % 8 == 0, unsigned long long, unsigned int>;
  static constexpr size_t kCount = (sizeof(V) + sizeof(Word) - 1) / sizeof(Word);
  Word at[kCount];

  __device__ explicit Words(const V& value) {
    if constexpr (sizeof(V) % sizeof(Word) != 0) at[kCount - 1] = 0;
    memcpy(at, &value, sizeof(V));
  }
  __device__ V Value(V value) const {
    memcpy(&value, at, sizeof(V));
    return value;
  }
};
template <class V>
PENSTOCK_HIDDEN __device__ __forceinline__ V FromLane(const V& value, int mask) {
  Words<V> words(value);
#pragma unroll
  for (size_t i = 0; i < Words<V>::kCount; ++i) words.at[i] = __shfl_xor_sync(0xffffffffu, words.at[i], mask);
  return words.Value(value);
}
// `a` if `first`, else `b`. The compiler would choose between the addresses of larger types, and so put them into
// memory.
template <class V>
PENSTOCK_HIDDEN __device__ __forceinline__ V Choose(bool first, const V& a, const V& b) {
  Words<V> words(a);
  const Words<V> others(b);
#pragma unroll
  for (size_t i = 0; i < Words<V>::kCount; ++i) words.at[i] = first ? words.at[i] : others.at[i];
  return words.Value(a);
}
template <class V>
PENSTOCK_HIDDEN __device__ __forceinline__ V Rounded(const V& value, uint32_t zero) {
  if constexpr (std::is_integral_v<V>) {
    return value;
  } else {
    Words<V> words(value);
    using Word = typename Words<V>::Word;
    const Word zeros = sizeof(Word) == 8 ? static_cast<Word>(uint64_t{zero} << 32 | zero) : zero;  // in every bit
#pragma unroll
    for (size_t i = 0; i < Words<V>::kCount; ++i) words.at[i] ^= zeros;
    return words.Value(value);
  }
}

// Which values of a leaf are there: the first `count` of them.
struct FirstValues {
  int count;

  PENSTOCK_HIDDEN __device__ __forceinline__ bool Has(int number) const { return number < count; }
};

// The tree over a leaf of which each thread of a block has kRows values: warp w has those from w * kInWarp on, lane l
// of it number 32 * k + l of these for each k. Unless the leaf is full, `values` says which values of it are there.
template <class V, class Op, bool kFull, class There = FirstValues>
struct BlockTree {
  static constexpr int kRows = 8, kLanes = 32, kInWarp = kRows * kLanes, kWarps = static_cast<int>(kLeaf) / kInWarp;
  static constexpr int kBits = 8;  // kInWarp is 2^kBits
  static_assert(kWarps * kLanes == kLeafThreads && 1 << kBits == kInWarp);
  const Op& op;
  uint32_t zero;
  There values;

  // Combines neighbours, of which the right one is there if its first value, number `first`, is.
  __device__ __forceinline__ V Both(const V& left, const V& right, [[maybe_unused]] int first) const {
    if constexpr (!kFull) {
      if (!values.Has(first)) return left;
    }
    return Rounded(static_cast<V>(op(left, right)), zero);
  }
  __device__ __forceinline__ V WithLane(const V& own, int mask, int first) const {
    const V other = FromLane(own, mask);
    const bool upper = (threadIdx.x & mask) != 0;
    return Both(Choose(upper, other, own), Choose(upper, own, other), first);
  }

  // Lanes whose numbers differ in bit kBit exchange half of their values: each keeps those of one of two neighbouring
  // rows and combines them with the same of the other.
  template <int kBit>
  __device__ __forceinline__ void Exchange(V (&mine)[kRows]) const {
    constexpr int kMask = 1 << kBit, kLow = 2 * kMask - 1;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const int right = static_cast<int>(threadIdx.x) / kLanes * kInWarp + (lane & ~kLow) + kMask;
    const bool upper = (lane & kMask) != 0;
#pragma unroll
    for (int j = 0; j < kRows / 2 / kMask; ++j) {
      const V even = mine[2 * j], odd = mine[2 * j + 1];
      const V kept = Choose(upper, odd, even), other = FromLane(Choose(upper, even, odd), kMask);
      const int row = 2 * kMask * j + (lane & kLow);
      mine[j] = Both(Choose(upper, other, kept), Choose(upper, kept, other), right + row * kLanes);
    }
  }
  // What the warp's values give, in each of its lanes; or if `bits` is less than 8, what each 2^bits of them give, at
  // least eight, in the lanes whose FirstOfLane lies among them. At first each lane has a value of every row, then one
  // row, of its three lowest bits.
  __device__ __forceinline__ V OfWarp(V (&mine)[kRows], int bits = kBits) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes * kInWarp;
    Exchange<0>(mine);
    Exchange<1>(mine);
    Exchange<2>(mine);
    V value = mine[0];
    const int row = lane % kRows;
#pragma unroll
    for (int k = 3; k < 5; ++k) {
      const int mask = 1 << k;
      if (bits > k) value = WithLane(value, mask, warp + row * kLanes + (lane & ~(2 * mask - 1)) + mask);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const int mask = 1 << k;
      if (bits > 5 + k) value = WithLane(value, mask, warp + ((row & ~(2 * mask - 1)) + mask) * kLanes);
    }
    return value;
  }
  // The first of the eight values of the warp that meet in this lane first.
  __device__ __forceinline__ static int FirstOfLane() {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    return lane % kRows * kLanes + lane / kRows * kRows;
  }
};
#endif

// Reduces values [begin, end) of a leaf, at least one, tile by tile. `at` gives each, in their order.
template <class V, class Op, class At>
PENSTOCK_HIDDEN V FoldOnHost(int64_t begin, int64_t end, const Op& op, At at) {
  constexpr int64_t kTile = 256;
  alignas(V) std::byte tile_bytes[kTile * sizeof(V)], leaf_bytes[kLeaf / kTile * sizeof(V)];
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
  bool later() const { return level > 1; }  // NodeDecl::later

  // For FunctorRank: never called.
  template <class Index, class... Stored>
    requires kGivesValue<F, V, Index, std::tuple<Stored...>>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE void operator()(Index, Stored...) const {}

  template <class... Stored>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t ValuesIn(const Range& range,
                                                        [[maybe_unused]] const Stored&... args) const {
    if constexpr (kHasCount) return ValuesAfter(CountWithin(ArgumentAt<0>(args...)(0), range.width), level - 1);
    else return ValuesAfter(range.depth * range.height * range.width, level - 1);
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
    const int64_t first = leaf * kLeaf, end = std::min(first + kLeaf, ValuesIn(range, args...));
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
  // Reduces leaves, each with a block of kLeafThreads threads.
  template <int kRank, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OnDevice(const Range& range, const Stored&... args) const {
    const int64_t values = ValuesIn(range, args...), leaves = ValuesAfter(values, 1);
    if (values == 0) {
      if (blockIdx.x == 0 && threadIdx.x == 0) Put(0, identity, args...);
      return;
    }
#pragma unroll 1
    for (int64_t leaf = blockIdx.x; leaf < leaves; leaf += gridDim.x) {
      const int64_t first = leaf * kLeaf;
      if (values - first >= kLeaf) OfBlock<kRank, true>(range, leaf, kLeaf, args...);
      else OfBlock<kRank, false>(range, leaf, static_cast<int>(values - first), args...);
    }
  }
  template <int kRank, bool kFull, class... Stored>
  PENSTOCK_HIDDEN __device__ __forceinline__ void OfBlock(const Range& range, int64_t leaf, int count,
                                                          const Stored&... args) const {
    using Tree = BlockTree<V, Op, kFull>;
    __shared__ alignas(V) unsigned char shared[size_t{Tree::kWarps} * sizeof(V)];
    const int warp = static_cast<int>(threadIdx.x) / Tree::kLanes;
    int number = warp * Tree::kInWarp + static_cast<int>(threadIdx.x) % Tree::kLanes;
    Position at = Position::Of<kRank>(range, leaf * kLeaf + number);
    V mine[Tree::kRows] = {identity, identity, identity, identity, identity, identity, identity, identity};
#pragma unroll
    for (int k = 0; k < Tree::kRows; ++k, number += Tree::kLanes, at.template Advance<kRank>(range, Tree::kLanes)) {
      if (kFull || number < count) mine[k] = Rounded(At<kRank>(at, args...), zero);
    }
    const Tree tree{op, zero, {count}};
    const V of_warp = tree.OfWarp(mine);
    V* const warps = reinterpret_cast<V*>(shared);
    __syncthreads();  // the warps' values of the leaf before have been read
    if (threadIdx.x % Tree::kLanes == 0) warps[warp] = of_warp;
    __syncthreads();
    if (threadIdx.x != 0) return;
    const auto combine = [&](const V& a, const V& b) { return Rounded(static_cast<V>(op(a, b)), zero); };
    Fold(warps, kFull ? Tree::kWarps : (count - 1) / Tree::kInWarp + 1, combine);
    Put(leaf, warps[0], args...);
  }
#endif
};
template <class F, class Op, class V, bool kHasCount>
inline constexpr bool kTakesLeaves<Leaf<F, Op, V, kHasCount>> = true;
template <class F, class Op, class V, bool kHasCount>
inline constexpr bool kTakesAnyExtent<Leaf<F, Op, V, kHasCount>> = kTakesAnyExtent<F>;

}  // namespace penstock::detail
