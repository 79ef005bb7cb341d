// The data of the copy benchmarks: words that look random, drawn anew for every run, on the host and on devices.
//
// A word is a function of its place and of the run's salt, one to one in each. So every word can be checked alone, on
// whichever side it is, and one that is in the wrong place, or that an earlier run left behind, is wrong.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "penstock/ps.h"

namespace bench {

// At most 2^32 places.
PENSTOCK_HOST_DEVICE inline uint32_t WordAt(int64_t place, uint32_t salt) {
  uint32_t x = static_cast<uint32_t>(place) * 0x9E3779B1u ^ salt;
  x = (x ^ (x >> 15)) * 0x85EBCA77u;
  return x ^ (x >> 13);
}

// CsrRows of words that lie without gaps on a device. Word x of row y has place first + y * pitch + x: where it lies on
// the host. One row is an ordinary array.
struct Region {
  int64_t rows, width, first, pitch;
  PENSTOCK_HOST_DEVICE int64_t PlaceOf(int64_t y, int64_t x) const { return first + y * pitch + x; }
  int64_t words() const { return rows * width; }
};
inline Region Line(int64_t words) { return {1, words, 0, words}; }

// A row for each blockIdx.y; the threads of a row's blocks take turns.
static __global__ void MakeKernel(uint32_t* out, Region region, uint32_t salt) {
  const int64_t y = blockIdx.y, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; x < region.width; x += step) {
    out[y * region.width + x] = WordAt(region.PlaceOf(y, x), salt);
  }
}
// Adds the number of wrong words.
static __global__ void CountKernel(const uint32_t* in, Region region, uint32_t salt, uint32_t* wrong) {
  const int64_t y = blockIdx.y, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  uint32_t found = 0;
#pragma unroll 4
  for (int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; x < region.width; x += step) {
    found += in[y * region.width + x] != WordAt(region.PlaceOf(y, x), salt);
  }
  if (found != 0) atomicAdd(wrong, found);
}
inline void MakeOnHost(uint32_t* out, Region region, uint32_t salt) {
  for (int64_t i = 0; i < region.words(); ++i) {
    out[i] = WordAt(region.PlaceOf(i / region.width, i % region.width), salt);
  }
}
inline void CountOnHost(const uint32_t* in, Region region, uint32_t salt, uint32_t* wrong) {
  for (int64_t i = 0; i < region.words(); ++i) {
    *wrong += in[i] != WordAt(region.PlaceOf(i / region.width, i % region.width), salt);
  }
}
constexpr unsigned kBlock = 256;
inline unsigned BlocksARow(const Region& region) {
  return static_cast<unsigned>(std::clamp<int64_t>((region.width + 4 * kBlock - 1) / (4 * kBlock), 1, 8192));
}

// f(first, end) of parts of [0, n): by every core where that is much.
template <class F>
void InParts(int64_t n, F f) {
  constexpr int64_t kPart = int64_t{1} << 20;
  const int64_t threads = std::min<int64_t>(n / kPart, std::thread::hardware_concurrency());
  if (threads < 2) return f(int64_t{0}, n);
  std::vector<std::thread> running;
  for (int64_t t = 0; t < threads; ++t) running.emplace_back(f, n * t / threads, n * (t + 1) / threads);
  for (std::thread& thread : running) thread.join();
}

constexpr uint32_t kPoison = 0xDEADBEEF;

// Word i becomes value(i), past the caches: what is copied next lies in memory, not in the caches of whoever drew it,
// which would take another time in every run.
template <class F>
void SetWords(std::span<uint32_t> words, F value) {
  InParts(static_cast<int64_t>(words.size()), [=](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      _mm_stream_si32(reinterpret_cast<int*>(&words[static_cast<size_t>(i)]), static_cast<int>(value(i)));
    }
    _mm_sfence();
  });
}
inline void Poison(std::span<uint32_t> words) {
  SetWords(words, [](int64_t) { return kPoison; });
}
// Word i becomes that of place i.
inline void FillWords(std::span<uint32_t> words, uint32_t salt) {
  SetWords(words, [salt](int64_t i) { return WordAt(i, salt); });
}
// Of the `count` words from place `first` on: those that are wrong.
inline int64_t CountWrong(const uint32_t* words, int64_t first, int64_t count, uint32_t salt) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) wrong += words[i] != WordAt(first + i, salt);
  return wrong;
}
inline int64_t CountWrong(std::span<const uint32_t> words, uint32_t salt) {
  std::atomic<int64_t> wrong{0};
  InParts(static_cast<int64_t>(words.size()),
          [&](int64_t first, int64_t end) { wrong += CountWrong(words.data() + first, first, end - first, salt); });
  return wrong;
}
// Of an image that was poisoned before the region was copied into it: wrong words inside, changed ones outside.
inline int64_t CountWrongIn(std::span<const uint32_t> image, const Region& region, uint32_t salt) {
  std::atomic<int64_t> wrong{0};
  InParts(static_cast<int64_t>(image.size()), [&](int64_t first, int64_t end) {
    int64_t found = 0;
    for (int64_t i = first; i < end;) {
      const int64_t y = i / region.pitch, row_end = std::min(end, (y + 1) * region.pitch);
      const int64_t in_row = y - region.first / region.pitch;  // of the region
      const bool has_words = in_row >= 0 && in_row < region.rows;
      const int64_t from = region.PlaceOf(in_row, 0), to = has_words ? from + region.width : from;
      for (; i < row_end; ++i) {
        found += image[static_cast<size_t>(i)] != (i >= from && i < to ? WordAt(i, salt) : kPoison);
      }
    }
    wrong += found;
  });
  return wrong;
}

}  // namespace bench
