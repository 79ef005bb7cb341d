// SlabList: pieces of memory, slabs, that blocks are cut from: the first place that fits. Neighbours that are both free
// are one again. The arithmetic of the pinned pool, which has the memory, the lock and the clock.
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
  int node = -1;  // where it lies
  TimePoint idle_since{};  // while no block lies in it
  std::map<size_t, size_t> free{};  // offset -> bytes; neighbours never touch
  bool idle() const { return !free.empty() && free.begin()->second == bytes; }
};

class SlabList {
 public:
  struct Place {
    size_t slab = 0;
    std::byte* data = nullptr;  // null: there is none
  };

  void Add(std::byte* base, size_t bytes, int node, TimePoint now);
  // In a slab of `node`; in any slab for -1.
  Place Take(size_t bytes, int node);
  // Says whether the slab is idle now.
  bool Return(Place place, size_t bytes, TimePoint now);
  // Takes out the slabs that have been idle since `since` or longer. Of each node the first idle slab of at most
  // `keep_bytes` stays.
  std::vector<Slab> TakeIdle(TimePoint since, size_t keep_bytes);
  // When the last of those that TakeIdle would take, sooner or later, became idle; TimePoint::max() where there is
  // none.
  TimePoint LastIdle(size_t keep_bytes) const;

  size_t FreeOn(int node) const;  // bytes; on all nodes for -1
  size_t LargestFree() const;  // bytes in one piece
  size_t size() const;

 private:
  std::vector<size_t> Spare(size_t keep_bytes) const;

  std::vector<Slab> slabs_;  // one without a base: its place may be taken
};

}  // namespace penstock::memory
