// Chunks: a copy of a box of bytes, cut into pieces that each fit a block of a given size.
//
// A chunk consists of whole slices if several fit, otherwise of whole rows of one slice, otherwise of a part of one
// row. Together the chunks cover the box once, in byte order. In the block a chunk is dense.
//
// Threads: plain values.
#pragma once

#include <cstddef>

#include "src/driver/driver.h"

namespace penstock::memory {

class Chunks {
 public:
  Chunks() = default;
  // `chunk_bytes` is at least 1.
  Chunks(const driver::CopyOp& op, size_t chunk_bytes);

  size_t count() const { return count_; }
  // Chunk `index`, as a copy between its places in the box.
  driver::CopyOp operator[](size_t index) const;

 private:
  driver::CopyOp op_;
  size_t width_ = 0, height_ = 0, depth_ = 0;  // of a chunk; the last of a row, slice or box may be smaller
  size_t in_row_ = 0, in_slice_ = 0;           // chunks per row and per slice
  size_t count_ = 0;
};

// The same copy with the block at `block` as its destination, or as its source.
driver::CopyOp IntoBlock(driver::CopyOp chunk, void* block);
driver::CopyOp OutOfBlock(driver::CopyOp chunk, const void* block);

}  // namespace penstock::memory
