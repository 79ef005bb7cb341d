// Bytes read as choices: what a fuzzer's input means to a decoder. Past the end every choice is 0, the tamest.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::fuzz {

class ByteSource {
 public:
  explicit ByteSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return at_ >= bytes_.size(); }
  uint8_t Byte() { return empty() ? 0 : bytes_[at_++]; }
  int Below(int n) { return Byte() % n; }  // n is 1 to 256
  bool Chance(int of_256) { return Byte() >= 256 - of_256; }
  int64_t Long() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | Byte();
    return static_cast<int64_t>(value);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace penstock::fuzz
