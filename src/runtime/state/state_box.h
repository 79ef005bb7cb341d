// StateBox: which bytes of a State a call copies.
//
// Threads: plain values and a pure function.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "penstock/detail/model.h"

namespace penstock::runtime {

// A box of a State's elements, in bytes.
struct StateBox {
  size_t at = 0;  // of its first byte, from the State's
  size_t width = 0, height = 1, depth = 1;  // bytes of a row, rows of a slice, slices
  size_t pitch = 0, slice = 0;  // from row to row and from slice to slice

  size_t bytes() const { return width * height * depth; }
};

// The box of the State, whose extent is valid. InvalidArgument if it has another rank, depends on a parameter or lies
// not inside; the text goes on after the name of the call.
absl::StatusOr<StateBox> FindStateBox(const StateRecord& record, const Box& box);

}  // namespace penstock::runtime
