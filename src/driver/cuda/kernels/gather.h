// The arguments of the gather kernel, shared by the kernel and the code that launches it.
#pragma once

#include <cstdint>

#include "src/driver/copy_piece.h"

namespace penstock::driver {

// Copies `count` pieces, which lie in device memory or mapped pinned memory on either side. The grid's threads form
// teams; a team copies one of the `parts` parts of a piece, then the one that is a grid of teams further on.
struct Gather {
  const CopyPiece* pieces;
  uint64_t count;
  uint32_t parts;  // at least 1
  uint32_t team;   // threads of a team: a power of two from 32 to kGatherThreads
};

inline constexpr unsigned kGatherThreads = 256;  // per block
// Words that a thread reads before it writes the first, which keeps the bus busy.
inline constexpr unsigned kGatherWords = 4;

}  // namespace penstock::driver
