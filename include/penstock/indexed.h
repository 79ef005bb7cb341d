// Indexed: an element and where it is, the result of an ArgMin or an ArgMax (arg_max.h).
//
// It has no padding, so the same element and index have the same bytes everywhere.
//
// Threads: a plain value.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "penstock/detail/host_device.h"
#include "penstock/detail/packed_number.h"
#include "penstock/export.h"

namespace penstock {

// An element, and its index.
template <class T>
class Indexed {
 public:
  Indexed() = default;  // neither is set, as of an int
  // The element at an index.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE Indexed(const T& element, int64_t index)
      : value(element), index_(Number::Of(static_cast<uint64_t>(index))) {}

  // The index, or -1 if there is no element.
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE int64_t index() const { return static_cast<int64_t>(index_.Get()); }
  // The index alone.
  template <std::signed_integral I>
  PENSTOCK_HIDDEN PENSTOCK_HOST_DEVICE explicit operator I() const {
    return static_cast<I>(index());
  }

  T value;  // the element

 private:
  static_assert(std::is_trivially_copyable_v<T>, "penstock: an element is trivially copyable");
  using Number = detail::PackedNumber<8, alignof(T)>;
  Number index_;
};

}  // namespace penstock
