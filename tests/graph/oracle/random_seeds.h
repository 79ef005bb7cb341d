// Which random graphs a test looks at. By default seeds 1 to 10 000 (fewer under a sanitizer), a share of them in each
// of kShards tests, so that ctest -j spreads them. PENSTOCK_RANDOM_DAGS sets how many, PENSTOCK_RANDOM_SEED the first.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::graph {

inline constexpr int kShards = 4;

struct Seeds {
  uint64_t begin = 0, end = 0;
  int64_t count() const { return static_cast<int64_t>(end - begin); }
  // Whether there are enough of them to say something about shares.
  bool many() const { return count() >= 100; }
};

// The seeds of one shard; `one_in`: of every so many graphs one, the first.
Seeds SeedsOf(int shard, int one_in = 1);

// "seed 17; to see it alone: PENSTOCK_RANDOM_SEED=17 PENSTOCK_RANDOM_DAGS=1 graph_tests --gtest_filter='...'"
std::string Rerun(uint64_t seed);

}  // namespace penstock::graph
