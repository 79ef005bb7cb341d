// Arithmetic of copied boxes: how many bytes, from where to where, and in how few dimensions; and copies
// within host memory.
//
// Threads:   pure functions.
// Errors:    InvalidArgument if rows or slices of a box overlap each other, or a size, an offset or an
//            address overflows.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// Bytes from the first to the last byte of a box; 0 if it is empty.
absl::StatusOr<size_t> BytesSpanned(size_t width, size_t height, size_t depth, size_t pitch, size_t slice);

// The size of a copy; all 0 if it is empty.
struct CopySize {
  size_t bytes = 0;              // bytes copied
  size_t dst_span = 0, src_span = 0;  // bytes from the first to the last of them, gaps included
};
// Checks what every driver requires of a copy before it submits anything.
absl::StatusOr<CopySize> SizeOf(const CopyOp& op);

// Converts a piece to a copy and back, with as few dimensions as possible for the piece. More than 2^32 - 1 rows per
// slice, or slices, are InvalidArgument.
CopyOp CopyOf(const CopyPiece& piece, const BatchOp& batch);
absl::StatusOr<CopyPiece> PieceOf(const CopyOp& op);

// Checks every piece. InvalidArgument also for a peer batch, and for pieces without a table.
absl::StatusOr<BatchSize> SizeOf(const BatchOp& op);

// The same copy in as few dimensions as its pitches allow: dense rows become one row, a stack of single rows a plane.
CopyOp Collapse(CopyOp op);

// Copies within host memory, row by row.
void CopyOnHost(const CopyOp& op);

}  // namespace penstock::driver
