// How the tiles of a row learn what comes before them in one pass over memory, where the order of the operations cannot
// matter, or need not.
//
// On a device a block takes one tile after the other in their order, publishes what its tile gives by itself, looks
// back over the tiles before until it finds one that knows what it gives with all before it, and publishes the same of
// its own (D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, NVR-2016-002, 2016).
// Tiles are numbered as they are taken, so those that a block waits for are already under way, whatever else runs
// there.
//
// On a host the same memory has what each leaf gives.
//
// Threads: TileStates is used by all blocks of a kernel at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "penstock/detail/host_device.h"
#include "penstock/detail/reduce_leaf.h"
#include "penstock/export.h"
#include "penstock/view.h"

namespace penstock::detail {

// A number of elements, as the value of a tile.
struct TileCount {
  int64_t count;
};
struct AddCounts {
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE TileCount operator()(TileCount a, TileCount b) const {
    return {a.count + b.count};
  }
};

// The bytes of a value that one word carries, below the status of its tile.
template <class V>
inline constexpr size_t kBytesOfWord = 4;
template <>
inline constexpr size_t kBytesOfWord<TileCount> = 8;  // a count needs 62 bits

// What is known of a tile. Each word carries the status, so no word has to be ordered after another.
template <class V>
struct TileState {
  static constexpr size_t kWords = (sizeof(V) + kBytesOfWord<V> - 1) / kBytesOfWord<V>;
  uint64_t words[kWords];

  // A value without a status, on a host.
  PENSTOCK_HIDDEN TileState& operator=(const V& value) {
    std::memset(words, 0, sizeof(words));
    for (size_t k = 0; k < kWords; ++k) std::memcpy(&words[k], Bytes(value) + k * kBytesOfWord<V>, BytesOf(k));
    return *this;
  }
  // That value, in place of the one given.
  PENSTOCK_HIDDEN V Value(V value) const {
    for (size_t k = 0; k < kWords; ++k) {
      std::memcpy(reinterpret_cast<std::byte*>(&value) + k * kBytesOfWord<V>, &words[k], BytesOf(k));
    }
    return value;
  }

 private:
  static const std::byte* Bytes(const V& value) { return reinterpret_cast<const std::byte*>(&value); }
  static size_t BytesOf(size_t word) { return std::min(kBytesOfWord<V>, sizeof(V) - word * kBytesOfWord<V>); }
};

#if defined(__CUDACC__)
template <class V>
PENSTOCK_HIDDEN __device__ __forceinline__ V FromHigherLane(const V& value, int by) {
  Words<V> words(value);
#pragma unroll
  for (size_t i = 0; i < Words<V>::kCount; ++i) words.at[i] = __shfl_down_sync(0xffffffffu, words.at[i], by);
  return words.Value(value);
}
template <class V>
PENSTOCK_HIDDEN __device__ __forceinline__ V FromLowerLane(const V& value, int by) {
  Words<V> words(value);
#pragma unroll
  for (size_t i = 0; i < Words<V>::kCount; ++i) words.at[i] = __shfl_up_sync(0xffffffffu, words.at[i], by);
  return words.Value(value);
}

// The states of all tiles, followed by the number of tiles that have been taken.
template <class V>
class TileStates {
 public:
  enum Status : unsigned { kNothing, kAlone, kWithBefore };

  PENSTOCK_HIDDEN __device__ explicit TileStates(const View<TileState<V>>& states) : states_(states) {}

