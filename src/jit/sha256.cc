#include "src/jit/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace penstock::jit {
namespace {

constexpr size_t kBlock = 64;

constexpr std::array<uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t BigEndian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

std::string_view BytesOf(const std::array<uint8_t, 8>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::array<uint8_t, 8> BigEndianOf(uint64_t value) {
  std::array<uint8_t, 8> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
  return bytes;
}

}  // namespace

std::string HexOf(const Digest& digest) {
  static constexpr char kHexDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

void Sha256::Compress(const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = BigEndian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t before = w[i - 15], last = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(before, 7) ^ std::rotr(before, 18) ^ before >> 3) + w[i - 7] +
           (std::rotr(last, 17) ^ std::rotr(last, 19) ^ last >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<uint32_t, 8> after{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += after[i];
}

Sha256& Sha256::Add(std::string_view bytes) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size(), have = bytes_ % kBlock;
  bytes_ += left;
  if (have > 0) {
    const size_t taken = std::min(left, kBlock - have);
    std::copy_n(at, taken, rest_.data() + have);
    at += taken;
    left -= taken;
    have += taken;
    if (have < kBlock) return *this;
    Compress(rest_.data());
  }
  for (; left >= kBlock; at += kBlock, left -= kBlock) Compress(at);
  std::copy_n(at, left, rest_.data());
  return *this;
}

Sha256& Sha256::AddText(std::string_view text) { return Add(BytesOf(BigEndianOf(text.size()))).Add(text); }

Digest Sha256::Finish() {
  const uint64_t bits = 8 * bytes_;
  static constexpr char kEnd[kBlock] = {'\x80'};  // a one, and zeros up to the size at the end of a block
  const size_t have = bytes_ % kBlock;
  Add({kEnd, (have < 56 ? 56 : 56 + kBlock) - have});
  Add(BytesOf(BigEndianOf(bits)));
  Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest Sha256Of(std::string_view bytes) { return Sha256().Add(bytes).Finish(); }

}  // namespace penstock::jit
