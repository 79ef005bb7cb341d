// States in plans: where they live, what is copied for them, and which points of a run others are ordered with. The
// oracle of order is brute-force reachability over the commands (oracle.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/oracle.h"
#include "tests/graph/oracle/plan_uses.h"
#include "tests/graph/oracle/random_graph.h"
#include "tests/graph/oracle/shape_oracle.h"
#include "tests/graph/oracle/simulation.h"

namespace penstock::graph::states_test {
namespace {

// Commands of the segments, in order: "wait for w; k; record 0; done with w".
std::string CommandsOf(const Plan& plan, const ModelBuilder& g) {
  std::string text;
  for (int32_t c = 0; c < plan.epilogue_begin; ++c) {
    const Command& command = plan.commands[c];
    const auto arg = static_cast<size_t>(command.arg);
    const auto state = [&](const char* what) {
      return what + std::string(g.model.buffers[plan.states[arg].buffer].name.view());
    };
    if (c > 0) text += "; ";
    switch (command.op) {
      case Command::Op::kNode: text += plan.nodes[arg].name; break;
      case Command::Op::kRecord: text += "record " + std::to_string(arg); break;
      case Command::Op::kWait: text += "wait " + std::to_string(arg); break;
      case Command::Op::kStateWait: text += state("wait for "); break;
      case Command::Op::kStateWrite: text += state("write "); break;
      case Command::Op::kStateDone: text += state("done with "); break;
      case Command::Op::kWaitExternal:
        text += "await " + std::string(g.model.buffers[plan.external_deps[arg].buffer].name.view());
        break;
      case Command::Op::kGraph: break;  // in no plan
    }
  }
  return text;
}

TEST(States, AreUsedInPlaceOnTheirDevice) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), w = g.State("w", 4);
  g.For("1st", In{x});
  g.For("add", In{x}, Change{w});
  g.For("after", In{x});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CommandsOf(plan, g),
            "upload x; record 0; wait 0; 1st; wait for w; wait 0; write w; add; record 1; done with w; wait 0; after");
  ASSERT_EQ(plan.states.size(), 1u);
  EXPECT_EQ(plan.states[0], (StateUse{w, plan.states[0].instance, true, {1}}));
  EXPECT_EQ(plan.instances[plan.states[0].instance].space, Space::kState);
}

TEST(States, TakeNoMemoryOfTheSlot) {
  ModelBuilder g;
  const int32_t w = g.State("w", 1 << 20), t = g.Scratch("t", 64);
  g.For("k", In{w}, Out{t});
  const Plan plan = PlanOf(g);
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_EQ(plan.arenas[0], (Arena{0, 256}));
}

TEST(States, ReadByAHostNodeAreDownloadedAndNotBroughtBack) {
  ModelBuilder g;
  g.Host("look", In{g.State("w", 4)});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CommandsOf(plan, g), "wait for w; download w; record 0; done with w");
  EXPECT_FALSE(plan.states[0].written);
}

TEST(States, WrittenByAHostNodeAreBroughtBackAndOnlyThatTouchesThem) {
  ModelBuilder g;
  g.Host("make", Out{g.State("w", 4)});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CommandsOf(plan, g), "wait for w; write w; upload w; record 0; done with w");
  EXPECT_EQ(Find(plan, "download w"), -1);
}

TEST(States, WrittenOnAnotherDeviceAreBroughtHome) {
  ModelBuilder g;
  const int32_t w = g.State("w", 4, 1);
  g.node(g.For("k", Change{w})).device = 0;
  const Plan plan = PlanOf(g, Devices(2));
  ASSERT_EQ(plan.nodes.size(), 3u);
  EXPECT_EQ(plan.nodes[0].kind, PlanKind::kPeerCopy);
  EXPECT_EQ(plan.nodes[2].kind, PlanKind::kPeerCopy);
  EXPECT_EQ(plan.nodes[2].dst, plan.states[0].instance);
  EXPECT_EQ(plan.instances[plan.nodes[2].dst].device, 1);
  EXPECT_EQ(plan.nodes[0].src, plan.nodes[2].dst);
}

TEST(States, OnlyReadElsewhereAreNotBroughtHome) {
  ModelBuilder g;
  const int32_t w = g.State("w", 4, 1);
  g.node(g.For("k", In{w})).device = 0;
  EXPECT_EQ(PlanOf(g, Devices(2)).nodes.size(), 2u);
}

TEST(States, WaitOnEachLaneThatTouchesThemFirst) {
  ModelBuilder g;
  const int32_t w = g.State("w", 4);
  g.For("a", In{w});
  g.For("b", In{w});
  g.For("c", Change{w});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CommandsOf(plan, g), "wait for w; a; record 0; wait for w; b; wait 0; write w; c; record 1; done with w");
}

