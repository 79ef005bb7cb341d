// SlabList: slabs of memory from which blocks are cut first-fit; adjacent free ranges are merged. It is the arithmetic
// of the pinned pool, which owns the memory, the lock and the clock.
//
// Threads: single-threaded.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <vector>

namespace penstock::memory {

using TimePoint = std::chrono::steady_clock::time_point;

struct Slab {
  std::byte* base = nullptr;
  size_t bytes = 0;
  int node = -1;  // its NUMA node
  TimePoint idle_since{};  // valid while it has no block
  std::map<size_t, size_t> free{};  // offset -> bytes; neighbours are merged
  bool idle() const { return !free.empty() && free.begin()->second == bytes; }
};

class SlabList {
 public:
  struct Place {
    size_t slab = 0;
    std::byte* data = nullptr;  // null: none found
  };

  void Add(std::byte* base, size_t bytes, int node, TimePoint now);
  // Takes a block from a slab of `node`, or of any node for -1.
  Place Take(size_t bytes, int node);
  // Returns whether the slab is idle now.
  bool Return(Place place, size_t bytes, TimePoint now);
  // Removes and returns the slabs that have been idle since `since` or longer. The first idle slab of at most
  // `keep_bytes` on each node stays.
  std::vector<Slab> TakeIdle(TimePoint since, size_t keep_bytes);
  // The time at which the most recent of the slabs that TakeIdle would ever take became idle; TimePoint::max() if
  // there is none.
  TimePoint LastIdle(size_t keep_bytes) const;

  size_t FreeOn(int node) const;  // bytes; on all nodes for -1
  size_t LargestFree() const;  // bytes in one piece
  size_t size() const;

 private:
  std::vector<size_t> Spare(size_t keep_bytes) const;

  std::vector<Slab> slabs_;  // a slab without a base is an unused entry
};

}  // namespace penstock::memory
