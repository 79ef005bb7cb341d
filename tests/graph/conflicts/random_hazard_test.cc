// Random graphs with Unordered accesses: accepted while a path joins every two nodes that conflict, refused, with the
// names of two that it does not join, as soon as an After is missing. Which of the two it must be is found by brute
// force.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"

namespace penstock::graph::random_hazard_test {
namespace {

constexpr int kNodes = 24;

// Pairs that conflict by an Unordered access and that no path joins.
std::vector<DeclaredPair> Unjoined(const Model& model) {
  const Paths paths = PathsOf(model, DeclaredPairs(model));
  std::vector<DeclaredPair> unjoined = LoosePairs(model);
  std::erase_if(unjoined, [&](const DeclaredPair& p) {
    const auto a = static_cast<size_t>(p.before), b = static_cast<size_t>(p.after);
    return paths[b][a] || paths[a][b];
  });
  return unjoined;
}

bool Names(const std::string& message, const Model& model, int32_t node) {
  const Name& name = model.nodes[node].name;
  return message.find("'" + std::string(name.view()) + "' (a.cc:" + std::to_string(name.source().line) + ")") !=
         std::string::npos;
}

class RandomHazards : public testing::TestWithParam<int> {
 protected:
  Seeds seeds() const { return SeedsOf(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomHazards, testing::Range(0, kShards));

TEST_P(RandomHazards, AreRefusedByTheNamesOfTwoNodesAndNothingElseIs) {
  int64_t tried = 0, refused = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    RandomGraph graph = MakeRandomGraph(seed, kNodes);
    Model& model = graph.builder.model;
    ASSERT_TRUE(Unjoined(model).empty()) << Rerun(seed);
    if (LoosePairs(model).empty()) continue;
    for (NodeDecl& node : model.nodes) {
      for (size_t k = 0; k < node.after.size(); ++k) {
        const std::vector<DeclId> whole = node.after;
        node.after.erase(node.after.begin() + static_cast<std::ptrdiff_t>(k));
        const std::vector<DeclaredPair> unjoined = Unjoined(model);
        const absl::Status status = MakePlan(model, graph.options).status();
        const std::string message(status.message());
        const auto where = [&] {
          return "without '" + std::string(node.name.view()) + "' after node " + std::to_string(whole[k]) + " of " +
                 Rerun(seed) + ModelText(model) + message;
        };
        ASSERT_EQ(status.ok(), unjoined.empty()) << where();
        const bool named = std::any_of(unjoined.begin(), unjoined.end(), [&](const DeclaredPair& p) {
          return Names(message, model, p.before) && Names(message, model, p.after);
        });
        ASSERT_EQ(named, !unjoined.empty()) << where();
        node.after = whole;
        ++tried;
        refused += !unjoined.empty();
      }
    }
  }
  std::cout << "seeds " << seeds().begin << " to " << seeds().end - 1 << ": " << tried << " After removed, " << refused
            << " graphs refused\n";
  if (seeds().many()) {
    EXPECT_GT(refused, seeds().count() / 10);
    EXPECT_GT(tried - refused, seeds().count() / 10);
  }
}

}  // namespace
}  // namespace penstock::graph::random_hazard_test
