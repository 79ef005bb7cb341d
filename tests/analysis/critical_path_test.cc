// The critical path of a run: which steps, why each, and that each moment of the run is in one step or gap.
#include "src/analysis/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/analysis/made_profile.h"

namespace penstock::analysis::critical_path_test {
namespace {

using After = CriticalPath::After;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SpanKind kKernel = SpanKind::kKernel, kUpload = SpanKind::kUpload, kHost = SpanKind::kHost;

CriticalPath PathOf(const Profile& profile) {
  const std::vector<GraphRun> runs = RunsOf(profile);
  EXPECT_EQ(runs.size(), 1u);
  return CriticalPathOf(profile.graphs[0], runs[0]);
}

std::vector<std::string> StepsOf(const Profile& profile, const CriticalPath& path) {
  std::vector<std::string> names;
  for (const CriticalPath::Step& step : path.steps) {
    names.push_back(profile.graphs[0].nodes[static_cast<size_t>(step.node)].name);
  }
  return names;
}

TEST(CriticalPaths, FollowTheLatestOfTheNodesBeforeEach) {
  const Profile profile = MadeProfile(
      {MadeNode("short", 0, {}), MadeNode("long", 1, {}), MadeNode("join", 0, {0, 1}), MadeNode("aside", 1, {1})},
      {MadeSpan(SpanKind::kRun, 0, -1, 100, 200), MadeSpan(SpanKind::kSubmit, 0, -1, 100, 108),
       MadeSpan(kKernel, 0, 0, 105, 110), MadeSpan(kUpload, 0, 1, 110, 140), MadeSpan(kKernel, 0, 2, 150, 190),
       MadeSpan(kKernel, 0, 3, 141, 143)});
  const CriticalPath path = PathOf(profile);
  EXPECT_THAT(StepsOf(profile, path), ElementsAre("long", "join"));
  EXPECT_EQ(path.steps[0].after, After::kLaunch);
  EXPECT_EQ(path.steps[0].gap_us, 10);
  EXPECT_EQ(path.steps[0].submit_us, 8);
  EXPECT_EQ(path.steps[0].length_us(), 30);
  EXPECT_EQ(path.steps[1].after, After::kNode);
  EXPECT_EQ(path.steps[1].gap_us, 10);
  EXPECT_EQ(path.steps[1].submit_us, 0);
  EXPECT_EQ(path.tail_us, 10);
  EXPECT_EQ(path.gaps_us(), 30);
  EXPECT_EQ(path.Share(path.steps[1].length_us()), 0.4);
}

// On streams a lane does one thing at a time; in a graph lanes mean nothing.
TEST(CriticalPaths, GoThroughWhatUsedTheLaneBefore) {
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    const Profile profile = MadeProfile(
        {MadeNode("first", 0, {}), MadeNode("second", 0, {})},
        {MadeSpan(SpanKind::kRun, 0, -1, 0, 20), MadeSpan(kKernel, 0, 0, 0, 10), MadeSpan(kKernel, 0, 1, 10, 20)},
        mode);
    const CriticalPath path = PathOf(profile);
    if (mode == Mode::kStream) {
      EXPECT_THAT(StepsOf(profile, path), ElementsAre("first", "second"));
      EXPECT_EQ(path.steps[1].after, After::kLane);
      EXPECT_EQ(path.gaps_us(), 0);
    } else {
      EXPECT_THAT(StepsOf(profile, path), ElementsAre("second"));
      EXPECT_EQ(path.gaps_us(), 10);
    }
  }
}

TEST(CriticalPaths, PassThroughNodesWithoutSpans) {
  const Profile profile = MadeProfile({MadeNode("last", 0, {1}), MadeNode("gate", 0, {2}), MadeNode("first", 0, {})},
                                      {MadeSpan(kKernel, 0, 2, 0, 10), MadeSpan(kKernel, 0, 0, 12, 20)}, Mode::kGraph);
  const CriticalPath path = PathOf(profile);
  EXPECT_THAT(StepsOf(profile, path), ElementsAre("first", "last"));
  EXPECT_EQ(path.steps[1].gap_us, 2);
  EXPECT_EQ(path.length_us(), 20);  // no span of the run: from the first to the last that there is
}

// A hostcall is within its kernel; a loop is all of its iterations.
TEST(CriticalPaths, CountWhatOverlapsOnce) {
  const Profile profile = MadeProfile({MadeNode("loop", 0, {}), MadeNode("host", -1, {0})},
                                      {MadeSpan(SpanKind::kRun, 0, -1, 0, 30), MadeSpan(kKernel, 0, 0, 2, 10),
                                       MadeSpan(kKernel, 0, 0, 10, 20), MadeSpan(kHost, 0, 1, 15, 30)});
  const CriticalPath path = PathOf(profile);
  ASSERT_THAT(StepsOf(profile, path), ElementsAre("loop", "host"));
  EXPECT_EQ(path.steps[0].length_us(), 18);
  EXPECT_EQ(path.steps[1].length_us(), 10);
  EXPECT_EQ(path.steps[1].gap_us, 0);
}

TEST(CriticalPaths, OfARunWithoutSpansOfNodesAreEmpty) {
  const CriticalPath path = PathOf(MadeProfile({MadeNode("n", 0, {})}, {MadeSpan(SpanKind::kRun, 0, -1, 5, 9)}));
  EXPECT_THAT(path.steps, IsEmpty());
  EXPECT_EQ(path.tail_us, 4);
}

// Whatever the times say, also impossible ones: the parts add up to the run, and no step comes twice.
TEST(CriticalPaths, AddUpToTheRun) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const int nodes = 1 + static_cast<int>(random() % 12);
    std::vector<Profile::Node> made;
    std::vector<Span> spans{MadeSpan(SpanKind::kRun, 0, -1, 10, 10 + random() % 50)};
    for (int n = 0; n < nodes; ++n) {
      made.push_back(MadeNode("n", static_cast<int>(random() % 3) - 1, {}));
      for (int before = 0; before < n; ++before) {
        if (random() % 3 == 0) made.back().after.push_back(before);
      }
      if (random() % 4 == 0) continue;
      const double begin = 10 + random() % 40;
      spans.push_back(MadeSpan(kKernel, 0, n, begin, begin + random() % 9 - 2));
    }
    const CriticalPath path = PathOf(MadeProfile(made, spans));
    double sum = path.gaps_us();
    std::vector<int> steps;
    for (const CriticalPath::Step& step : path.steps) {
      sum += step.length_us();
      EXPECT_GE(step.gap_us, 0);
      EXPECT_GE(step.length_us(), 0);
      steps.push_back(step.node);
    }
    EXPECT_THAT(sum, DoubleNear(path.length_us(), 1e-9)) << "seed " << seed;
    std::sort(steps.begin(), steps.end());
    EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end()), steps.end()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::analysis::critical_path_test
