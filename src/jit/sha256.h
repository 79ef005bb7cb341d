// Sha256: the hash SHA-256 (FIPS 180-4), since neither Abseil nor the C++ library has a hash that tells texts apart for
// sure.
//
// Threads: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::jit {

using Digest = std::array<uint8_t, 32>;

// 64 hexadecimal digits.
std::string HexOf(const Digest& digest);

class Sha256 {
 public:
  // Adds bytes; how they are cut into calls makes no difference.
  Sha256& Add(std::string_view bytes);
  // Adds a text with its size before it, so that the texts of two calls are told from one that is both in a row.
  Sha256& AddText(std::string_view text);
  // Of all that was added. Nothing is added afterwards.
  Digest Finish();

 private:
  void Compress(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};  // bytes that do not yet fill a block
  uint64_t bytes_ = 0;  // added so far
};

// Of one text.
Digest Sha256Of(std::string_view bytes);

}  // namespace penstock::jit
