// What an Output of variable size declares, and what Compile makes of the graph so that each run leaves the count.
#include "graph/declare/returned_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "graph/plan/plan.h"
#include "penstock/graph.h"
#include "tests/support/status.h"

namespace penstock::graph::returned_counts_test {
namespace {

Name At(const char* name, int line) { return Name(name, "dir/a.cc", line); }

absl::StatusOr<Plan> PlanOf(const Model& model) {
  PlanOptions options;
  options.devices = {{"cuda:0", true, 0, int64_t{1} << 40}};
  return MakePlan(model, options);
}
std::string MistakesOf(const Graph& g) {
  const absl::StatusOr<Plan> plan = PlanOf(WithReturnedCounts(g.model()));
  return plan.ok() ? "OK" : Text(plan.status());
}
// Writes some of y, then the count.
void WriteBoth(Graph& g, BufferHandle<int32_t> y, BufferHandle<int32_t> count) {
  g.Launch(At("write", 5), [](LaunchContext&, int32_t*) {}, WriteSome(y));
  g.Launch(At("count", 6), [](LaunchContext&, int32_t*) {}, Write(count));
}

TEST(ReturnedCounts, ComeFromACopyBehindAllNodesAndChangeNoIndex) {
  Graph g("g");
  const auto counts = g.Buffer<int32_t>(At("counts", 1), 4);
  const auto y = g.Output<int32_t>(At("y", 2), CountOf(Read(counts, Slice({2}, {1})), 100));
  const auto z = g.Output<int32_t>(At("z", 3), 7);
  WriteBoth(g, y, counts);
  g.Launch(At("z", 7), [](LaunchContext&, int32_t*) {}, Write(z));
  EXPECT_TRUE(HasCounts(g.model()));
  const Model with = WithReturnedCounts(g.model());
  ASSERT_EQ(with.buffers.size(), 4u);
  ASSERT_EQ(with.nodes.size(), 4u);
  for (size_t b = 0; b < 3; ++b) EXPECT_EQ(with.buffers[b].name, g.model().buffers[b].name);
  for (size_t n = 0; n < 3; ++n) EXPECT_EQ(with.nodes[n].name, g.model().nodes[n].name);
  const BufferDecl& returned = with.buffers[3];
  EXPECT_EQ(returned.role, BufferRole::kCount);
  EXPECT_EQ(returned.counted, y.index());
  EXPECT_EQ(returned.name.source().line, 2);
  const NodeDecl& copy = with.nodes[3];
  EXPECT_EQ(copy.kind, NodeKind::kCopy);
  EXPECT_EQ(copy.accesses[0].buffer, counts.index());
  EXPECT_FALSE(copy.accesses[0].box.whole());
  EXPECT_EQ(copy.accesses[1].buffer, 3);
}

TEST(ReturnedCounts, AreDownloadedAfterTheirLastWriterAndNothingIsUploaded) {
  Graph g("g");
  const auto count = g.Buffer<int32_t>(At("count", 1), 1);
  const auto y = g.Output<int32_t>(At("y", 2), CountOf(count, 100));
  WriteBoth(g, y, count);
  const absl::StatusOr<Plan> plan = PlanOf(WithReturnedCounts(g.model()));
  ASSERT_OK(plan.status());
  const auto index = [&](std::string_view name) {
    const auto at = std::find_if(plan->nodes.begin(), plan->nodes.end(),
                                 [&](const PlanNode& node) { return std::string_view(node.name) == name; });
    return at == plan->nodes.end() ? -1 : static_cast<int>(at - plan->nodes.begin());
  };
  const int copy = index("y/return of the count");
  ASSERT_GE(copy, 0);
  EXPECT_EQ(plan->nodes[static_cast<size_t>(copy)].kind, PlanKind::kDownload);
  EXPECT_GT(copy, index("count"));
  EXPECT_EQ(index("upload y"), -1);
  EXPECT_GE(index("download y"), 0);
  const Instance& instance = plan->instances[plan->nodes[static_cast<size_t>(copy)].dst];
  EXPECT_EQ(instance.space, Space::kPinned);
  EXPECT_TRUE(instance.leased) << "its bytes are nobody else's until the run has ended";
}

TEST(ReturnedCounts, AreToldFromPlainOutputs) {
  const auto hash = [](bool counted) {
    Graph g("g");
    const auto count = g.Buffer<int32_t>(At("count", 1), 1);
    const auto y = counted ? g.Output<int32_t>(At("y", 2), CountOf(count, 100)) : g.Output<int32_t>(At("y", 2), 100);
    WriteBoth(g, y, count);
    return PlanOf(g.model())->structure_hash;
  };
  EXPECT_NE(hash(true), hash(false));
  Graph g("g");
  EXPECT_FALSE(HasCounts(g.model()));
}

TEST(ReturnedCounts, OfSeveralElementsOrOtherGraphsOrThatNobodyWritesAreRefused) {
  Graph g("g"), other("other");
  const auto many = g.Buffer<int32_t>(At("many", 1), 3);
  const auto elsewhere = other.Buffer<int32_t>(At("elsewhere", 1), 1);
  const auto y = g.Output<int32_t>(At("y", 2), CountOf(many, 100));
  const auto z = g.Output<int32_t>(At("z", 3), CountOf(elsewhere, 100));
  const auto n = g.Output<int32_t>(At("n", 4), CountOf(BufferHandle<int32_t>(), 100));
  for (const auto& output : {y, z, n}) {
    g.Launch(Name("w", output.index()), [](LaunchContext&, int32_t*) {}, Write(output));
  }
  const std::string mistakes = MistakesOf(g);
  EXPECT_THAT(mistakes, testing::HasSubstr(
                            "graph 'g' buffer 'y' (a.cc:2): its count is {3} elements of 'many' (a.cc:1); it is one "
                            "integer; name a buffer of one element, or one element of a larger buffer, with "
                            "ps::Slice({i}, {1})"));
  EXPECT_THAT(mistakes, testing::HasSubstr("graph 'g' buffer 'z' (a.cc:3): its count is no buffer of this graph"));
  EXPECT_THAT(mistakes, testing::HasSubstr("graph 'g' buffer 'n' (a.cc:4): its count is no buffer of this graph"));

  Graph unwritten("g");
  const auto count = unwritten.Buffer<int32_t>(At("count", 1), 1);
  const auto u = unwritten.Output<int32_t>(At("u", 2), CountOf(count, 100));
  unwritten.Launch(At("w", 3), [](LaunchContext&, int32_t*) {}, Write(u));
  EXPECT_THAT(MistakesOf(unwritten),
              testing::HasSubstr("node 'u/return of the count' (a.cc:2): reads 'count' (a.cc:1) before any node has "
                                 "written it"));
}

}  // namespace
}  // namespace penstock::graph::returned_counts_test
