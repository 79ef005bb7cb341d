// Hash: a hash that is the same in every process and build.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock::graph {

// Multiply and fold (Yi, wyhash): 128 bits in, 64 bits out.
inline uint64_t Fold(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 Wide;
  const auto product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd1b54a32d192ed03u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Hashes two words per step, since the multiplications depend on each other.
class Hash {
 public:
  explicit Hash(uint64_t kind) : value_(kind) {}
  template <class A, class B = int>
  Hash& operator()(A a, B b = 0) {
    value_ = Fold(value_ ^ static_cast<uint64_t>(a), static_cast<uint64_t>(b));
    return *this;
  }
  Hash& Text(std::string_view text) {
    (*this)(text.size(), Word(text));
    for (size_t at = 8; at < text.size(); at += 16) {
      (*this)(Word(text.substr(at)), at + 8 < text.size() ? Word(text.substr(at + 8)) : 0);
    }
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  // The first 8 bytes of a text, or all of it.
  static uint64_t Word(std::string_view text) {
    uint64_t word = 0;
    if (text.size() >= 8) {
      std::memcpy(&word, text.data(), 8);
    } else {
      for (const char c : text) word = word << 8 | static_cast<unsigned char>(c);
    }
    return word;
  }
  uint64_t value_;
};

}  // namespace penstock::graph
