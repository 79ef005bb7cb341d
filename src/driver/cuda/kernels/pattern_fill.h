// The arguments of the pattern fill kernel, shared by the kernel and the code that launches it.
#pragma once

#include <cstdint>

namespace penstock::driver {

// Writes `width` bytes in each row of a box at `dst`, repeating the first `period` bytes of `pattern`. Any alignment.
struct PatternFill {
  unsigned char* dst;
  uint64_t width;   // a multiple of `period`
  uint64_t rows;    // of all slices
  uint64_t height;  // rows of a slice
  uint64_t pitch, slice;  // bytes from row to row within a slice, and from slice to slice
  uint32_t team;    // threads of a block that share a row: a power of two
  uint32_t period;  // 1 to 16
  unsigned char pattern[16];
};

// The threads of a block, one for each byte of its table. Blocks along x share rows, blocks along y take
// different ones.
inline constexpr unsigned kPatternFillThreads = 256;

}  // namespace penstock::driver
