// Boxes of bytes, as CopyOp describes them: the same box in fewer dimensions, and copying one between host memory.
//
// Threads: pure functions.
#pragma once

#include "src/driver/driver.h"

namespace penstock::driver {

// The same copy with as few dimensions as its pitches allow: dense rows become one row, a stack of single rows becomes
// a plane. Where sizes overflow nothing is joined.
CopyOp Collapse(CopyOp op);

// Copies between host memory, row by row.
void CopyOnHost(const CopyOp& op);

}  // namespace penstock::driver