  // Forgets the first `tiles` of them, by all threads of all blocks, before the kernel that uses them.
  PENSTOCK_HIDDEN __device__ void Forget(int64_t tiles) const {
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t t = first; t < tiles; t += static_cast<int64_t>(gridDim.x) * blockDim.x) {
      for (uint64_t& word : states_(t).words) word = 0;
    }
    if (first == 0) *taken() = 0;
  }
  // The next tile, for one thread of a block.
  PENSTOCK_HIDDEN __device__ int64_t Take() const {
    return static_cast<int64_t>(atomicAdd(reinterpret_cast<unsigned long long*>(taken()), 1ULL));
  }
  PENSTOCK_HIDDEN __device__ void Publish(int64_t tile, Status status, const V& value) const {
#pragma unroll
    for (size_t k = 0; k < kWords; ++k) {
      uint64_t word = 0;
      memcpy(&word, reinterpret_cast<const char*>(&value) + k * kBytesOfWord<V>, BytesOf(k));
      word |= static_cast<uint64_t>(status) << 62;
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&states_(tile).words[k]), "l"(word) : "memory");
    }
  }
  // What all tiles of the row before `tile` give, which has one before it. All lanes of a warp call it; lane 0 has the
  // result.
  template <class Op>
  PENSTOCK_HIDDEN __device__ V Before(int64_t tile, const Op& op, const V& placeholder) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    // Most tiles before are being computed now, and asking for them slows down those who do.
    if (tile > kLanes) __nanosleep(kFirstWait);
    V all = placeholder;
    for (int64_t newest = tile - 1;; newest -= kLanes) {
      const Found found = Await(newest - lane, placeholder);
      const unsigned with_before = __ballot_sync(kAll, found.status == kWithBefore);
      const int last = with_before == 0 ? kLanes - 1 : __ffs(static_cast<int>(with_before)) - 1;
      V value = found.value;
#pragma unroll
      for (int by = 1; by < kLanes; by *= 2) {
        const V older = FromHigherLane(value, by);
        if (lane + by <= last) value = op(older, value);
      }
      all = newest == tile - 1 ? value : op(value, all);
      if (with_before != 0) return all;
    }
  }

 private:
  static constexpr size_t kWords = TileState<V>::kWords;
  static constexpr int kLanes = 32;
  static constexpr unsigned kAll = 0xffffffffu;
  static constexpr unsigned kFirstWait = 450, kNextWait = 350;  // in ns
  struct Found {
    unsigned status;
    V value;
  };

  PENSTOCK_HIDDEN __device__ static constexpr size_t BytesOf(size_t word) {
    return sizeof(V) - word * kBytesOfWord<V> < kBytesOfWord<V> ? sizeof(V) - word * kBytesOfWord<V> : kBytesOfWord<V>;
  }
  PENSTOCK_HIDDEN __device__ uint64_t* taken() const { return states_(states_.width - 1).words; }
  PENSTOCK_HIDDEN __device__ Found Load(int64_t tile, const V& placeholder) const {
    Found found{kNothing, placeholder};
#pragma unroll
    for (size_t k = 0; k < kWords; ++k) {
      uint64_t word;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(&states_(tile).words[k]) : "memory");
      const unsigned status = static_cast<unsigned>(word >> 62);
      if (k == 0) found.status = status;
      else if (status != found.status) found.status = kNothing;  // it is being published
      word &= ~uint64_t{0} >> 2;
      memcpy(reinterpret_cast<char*>(&found.value) + k * kBytesOfWord<V>, &word, BytesOf(k));
    }
    return found;
  }
  // Waits until all lanes have the value of their tile, as far as one of them that knows what comes before.
  PENSTOCK_HIDDEN __device__ Found Await(int64_t tile, const V& placeholder) const {
    Found found{kAlone, placeholder};  // there is no tile before number 0, which knows that nothing comes before
    if (tile >= 0) found = Load(tile, placeholder);
    for (;;) {
      const int unknown = __ffs(static_cast<int>(__ballot_sync(kAll, found.status == kNothing)));
      const int with_before = __ffs(static_cast<int>(__ballot_sync(kAll, found.status == kWithBefore)));
      if (unknown == 0 || (with_before != 0 && with_before < unknown)) return found;
      __nanosleep(kNextWait);
      if (found.status == kNothing) found = Load(tile, placeholder);
    }
  }

  const View<TileState<V>>& states_;
};
#endif

}  // namespace penstock::detail
