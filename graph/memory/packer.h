// Packer: which bytes of one arena each instance gets, told of them in submission order.
//
// An arena is a row of blocks. A free block remembers its last tenant: only what comes after that one, and so after all
// tenants before it, may take it. Free blocks stand in lists by the power of two in their size and by the column of the
// tenant's last user, in the order they were left in: in each list those known to be done with come first.
//
// An instance takes a block that is large enough, which is cut to size; else blocks side by side, which are joined;
// else new bytes at the top. A search looks at so many blocks at most: that bounds the time, not what is right.
//
// Ownership: borrows the draft, whose clocks must be there, and the lifetimes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "graph/memory/lifetimes.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

class Packer {
 public:
  Packer(const Draft& draft, const Lifetimes& lives) : draft_(draft), lives_(lives) {}

  // The block of an instance from its first use on; -1 when the arena would not fit in kMaxBytes.
  int32_t Place(int32_t instance, int64_t bytes);
  // An instance takes over all of the block of another, whose Free is then not called.
  void HandOver() { ++placed_, ++reused_; }
  // After its last use.
  void Free(int32_t instance, int32_t block);

  int64_t offset(int32_t block) const { return blocks_[static_cast<size_t>(block)].offset; }
  int64_t bytes() const { return top_; }
  // The most bytes of blocks taken at once; no packing needs fewer.
  int64_t least() const { return least_; }
  int32_t placed() const { return placed_; }
  int32_t reused() const { return reused_; }

 private:
  struct Block {
    int64_t offset, bytes;
    int32_t above = -1;  // the next block in the arena
    Tick end{};  // of the last tenant of a free block, with the others (Lifetimes); no column: taken
    int32_t others = -1;
    int32_t before = -1, behind = -1;  // in its list
  };
  struct List {
    int32_t first = -1, last = -1;
  };
  using Lists = std::vector<List>;  // by column

  static size_t SizeOf(int64_t bytes) { return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(bytes))); }
  Block& at(int32_t block) { return blocks_[static_cast<size_t>(block)]; }

  template <class F>
  int32_t Find(uint64_t sizes, size_t column, const int32_t* done, F&& fits);
  bool MayFollow(const Block& block, const int32_t* done) const;
  bool BeginsRun(int32_t block, int64_t bytes, const int32_t* done);
  void Take(int32_t block, int64_t bytes);
  void JoinAbove(int32_t block, int64_t most);
  void CutTo(int32_t block, int64_t bytes);
  int32_t Grow(int64_t bytes);
  int32_t NewBlock(const Block& block);

  List& ListOf(const Block& block);
  void PushBack(int32_t block);
  void PushFront(int32_t block);
  void Remove(int32_t block);

  const Draft& draft_;
  const Lifetimes& lives_;
  std::vector<Block> blocks_;
  std::vector<int32_t> unused_;  // entries of blocks_
  int32_t highest_ = -1;  // block
  std::array<Lists, 64> lists_;  // by size
  uint64_t sizes_ = 0;  // a bit for each that was ever used
  std::vector<int32_t> scratch_;
  int64_t top_ = 0, live_ = 0, least_ = 0;
  int32_t placed_ = 0, reused_ = 0;
};

}  // namespace penstock::graph