TEST(States, OfAnotherRuntimeAreRefused) {
  ModelBuilder g;
  const int32_t w = g.State("w", 4);
  g.For("k", In{w});
  PlanOptions options = Devices(1);
  options.runtime = &options;
  EXPECT_EQ(MistakeOf(g, options),
            "INVALID_ARGUMENT: graph 'g' state 'w' (a.cc:1): belongs to another runtime; its memory is not known to "
            "this one; "
            "make it with MakeState of the runtime that compiles the graph");
}

TEST(States, OnADeviceOfAnotherDriverAreRefused) {
  PlanOptions options = Devices(2);
  options.devices[1] = {"cuda:0", true, 1, 0};
  ModelBuilder g;
  g.For("k", In{g.State("w", 4, 1)});
  EXPECT_EQ(MistakeOf(g, options),
            "INVALID_ARGUMENT: graph 'g' state 'w' (a.cc:1) on cuda:0: node 'k' (a.cc:2) runs on host:0, a device of "
            "another driver; events order devices of one driver only; keep the nodes and States of a graph on devices "
            "of one driver");
  ModelBuilder hosted;
  const int32_t v = hosted.State("v", 4, 0), w = hosted.State("w", 4, 1);
  hosted.Host("h", In{v}, In{w});
  EXPECT_EQ(MistakeOf(hosted, options),
            "INVALID_ARGUMENT: graph 'g' state 'w' (a.cc:2) on cuda:0: state 'v' (a.cc:1) lives on host:0, a device of "
            "another driver; events order devices of one driver only; keep the nodes and States of a graph on devices "
            "of one driver");
}

// --- random graphs ---

struct Touch {
  int32_t node;
  bool writes;
};

std::vector<Touch> TouchesOf(const Plan& plan, int32_t instance) {
  std::vector<Touch> touches;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanNode& node = plan.nodes[n];
    bool touched = false, writes = false;
    const auto use = [&](int32_t i, bool write) {
      touched = touched || i == instance;
      writes = writes || (i == instance && write);
    };
    if (node.decl < 0) use(node.src, false), use(node.dst, true);
    for (const Use& u : node.uses) use(u.instance, u.mode != AccessMode::kRead);
    if (touched) touches.push_back({static_cast<int32_t>(n), writes});
  }
  return touches;
}

// The plan with each wait `op` of `use` replaced by a node of its own, so that the oracle can be asked about it.
Plan WithGates(const Plan& plan, Command::Op op, int32_t use, std::vector<int32_t>& gates) {
  Plan changed = plan;
  for (Command& c : changed.commands) {
    if (c.op != op || c.arg != use) continue;
    gates.push_back(static_cast<int32_t>(changed.nodes.size()));
    changed.nodes.emplace_back();
    c = {Command::Op::kNode, c.lane, gates.back()};
  }
  return changed;
}

int32_t FindCommand(const Plan& plan, Command::Op op, int32_t arg) {
  int32_t found = -1;
  for (int32_t c = 0; c < plan.epilogue_begin; ++c) {
    const Command& command = plan.commands[c];
    if (command.op != op || arg < command.arg || arg >= command.arg + command.count) continue;
    EXPECT_EQ(found, -1) << "the command stands there twice";
    found = c;
  }
  return found;
}

std::string CheckUse(const Plan& plan, int32_t index) {
  const StateUse& use = plan.states[index];
  std::vector<int32_t> gates;
  const Plan changed = WithGates(plan, Command::Op::kStateWait, index, gates);
  const Execution run(changed);
  if (!run.problem().empty()) return run.problem();
  const std::vector<Touch> touches = TouchesOf(plan, use.instance);
  size_t firsts = 0, lasts = 0;
  bool written = false;
  const int32_t write = FindCommand(plan, Command::Op::kStateWrite, index);
  const int32_t done = FindCommand(plan, Command::Op::kStateDone, index);
  for (const Touch& t : touches) {
    const std::string label = "node " + plan.nodes[t.node].name;
    if (std::none_of(gates.begin(), gates.end(), [&](int32_t g) { return run.Before(g, t.node); })) {
      return label + " is behind no wait";
    }
    if (std::none_of(use.done_events.begin(), use.done_events.end(),
                     [&](int32_t e) { return run.BeforeEvent(t.node, e); })) {
      return label + " is before no done event";
    }
    const auto earlier = [&](const Touch& o) { return run.Before(o.node, t.node); };
    const auto later = [&](const Touch& o) { return run.Before(t.node, o.node); };
    firsts += std::none_of(touches.begin(), touches.end(), earlier);
    lasts += std::none_of(touches.begin(), touches.end(), later);
    written = written || t.writes;
    const int32_t command = FindCommand(plan, Command::Op::kNode, t.node);
    if (t.writes && (write < 0 || command < write)) return label + " writes before that is said";
  }
  if (gates.size() != firsts) return std::to_string(gates.size()) + " waits for " + std::to_string(firsts) + " firsts";
  if (use.done_events.size() != lasts) return "not as many done events as last touches";
  if (written != use.written || written != (write >= 0)) return "wrong about whether it writes";
  for (const int32_t e : use.done_events) {
    const int32_t record = FindCommand(plan, Command::Op::kRecord, e);
    if (record < 0 || record > done) return "done is said before a done event is recorded";
  }
  for (const Touch& t : touches) {
    if (FindCommand(plan, Command::Op::kNode, t.node) > done) return "done is said before a touch is submitted";
  }
  return "";
}

