#include "graph/memory/packer.h"

#include <algorithm>

namespace penstock::graph {
namespace {

constexpr int kMaxTried = 64;  // blocks examined in a search

}  // namespace

int32_t Packer::Place(InstanceId instance, int64_t bytes) {
  const int32_t* done = lives_.DoneBefore(instance, scratch_);
  const uint64_t own = uint64_t{1} << SizeOf(bytes), smaller = own - 1;
  ++placed_;
  const size_t column = static_cast<size_t>(std::max(0, reduced_.tick[lives_.first(instance)].column));
  bool too_small = (sizes_ & smaller) != 0;
  int32_t block = Find(~smaller, column, done, [&](int32_t b) {
    too_small = too_small || at(b).bytes < bytes;
    return at(b).bytes >= bytes;
  });
  if (block < 0 && too_small)
    block = Find(own | smaller, column, done, [&](int32_t b) { return BeginsRun(b, bytes, done); });
  if (block < 0 && bytes > kMaxBytes - top_) return -1;
  live_ += bytes;
  least_ = std::max(least_, live_);
  if (block < 0) return Grow(bytes);
  ++reused_;
  Take(block, bytes);
  return block;
}

void Packer::Free(InstanceId instance, int32_t block) {
  if (lives_.never_ends(instance)) return;
  live_ -= at(block).bytes;
  at(block).end = lives_.end(instance);
  at(block).others = lives_.others(instance);
  PushBack(block);
}

// The first free block of these sizes that may be taken and that `fits`. `done`: see Lifetimes::DoneBefore.
template <class F>
int32_t Packer::Find(uint64_t sizes, size_t column, const int32_t* done, F&& fits) {
  int tried = 0;
  for (sizes &= sizes_; sizes != 0; sizes &= sizes - 1) {
    const Lists& lists = lists_[std::countr_zero(sizes)];
    for (size_t i = 0; i < lists.size(); ++i) {
      const size_t c = column + i < lists.size() ? column + i : column + i - lists.size();
      for (int32_t b = lists[c].first; b >= 0 && at(b).end.DoneIn(done); b = at(b).next) {
        if (lives_.AreDone(at(b).others, done) && fits(b)) return b;
        if (++tried == kMaxTried) return -1;
      }
    }
  }
  return -1;
}

bool Packer::MayFollow(const Block& block, const int32_t* done) const {
  return block.end.DoneIn(done) && lives_.AreDone(block.others, done);
}

bool Packer::BeginsRun(int32_t block, int64_t bytes, const int32_t* done) {
  int64_t run = 0;
  for (; block >= 0 && run < bytes && MayFollow(at(block), done); block = at(block).above) run += at(block).bytes;
  return run >= bytes;
}

void Packer::Take(int32_t block, int64_t bytes) {
  Remove(block);
  while (at(block).bytes < bytes) JoinAbove(block, bytes - at(block).bytes);
  if (at(block).bytes > bytes) CutTo(block, bytes);
  at(block).end = {};
}

// Joins the next block, cut to at most `most` bytes, to this one.
void Packer::JoinAbove(int32_t block, int64_t most) {
  const int32_t above = at(block).above;
  Remove(above);
  if (at(above).bytes > most) CutTo(above, most);
  at(block).bytes += at(above).bytes;
  at(block).above = at(above).above;
  if (highest_ == above) highest_ = block;
  unused_.push_back(above);
}

// Makes the rest a free block of the same tenant.
void Packer::CutTo(int32_t block, int64_t bytes) {
  Block rest = at(block);
  rest.offset += bytes;
  rest.bytes -= bytes;
  const int32_t index = NewBlock(rest);
  at(block).bytes = bytes;
  at(block).above = index;
  if (highest_ == block) highest_ = index;
  PushFront(index);
}

int32_t Packer::Grow(int64_t bytes) {
  const int32_t block = NewBlock({.offset = top_, .bytes = bytes});
  if (highest_ >= 0) at(highest_).above = block;
  highest_ = block;
  top_ += bytes;
  return block;
}

int32_t Packer::NewBlock(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<int32_t>(blocks_.size()) - 1;
  }
  const int32_t index = unused_.back();
  unused_.pop_back();
  at(index) = block;
  return index;
}

Packer::List& Packer::ListOf(const Block& block) {
  const size_t size = SizeOf(block.bytes);
  if (lists_.size() <= size) lists_.resize(size + 1);
  Lists& lists = lists_[size];
  if (lists.empty()) lists.resize(reduced_.columns);
  sizes_ |= uint64_t{1} << size;
  return lists[block.end.column];
}

void Packer::PushBack(int32_t block) {
  List& list = ListOf(at(block));
  at(block).previous = list.last;
  at(block).next = -1;
  (list.last >= 0 ? at(list.last).next : list.first) = block;
  list.last = block;
}

void Packer::PushFront(int32_t block) {
  List& list = ListOf(at(block));
  at(block).previous = -1;
  at(block).next = list.first;
  (list.first >= 0 ? at(list.first).previous : list.last) = block;
  list.first = block;
}

void Packer::Remove(int32_t block) {
  List& list = ListOf(at(block));
  const int32_t previous = at(block).previous, next = at(block).next;
  (previous >= 0 ? at(previous).next : list.first) = next;
  (next >= 0 ? at(next).previous : list.last) = previous;
}

}  // namespace penstock::graph
