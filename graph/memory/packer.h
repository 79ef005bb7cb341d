// Packer: assigns each instance its bytes in one arena, given the instances in submission order.
//
// An arena is a row of blocks. A free block remembers its last tenant: only work that comes after that tenant, and so
// after all earlier ones, may take it. Free blocks are in lists by the power of two of their size and the column of the
// tenant's last user, in the order they were freed, so that in each list blocks known to be done come first.
//
// An instance takes a block that is large enough, cut to size; otherwise adjacent blocks, joined; otherwise new bytes
// at the top. A search examines a bounded number of blocks, which limits its time but not correctness.
//
// Ownership: borrows the lifetimes and the clocks.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "graph/memory/lifetimes.h"
#include "graph/passes/passes.h"

namespace penstock::graph {

class Packer {
 public:
  Packer(const Reduced& reduced, const Lifetimes& lives) : reduced_(reduced), lives_(lives) {}

  // The block of an instance from its first use on; -1 if the arena would exceed kMaxBytes.
  int32_t Place(InstanceId instance, int64_t bytes);
  // Hands all of a block over to another instance; the former one's Free is then not called.
  void HandOver() { ++placed_, ++reused_; }
  // Call after the instance's last use.
  void Free(InstanceId instance, int32_t block);

  int64_t offset(int32_t block) const { return blocks_[block].offset; }
  int64_t bytes() const { return top_; }
  // The largest total size of blocks taken at one time; no packing needs less.
  int64_t least() const { return least_; }
  int32_t placed() const { return placed_; }
  int32_t reused() const { return reused_; }

 private:
  struct Block {
    int64_t offset, bytes;
    int32_t above = -1;  // the next block in the arena
    Tick end{};  // a free block's last tenant, with `others` (Lifetimes); no column: taken
    int32_t others = -1;
    int32_t previous = -1, next = -1;  // in its list
  };
  struct List {
    int32_t first = -1, last = -1;
  };
  using Lists = std::vector<List>;  // by column

  static size_t SizeOf(int64_t bytes) { return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(bytes))); }
  Block& at(int32_t block) { return blocks_[block]; }

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

  const Reduced& reduced_;
  const Lifetimes& lives_;
  std::vector<Block> blocks_;
  std::vector<int32_t> unused_;  // unused entries of blocks_
  int32_t highest_ = -1;  // block
  std::vector<Lists> lists_;  // by size
  uint64_t sizes_ = 0;  // a bit for each size ever used
  std::vector<int32_t> scratch_;
  int64_t top_ = 0, live_ = 0, least_ = 0;
  int32_t placed_ = 0, reused_ = 0;
};

}  // namespace penstock::graph
