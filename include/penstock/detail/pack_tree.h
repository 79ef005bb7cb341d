// How a block of threads reduces a long leaf of elements that lie side by side (reduce_tree.h): each thread loads packs
// of 16 bytes, whose elements are neighbours in the tree, and warps take what the packs give. So each load moves four
// times as much as one of a float, a value needs a quarter of the shuffles, and memory sets the pace.
//
// Threads: all threads of a block call together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "penstock/detail/block_tree.h"
#include "penstock/detail/reduce_tree.h"
#include "penstock/export.h"

namespace penstock::detail {

#if defined(__CUDACC__)
// 16 bytes of elements.
template <class T>
struct Pack {
  static constexpr int kEach = static_cast<int>(16 / sizeof(T));
  uint32_t words[4];

  // Elements are read once, so they need no place in the cache of a multiprocessor.
  PENSTOCK_HIDDEN __device__ __forceinline__ void Load(const T* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(__cvta_generic_to_global(from)));
#else
    const uint4 loaded = *reinterpret_cast<const uint4*>(from);
    words[0] = loaded.x, words[1] = loaded.y, words[2] = loaded.z, words[3] = loaded.w;
#endif
  }
  template <int kAt>
  PENSTOCK_HIDDEN __device__ __forceinline__ T At() const {
    T value;
    memcpy(&value, reinterpret_cast<const char*>(words) + kAt * sizeof(T), sizeof(T));
    return value;
  }
};

template <class V, class T, class Op>
struct PackTree {
  static constexpr bool kExist = sizeof(T) >= 2 && sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0 &&
                                 std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>;
  static constexpr int kLanes = 32, kWarps = static_cast<int>(kLeafThreads) / kLanes;
  static constexpr int kEach = kExist ? Pack<T>::kEach : 8;
  static constexpr int kInPart = static_cast<int>(kLeaf) / kWarps;  // elements
  static constexpr int kRows = kInPart / (kLanes * kEach);  // packs of a thread in a part
  static constexpr int kPacks = 4, kParts = kPacks / kRows;  // of a thread and of a warp at a time
  const Op& op;
  uint32_t zero;

  // Whether the elements from there on are packs.
  PENSTOCK_HIDDEN __device__ __forceinline__ static bool AreAt(const T* from) {
    return reinterpret_cast<uintptr_t>(from) % 16 == 0;
  }
  // Each warp puts what some parts of its own give. Returns how many of `count` elements it took.
  PENSTOCK_HIDDEN __device__ __forceinline__ int Put(V* parts, const T* from, int count) const {
    constexpr int kAtOnce = kParts * static_cast<int>(kLeaf);
    const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
    int taken = 0;
#pragma unroll 1
    for (; taken + kAtOnce <= count; taken += kAtOnce) {
      const T* const first = from + taken + warp * kInPart + lane * kEach;
      Pack<T> packs[kPacks];
#pragma unroll
      for (int k = 0; k < kPacks; ++k) packs[k].Load(first + k / kRows * kLeaf + k % kRows * (kLanes * kEach));
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        const V of_warp = OfPart(packs + p * kRows, Tree::kBits, kAll);
        if (lane == 0) parts[taken / kInPart + p * kWarps + warp] = of_warp;
      }
    }
    return taken;
  }
  // What each 2^bits elements of a part give, at least eight, in the lanes whose FirstOfLane lies among them.
  PENSTOCK_HIDDEN __device__ __forceinline__ V OfRows(const T* part, int bits) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    Pack<T> packs[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) packs[k].Load(part + (k * kLanes + lane) * kEach);
    return OfPart(packs, bits - kEachBits, kAll);
  }
  PENSTOCK_HIDDEN __device__ __forceinline__ static int FirstOfLane() { return Tree::FirstOfLane() * kEach; }

 private:
  static constexpr auto kAll = std::make_integer_sequence<int, kRows>();
  static constexpr int kEachBits = kEach == 8 ? 3 : kEach == 4 ? 2 : 1;
  using Tree = BlockTree<V, Op, true, FirstValues, kRows>;

  template <int... kRow>
  PENSTOCK_HIDDEN __device__ __forceinline__ V OfPart(const Pack<T>* packs, int bits,
                                                      std::integer_sequence<int, kRow...> /*rows*/) const {
    V mine[kRows] = {Of<0, kEach>(packs[kRow])...};
    return Tree{op, zero, {0}}.OfWarp(mine, bits);
  }
  // What elements [kFirst, kFirst + kCount) of a pack give.
  template <int kFirst, int kCount>
  PENSTOCK_HIDDEN __device__ __forceinline__ V Of(const Pack<T>& pack) const {
    if constexpr (kCount > 1) {
      constexpr int kHalf = kCount / 2;
      return Combined<V>(op, Of<kFirst, kHalf>(pack), Of<kFirst + kHalf, kHalf>(pack), zero);
    } else if constexpr (std::is_same_v<T, V>) {
      return pack.template At<kFirst>();
    } else {
      return Rounded(static_cast<V>(pack.template At<kFirst>()), zero);
    }
  }
};
#endif

}  // namespace penstock::detail
