// A piece of a batch of copies, as it lies in memory that the device reads: shared by the driver interface and the CUDA
// kernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::driver {

// A box of bytes as in CopyOp: `depth` slices of `height` rows of `width` bytes. 64 bytes, to be read at one go; a
// table of them that begins at a multiple of 64 is read fastest.
struct CopyPiece {
  void* dst = nullptr;
  const void* src = nullptr;
  size_t width = 0;
  uint32_t height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0, dst_slice = 0, src_slice = 0;
};
static_assert(sizeof(CopyPiece) == 64);

}  // namespace penstock::driver
