// Random plans as graphs on one lane, with random nodes that no graph takes. Nodes of a graph have no lanes, only the
// edges that EdgesOfGraph gives them. The oracle of stream plans must find nothing missing in these, nor that of Launch
// nodes, and one of them must object to each that is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "graph/plan/graph_schedule.h"
#include "graph/plan/plan.h"
#include "tests/graph/oracle/execution.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/plan_uses.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/random_seeds.h"

namespace penstock::graph::random_graph_segment_test {
namespace {

constexpr int kNodes = 24;

// For one seed in three no node is refused, for the others some to most.
Table<NodeId, bool> RandomRefusals(const Plan& plan, uint64_t seed) {
  std::mt19937_64 random(~seed);
  Table<NodeId, bool> refused(plan.nodes.size());
  const uint64_t share = random() % 3 == 0 ? 0 : 1 + random() % 6;  // in eighths
  for (size_t n = 0; n < refused.size(); ++n) refused[n] = random() % 8 < share;
  return refused;
}

// Half of the plans have regions, of kernels, fills and copies on the device.
RegionRules RandomRules(const Plan& plan, uint64_t seed) {
  std::mt19937_64 random(seed + 1);
  RegionRules rules{.group = {}, .least = 1 + static_cast<int32_t>(random() % 3), .most_at_once = 2};
  if (seed % 4 < 2) return rules;
  rules.most = rules.least + static_cast<int32_t>(random() % 16);
  for (const PlanNode& node : plan.nodes) {
    const bool may = node.kind == PlanKind::kParallelFor || node.kind == PlanKind::kKernel ||
                     node.kind == PlanKind::kFill || node.kind == PlanKind::kDeviceCopy;
    rules.group.push_back(may && node.batch < 0 ? static_cast<int32_t>(random() % 3) - 1 : -1);
  }
  return rules;
}

struct ScheduledPlan : RandomPlan {
  explicit ScheduledPlan(uint64_t seed)
      : RandomPlan(PlanRandomOnOneDevice(seed, kNodes)),
        refused(RandomRefusals(plan, seed)),
        rules(RandomRules(plan, seed)),
        schedule(MakeGraphSchedule(plan, refused, rules, seed % 2 == 0 ? 0 : kLeastGraphUs)) {}
  Table<NodeId, bool> refused;
  RegionRules rules;
  GraphSchedule schedule;
};

// The nodes that stand or fall with `first`: its batch.
std::vector<int32_t> BatchOf(const Plan& plan, int32_t first) {
  std::vector<int32_t> nodes = {first};
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    if (JoinsBatch(plan, n) && plan.nodes[n].batch == first) nodes.push_back(static_cast<int32_t>(n));
  }
  return nodes;
}

// The nodes of an entry: a batch, a region, or one.
std::vector<int32_t> NodesOf(const ScheduledPlan& p, const GraphPart::Entry& entry) {
  if (entry.region < 0) return BatchOf(p.plan, entry.node);
  const GraphRegion& region = p.schedule.regions[entry.region];
  return {region.nodes.begin(), region.nodes.end()};
}

std::vector<int32_t> NodesOf(const ScheduledPlan& p, const Command& command) {
  std::vector<int32_t> nodes;
  ForEachNode(command, [&](size_t n) { nodes.push_back(static_cast<int32_t>(n)); });
  if (command.op != Command::Op::kGraph) return nodes;
  for (const GraphPart::Entry& entry : p.schedule.graphs[command.arg].entries) {
    for (const int32_t n : NodesOf(p, entry)) nodes.push_back(n);
  }
  return nodes;
}

// What each node waits for: all that its lane did before, the host steps of the segments up to its own, and in a graph
// the edges. A host step waits for all that the lane did before its events.
class GraphRun {
 public:
  explicit GraphRun(const ScheduledPlan& p) : p_(p), preds_(p.plan.nodes.size()), recorded_(p.plan.events.size()) {
    for (size_t s = 0; s < p.schedule.segments.size(); ++s) {
      const Segment& segment = p.schedule.segments[s];
      for (const int32_t h : segment.after_hosts) before_.push_back(HostNode(h));
      for (int32_t c = segment.begin; c < segment.end; ++c) Add(p.schedule.commands[c]);
      for (const HostStep& step : p.plan.host_steps) {
        if (step.after_segment == static_cast<int32_t>(s)) AddHostStep(step);
      }
    }
    for (const HostStep& step : p.plan.host_steps) {
      if (step.after_segment < 0) AddHostStep(step);
    }
  }

