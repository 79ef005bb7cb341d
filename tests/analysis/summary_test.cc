// The summary of a profile, and its runs.
#include "src/analysis/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/analysis/made_profile.h"

namespace penstock::analysis::summary_test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr SpanKind kKernel = SpanKind::kKernel, kUpload = SpanKind::kUpload, kHost = SpanKind::kHost;
constexpr SpanKind kRun = SpanKind::kRun, kSubmit = SpanKind::kSubmit, kWait = SpanKind::kWait;

Summary SummaryOf(const Profile& profile) { return analysis::SummaryOf(profile, RunsOf(profile)); }

TEST(Runs, HaveTheSpansOfTheirGraphAndNumber) {
  Profile profile =
      MadeProfile({MadeNode("n", 0, {})},
                  {MadeSpan(kKernel, 1, 0, 30, 40), MadeSpan(kRun, 1, -1, 20, 50), MadeSpan(kSubmit, 1, -1, 20, 25),
                   MadeSpan(kKernel, 0, 0, 5, 9), MadeSpan(kWait, 0, -1, 1, 4), MadeSpan(kKernel, 1, 0, 28, 29)});
  Span other = MadeSpan(kKernel, 0, 0, 0, 1);
  other.executable = 7;  // lost
  profile.spans.push_back(other);
  profile.spans.push_back(MadeSpan(kHost, -1, 0, 0, 100));  // of no run
  const std::vector<GraphRun> runs = RunsOf(profile);
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].number, 0);
  EXPECT_EQ(runs[0].whole, nullptr);
  EXPECT_EQ(runs[0].begin_us, 1);
  EXPECT_EQ(runs[0].end_us, 9);
  ASSERT_THAT(runs[0].work, SizeIs(1));
  EXPECT_EQ(runs[1].whole, &profile.spans[1]);
  EXPECT_EQ(runs[1].submit, &profile.spans[2]);
  EXPECT_EQ(runs[1].length_us(), 30);
  EXPECT_THAT(runs[1].work, testing::ElementsAre(&profile.spans[5], &profile.spans[0]));
}

TEST(Summaries, CountWhatEnginesDoAtOnceOnce) {
  const Summary summary = SummaryOf(MadeProfile(
      {MadeNode("a", 0, {}), MadeNode("b", 1, {})},
      {MadeSpan(kRun, 0, -1, 100, 200), MadeSpan(kKernel, 0, 0, 110, 130), MadeSpan(kKernel, 0, 1, 120, 140),
       MadeSpan(kKernel, 0, 1, 190, 250), MadeSpan(kUpload, 0, 1, 50, 105), MadeSpan(kHost, 0, 1, 150, 140)}));
  EXPECT_EQ(summary.begin_us, 100);
  EXPECT_EQ(summary.end_us, 200);
  ASSERT_THAT(summary.engines, SizeIs(4));
  EXPECT_EQ(summary.engines[0].kind, kKernel);
  EXPECT_EQ(summary.engines[0].busy_us, 40);  // 110 to 140 and 190 to 200
  EXPECT_EQ(summary.engines[0].spans, 3);
  EXPECT_EQ(summary.engines[1].busy_us, 5);
  EXPECT_EQ(summary.engines[2].busy_us, 0);
  EXPECT_EQ(summary.engines[3].device, -1);
  EXPECT_EQ(summary.engines[3].busy_us, 0);  // it ends before it begins
  EXPECT_EQ(summary.Share(40), 0.4);
}

// A loop has a span of its own and one for each iteration. The same line in another compiled graph is the same node.
TEST(Summaries, GiveEachNodeItsTimeInEachRun) {
  std::vector<Span> spans;
  for (const auto& [run, length] : {std::pair(0, 10.0), {1, 30.0}, {2, 20.0}}) {
    const double begin = run * 100;
    spans.push_back(MadeSpan(kRun, run, -1, begin, begin + 50));
    spans.push_back(MadeSpan(kKernel, run, 0, begin, begin + length));
    spans.push_back(MadeSpan(kKernel, run, 0, begin, begin + length / 2));
    spans.push_back(MadeSpan(kKernel, run, 0, begin + length / 2, begin + length));
    spans.push_back(MadeSpan(kKernel, run, 1, begin + length, begin + length + 1));
  }
  Profile profile = MadeProfile({MadeNode("loop", 0, {}), MadeNode("small", 0, {})}, spans);
  profile.graphs[0].launches = 5;
  profile.graphs.push_back(profile.graphs[0]);
  profile.graphs[1].executable = 1;
  profile.graphs[1].launches = 0;
  Span again = MadeSpan(kKernel, 0, 0, 60, 100);
  again.executable = 1;
  profile.spans.push_back(again);
  const Summary summary = SummaryOf(profile);
  ASSERT_THAT(summary.nodes, SizeIs(2));
  EXPECT_EQ(summary.nodes[0].node, 0);
  EXPECT_EQ(summary.nodes[0].runs, 4);
  EXPECT_EQ(summary.nodes[0].total_us, 100);
  EXPECT_EQ(summary.nodes[0].median_us, 25);
  EXPECT_EQ(summary.nodes[1].total_us, 3);
  EXPECT_EQ(summary.launches, 5);
  EXPECT_EQ(summary.runs, 4);
}

TEST(Summaries, FindTheMedianRunOfEachGraph) {
  std::vector<Span> spans;
  for (int run = 0; run < 4; ++run) spans.push_back(MadeSpan(kRun, run, -1, run * 100, run * 100 + 40 - run * 10));
  Profile profile = MadeProfile({}, spans);
  profile.graphs[0].launches = 9;
  profile.graphs.resize(3);  // graphs that were never launched
  profile.graphs[1].executable = 1;
  profile.graphs[2].executable = 2;
  profile.graphs[2].launches = 1;  // and whose run is lost
  const std::vector<GraphRun> runs = RunsOf(profile);
  const Summary summary = analysis::SummaryOf(profile, runs);
  ASSERT_THAT(summary.graphs, SizeIs(2));
  EXPECT_EQ(summary.graphs[0].graph, 0u);
  EXPECT_EQ(summary.graphs[0].runs, 4);
  EXPECT_EQ(summary.graphs[0].total_us, 100);
  EXPECT_EQ(summary.graphs[0].shortest_us, 10);
  EXPECT_EQ(summary.graphs[0].longest_us, 40);
  EXPECT_EQ(summary.graphs[0].median_us, 20);
  EXPECT_EQ(runs[summary.graphs[0].median_run].number, 2);
  EXPECT_EQ(summary.graphs[1].graph, 2u);
  EXPECT_EQ(summary.graphs[1].runs, 0);
}

TEST(Summaries, HaveTheLongestWaitsFirst) {
  const Profile profile =
      MadeProfile({}, {MadeSpan(kWait, 0, -1, 0, 5), MadeSpan(kWait, 1, -1, 0, 50), MadeSpan(kWait, 2, -1, 9, 1)});
  const Summary summary = SummaryOf(profile);
  EXPECT_THAT(summary.waits, testing::ElementsAre(&profile.spans[1], &profile.spans[0], &profile.spans[2]));
  EXPECT_EQ(summary.waits_us, 55);
}

TEST(Summaries, OfNothingAreEmpty) {
  Profile profile;
  profile.length_us = 12;
  const Summary summary = SummaryOf(profile);
  EXPECT_EQ(summary.length_us(), 12);
  EXPECT_THAT(summary.nodes, IsEmpty());
  EXPECT_THAT(summary.graphs, IsEmpty());
}

}  // namespace
}  // namespace penstock::analysis::summary_test
