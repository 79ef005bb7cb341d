// Arithmetic of fills: what a box of patterns takes, and the same fill in fewer dimensions.
//
// Threads: pure functions.
// Errors:  InvalidArgument where a pattern has no size it can have, rows overlap each other, or a size, an offset or an
//          address overflows.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// A fill in numbers; all but `width` 0 where it is empty.
struct FillSize {
  size_t width = 0;  // bytes of a row
  size_t bytes = 0;  // that are written
  size_t span = 0;  // from the first to the last of them, with what lies between
};
// What every driver asks of a fill before it submits anything.
absl::StatusOr<FillSize> SizeOf(const FillOp& op);

// The same fill with as few dimensions as its pitch and slice allow, as for copies (copy_box.h). SizeOf has accepted
// it.
FillOp Collapse(FillOp op);

}  // namespace penstock::driver