  Execution Run() const { return Execution(p_.plan, preds_); }

  // Calls f for each edge of a graph, while it is left out.
  template <class F>
  void WithoutEach(F f) {
    for (const GraphPart& graph : p_.schedule.graphs) {
      for (int32_t b = 0; b < graph.preds.rows(); ++b) {
        const int32_t node = graph.entries[static_cast<size_t>(b)].node;
        for (const int32_t a : graph.preds[b]) {
          const int32_t pred = graph.entries[static_cast<size_t>(a)].node;
          const std::vector<std::vector<int32_t>> whole = preds_;
          for (const int32_t to : BatchOf(p_.plan, node)) {
            for (const int32_t from : BatchOf(p_.plan, pred)) std::erase(row(to), from);
          }
          f(pred, node);
          preds_ = whole;
        }
      }
    }
  }

 private:
  std::vector<int32_t>& row(int32_t node) { return preds_[node]; }
  int32_t HostNode(int32_t step) const { return p_.plan.host_steps[step].node; }

  void Add(const Command& command) {
    if (command.op == Command::Op::kRecord) recorded_[command.arg] = before_;
    const std::vector<int32_t> nodes = NodesOf(p_, command);
    for (const int32_t n : nodes) row(n) = before_;
    if (command.op == Command::Op::kGraph) AddEdges(p_.schedule.graphs[command.arg]);
    before_.insert(before_.end(), nodes.begin(), nodes.end());
  }

  void AddEdges(const GraphPart& graph) {
    for (int32_t b = 0; b < graph.preds.rows(); ++b) {
      const GraphPart::Entry& entry = graph.entries[static_cast<size_t>(b)];
      for (const int32_t to : NodesOf(p_, entry)) {
        for (const int32_t a : graph.preds[b]) {
          for (const int32_t from : NodesOf(p_, graph.entries[static_cast<size_t>(a)])) row(to).push_back(from);
        }
      }
      if (entry.region >= 0) AddEdges(p_.schedule.regions[entry.region]);
    }
  }

  void AddEdges(const GraphRegion& region) {
    for (int32_t b = 0; b < region.preds.rows(); ++b) {
      for (const int32_t a : region.preds[b]) {
        row(region.nodes[static_cast<size_t>(b)]).push_back(region.nodes[static_cast<size_t>(a)]);
      }
    }
  }

  // Once the segments that it is to look at have been walked: an event that comes later is none for it.
  void AddHostStep(const HostStep& step) {
    for (const int32_t h : step.after_hosts) row(step.node).push_back(HostNode(h));
    if (step.joins) row(step.node).push_back(step.node - 1);
    for (const int32_t e : step.after_events) {
      const std::vector<int32_t>& before = recorded_[e];
      row(step.node).insert(row(step.node).end(), before.begin(), before.end());
    }
  }

  const ScheduledPlan& p_;
  std::vector<std::vector<int32_t>> preds_;
  std::vector<int32_t> before_;  // nodes that whatever is submitted now comes after
  std::vector<std::vector<int32_t>> recorded_;  // of each event: those that its record came after
};

// Where the commands of the segments are: places of each kind, by argument.
class Places {
 public:
  explicit Places(const ScheduledPlan& p) : p_(p) {}

