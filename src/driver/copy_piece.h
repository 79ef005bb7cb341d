// CopyPiece: a piece of a batch of copies, as it lies in memory that the device reads. The driver interface and the
// CUDA kernel share it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::driver {

// A box of bytes as in CopyOp: `depth` slices of `height` rows of `width` bytes. It has 64 bytes, to be read at once; a
// table of pieces is read fastest if it is aligned to 64.
struct CopyPiece {
  void* dst = nullptr;
  const void* src = nullptr;
  size_t width = 0;
  uint32_t height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0, dst_slice = 0, src_slice = 0;
};
static_assert(sizeof(CopyPiece) == 64);

}  // namespace penstock::driver
