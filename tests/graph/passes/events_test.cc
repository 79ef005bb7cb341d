// Events: who records one, and when it may be recorded again.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/random_graph.h"

namespace penstock::graph::events_test {
namespace {

TEST(Events, AreRecordedAgainUnlessSomebodyLooksAtThemLater) {
  int64_t records = 0, events = 0, looked_at = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const RandomGraph graph = MakeRandomGraph(seed, 24);
    const Plan plan = PlanOf(graph.builder, graph.options);
    std::vector<int> times(plan.events.size());
    for (int32_t c = 0; c < plan.epilogue_end; ++c) {
      const Command& command = plan.commands[c];
      if (command.op == Command::Op::kRecord) ++times[command.arg], ++records;
    }
    std::vector<EventId> later = plan.done_events;
    for (const HostStep& h : plan.host_steps) later.insert(later.end(), h.after_events.begin(), h.after_events.end());
    for (const StateUse& s : plan.states) later.insert(later.end(), s.done_events.begin(), s.done_events.end());
    for (const EventId e : later) ASSERT_EQ(times[e], 1) << "seed " << seed << ", event " << e;
    events += static_cast<int64_t>(times.size());
    looked_at += static_cast<int64_t>(later.size());
  }
  std::cout << records << " records of " << events << " events, " << looked_at << " looked at later\n";
  EXPECT_GT(records, events);
}

// Where several threads are to submit the segments; but what ends a run records the event of a device lane by lane.
TEST(Events, AreRecordedOnceInAWidePlanThatThreadsSubmitSideBySide) {
  int wide = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomGraph graph = MakeRandomGraph(seed, 120);
    const size_t usual = PlanOf(graph.builder, graph.options).events.size();
    graph.options.events_once = true;
    const Plan plan = PlanOf(graph.builder, graph.options);
    const bool any_wide = std::any_of(plan.segments.begin(), plan.segments.end(),
                                      [](const Segment& s) { return s.end - s.begin >= kPartitionFrom; });
    if (!any_wide || plan.lanes.size() < 2) continue;
    wide += plan.events.size() > usual;
    std::vector<int> times(plan.events.size());
    for (int32_t c = 0; c < plan.epilogue_begin; ++c) {
      const Command& command = plan.commands[c];
      if (command.op != Command::Op::kRecord) continue;
      EXPECT_EQ(++times[command.arg], 1) << "seed " << seed << ", event " << command.arg;
    }
  }
  EXPECT_GT(wide, 10);
}

// The number of events depends on how much is pending at a time, not on how long the graph is.
TEST(Events, ALongGraphNeedsNoMoreThanAShortOne) {
  const auto events_of = [](int rows) {
    ModelBuilder g;
    std::vector<int32_t> even, odd;
    for (int i = 0; i < 8; ++i) even.push_back(g.Scratch("even" + std::to_string(i), 64));
    for (int i = 0; i < 8; ++i) odd.push_back(g.Scratch("odd" + std::to_string(i), 64));
    for (int i = 0; i < 8; ++i) g.Fill("fill" + std::to_string(i), even[i]);
    for (int r = 0; r < rows; ++r) {
      const std::vector<int32_t>&from = r % 2 == 0 ? even : odd, &to = r % 2 == 0 ? odd : even;
      for (size_t i = 0; i < 8; ++i) {
        g.For("r" + std::to_string(r) + "," + std::to_string(i), In{from[i]}, In{from[(i + 1) % 8]}, Out{to[i]});
      }
    }
    return PlanOf(g).events.size();
  };
  EXPECT_EQ(events_of(100), events_of(10));
}

}  // namespace
}  // namespace penstock::graph::events_test