  // Of the only command of this kind; -1 and a failure where there is none, or several.
  int32_t Only(Command::Op op, int32_t arg) const {
    const std::vector<int32_t> all = All([&](const Command& c) { return c.op == op && c.arg == arg; });
    EXPECT_EQ(all.size(), 1u) << "commands of kind " << static_cast<int>(op) << " for " << arg;
    return all.size() == 1 ? all[0] : -1;
  }
  size_t Count(Command::Op op) const {
    return All([&](const Command& c) { return c.op == op; }).size();
  }
  // Of the command that submits a node.
  int32_t OfNode(int32_t node) const {
    const std::vector<int32_t> all = All([&](const Command& c) {
      const std::vector<int32_t> nodes = NodesOf(p_, c);
      return std::count(nodes.begin(), nodes.end(), node) > 0;
    });
    EXPECT_EQ(all.size(), 1u) << "submissions of " << Label(p_.plan, node);
    return all.size() == 1 ? all[0] : -1;
  }

 private:
  template <class F>
  std::vector<int32_t> All(F matches) const {
    std::vector<int32_t> places;
    for (int32_t c = 0; c < p_.schedule.epilogue_begin; ++c) {
      if (matches(p_.schedule.commands[c])) places.push_back(c);
    }
    return places;
  }

