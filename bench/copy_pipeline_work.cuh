// The work of the copy benchmark: items of host memory that go up, through a kernel, and down again.
//
// The kernel applies x -> x * mul + add to every word as often as it is told, so its length can be set. A repeated
// affine map is again one, so the CPU checks every word with one multiplication. Constants are drawn anew for every
// run: no word that an earlier run left behind is right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "penstock/ps.h"

namespace bench {

struct Affine {
  uint32_t mul, add;
};

// `map` applied `rounds` times, by squaring.
inline Affine Repeated(Affine map, uint32_t rounds) {
  Affine result{1, 0};
  for (; rounds != 0; rounds >>= 1) {
    if ((rounds & 1) != 0) result = {result.mul * map.mul, result.add * map.mul + map.add};
    map = {map.mul * map.mul, map.add * map.mul + map.add};
  }
  return result;
}

static __global__ void MixKernel(const uint32_t* in, uint32_t* out, int64_t words, uint32_t rounds, Affine map) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= words) return;
  uint32_t x = in[i];
  for (uint32_t r = 0; r < rounds; ++r) x = x * map.mul + map.add;
  out[i] = x;
}

// The items, in pinned memory of the runtime's pool, which both halves use.
struct Items {
  int count;
  int64_t words;             // each
  uint32_t rounds = 1;
  Affine map{1, 0};          // of the present run
  std::vector<ps::HostBuffer<uint32_t>> in{}, out{};
  std::mt19937 random{20262};

  Items(ps::Runtime& runtime, int count_in, int64_t words_in) : count(count_in), words(words_in) {
    for (int i = 0; i < count; ++i) {
      in.push_back(Must(runtime.MakeHostBuffer<uint32_t>(words)));
      out.push_back(Must(runtime.MakeHostBuffer<uint32_t>(words)));
      for (uint32_t& word : in.back()) word = static_cast<uint32_t>(random());
    }
  }

  // New constants, poisoned outputs.
  void Draw() {
    const auto mul = static_cast<uint32_t>(random()) | 1;
    map = {mul, static_cast<uint32_t>(random())};
    for (const auto& item : out) std::fill(item.begin(), item.end(), 0xDEADBEEF);
  }

  void CheckResult(const std::string& way) const {
    const Affine all = Repeated(map, rounds);
    for (int i = 0; i < count; ++i) {
      const uint32_t *from = in[static_cast<size_t>(i)].data(), *to = out[static_cast<size_t>(i)].data();
      uint32_t wrong = 0;
      for (int64_t w = 0; w < words; ++w) wrong |= to[w] ^ (from[w] * all.mul + all.add);
      if (wrong != 0) Fail("copy pipeline, " + way + ": item " + std::to_string(i) + " is wrong");
    }
  }
};

}  // namespace bench
