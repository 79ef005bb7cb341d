// When nodes change over to parameters by reference and back, without a graph or a device.
#include "src/runtime/graph_exec/parameter_indirection.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/runtime/graph_exec/tuning.h"

namespace penstock::runtime::parameter_indirection_test {
namespace {

constexpr int kNodes = 20;

// Every node takes parameter 0 once; no node takes parameter 1.
class Nodes {
 public:
  Nodes() { machine.Allow(); }

  // A launch in which parameter 0 differs, or nothing does. Returns how many nodes changed, +over or -back.
  int Launch(bool differs) {
    int by_value = 0, changed = 0;
    const bool all_read = differs && machine.AllRead(0);
    for (int e = 0; differs && !all_read && e < kNodes; ++e) by_value += machine.Reads(e) ? 0 : 1;
    if (machine.ShouldEnable(static_cast<size_t>(by_value))) {
      for (int e = 0; e < kNodes; ++e) {
        if (!machine.Enable(e)) continue;
        machine.TakeFrom(0);
        ++changed;
      }
    }
    if (machine.ShouldDisable()) {
      machine.DisableAll([&](int32_t) {
        machine.GiveBack(0);
        --changed;
      });
    }
    return changed;
  }
  void Enable() {
    for (int i = 0; i < tuning::kLaunchesToEnable; ++i) Launch(true);
    machine.Copied();
  }

  ParameterIndirection machine{kNodes, {kNodes, 0}};
};

TEST(ParameterIndirection, ChangesOverAfterEightLaunchesInARow) {
  Nodes nodes;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(nodes.Launch(true), 0);
  EXPECT_EQ(nodes.Launch(false), 0);  // the row is broken
  for (int i = 0; i < 7; ++i) EXPECT_EQ(nodes.Launch(true), 0);
  EXPECT_FALSE(nodes.machine.indirect(3));
  EXPECT_EQ(nodes.Launch(true), kNodes);
  EXPECT_TRUE(nodes.machine.indirect(3));
  EXPECT_TRUE(nodes.machine.stale()) << "the device has not had any parameter yet";
}

TEST(ParameterIndirection, StaysByValueForFewNodesAndUntilItIsAllowed) {
  ParameterIndirection few(15, {15});
  few.Allow();
  ParameterIndirection forbidden(kNodes, {kNodes});
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(few.ShouldEnable(15));
    EXPECT_FALSE(forbidden.ShouldEnable(kNodes));
  }
}

TEST(ParameterIndirection, WritesNoArgumentsOnceAllNodesRead) {
  Nodes nodes;
  EXPECT_FALSE(nodes.machine.AllRead(0));
  nodes.Enable();
  EXPECT_FALSE(nodes.machine.stale());
  EXPECT_TRUE(nodes.machine.AllRead(0));
  EXPECT_TRUE(nodes.machine.stale());
  nodes.machine.Copied();
  EXPECT_FALSE(nodes.machine.stale());
}

TEST(ParameterIndirection, KeepsWritingAParameterThatOneNodeHasByValue) {
  ParameterIndirection machine(2, {2});
  machine.Allow();
  EXPECT_TRUE(machine.Enable(0));
  machine.TakeFrom(0);
  EXPECT_FALSE(machine.Enable(0)) << "it reads already";
  EXPECT_FALSE(machine.AllRead(0)) << "node 1 has it by value";
  machine.Copied();
  EXPECT_FALSE(machine.Reads(1));
  EXPECT_FALSE(machine.stale());
  EXPECT_TRUE(machine.Reads(0));
  EXPECT_TRUE(machine.stale());
}

TEST(ParameterIndirection, ChangesBackAfter24LaunchesWithoutANewParameter) {
  Nodes nodes;
  nodes.Enable();
  for (int i = 0; i < 23; ++i) EXPECT_EQ(nodes.Launch(false), 0);
  EXPECT_EQ(nodes.Launch(true), 0);  // the row is broken, and nothing changes while the copy is still to come
  nodes.machine.Copied();
  for (int i = 0; i < 23; ++i) EXPECT_EQ(nodes.Launch(false), 0);
  EXPECT_EQ(nodes.Launch(false), -kNodes);
  EXPECT_FALSE(nodes.machine.indirect(3));
  EXPECT_FALSE(nodes.machine.AllRead(0));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(nodes.Launch(true), 0);
  EXPECT_EQ(nodes.Launch(true), kNodes) << "it may change over again";
}

}  // namespace
}  // namespace penstock::runtime::parameter_indirection_test
