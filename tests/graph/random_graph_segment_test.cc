// Segments of random plans as CUDA graphs: their nodes have no lanes, only the edges that EdgesOfGraphSegment gives
// them. The oracle of stream plans must find nothing missing in these, and must object to each that is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "graph/plan.h"
#include "graph/reduce_graph.h"
#include "tests/graph/execution.h"
#include "tests/graph/oracle.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/random_seeds.h"

namespace penstock::graph {
namespace {

constexpr int kNodes = 24;

// What each node waits for when every segment is launched as one graph: all of the segments before, whole, the host
// steps its segment waits for, and within it the edges. A host step waits for whole segments.
class GraphRun {
 public:
  explicit GraphRun(const Plan& plan) : plan_(plan), preds_(plan.nodes.size()) {
    for (int32_t s = 0; s < static_cast<int32_t>(plan.segments.size()); ++s) {
      segments_.push_back(EdgesOfGraphSegment(plan, s));
      AddSegment(s);
    }
    for (const HostStep& step : plan.host_steps) {
      for (int32_t s = 0; s <= step.after_segment; ++s) {
        const std::vector<int32_t>& nodes = segments_[static_cast<size_t>(s)].nodes;
        row(step.node).insert(row(step.node).end(), nodes.begin(), nodes.end());
      }
      for (const int32_t h : step.after_hosts) row(step.node).push_back(HostNode(h));
      if (step.joins) row(step.node).push_back(step.node - 1);
    }
  }

  Execution Run() const { return Execution(plan_, preds_); }

  // Calls f for each edge of a segment, while it is left out.
  template <class F>
  void WithoutEach(F f) {
    for (const GraphSegment& segment : segments_) {
      for (int32_t b = 0; b < segment.preds.rows(); ++b) {
        const int32_t node = segment.nodes[static_cast<size_t>(b)];
        for (const int32_t p : segment.preds[b]) {
          const int32_t pred = segment.nodes[static_cast<size_t>(p)];
          const std::vector<int32_t> whole = row(node);
          std::erase(row(node), pred);
          f(pred, node);
          row(node) = whole;
        }
      }
    }
  }

 private:
  std::vector<int32_t>& row(int32_t node) { return preds_[static_cast<size_t>(node)]; }
  int32_t HostNode(int32_t step) const { return plan_.host_steps[static_cast<size_t>(step)].node; }

  void AddSegment(int32_t s) {
    const GraphSegment& segment = segments_[static_cast<size_t>(s)];
    for (int32_t b = 0; b < segment.preds.rows(); ++b) {
      std::vector<int32_t>& preds = row(segment.nodes[static_cast<size_t>(b)]);
      for (const int32_t p : segment.preds[b]) preds.push_back(segment.nodes[static_cast<size_t>(p)]);
      for (int32_t before = 0; before < s; ++before) {
        const std::vector<int32_t>& nodes = segments_[static_cast<size_t>(before)].nodes;
        preds.insert(preds.end(), nodes.begin(), nodes.end());
      }
      for (int32_t before = 0; before <= s; ++before) {
        for (const int32_t h : plan_.segments[static_cast<size_t>(before)].after_hosts) preds.push_back(HostNode(h));
      }
    }
  }

  const Plan& plan_;
  std::vector<GraphSegment> segments_;
  std::vector<std::vector<int32_t>> preds_;
};

class RandomGraphSegments : public testing::TestWithParam<int> {
 protected:
  Seeds seeds() const { return SeedsOf(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomGraphSegments, testing::Range(0, kShards));

TEST_P(RandomGraphSegments, KeepTheOrderAndMemoryByTheirEdgesAlone) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    const Execution run = GraphRun(p.plan).Run();
    ASSERT_EQ(OrderOracle(p.model(), p.plan).Check(run), "") << Rerun(seed) << p.text();
    ASSERT_EQ(CheckMemory(p.model(), p.plan, run), "") << Rerun(seed) << p.text();
  }
}

TEST_P(RandomGraphSegments, HaveNoEdgeThatCouldBeLeftOut) {
  int64_t tried = 0, memory = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const RandomPlan p = PlanRandom(seed, kNodes);
    const OrderOracle oracle(p.model(), p.plan);
    GraphRun graphs(p.plan);
    graphs.WithoutEach([&](int32_t from, int32_t to) {
      const Execution run = graphs.Run();
      const bool in_order = oracle.Check(run).empty();
      ++tried;
      memory += in_order;
      EXPECT_FALSE(in_order && CheckMemory(p.model(), p.plan, run).empty())
          << "edge from " << from << " to " << to << " of " << Rerun(seed) << p.text();
    });
    ASSERT_FALSE(HasFailure());
  }
  std::cout << "seeds " << seeds().begin << " to " << seeds().end - 1 << ": " << tried
            << " edges left out, each noticed, " << memory << " of them by memory alone\n";
  if (seeds().many()) {
    EXPECT_GT(tried, seeds().count());
    EXPECT_GT(memory, seeds().count() / 100);
  }
}

}  // namespace
}  // namespace penstock::graph