// Of bound device memory: every touch behind a wait, and no more waits than first touches.
std::string CheckArrival(const Model& model, const Plan& plan, int32_t index) {
  const ExternalDep& external_dep = plan.external_deps[index];
  const BufferDecl& decl = model.buffers[external_dep.buffer];
  if (!IsBound(decl.role) || decl.where != kDevice) return "nothing is bound on a device";
  std::vector<int32_t> gates;
  const Plan changed = WithGates(plan, Command::Op::kWaitExternal, index, gates);
  const Execution run(changed);
  if (!run.problem().empty()) return run.problem();
  const std::vector<Touch> touches = TouchesOf(plan, external_dep.instance);
  size_t firsts = 0;
  for (const Touch& t : touches) {
    if (std::none_of(gates.begin(), gates.end(), [&](int32_t g) { return run.Before(g, t.node); })) {
      return "node " + plan.nodes[t.node].name + " is behind no wait";
    }
    firsts += std::none_of(touches.begin(), touches.end(), [&](const Touch& o) { return run.Before(o.node, t.node); });
  }
  return gates.size() == firsts ? "" : std::to_string(gates.size()) + " waits for " + std::to_string(firsts);
}

TEST(Arrivals, AreUsedInPlaceAfterOneWait) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kDevice), y = g.Output("y", 4, kDevice), z = g.Output("z", 4);
  g.For("a", In{x}, Out{y});
  g.For("b", In{x}, Change{y});
  g.Host("c", In{y}, Out{z});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CommandsOf(plan, g), "await x; await y; a; b; record 0; wait 0; download y; record 1");
  for (const Instance& i : plan.instances) EXPECT_NE(i.space, Space::kDevice) << "the slot has none of its own";
}

TEST(Arrivals, AreOnTheDeviceOfTheFirstNodeThatIsNoCopy) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kDevice), y = g.Output("y", 4, kDevice), z = g.Output("z", 4, kDevice);
  const int32_t unused = g.Input("unused", 4, kDevice);
  const int32_t copy = g.Copy("copy", x, y), there = g.For("there", In{x}, Out{z});
  g.node(there).device = 1;
  g.After(there, copy);
  const Plan plan = PlanOf(g, Devices(2));
  for (const Instance& i : plan.instances) {
    if (i.space != Space::kBound) continue;
    EXPECT_NE(i.buffer, unused);
    EXPECT_EQ(i.device, i.buffer == y ? 0 : 1) << i.buffer;
  }
  EXPECT_EQ(plan.external_deps.size(), 3u);
}

TEST(States, OfRandomGraphsAreTouchedBetweenTheirWaitsAndDoneEventsOnly) {
  constexpr uint64_t kFirstSeed = 5000, kGraphs = 1500;
  int states = 0, external_deps = 0, written = 0, several_lasts = 0, peers = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kGraphs; ++seed) {
    const RandomGraph graph = MakeRandomGraph(seed, 24);
    const Model& model = graph.builder.model;
    const Plan plan = PlanOf(graph.builder, graph.options);
    const auto show = [&] { return "seed " + std::to_string(seed) + "\n" + PrintText(plan, model); };
    ASSERT_EQ(CheckShape(model, graph.options, plan), "") << show();
    ASSERT_EQ(CheckOrder(model, plan), "") << show();
    ASSERT_EQ(CheckFinish(plan), "") << show();
    for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(Simulate(model, plan, seed * 10 + i), "") << show();
    for (int32_t u = 0; u < static_cast<int32_t>(plan.states.size()); ++u) {
      ASSERT_EQ(CheckUse(plan, u), "") << "use " << u << " " << show();
      const StateUse& use = plan.states[u];
      ++states;
      written += use.written;
      several_lasts += use.done_events.size() > 1;
      const int32_t home = plan.instances[use.instance].device;
      ASSERT_EQ(home, model.buffers[use.buffer].state->device);
    }
    for (int32_t a = 0; a < static_cast<int32_t>(plan.external_deps.size()); ++a) {
      ASSERT_EQ(CheckArrival(model, plan, a), "") << "external_dep " << a << " " << show();
      ++external_deps;
    }
    for (const PlanNode& node : plan.nodes) peers += node.kind == PlanKind::kPeerCopy;
  }
  std::cout << states << " states, " << written << " written, " << several_lasts << " with several last touches, "
            << peers << " peer copies\n";
  EXPECT_GT(states, 200);
  EXPECT_GT(external_deps, 200);
  EXPECT_GT(written, 100);
  EXPECT_GT(several_lasts, 20);
}

}  // namespace
}  // namespace penstock::graph::states_test
