#include "src/memory/chunks.h"

#include <algorithm>

#include "src/driver/copy_box.h"

namespace penstock::memory {
namespace {

size_t Ceil(size_t n, size_t by) { return (n + by - 1) / by; }

}  // namespace

Chunks::Chunks(const driver::CopyOp& op, size_t chunk_bytes) : op_(driver::Collapse(op)) {
  if (op_.width == 0 || op_.height == 0 || op_.depth == 0) return;
  width_ = std::min(op_.width, chunk_bytes);
  height_ = width_ < op_.width ? 1 : std::min(op_.height, chunk_bytes / width_);
  depth_ = height_ < op_.height || width_ < op_.width ? 1 : std::min(op_.depth, chunk_bytes / (width_ * height_));
  in_row_ = Ceil(op_.width, width_);
  in_slice_ = in_row_ * Ceil(op_.height, height_);
  count_ = in_slice_ * Ceil(op_.depth, depth_);
}

driver::CopyOp Chunks::operator[](size_t index) const {
  const size_t z = index / in_slice_ * depth_, y = index % in_slice_ / in_row_ * height_, x = index % in_row_ * width_;
  driver::CopyOp chunk = op_;
  chunk.src = static_cast<const std::byte*>(op_.src) + z * op_.src_slice + y * op_.src_pitch + x;
  chunk.dst = static_cast<std::byte*>(op_.dst) + z * op_.dst_slice + y * op_.dst_pitch + x;
  chunk.width = std::min(width_, op_.width - x);
  chunk.height = std::min(height_, op_.height - y);
  chunk.depth = std::min(depth_, op_.depth - z);
  return chunk;
}

driver::CopyOp IntoBlock(driver::CopyOp chunk, void* block) {
  chunk.dst = block;
  chunk.dst_pitch = chunk.width;
  chunk.dst_slice = chunk.width * chunk.height;
  return chunk;
}

driver::CopyOp OutOfBlock(driver::CopyOp chunk, const void* block) {
  chunk.src = block;
  chunk.src_pitch = chunk.width;
  chunk.src_slice = chunk.width * chunk.height;
  return chunk;
}

}  // namespace penstock::memory