  const ScheduledPlan& p_;
};

// Of each event that host steps or States look at: the node that the plan records it behind; -1 for the others.
std::vector<int32_t> NodesOfWatchedEvents(const Plan& plan) {
  std::vector<int32_t> node_of(plan.events.size(), -1), last(plan.lanes.size(), -1);
  for (int32_t c = 0; c < plan.epilogue_begin; ++c) {
    const Command& command = plan.commands[c];
    if (command.op == Command::Op::kNode) last[command.lane] = command.arg;
    if (command.op == Command::Op::kRecord) {
      node_of[command.arg] = last[command.lane];
    }
  }
  std::vector<int32_t> watched(plan.events.size(), -1);
  const auto add = [&](int32_t e) { watched[e] = node_of[e]; };
  for (const HostStep& step : plan.host_steps) std::for_each(step.after_events.begin(), step.after_events.end(), add);
  for (const StateUse& use : plan.states) std::for_each(use.done_events.begin(), use.done_events.end(), add);
  return watched;
}

// The places where nodes that touch an instance are submitted, and of those that write it.
struct TouchPlaces {
  std::vector<int32_t> all, writes;
};
TouchPlaces TouchesOf(const ScheduledPlan& p, int32_t instance) {
  TouchPlaces found;
  for (size_t n = 0; n < p.plan.nodes.size(); ++n) {
    for (const Use& use : UsesOf(p.plan.nodes[n])) {
      if (use.instance != instance) continue;
      const int32_t place = Places(p).OfNode(static_cast<int32_t>(n));
      found.all.push_back(place);
      if (use.mode != AccessMode::kRead) found.writes.push_back(place);
    }
  }
  return found;
}

void CheckUse(const ScheduledPlan& p, int32_t index) {
  const StateUse& use = p.plan.states[index];
  const Places places(p);
  const auto [touches, writes] = TouchesOf(p, use.instance);
  const auto [first, last] = std::minmax_element(touches.begin(), touches.end());
  EXPECT_LT(places.Only(Command::Op::kStateWait, index), *first);
  const int32_t done = places.Only(Command::Op::kStateDone, index);
  if (use.written) {
    EXPECT_LT(places.Only(Command::Op::kStateWrite, index), *std::min_element(writes.begin(), writes.end()));
  }
  int32_t covered = -1;
  for (const int32_t e : use.done_events) {
    const int32_t record = places.Only(Command::Op::kRecord, e);
    EXPECT_LT(record, done);
    covered = std::max(covered, record);
  }
  EXPECT_GT(covered, *last) << "a touch is behind all done events";
}

// Launch nodes of one lane of the plan's commands may share a library's handle, so none may run beside another; nor may
// nodes that ask the host, of which a device has room for few.
std::string CheckLanesOf(PlanKind kind, const Plan& plan, const Execution& run) {
  std::vector<std::vector<int32_t>> launches(plan.lanes.size());
  for (int32_t c = 0; c < plan.epilogue_begin; ++c) {
    const Command& command = plan.commands[c];
    ForEachNode(command, [&](size_t n) {
      if (plan.nodes[n].kind != kind) return;
      launches[command.lane].push_back(static_cast<int32_t>(n));
    });
  }
  for (const std::vector<int32_t>& of_lane : launches) {
    for (const int32_t a : of_lane) {
      for (const int32_t b : of_lane) {
        if (a == b || run.Before(a, b) || run.Before(b, a)) continue;
        return Label(plan, a) + " and " + Label(plan, b) + " of one lane may run at once";
      }
    }
  }
  return "";
}

std::string CheckLaunches(const Plan& plan, const Execution& run) {
  const std::string wrong = CheckLanesOf(PlanKind::kLaunch, plan, run);
  return wrong.empty() ? CheckLanesOf(PlanKind::kHostcall, plan, run) : wrong;
}

class RandomGraphSegments : public testing::TestWithParam<int> {
 protected:
  Seeds seeds() const { return SeedsOf(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Shard, RandomGraphSegments, testing::Range(0, kShards));

TEST_P(RandomGraphSegments, KeepTheOrderAndMemoryByTheirEdgesAlone) {
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const ScheduledPlan p(seed);
    const Execution run = GraphRun(p).Run();
    ASSERT_EQ(OrderOracle(p.model(), p.plan).Check(run), "") << Rerun(seed) << p.text();
    ASSERT_EQ(CheckMemory(p.model(), p.plan, run), "") << Rerun(seed) << p.text();
    ASSERT_EQ(CheckLaunches(p.plan, run), "") << Rerun(seed) << p.text();
  }
}

TEST_P(RandomGraphSegments, HaveNoEdgeThatCouldBeLeftOut) {
  int64_t tried = 0, memory = 0, launches = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const ScheduledPlan p(seed);
    if (!p.rules.group.empty()) continue;  // what comes before a region comes before all of it
    const OrderOracle oracle(p.model(), p.plan);
    GraphRun graphs(p);
    graphs.WithoutEach([&](int32_t from, int32_t to) {
      const Execution run = graphs.Run();
      const bool in_order = oracle.Check(run).empty();
      ++tried;
      memory += in_order;
      const bool sound = in_order && CheckMemory(p.model(), p.plan, run).empty();
      launches += sound;
      EXPECT_FALSE(sound && CheckLaunches(p.plan, run).empty())
          << "edge from " << from << " to " << to << " of " << Rerun(seed) << p.text();
    });
    ASSERT_FALSE(HasFailure());
  }
  std::cout << "seeds " << seeds().begin << " to " << seeds().end - 1 << ": " << tried
            << " edges left out, each noticed, " << memory << " of them by memory alone, " << launches
            << " by Launch nodes alone\n";
  if (seeds().many()) {
    EXPECT_GT(tried, seeds().count() / 2);
    EXPECT_GT(memory, seeds().count() / 200);
    EXPECT_GT(launches, seeds().count() / 200);
  }
}

// Any two regions of a graph that no path orders may be at work at once: at most two are, as the rules say, which no
// three show.
TEST_P(RandomGraphSegments, HaveNoMoreRegionsAtOnceThanTheRulesSay) {
  int64_t pairs = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const ScheduledPlan p(seed);
    for (const GraphPart& graph : p.schedule.graphs) {
      const auto count = static_cast<size_t>(graph.preds.rows());
      std::vector<std::vector<char>> before(count, std::vector<char>(count));
      std::vector<size_t> regions;
      for (size_t v = 0; v < count; ++v) {
        for (const int32_t pred : graph.preds[static_cast<int32_t>(v)]) {
          const auto of = static_cast<size_t>(pred);
          for (size_t a = 0; a < count; ++a) before[v][a] = static_cast<char>(before[v][a] | before[of][a]);
          before[v][of] = 1;
        }
        if (graph.entries[v].region >= 0) regions.push_back(v);
      }
      const auto at_once = [&](size_t a, size_t b) { return before[b][a] == 0; };
      for (size_t i = 0; i < regions.size(); ++i) {
        for (size_t j = i + 1; j < regions.size(); ++j) {
          if (!at_once(regions[i], regions[j])) continue;
          ++pairs;
          for (size_t k = j + 1; k < regions.size(); ++k) {
            ASSERT_FALSE(at_once(regions[i], regions[k]) && at_once(regions[j], regions[k])) << Rerun(seed) << p.text();
          }
        }
      }
    }
  }
  if (seeds().many()) {
    EXPECT_GT(pairs, 0);
  }
}

