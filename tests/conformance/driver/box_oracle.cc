#include "tests/conformance/driver/box_oracle.h"

#include <algorithm>
#include <cstring>

namespace penstock::driver::conformance {
namespace {

size_t Span(const Shape& s, size_t pitch, size_t slice) {
  if (s.width == 0 || s.height == 0 || s.depth == 0) return 0;
  return (s.depth - 1) * slice + (s.height - 1) * pitch + s.width;
}

}  // namespace

size_t Shape::dst_span() const { return Span(*this, dst_pitch, dst_slice); }
size_t Shape::src_span() const { return Span(*this, src_pitch, src_slice); }

CopyOp Shape::Between(CopyKind kind, std::byte* dst, const std::byte* src) const {
  return {kind, dst, src, width, height, depth, dst_pitch, src_pitch, dst_slice, src_slice};
}

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.width << " x " << s.height << " x " << s.depth << " by " << s.dst_pitch << ", " << s.src_pitch
             << " and " << s.dst_slice << ", " << s.src_slice;
}

Shape RandomShape(std::mt19937& random, size_t most) {
  const auto upto = [&](size_t least, size_t largest) {
    return std::uniform_int_distribution<size_t>(least, std::max(least, largest))(random);
  };
  // Small numbers are as likely as large ones; some sizes are even, as those of users are.
  const auto size = [&](size_t largest) {
    const size_t n = upto(1, std::max<size_t>(1, largest >> upto(0, 14)));
    return n > 16 && upto(0, 2) == 0 ? n / 16 * 16 : n;
  };
  Shape s;
  s.width = size(most / 2);
  if (upto(0, 3) > 0) s.height = upto(1, std::min<size_t>(40, most / (2 * s.width)));
  if (upto(0, 2) > 0) s.depth = upto(1, std::min<size_t>(9, most / (2 * s.width * s.height)));
  const size_t room = most / (s.height * s.depth) - s.width;  // for padding of a row
  const auto padding = [&] { return upto(0, 2) == 0 ? 0 : size(std::min<size_t>(room / 2 + 1, 600)) - 1; };
  s.dst_pitch = s.width + padding();
  s.src_pitch = s.width + padding();
  s.dst_slice = s.dst_pitch * s.height + upto(0, 2) * padding();
  s.src_slice = s.src_pitch * s.height + upto(0, 2) * padding();
  return s;
}

void CopyBox(const Shape& s, Bytes& dst, size_t dst_first, const Bytes& src, size_t src_first) {
  for (size_t z = 0; z < s.depth; ++z) {
    for (size_t y = 0; y < s.height; ++y) {
      std::memcpy(dst.data() + dst_first + z * s.dst_slice + y * s.dst_pitch,
                  src.data() + src_first + z * s.src_slice + y * s.src_pitch, s.width);
    }
  }
}

void FillBox(const FillOp& op, Bytes& dst, size_t dst_first) {
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      for (size_t x = 0; x < op.count * op.pattern_size; ++x) {
        dst[dst_first + z * op.slice + y * op.pitch + x] = op.pattern[x % op.pattern_size];
      }
    }
  }
}

}  // namespace penstock::driver::conformance
