// Chunks: a copy of a box of bytes cut into pieces that each fit a block of so many bytes.
//
// A chunk is whole slices where several fit, else whole rows of one slice, else a part of one row. Together they cover
// the box once, in the order of its bytes. In the block a chunk lies densely.
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
  // Chunk `index` as a copy from and to where its bytes are.
  driver::CopyOp operator[](size_t index) const;

 private:
  driver::CopyOp op_;
  size_t width_ = 0, height_ = 0, depth_ = 0;  // of a chunk; the last of a row, slice or box may have less
  size_t in_row_ = 0, in_slice_ = 0;           // chunks
  size_t count_ = 0;
};

// The same copy with the block at `block` as its target, or as its source.
driver::CopyOp IntoBlock(driver::CopyOp chunk, void* block);
driver::CopyOp OutOfBlock(driver::CopyOp chunk, const void* block);

}  // namespace penstock::memory
