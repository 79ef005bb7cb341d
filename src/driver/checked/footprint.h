// Footprint: the bytes that an operation touches, as a box of rows and slices; and sets of byte intervals.
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::driver::checked {

// `depth` slices of `height` rows of `width` bytes; rows begin `pitch` bytes apart, slices `slice` bytes.
struct Footprint {
  Footprint() = default;
  Footprint(const void* data, size_t width_in, size_t height_in = 1, size_t depth_in = 1, size_t pitch_in = 0,
            size_t slice_in = 0);

  uintptr_t begin = 0;
  size_t width = 0, height = 1, depth = 1, pitch = 0, slice = 0;  // normalized to one row if dense

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  uintptr_t end() const { return empty() ? begin : begin + (depth - 1) * slice + (height - 1) * pitch + width; }
  size_t bytes() const { return width * height * depth; }
  bool dense() const { return height == 1 && depth == 1; }
  // Whether the box contains a byte of [from, to).
  bool Touches(uintptr_t from, uintptr_t to) const;
  bool Touches(const Footprint& other) const;

  // Calls f(first, end) for each row until it returns false.
  template <class F>
  void ForEachRow(F f) const {
    for (size_t z = 0; z < depth; ++z) {
      for (size_t y = 0; y < height; ++y) {
        const uintptr_t row = begin + z * slice + y * pitch;
        if (!f(row, row + width)) return;
      }
    }
  }
};

// "[0x7f0012, +64)", or with rows "[0x7f0012, 16 x 4 x 1 bytes)".
std::string TextOf(const Footprint& box);

struct Use {
  Footprint box;
  bool writes = false;
};
// The indices in `uses` of two uses that share bytes, one of them writing.
std::optional<std::pair<size_t, size_t>> FindClash(const std::vector<Use>& uses);

// A set of disjoint address intervals.
class IntervalSet {
 public:
  void Add(uintptr_t from, uintptr_t to);
  void Add(const Footprint& box);
  // The first part of [from, to), or of the box, that is not in the set.
  std::optional<std::pair<uintptr_t, uintptr_t>> Missing(uintptr_t from, uintptr_t to) const;
  std::optional<std::pair<uintptr_t, uintptr_t>> Missing(const Footprint& box) const;

 private:
  std::map<uintptr_t, uintptr_t> parts_;  // begin -> end; neighbours are merged
};

}  // namespace penstock::driver::checked
