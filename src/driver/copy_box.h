// The arithmetic of copied boxes: how many bytes, from where to where, and with how few dimensions; and copying one
// between host memory.
//
// Threads: pure functions.
// Errors:  InvalidArgument where rows or slices of a box overlap each other, or a size, an offset or an address
// overflows.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// Bytes from the first to the last byte of a box, 0 where it is empty.
absl::StatusOr<size_t> BytesSpanned(size_t width, size_t height, size_t depth, size_t pitch, size_t slice);

// A copy in numbers; all 0 where it is empty.
struct CopySize {
  size_t bytes = 0;              // that are copied
  size_t dst_span = 0, src_span = 0;  // from the first to the last of them, with what lies between
};
// What every driver asks of a copy before it submits anything.
absl::StatusOr<CopySize> SizeOf(const CopyOp& op);

// A piece as a copy of its own, and back: the piece has as few dimensions as it can. More than 2^32 - 1 rows a slice,
// or slices, are InvalidArgument.
CopyOp CopyOf(const CopyPiece& piece, const BatchOp& batch);
absl::StatusOr<CopyPiece> PieceOf(const CopyOp& op);

// Looks at every piece. InvalidArgument, too, for a peer batch, and for pieces without a table.
absl::StatusOr<BatchSize> SizeOf(const BatchOp& op);

// The same copy with as few dimensions as its pitches allow: dense rows become one row, a stack of single rows becomes
// a plane.
CopyOp Collapse(CopyOp op);

// Copies between host memory, row by row.
void CopyOnHost(const CopyOp& op);

}  // namespace penstock::driver
