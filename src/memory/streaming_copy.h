// Host copies that do not read what they overwrite, for memory that is not read again soon, such as a large result in
// the user's memory. An ordinary copy would fetch every cache line only to overwrite it.
//
// Threads: pure functions.
#pragma once

#include "src/driver/driver.h"

namespace penstock::memory {

// Copies a box within host memory row by row, bypassing the caches. The result is visible to other threads as
// after any copy.
void StreamingCopy(const driver::CopyOp& op);

}  // namespace penstock::memory
