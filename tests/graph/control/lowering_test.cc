// ChooseLowerings tells from a declaration who decides a construct. What only Compile can tell is
// tests/runtime/executable/control_test.cc.
#include "graph/control/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/graph.h"
#include "tests/support/kernels.h"

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

}  // namespace
}  // namespace penstock::graph::lowering_test
