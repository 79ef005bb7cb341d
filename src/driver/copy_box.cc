#include "src/driver/copy_box.h"

#include <cstring>

namespace penstock::driver {
namespace {

bool Join(size_t* a, size_t b) { return !__builtin_mul_overflow(*a, b, a); }

}  // namespace

CopyOp Collapse(CopyOp op) {
  size_t joined = op.height;
  if (op.height == 1 && op.depth > 1) {
    op.height = op.depth;
    op.dst_pitch = op.dst_slice;
    op.src_pitch = op.src_slice;
    op.depth = 1;
  } else if (op.depth > 1 && op.dst_slice == op.dst_pitch * op.height && op.src_slice == op.src_pitch * op.height &&
             Join(&joined, op.depth)) {
    op.height = joined;
    op.depth = 1;
  }
  joined = op.width;
  if (op.depth == 1 && op.height > 1 && op.dst_pitch == op.width && op.src_pitch == op.width &&
      Join(&joined, op.height)) {
    op.width = joined;
    op.height = 1;
  }
  return op;
}

void CopyOnHost(const CopyOp& op) {
  if (op.width == 0) return;
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      std::memcpy(static_cast<std::byte*>(op.dst) + z * op.dst_slice + y * op.dst_pitch,
                  static_cast<const std::byte*>(op.src) + z * op.src_slice + y * op.src_pitch, op.width);
    }
  }
}

}  // namespace penstock::driver
