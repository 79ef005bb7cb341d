// Arithmetic of fills: the size of a box of patterns, and the same fill in fewer dimensions.
//
// Threads:   pure functions.
// Errors:    InvalidArgument if a pattern has an invalid size, rows overlap each other, or a size, an offset or an
//            address overflows.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// The size of a fill; all but `width` are 0 if it is empty.
struct FillSize {
  size_t width = 0;  // bytes per row
  size_t bytes = 0;  // bytes written
  size_t span = 0;  // bytes from the first to the last of them, gaps included
};
// Checks what every driver requires of a fill before it submits anything.
absl::StatusOr<FillSize> SizeOf(const FillOp& op);

// The same fill in as few dimensions as its pitch and slice allow, as for copies (copy_box.h). SizeOf must
// have accepted it.
FillOp Collapse(FillOp op);

}  // namespace penstock::driver
