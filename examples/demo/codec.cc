#include "codec.h"

#include <algorithm>
#include <cstring>

namespace {

// The prediction of JPEG-LS: the left or the upper neighbour at an edge, else where the plane through all three goes.
int Predict(int left, int above, int above_left) {
  const int low = std::min(left, above), high = std::max(left, above);
  return std::clamp(left + above - above_left, low, high);
}

// For each pixel in turn, with what its neighbours predict; of those outside the frame the nearest stands in, or 0.
template <class Pixel, class F>
void ForEach(std::span<Pixel> pixels, int64_t width, F f) {
  for (Pixel *here = pixels.data(), *const end = here + pixels.size(); here < end; here += width) {
    const bool top = here == pixels.data();
    const Pixel* const above = top ? here : here - width;
    int left = top ? 0 : above[0], above_left = left;
    for (int64_t x = 0; x < width; ++x) {
      const int up = top ? left : above[x];
      left = f(here[x], Predict(left, up, above_left));
      above_left = up;
    }
  }
}

}  // namespace

Camera::Camera(int64_t height, int64_t width) : frames_(kKinds) {
  std::vector<uint16_t> pixels(static_cast<size_t>(height * width));
  const auto row = static_cast<size_t>(width);
  uint32_t random = 1;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    for (size_t i = 0; i < pixels.size(); ++i) {  // slanted stripes that move, and noise
      random = random * 1664525 + 1013904223;
      const size_t stripe = (i % row + i / row + 40 * kind) / 160;
      pixels[i] = static_cast<uint16_t>(stripe % 12 * 300 + (random >> 24));
    }
    const std::span<const uint8_t> code = Encode(pixels, width);
    frames_[kind].assign(code.begin(), code.end());
  }
}

void Decode(const std::vector<uint8_t>& code, std::span<uint16_t> pixels, int64_t width) {
  const uint8_t* from = code.data();
  ForEach(pixels, width, [&](uint16_t& pixel, int predicted) {
    uint32_t folded = *from++;
    if (folded >= 128) folded += (uint32_t{*from++} - 1) << 7;
    const int value = predicted + (static_cast<int>(folded >> 1) ^ -static_cast<int>(folded & 1));
    pixel = static_cast<uint16_t>(value);
    return value;
  });
}

std::span<const uint8_t> Encode(std::span<const uint16_t> pixels, int64_t width) {
  thread_local std::vector<uint8_t> buffer;
  buffer.resize(2 * pixels.size());
  uint8_t* to = buffer.data();
  ForEach(pixels, width, [&](uint16_t pixel, int predicted) {
    const int apart = pixel - predicted;
    const auto folded = static_cast<uint32_t>(apart << 1 ^ apart >> 31);  // 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
    *to++ = static_cast<uint8_t>(folded < 128 ? folded : folded | 128);
    if (folded >= 128) *to++ = static_cast<uint8_t>(folded >> 7);
    return int{pixel};
  });
  return {buffer.data(), to};
}

uint64_t Hash(std::span<const uint8_t> code) {
  uint64_t hash = code.size();
  for (size_t at = 0; at + 8 <= code.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &code[at], 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}
