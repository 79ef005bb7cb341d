// Random bytes, four at a time: one at a time takes seconds for megabytes where nothing is optimized.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>

namespace penstock {

inline void FillWithNoise(std::span<std::byte> bytes, std::mt19937& random) {
  for (size_t at = 0; at < bytes.size(); at += 4) {
    const auto word = static_cast<uint32_t>(random());
    std::memcpy(bytes.data() + at, &word, std::min<size_t>(4, bytes.size() - at));
  }
}

}  // namespace penstock
