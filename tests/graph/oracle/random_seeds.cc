#include "tests/graph/oracle/random_seeds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/environment.h"

namespace penstock::graph {
namespace {

// The sanitizers make everything many times slower and see nothing new in the ten thousandth graph.
constexpr uint64_t kDags = 10'000;

}  // namespace

Seeds SeedsOf(int shard, int one_in) {
  const uint64_t first = FromEnvironment("PENSTOCK_RANDOM_SEED", 1),
                 dags = FromEnvironment("PENSTOCK_RANDOM_DAGS", kDags);
  const uint64_t count = std::max<uint64_t>(1, dags / static_cast<uint64_t>(one_in));
  const auto at = [&](int s) { return first + count * static_cast<uint64_t>(s) / kShards; };
  return {at(shard), at(shard + 1)};
}

std::string Rerun(uint64_t seed) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string suite = test->test_suite_name();
  std::string name = test->name();
  name = name.substr(0, name.find('/'));  // without the shard, which is another one when the seed is alone
  return "seed " + std::to_string(seed) + "; to see it alone: PENSTOCK_RANDOM_SEED=" + std::to_string(seed) +
         " PENSTOCK_RANDOM_DAGS=1 graph_tests --gtest_filter='" + suite + "." + name + "/*'\n";
}

}  // namespace penstock::graph
