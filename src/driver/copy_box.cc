#include "src/driver/copy_box.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"

namespace penstock::driver {
namespace {

// Rows or slices whose size overflows are not joined.
bool Join(size_t* a, size_t b) { return !__builtin_mul_overflow(*a, b, a); }

// BytesSpanned without messages: a batch has thousands of pieces at each launch.
inline bool Span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice, size_t* span) {
  *span = 0;
  if (width == 0 || height == 0 || depth == 0) return true;
  *span = width;
  const auto add = [span](size_t count, size_t step) {  // adds `count` more rows or slices
    size_t bytes = 0;
    if (count == 0) return true;
    return step >= *span && !__builtin_mul_overflow(count, step, &bytes) && !__builtin_add_overflow(*span, bytes, span);
  };
  return add(height - 1, pitch) && add(depth - 1, slice);
}

inline bool LeavesAddresses(const void* memory, size_t span) {
  uintptr_t end = 0;
  return __builtin_add_overflow(reinterpret_cast<uintptr_t>(memory), span, &end);
}

template <class Box>
inline bool SizeOf(const Box& box, CopySize* size) {
  if (!Span(box.width, box.height, box.depth, box.dst_pitch, box.dst_slice, &size->dst_span)) return false;
  if (!Span(box.width, box.height, box.depth, box.src_pitch, box.src_slice, &size->src_span)) return false;
  size->bytes = box.width * box.height * box.depth;  // no larger than a span
  return !LeavesAddresses(box.dst, size->dst_span) && !LeavesAddresses(box.src, size->src_span);
}

absl::Status CheckAddresses(const void* memory, size_t span, const char* side) {
  if (!LeavesAddresses(memory, span)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("copy ", side, ": ", span, " bytes from 0x",
                                                 absl::Hex(reinterpret_cast<uintptr_t>(memory)),
                                                 " on leave the address space"));
}

// The reason why SizeOf failed.
absl::Status Refusal(const CopyOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const size_t dst, BytesSpanned(op.width, op.height, op.depth, op.dst_pitch, op.dst_slice));
  PENSTOCK_ASSIGN_OR_RETURN(const size_t src, BytesSpanned(op.width, op.height, op.depth, op.src_pitch, op.src_slice));
  PENSTOCK_RETURN_IF_ERROR(CheckAddresses(op.dst, dst, "destination"));
  return CheckAddresses(op.src, src, "source");
}

}  // namespace

absl::StatusOr<size_t> BytesSpanned(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  size_t span = 0;
  if (Span(width, height, depth, pitch, slice, &span)) return span;
  return absl::InvalidArgumentError(absl::StrCat("a box of ", width, " bytes x ", height, " rows x ", depth,
                                                 " slices with row pitch ", pitch, " and slice pitch ", slice,
                                                 " overlaps itself or overflows"));
}

absl::StatusOr<CopySize> SizeOf(const CopyOp& op) {
  CopySize size;
  if (!SizeOf(op, &size)) return Refusal(op);
  return size;
}

CopyOp CopyOf(const CopyPiece& piece, const BatchOp& batch) {
  return {.kind = batch.kind,
          .dst = piece.dst,
          .src = piece.src,
          .width = piece.width,
          .height = piece.height,
          .depth = piece.depth,
          .dst_pitch = piece.dst_pitch,
          .src_pitch = piece.src_pitch,
          .dst_slice = piece.dst_slice,
          .src_slice = piece.src_slice,
          .tag = batch.tag};
}

absl::StatusOr<CopyPiece> PieceOf(const CopyOp& op) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  const CopyOp least = Collapse(op);
  if (least.height > kMost || least.depth > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("a box of ", least.height, " rows x ", least.depth,
                                                   " slices is too large for a batch, which takes ", kMost,
                                                   " of each"));
  }
  return CopyPiece{.dst = least.dst,
                   .src = least.src,
                   .width = least.width,
                   .height = static_cast<uint32_t>(least.height),
                   .depth = static_cast<uint32_t>(least.depth),
                   .dst_pitch = least.dst_pitch,
                   .src_pitch = least.src_pitch,
                   .dst_slice = least.dst_slice,
                   .src_slice = least.src_slice};
}

absl::StatusOr<BatchSize> SizeOf(const BatchOp& op) {
  if (op.kind == CopyKind::kPeer)
    return absl::InvalidArgumentError("a batch stays on one device; copy peers one by one");
  if (op.count > 0 && op.pieces == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("a batch of ", op.count, " pieces without a table of them"));
  }
  BatchSize batch;
  for (size_t i = 0; i < op.count; ++i) {
    CopySize size;
    if (!SizeOf(op.pieces[i], &size))
      return base::Prefixed(absl::StrCat("piece ", i), Refusal(CopyOf(op.pieces[i], op)));
    if (__builtin_add_overflow(batch.bytes, size.bytes, &batch.bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("piece ", i, " of a batch: the sum of bytes overflows"));
    }
    batch.largest = std::max(batch.largest, size.bytes);
  }
  return batch;
}

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
