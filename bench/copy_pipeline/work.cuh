// The work of the copy benchmark: items of host memory that go up, through a kernel, and down again.
//
// The kernel applies x -> x * mul + add to every word as often as it is told, so its length can be set. A repeated
// affine map is again one, so the CPU checks every word with one multiplication. Constants are drawn anew for every
// run: no word that an earlier run left behind is right.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/copies/words.cuh"
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

// The items, in memory that both halves use: pinned, of the runtime's pool, or ordinary.
struct Items {
  int count;
  int64_t words;             // each
  uint32_t rounds = 1;
  Affine map{1, 0};          // of the present run
  std::vector<std::span<uint32_t>> in{}, out{};
  std::vector<std::shared_ptr<void>> blocks{};  // that these lie in
  std::mt19937 random{20262};

  // Without a runtime: ordinary memory.
  Items(ps::Runtime* runtime, int count_in, int64_t words_in) : count(count_in), words(words_in) {
    for (int i = 0; i < count; ++i) {
      in.push_back(MakeItem(runtime));
      out.push_back(MakeItem(runtime));
      for (uint32_t& word : in.back()) word = static_cast<uint32_t>(random());
    }
  }

  std::span<uint32_t> MakeItem(ps::Runtime* runtime) {
    if (runtime != nullptr) {
      auto memory = std::make_shared<ps::HostBuffer<uint32_t>>(Must(runtime->MakeHostBuffer<uint32_t>(words)));
      blocks.push_back(memory);
      return memory->span();
    }
    auto memory = std::make_shared<std::vector<uint32_t>>(static_cast<size_t>(words));
    blocks.push_back(memory);
    return *memory;
  }

  // New constants, poisoned outputs.
  void Draw() {
    const auto mul = static_cast<uint32_t>(random()) | 1;
    map = {mul, static_cast<uint32_t>(random())};
    for (const auto& item : out) Poison(item);
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
