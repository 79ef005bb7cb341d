// How much larger arenas are than they must be: of random graphs on one lane, against the most bytes live at once.
//
// The graphs are chains with side branches, as networks and filters are: 16 to 256 nodes, each writes a buffer of its
// own and reads one to three earlier ones, mostly of the last eight, at times any (what is kept for long). Sizes are
// from 256 bytes to 4 MiB, of half of the graphs spread evenly, of the others evenly over the powers of two; they are
// no multiples of what offsets are, so that rounding counts too. In a quarter of the graphs nodes write in place where
// sizes allow. Live bytes are counted as they are used, by brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/peak.h"

namespace penstock::graph::arena_size_test {
namespace {

constexpr int kGraphs = 1000;
constexpr double kLeast = 256, kMost = 4 << 20;  // bytes

class RandomChains {
 public:
  explicit RandomChains(uint64_t seed) : random_(seed) {}

  ModelBuilder Make() {
    const int nodes = 16 + Below(241);
    spread_ = Below(2) == 0;
    const bool in_place = Below(4) == 0;
    ModelBuilder g;
    std::vector<int32_t> buffers;
    for (int n = 0; n < nodes; ++n) {
      std::vector<int32_t> reads;
      for (int r = 1 + Below(3); r > 0 && n > 0; --r) {
        const int back = Below(4) > 0 ? Below(std::min(n, 8)) : Below(n);
        const int32_t from = buffers[n - 1 - back];
        if (std::find(reads.begin(), reads.end(), from) == reads.end()) reads.push_back(from);
      }
      const bool same = in_place && !reads.empty() && Below(2) == 0;
      const int64_t elements = same ? g.model.buffers[reads[0]].extent.dims[0].value : Elements();
      buffers.push_back(g.Scratch("t" + std::to_string(n), elements));
      const int32_t node = g.For("n" + std::to_string(n), Out{buffers.back()});
      for (const int32_t from : reads) {
        g.node(node).accesses.push_back({from, ModelBuilder::kSerial, AccessMode::kRead});
      }
      if (same) g.InPlace(node, reads[0], buffers.back());
    }
    return g;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t Elements() {
    const double part = static_cast<double>(random_() % 100001) / 100000;
    const double bytes = spread_ ? kLeast + part * (kMost - kLeast) : kLeast * std::pow(kMost / kLeast, part);
    return static_cast<int64_t>(bytes) / 4;
  }

  std::mt19937_64 random_;
  bool spread_ = false;
};

TEST(Arenas, OfOneLaneAreLittleLargerThanWhatIsLiveAtOnce) {
  double sum = 0, worst = 0;
  int worst_seed = 0;
  for (int seed = 1; seed <= kGraphs; ++seed) {
    const ModelBuilder g = RandomChains(static_cast<uint64_t>(seed)).Make();
    PlanOptions options = Devices(1);
    options.max_lanes = 1;
    const Plan plan = PlanOf(g, options);
    ASSERT_EQ(plan.arenas.size(), 1u) << "seed " << seed;
    const double ratio = static_cast<double>(plan.arenas[0].bytes) / static_cast<double>(PeakOf(plan, 0));
    sum += ratio;
    if (ratio > worst) worst_seed = seed;
    worst = std::max(worst, ratio);
  }
  std::cout << kGraphs << " arenas are " << sum / kGraphs << " times the bytes live at once on average, " << worst
            << " times at worst (seed " << worst_seed << ")\n";
  EXPECT_LE(sum / kGraphs, 1.05);
  EXPECT_LE(worst, 1.25);
}

// Few, since the oracle looks at every pair of nodes.
TEST(Arenas, OfOneLaneShareNoBytesThatMayBeLiveAtOnce) {
  for (int seed = 1; seed <= 20; ++seed) {
    const ModelBuilder g = RandomChains(static_cast<uint64_t>(seed)).Make();
    PlanOptions options = Devices(1);
    options.max_lanes = 1 + seed % 4;
    const Plan plan = PlanOf(g, options);
    ASSERT_EQ(CheckMemory(g.model, plan, Execution(plan)), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::graph::arena_size_test
