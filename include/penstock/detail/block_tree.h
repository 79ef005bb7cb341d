// How a block of threads reduces the values of a leaf: the tree of reduce_tree.h over what its threads hold.
//
// Lanes of a warp exchange values by shuffles. Each result of the operation is rounded before another call takes it
// (reduce_leaf.h, "Contraction"), unless the operation has no multiplication.
//
// Threads: all lanes of a warp call together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "penstock/detail/host_device.h"
#include "penstock/detail/reduce_tree.h"
#include "penstock/export.h"
#include "penstock/reduce.h"

namespace penstock::detail {

// Whether an operation on V has nothing that a compiler may contract.
template <class Op, class V>
inline constexpr bool kIsRounded =
    std::is_integral_v<V> ||
    (std::is_floating_point_v<V> && (std::is_same_v<Op, Plus> || std::is_same_v<Op, Min> || std::is_same_v<Op, Max>));

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

// op(a, b), rounded.
template <class V, class Op>
PENSTOCK_HIDDEN __device__ __forceinline__ V Combined(const Op& op, const V& a, const V& b, uint32_t zero) {
  if constexpr (kIsRounded<Op, V>) return static_cast<V>(op(a, b));
  else return Rounded(static_cast<V>(op(a, b)), zero);
}

// Which values of a leaf are there: the first `count` of them.
struct FirstValues {
  int count;

  PENSTOCK_HIDDEN __device__ __forceinline__ bool Has(int number) const { return number < count; }
};

// The tree over a leaf of which each thread of a block has kRows values: warp w has those from w * kInWarp on, lane l
// of it number 32 * k + l of these for each k. Unless the leaf is full, `values` says which values of it are there.
template <class V, class Op, bool kFull, class There = FirstValues, int kOfThread = 8>
struct BlockTree {
  static constexpr int kRows = kOfThread, kLanes = 32, kInWarp = kRows * kLanes;
  static constexpr int kWarps = static_cast<int>(kLeafThreads) / kLanes;
  static constexpr int kRowBits = kRows == 8 ? 3 : kRows == 4 ? 2 : kRows == 2 ? 1 : 0, kLaneBits = 5;
  static constexpr int kBits = kLaneBits + kRowBits;  // kInWarp is 2^kBits
  static_assert(1 << kBits == kInWarp);
  const Op& op;
  uint32_t zero;
  There values;

  // Combines neighbours, of which the right one is there if its first value, number `first`, is.
  __device__ __forceinline__ V Both(const V& left, const V& right, [[maybe_unused]] int first) const {
    if constexpr (!kFull) {
      if (!values.Has(first)) return left;
    }
    return Combined(op, left, right, zero);
  }
  __device__ __forceinline__ V WithLane(const V& own, int mask, int first) const {
    const V other = FromLane(own, mask);
    const bool upper = (threadIdx.x & mask) != 0;
    return Both(Choose(upper, other, own), Choose(upper, own, other), first);
  }

  // Lanes whose numbers differ in bit kBit exchange half of their values: each keeps those of one of two neighbouring
  // rows and combines them with the same of the other.
  template <int kBit>
  __device__ __forceinline__ void Exchange(V (&mine)[size_t{kRows}]) const {
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
  // What the warp's values give, in each of its lanes; or if `bits` is less than kBits, what each 2^bits of them give,
  // at least kRows, in the lanes whose FirstOfLane lies among them. At first each lane has a value of every row, then
  // one row, of its lowest bits.
  __device__ __forceinline__ V OfWarp(V (&mine)[size_t{kRows}], int bits = kBits) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes * kInWarp;
    if constexpr (kRows > 1) Exchange<0>(mine);
    if constexpr (kRows > 2) Exchange<1>(mine);
    if constexpr (kRows > 4) Exchange<2>(mine);
    V value = mine[0];
    const int row = lane % kRows;
#pragma unroll
    for (int k = kRowBits; k < kLaneBits; ++k) {
      const int mask = 1 << k;
      if (bits > k) value = WithLane(value, mask, warp + row * kLanes + (lane & ~(2 * mask - 1)) + mask);
    }
#pragma unroll
    for (int k = 0; k < kRowBits; ++k) {
      const int mask = 1 << k;
      if (bits > kLaneBits + k) value = WithLane(value, mask, warp + ((row & ~(2 * mask - 1)) + mask) * kLanes);
    }
    return value;
  }
  // The first of the kRows values of the warp that meet in this lane first.
  __device__ __forceinline__ static int FirstOfLane() {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    return lane % kRows * kLanes + lane / kRows * kRows;
  }
};
#endif

}  // namespace penstock::detail
