// What becomes of an index that is checked (PENSTOCK_CHECKED_VIEWS in view.h) and lies outside.
//
// Threads: thread-safe.
// Errors:  the functions throw, through the user's callable, what the library takes for the failure of the call.
#pragma once

#include <cstdint>

#include "penstock/export.h"

namespace penstock::detail {

// An index of a View, the slowest dimension first.
struct ViewIndex {
  int rank;
  int64_t at[3];
};
// What a message says of a View: its buffer (null: it was not made for an access) and its shape.
struct ViewShape {
  const char* buffer;
  int64_t depth, height, width;
};

inline bool IsInside(int64_t index, int64_t size) { return index >= 0 && index < size; }
// For an index outside a View, and for an index outside a list of `size` Views.
[[noreturn]] PENSTOCK_EXPORT void RefuseIndex(const ViewIndex& index, const ViewShape& view);
[[noreturn]] PENSTOCK_EXPORT void RefuseView(int64_t index, int64_t size);

}  // namespace penstock::detail