TEST_P(RandomGraphSegments, SubmitEachNodeOnceAndRefusedOnesOnTheirOwn) {
  int64_t graphs = 0, nodes = 0, refused = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const ScheduledPlan p(seed);
    const Places places(p);
    for (int32_t n = 0; n < static_cast<int32_t>(p.plan.nodes.size()); ++n) {
      const PlanNode& node = p.plan.nodes[n];
      if (IsHostKind(node.kind)) {
        EXPECT_EQ(p.plan.host_steps[node.segment].node, n);
        continue;
      }
      const int32_t place = places.OfNode(n);
      ASSERT_GE(place, 0) << Rerun(seed) << p.text();
      const Segment& segment = p.schedule.segments[node.segment];
      EXPECT_TRUE(segment.begin <= place && place < segment.end) << Label(p.plan, n);
      bool alone = false;
      for (const int32_t m : BatchOf(p.plan, node.batch < 0 ? NodeId(n) : node.batch)) {
        alone = alone || p.refused[m];
      }
      EXPECT_EQ(p.schedule.commands[place].op == Command::Op::kNode, alone) << Label(p.plan, n);
      ++nodes;
      refused += alone;
    }
    graphs += static_cast<int64_t>(p.schedule.graphs.size());
    ASSERT_FALSE(HasFailure()) << Rerun(seed) << p.text();
  }
  std::cout << nodes << " nodes, " << refused << " of them on their own, " << graphs << " graphs\n";
  if (seeds().many()) {
    EXPECT_GT(refused, nodes / 10);
    EXPECT_GT(nodes - refused, 2 * graphs);
  }
}

TEST_P(RandomGraphSegments, RecordWhatIsLookedAtOnceAndAfterItsNode) {
  int64_t records = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const ScheduledPlan p(seed);
    const Places places(p);
    const std::vector<int32_t> watched = NodesOfWatchedEvents(p.plan);
    size_t expected = 0;
    for (int32_t e = 0; e < static_cast<int32_t>(watched.size()); ++e) {
      const int32_t node = watched[e];
      if (node < 0) continue;
      ++expected;
      EXPECT_GT(places.Only(Command::Op::kRecord, e), places.OfNode(node)) << Label(p.plan, node);
    }
    EXPECT_EQ(places.Count(Command::Op::kRecord), expected);
    EXPECT_EQ(places.Count(Command::Op::kWait), 0u);
    records += static_cast<int64_t>(expected);
    ASSERT_FALSE(HasFailure()) << Rerun(seed) << p.text();
  }
  if (seeds().many()) {
    EXPECT_GT(records, seeds().count() / 2);
  }
}

TEST_P(RandomGraphSegments, TouchStatesAndArrivalsOnlyWhereTheyMay) {
  int64_t states = 0, external_deps = 0;
  for (uint64_t seed = seeds().begin; seed < seeds().end; ++seed) {
    const ScheduledPlan p(seed);
    for (int32_t u = 0; u < static_cast<int32_t>(p.plan.states.size()); ++u, ++states) CheckUse(p, u);
    for (int32_t a = 0; a < static_cast<int32_t>(p.plan.external_deps.size()); ++a, ++external_deps) {
      const std::vector<int32_t> touches = TouchesOf(p, p.plan.external_deps[a].instance).all;
      EXPECT_LT(Places(p).Only(Command::Op::kWaitExternal, a), *std::min_element(touches.begin(), touches.end()));
    }
    ASSERT_FALSE(HasFailure()) << Rerun(seed) << p.text();
  }
  std::cout << states << " states, " << external_deps << " external_deps\n";
  if (seeds().many()) {
    EXPECT_GT(states, seeds().count() / 10);
    EXPECT_GT(external_deps, seeds().count() / 20);
  }
}

}  // namespace
}  // namespace penstock::graph::random_graph_segment_test
