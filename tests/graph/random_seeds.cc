#include "tests/graph/random_seeds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/environment.h"

// The sanitizers make everything many times slower and see nothing new in the ten thousandth graph.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PENSTOCK_SANITIZED 1
#endif
#endif

namespace penstock::graph {
namespace {

#ifdef PENSTOCK_SANITIZED
constexpr uint64_t kDags = 1000;
#else
constexpr uint64_t kDags = 10'000;
#endif

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
         " PENSTOCK_RANDOM_DAGS=1 penstock_tests --gtest_filter='" + suite + "." + name + "/*'\n";
}

}  // namespace penstock::graph
