// NodeNumbers: indices of nodes in their driver graph, mostly of one.
//
// Threads: plain data.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace penstock::runtime {

using NodeNumbers = absl::InlinedVector<int32_t, 4>;

}  // namespace penstock::runtime
