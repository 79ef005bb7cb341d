// Capped graphs against brute force: the most nodes that no path orders, by matching; reachability by search.
#include "graph/plan/cap_width.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace penstock::graph::cap_width_test {
namespace {

using Matrix = std::vector<std::vector<char>>;

CsrRows Independent(int32_t nodes) {
  CsrRows rows;
  for (int32_t v = 0; v < nodes; ++v) rows.Close();
  return rows;
}

// Entry (a, b): a path leads from a to b.
Matrix ReachOf(const CsrRows& preds) {
  const auto count = static_cast<size_t>(preds.rows());
  Matrix reach(count, std::vector<char>(count));
  for (size_t v = 0; v < count; ++v) {
    for (const int32_t p : preds[static_cast<int32_t>(v)]) {
      for (size_t a = 0; a < count; ++a) reach[a][v] |= reach[a][p];
      reach[p][v] = 1;
    }
  }
  return reach;
}

// The most nodes of `among` no two of which are ordered: as many as the fewest chains that hold them all (Dilworth),
// which a largest matching of nodes with later nodes of their chain gives.
int32_t WidthOf(const CsrRows& preds, const std::vector<bool>& among) {
  const Matrix reach = ReachOf(preds);
  std::vector<int32_t> matched(among.size(), -1);
  std::vector<char> seen;
  const std::function<bool(size_t)> match = [&](size_t from) {
    for (size_t to = 0; to < among.size(); ++to) {
      if (!among[to] || !reach[from][to] || seen[to]) continue;
      seen[to] = 1;
      if (matched[to] >= 0 && !match(static_cast<size_t>(matched[to]))) continue;
      matched[to] = static_cast<int32_t>(from);
      return true;
    }
    return false;
  };
  int32_t chains = 0;
  for (size_t v = 0; v < among.size(); ++v) {
    seen.assign(among.size(), 0);
    if (among[v] && !match(v)) ++chains;
  }
  return chains;
}

TEST(CapWidth, IndependentNodesBecomeChainsInTurn) {
  const CsrRows capped = CapWidth(Independent(7), std::vector<bool>(7, true), 3);
  for (int32_t v = 0; v < 7; ++v) {
    const std::vector<int32_t> preds(capped[v].begin(), capped[v].end());
    EXPECT_EQ(preds, v < 3 ? std::vector<int32_t>() : std::vector<int32_t>({v - 3})) << v;
  }
}

TEST(CapWidth, LeavesAGraphWithoutAWideLevelAsItIs) {
  CsrRows four_wide;
  for (int32_t v = 0; v < 400; ++v) {
    for (int32_t p = v - 4 - v % 4; v >= 4 && p < v - v % 4; ++p) four_wide.Add(p);  // the whole level before
    four_wide.Close();
  }
  EXPECT_EQ(CapWidth(four_wide, std::vector<bool>(400, true), 4), four_wide);
  EXPECT_NE(CapWidth(four_wide, std::vector<bool>(400, true), 3), four_wide);
}

TEST(CapWidth, LeavesOutWhatChainsImply) {
  CsrRows fork_and_join;
  fork_and_join.Close();
  for (int32_t v = 1; v < 10; ++v) fork_and_join.Add(0), fork_and_join.Close();
  for (int32_t v = 1; v < 10; ++v) fork_and_join.Add(v);
  fork_and_join.Close();
  std::vector<bool> counts(11, true);
  counts.front() = counts.back() = false;
  const CsrRows capped = CapWidth(fork_and_join, counts, 3);
  const std::vector<std::vector<int32_t>> expected = {{}, {0}, {0}, {0}, {1}, {2}, {3}, {4}, {5}, {6}, {7, 8, 9}};
  for (int32_t v = 0; v < 11; ++v) {
    EXPECT_EQ(std::vector<int32_t>(capped[v].begin(), capped[v].end()), expected[static_cast<size_t>(v)]) << v;
  }
}

TEST(CapWidth, BoundsTheWidthOfRandomGraphsAndKeepsTheirOrder) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return static_cast<int32_t>(random() % n); };
    const int32_t nodes = 1 + below(70), width = 1 + below(12);
    CsrRows preds;
    std::vector<bool> counts;
    for (int32_t v = 0; v < nodes; ++v) {
      for (int32_t k = below(3); v > 0 && k > 0; --k) preds.Add(below(static_cast<uint64_t>(v)));
      preds.CloseAsSet();
      counts.push_back(below(5) > 0);
    }
    const CsrRows capped = CapWidth(preds, counts, width);
    ASSERT_EQ(capped.rows(), nodes);
    for (int32_t v = 0; v < nodes; ++v) {
      int32_t more = 0;
      for (const int32_t p : capped[v]) {
        EXPECT_LT(p, v) << seed;
        const bool was = std::find(preds[v].begin(), preds[v].end(), p) != preds[v].end();
        EXPECT_TRUE(was || (counts[p] && counts[v])) << seed;
        more += was ? 0 : 1;
      }
      EXPECT_LE(more, 1) << seed;
    }
    const Matrix before = ReachOf(preds), after = ReachOf(capped);
    for (size_t a = 0; a < before.size(); ++a) {
      for (size_t b = 0; b < before.size(); ++b) EXPECT_LE(before[a][b], after[a][b]) << seed << ": an order is lost";
    }
    if (capped == preds) continue;
    ++changed;
    EXPECT_LE(WidthOf(capped, counts), width) << "seed " << seed;
  }
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace penstock::graph::cap_width_test
