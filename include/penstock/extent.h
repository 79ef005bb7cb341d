// Shapes: how many elements a buffer or a node has in each of up to three dimensions, and boxes inside them.
//
// The order is the C order of arrays: slowest dimension first, so {height, width} and {depth, height, width}; the last
// one is contiguous. A dimension is a constant or an integer parameter whose declared maximum sizes the memory.
//
// Threads: plain values.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>

#include "penstock/export.h"
#include "penstock/handle.h"

namespace penstock {

// The most dimensions that a buffer or a node can have.
PENSTOCK_HIDDEN inline constexpr int kMaxRank = 3;

// One dimension: `value` elements, or the value of parameter `param` (then `value` is 0). One made from a handle that
// was never set is no constant, but a mistake that Compile reports.
struct Dim {
  // Values of `param`: for a constant, and for a handle that was never set.
  PENSTOCK_HIDDEN static constexpr int32_t kConstant = -1, kUnset = -2;

  int64_t value = 0;  // the number of elements, if constant
  int32_t param = kConstant;  // index of the parameter in its graph
  uint32_t graph = 0;  // serial of that graph

  Dim() = default;
  // A constant dimension.
  template <std::integral I>
  Dim(I n) : value(static_cast<int64_t>(n)) {  // NOLINT: implicit
    if constexpr (std::is_unsigned_v<I>) {
      if (value < 0) value = INT64_MAX;  // no number of elements either, but one that is refused as large
    }
  }
  // A dimension that takes the value of an integer parameter at launch.
  template <std::integral T>
  Dim(const ParamHandle<T>& p) : param(p.index() < 0 ? kUnset : p.index()), graph(p.graph()) {}  // NOLINT: implicit

  // Whether it is a constant, not a parameter.
  bool is_constant() const { return param == kConstant; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

// What a dimension can be made from: an integer, or a handle on an integer parameter.
template <class T>
concept DimLike = std::convertible_to<T, Dim>;

// 1 to 3 dimensions. Negative sizes, parameters without a maximum and products over 2^62 bytes (where 0 counts as 1)
// are mistakes that Compile reports.
struct Extent {
  int rank = 1;
  std::array<Dim, kMaxRank> dims{};

  Extent() = default;
  // Rank 1, 2 or 3; the slowest dimension comes first.
  template <DimLike D>
  Extent(D x) : rank(1), dims{Dim(x)} {}  // NOLINT: implicit
  Extent(Dim y, Dim x) : rank(2), dims{y, x} {}
  Extent(Dim z, Dim y, Dim x) : rank(3), dims{z, y, x} {}

  friend bool operator==(const Extent&, const Extent&) = default;
};

// An extent whose rows begin `pitch` elements apart, as those of padded images and of tiles of larger ones do. Of two
// or three dimensions; the slices of three lie side by side, as many rows apart as each has. Nobody reads or writes
// what lies between the rows.
struct PitchedExtent {
  Extent extent;  // the shape, without what lies between the rows
  int64_t pitch = 0;  // at least as many as a row may have; 0: as many as it has
  PitchedExtent() = default;  // by Pitched, so that {h, w} is always an Extent
};
inline PitchedExtent Pitched(const Extent& extent, int64_t pitch) {
  PitchedExtent pitched;
  pitched.extent = extent;
  pitched.pitch = pitch;
  return pitched;
}

// An extent with every parameter replaced by a value; unused leading entries of a lower rank are absent, not 1.
struct Shape {
  int rank = 1;
  std::array<int64_t, kMaxRank> size{};

  // The total number of elements.
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= size[static_cast<size_t>(i)];
    return n;
  }
  int64_t width() const { return size[static_cast<size_t>(rank - 1)]; }  // elements of the contiguous dimension
  int64_t rows() const {  // product of the others
    int64_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= size[static_cast<size_t>(i)];
    return n;
  }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// A box of elements inside a buffer: its first element and its size, both of the buffer's rank. `whole` means all of
// the buffer, whatever its extent.
struct Box {
  bool whole = true;
  Extent offset, size;
  friend bool operator==(const Box&, const Box&) = default;
};

// A Box that takes little room where it is all of a buffer, as most are. Copies share it. (Here and in other public
// headers no make_shared: g++ makes a unique symbol of the C++ library's of it, which keeps a plugin loaded for good.)
class SharedBox {
 public:
  SharedBox() = default;
  // Copies `box`, unless it is all of a buffer.
  SharedBox(const Box& box)  // NOLINT: implicit
      : part_(box.whole ? nullptr : new Box(box)) {}
  // Whether it is all of the buffer.
  bool whole() const { return part_ == nullptr; }
  // The box; the reference is valid as long as this object.
  const Box& get() const { return part_ != nullptr ? *part_ : kAll; }
  operator const Box&() const { return get(); }  // NOLINT: implicit
  const Box* operator->() const { return &get(); }

 private:
  PENSTOCK_HIDDEN static inline const Box kAll{};
  std::shared_ptr<const Box> part_;
};

// Slice({y0, x0}, {h, w}): the h rows of w elements from row y0 and column x0 on. Constants must lie inside the buffer;
// integer parameters are checked at launch.
inline Box Slice(const Extent& offset, const Extent& size) { return {false, offset, size}; }

// The position handed to a functor over a 2-D or 3-D extent. Over a 1-D extent it is a plain int64_t.
struct Index2 {
  int64_t y, x;
};
struct Index3 {
  int64_t z, y, x;
};

}  // namespace penstock
