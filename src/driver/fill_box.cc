#include "src/driver/fill_box.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/driver/copy_box.h"

namespace penstock::driver {

absl::StatusOr<FillSize> SizeOf(const FillOp& op) {
  if (op.pattern_size < 1 || op.pattern_size > op.pattern.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("fill: a pattern of ", op.pattern_size, " bytes; 1 to 16 are possible"));
  }
  FillSize size;
  if (__builtin_mul_overflow(op.count, size_t{op.pattern_size}, &size.width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("fill: a row of ", op.count, " patterns of ", op.pattern_size, " bytes overflows"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(size.span, BytesSpanned(size.width, op.height, op.depth, op.pitch, op.slice));
  uintptr_t end = 0;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(op.dst), size.span, &end)) {
    return absl::InvalidArgumentError(absl::StrCat("fill: ", size.span, " bytes from 0x",
                                                   absl::Hex(reinterpret_cast<uintptr_t>(op.dst)),
                                                   " on leave the address space"));
  }
  size.bytes = size.width * op.height * op.depth;  // no larger than the span
  return size;
}

FillOp Collapse(FillOp op) {
  const CopyOp box = Collapse(CopyOp{.width = op.count * op.pattern_size,
                                     .height = op.height,
                                     .depth = op.depth,
                                     .dst_pitch = op.pitch,
                                     .src_pitch = op.pitch,
                                     .dst_slice = op.slice,
                                     .src_slice = op.slice});
  op.count = box.width / op.pattern_size;  // whole rows, so nothing remains
  op.height = box.height;
  op.depth = box.depth;
  op.pitch = box.dst_pitch;
  op.slice = box.dst_slice;
  return op;
}

}  // namespace penstock::driver
