// What the pattern fill kernel takes; shared by the kernel and the code that launches it.
#pragma once

#include <cstdint>

namespace penstock::driver {

// Writes `bytes` bytes at `dst`, repeating the first `period` bytes of `pattern`. Any alignment.
struct PatternFill {
  unsigned char* dst;
  uint64_t bytes;
  uint32_t period;  // 1 to 16
  unsigned char pattern[16];
};

// The kernel's blocks have this many threads, one for each byte of its table.
inline constexpr unsigned kPatternFillThreads = 256;

}  // namespace penstock::driver
