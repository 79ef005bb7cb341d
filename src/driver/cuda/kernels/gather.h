// What the gather kernel takes; shared by the kernel and the code that launches it.
#pragma once

#include <cstdint>

#include "src/driver/copy_piece.h"

namespace penstock::driver {

// Copies `count` pieces, in memory of the device or mapped pinned memory on either side. The threads of the grid form
// teams; each team copies one of the `parts` parts of a piece, and goes on with the one a grid of teams further on.
struct Gather {
  const CopyPiece* pieces;
  uint64_t count;
  uint32_t parts;  // at least 1
  uint32_t team;   // threads of a team: a power of two from 32 to kGatherThreads
};

inline constexpr unsigned kGatherThreads = 256;  // of a block
// Words a thread reads before it writes the first: what keeps the bus busy.
inline constexpr unsigned kGatherWords = 4;

}  // namespace penstock::driver
