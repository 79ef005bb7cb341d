// Copies on the host that do not read what they overwrite: for memory that nobody looks at soon, such as a large result
// in the user's memory. There the CPU would fetch every line only to overwrite it.
//
// Threads: pure functions.
#pragma once

#include "src/driver/driver.h"

namespace penstock::memory {

// Copies a box between host memory row by row, past the caches. What was written is visible to other threads as after
// any copy.
void StreamingCopy(const driver::CopyOp& op);

}  // namespace penstock::memory
