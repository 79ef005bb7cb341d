// MemoryMap: every block that a driver handed out, which of its bytes were written, and which operations may still
// be using them.
//
// An access is kept until the host has seen it end, or a later access to the same bytes supersedes it; the accesses
// kept are those with which a new one may collide.
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

// kWriteSome: what is not written keeps its value.
enum class Mode : uint8_t { kRead, kWrite, kReadWrite, kWriteSome, kUnknown };

struct Access {
  Footprint box;
  Mode mode = Mode::kUnknown;
  Work work;
};
std::string TextOf(const Access& access);

struct Block {
  uint64_t number = 0;  // in allocation order, from 1
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
  // The live block that starts at `memory`.
  Block* FindStart(const void* memory);
  // The live block that contains `address`.
  Block* Find(uintptr_t address);
  // The live block that ends at `address`.
  Block* FindEnd(uintptr_t address);
  // The block freed last that held `address`, if no other has taken its place.
  const Block* FindFreed(uintptr_t address) const;
  void Free(Block& block);
  const std::map<uintptr_t, Block>& live() const { return live_; }

 private:
  static constexpr size_t kFreedKept = 4096;
  uint64_t blocks_ = 0;
  std::map<uintptr_t, Block> live_;
  std::deque<Block> freed_;  // without accesses; newest last
};

// Whether `before` has ended, or is ordered before the point of the question.
using IsBefore = std::function<bool(const Access& before)>;

// The access to the block that `next` collides with: same bytes, at least one writes, and neither is ordered
// before the other.
std::optional<Access> CollisionOf(const Block& block, const Access& next, const IsBefore& is_before);
// Adds `next`, and drops accesses that have ended or that it supersedes.
void Keep(Block& block, const Access& next, const IsBefore& is_over, const IsBefore& is_before);

}  // namespace penstock::driver::checked
