// What is decided about constructs from their declaration: who decides each, and when it is submitted. What only
// Compile can tell is tests/runtime/executable/control_test.cc.
#include "graph/control/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "graph/control/fold.h"
#include "graph/plan/plan.h"
#include "penstock/graph.h"
#include "tests/support/kernels.h"
#include "tests/support/status.h"

namespace penstock::graph::lowering_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The first device has no hostcalls.
LoweringDevices TwoDevices(int32_t by_default) {
  return {.by_default = by_default, .no_hostcalls = {"a profiler replays kernels", ""}};
}

TEST(ChooseLowerings, NamesWhyTheDeviceCannotAsk) {
  Graph g("g");
  auto trips = g.Param<int32_t>("trips");
  auto x = g.InOut<int32_t>("x", 8);
  for (const int device : {0, 1}) {
    g.Repeat(Name("loop", device), trips, [&](Graph& body) {
      body.Host("asked", [] {}).Inline();
      body.ParallelFor("add", 8, AddOne{}, ReadWrite(x)).On(device);
    });
  }
  const Lowerings lowerings = ChooseLowerings(g.model(), TwoDevices(0), "");
  EXPECT_THAT(lowerings.why(0),
              AllOf(HasSubstr("node 'loop 0/asked'"), HasSubstr("device 0: a profiler replays kernels")));
  EXPECT_TRUE(lowerings.OnDevice(1)) << lowerings.why(1);
}

TEST(ChooseLowerings, SaysHowAHostNodeMayStay) {
  Graph g("g");
  auto trips = g.Param<int32_t>("trips");
  g.Repeat("outer", trips, [&](Graph& outer) {
    outer.Repeat("inner", trips, [&](Graph& inner) { inner.Host("waits", [] {}); });
    outer.Repeat("beside", trips, [&](Graph& beside) { beside.Host("asked", [] {}).Infallible(); });
  });
  const Lowerings lowerings = ChooseLowerings(g.model(), TwoDevices(1), "");
  for (const ControlId c : {ControlId(0), ControlId(1)}) {
    EXPECT_THAT(lowerings.why(c), AllOf(HasSubstr("node 'outer/inner/waits'"), HasSubstr("Infallible or Inline")));
  }
  EXPECT_TRUE(lowerings.OnDevice(2)) << lowerings.why(2);
}

struct Never {
  bool operator()() const { return false; }
};

// Whether a construct is submitted before a chain of ten nodes beside it, which is declared first.
template <class F>
bool IsBeforeTenNodes(F declare) {
  Graph g("g");
  auto x = g.InOut<int32_t>("x", 8, kPinned), y = g.InOut<int32_t>("y", 8, kPinned);
  for (int i = 0; i < 10; ++i) g.ParallelFor(Name("chain", i), 8, AddOne{}, ReadWrite(x));
  declare(g, [y](Graph& body) { body.ParallelFor("add", 8, AddOne{}, ReadWrite(y)); });
  const auto model = std::make_shared<Model>(g.model());
  const Folded folded = Fold(model, ChooseLowerings(*model, TwoDevices(0), ""));
  PlanOptions options;
  options.devices.push_back({.name = "host:0"});
  const absl::StatusOr<Plan> plan = MakePlan(*folded.model, options);
  EXPECT_OK(plan.status());
  if (!plan.ok()) return false;
  const auto at = [&](const std::string& name) {
    const auto& nodes = plan->nodes;
    return std::find_if(nodes.begin(), nodes.end(), [&](const PlanNode& node) { return node.name == name; });
  };
  return at("construct") < at("chain 0");
}

TEST(Order, OfAConstructFollowsTheNodesThatItIsExpectedToRun) {
  const auto loop = [](int64_t max, int64_t expected) {
    return IsBeforeTenNodes([=](Graph& g, const auto& body) {
      g.While("construct", penstock::When(Never{}), {.max = max, .expected = expected}, body);
    });
  };
  EXPECT_TRUE(loop(1000, 100));
  EXPECT_FALSE(loop(1000, 2));
  EXPECT_FALSE(loop(2, 100)) << "not more than there may be";
  const auto repeat = [](Dim trips) {
    return IsBeforeTenNodes([=](Graph& g, const auto& body) { g.Repeat("construct", trips, body); });
  };
  EXPECT_TRUE(repeat(1000));
  const auto as_a_parameter_says = [](Graph& g, const auto& body) {  // ten times, if nobody knows
    g.Repeat("construct", g.Param<int32_t>("n"), [&](Graph& in) { in.Repeat("inner", 2, body); });
  };
  EXPECT_TRUE(IsBeforeTenNodes(as_a_parameter_says));
  EXPECT_FALSE(loop(1000, 0));
  EXPECT_FALSE(IsBeforeTenNodes([](Graph& g, const auto& body) {  // of which the most nodes are no number
    std::function<void(Graph&, int)> nest = [&](Graph& in, int levels) {
      if (levels == 0) return body(in);
      in.While(levels == 40 ? "construct" : Name("in", levels), penstock::When(Never{}),
               {.expected = levels == 40 ? 0 : 1'000'000'000}, [&](Graph& inner) { nest(inner, levels - 1); });
    };
    nest(g, 40);
  }));
  EXPECT_FALSE(IsBeforeTenNodes([](Graph& g, const auto& body) { g.If("construct", penstock::When(Never{}), body); }));
  EXPECT_TRUE(IsBeforeTenNodes([](Graph& g, const auto& body) {
    g.If("construct", penstock::When(Never{}), [&](Graph& then) { then.Repeat("inner", 1000, body); });
  }));
}

}  // namespace
}  // namespace penstock::graph::lowering_test
