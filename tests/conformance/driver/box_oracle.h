// Boxes of bytes and what copying or filling them does, by plain loops: what judges copies, batches and fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "src/driver/driver.h"

namespace penstock::driver::conformance {

using Bytes = std::vector<std::byte>;

struct Shape {
  size_t width = 1, height = 1, depth = 1, dst_pitch = 0, src_pitch = 0, dst_slice = 0, src_slice = 0;

  // Bytes from the first to the last, on either side.
  size_t dst_span() const;
  size_t src_span() const;
  CopyOp Between(CopyKind kind, std::byte* dst, const std::byte* src) const;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Lines, planes and boxes, with and without padding, narrow and wide, of at most about `most` bytes a side. Widths and
// pitches need be multiples of nothing.
Shape RandomShape(std::mt19937& random, size_t most);

// What copying does, in host memory: `dst` and `src` stand for the whole blocks in which the box begins at those
// places.
void CopyBox(const Shape& shape, Bytes& dst, size_t dst_first, const Bytes& src, size_t src_first);
// The same for a fill, whatever its own `dst` is.
void FillBox(const FillOp& op, Bytes& dst, size_t dst_first);

}  // namespace penstock::driver::conformance
