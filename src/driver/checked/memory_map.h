// MemoryMap: every block a driver handed out, which of its bytes were written, and which operations may still be using
// them.
//
// An access is kept until the host has seen it end or a later access of the same bytes stands for it; so what is kept
// is what a new access may collide with.
//
// Threads: not thread-safe; CheckedDriver locks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/driver/checked/footprint.h"
#include "src/driver/checked/stream_book.h"

namespace penstock::driver::checked {

enum class Mode : uint8_t { kRead, kWrite, kReadWrite, kUnknown };

struct Access {
  Footprint box;
  Mode mode = Mode::kUnknown;
  Work work;
};
std::string TextOf(const Access& access);

struct Block {
  uint64_t number = 0;  // in the order of allocation, from 1
  uintptr_t begin = 0;
  size_t bytes = 0;
  int device = -1;  // -1: pinned
  IntervalSet written{};
  std::vector<Access> accesses{};

  uintptr_t end() const { return begin + bytes; }
};
std::string TextOf(const Block& block);

class MemoryMap {
 public:
  Block& Add(const void* memory, size_t bytes, int device);
  // The live block whose start `memory` is.
  Block* FindStart(const void* memory);
  // The live block `address` lies in.
  Block* Find(uintptr_t address);
  // The live block that ends there.
  Block* FindEnd(uintptr_t address);
  // The block freed last that held `address`, if nothing took its place.
  const Block* FindFreed(uintptr_t address) const;
  void Free(Block& block);
  const std::map<uintptr_t, Block>& live() const { return live_; }

 private:
  static constexpr size_t kFreedKept = 4096;
  uint64_t blocks_ = 0;
  std::map<uintptr_t, Block> live_;
  std::deque<Block> freed_;  // without accesses; the newest last
};

// Whether `before` is over, or ordered before, from where the question is asked.
using IsBefore = std::function<bool(const Access& before)>;

// The access of the block that `next` collides with: same bytes, one writes, neither ordered before the other.
std::optional<Access> CollisionOf(const Block& block, const Access& next, const IsBefore& is_before);
// Adds `next`, and drops accesses that are over, or that it stands for.
void Keep(Block& block, const Access& next, const IsBefore& is_over, const IsBefore& is_before);

}  // namespace penstock::driver::checked
