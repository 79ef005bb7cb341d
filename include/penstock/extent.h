// Shapes: how many elements a buffer or a node has in each of up to three dimensions, and boxes inside them.
//
// Extents use the C order of arrays: slowest dimension first, as in {height, width} and {depth, height, width}; the
// last one is contiguous. A dimension is a constant, or an integer parameter whose declared maximum sizes the memory.
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

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

// One dimension: `value` elements, or the value of parameter `param` (then `value` is 0). A Dim made from a
// default-constructed handle is a mistake that Compile reports.
struct Dim {
  // Special values of `param`: for a constant, and for a default-constructed handle.
  PENSTOCK_HIDDEN static constexpr int32_t kConstant = -1, kUnset = -2;

  int64_t value = 0;  // the number of elements, if constant
  int32_t param = kConstant;  // index of the parameter in its graph
  uint32_t graph = 0;  // serial of that graph

  Dim() = default;
  // A constant dimension.
  template <std::integral I>
  Dim(I n) : value(static_cast<int64_t>(n)) {  // NOLINT: implicit
    if constexpr (std::is_unsigned_v<I>) {
      if (value < 0) value = INT64_MAX;  // still not an element count, but Compile refuses it as too large
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

// One to three dimensions. Compile reports negative sizes, parameters without a maximum, and products over 2^62 bytes
// (where 0 counts as 1) as mistakes.
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

// An extent of two or three dimensions whose rows begin `pitch` elements apart, as in padded images and tiles of
// larger ones. Slices are contiguous: each begins `height` rows after the one before. The padding between rows is
// never read or written.
struct PitchedExtent {
  Extent extent;  // the shape, without the padding between rows
  int64_t pitch = 0;  // in elements, at least the longest row; 0: the length of a row
  PitchedExtent() = default;  // use Pitched, so that {h, w} is always an Extent
};
inline PitchedExtent Pitched(const Extent& extent, int64_t pitch) {
  PitchedExtent pitched;
  pitched.extent = extent;
  pitched.pitch = pitch;
  return pitched;
}

// An extent with every parameter replaced by its value; leading entries that a lower rank does not use are
// absent, not 1.
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
  int64_t rows() const {  // product of the other dimensions
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

// A Box that is compact when it covers a whole buffer, as most do. Copies share it. (Public headers avoid make_shared:
// g++ turns a standard library symbol in it into a unique one, which keeps a plugin loaded for good.)
class SharedBox {
 public:
  SharedBox() = default;
  // Copies `box`, unless it covers a whole buffer.
  SharedBox(const Box& box)  // NOLINT: implicit
      : part_(box.whole ? nullptr : new Box(box)) {}
  // Whether it covers the whole buffer.
  bool whole() const { return part_ == nullptr; }
  // The box; the reference is valid as long as this object.
  const Box& get() const { return part_ != nullptr ? *part_ : kAll; }
  operator const Box&() const { return get(); }  // NOLINT: implicit
  const Box* operator->() const { return &get(); }

 private:
  PENSTOCK_HIDDEN static inline const Box kAll{};
  std::shared_ptr<const Box> part_;
};

// Slice({y0, x0}, {h, w}): h rows of w elements, starting at row y0 and column x0. Constants must lie inside the
// buffer; integer parameters are checked at launch.
inline Box Slice(const Extent& offset, const Extent& size) { return {false, offset, size}; }

// The position handed to a functor over a 2-D or 3-D extent. Over a 1-D extent it is a plain int64_t.
struct Index2 {
  int64_t y, x;
};
struct Index3 {
  int64_t z, y, x;
};

}  // namespace penstock
