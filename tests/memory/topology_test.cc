// Topology: nodes and PCI devices of described computers, and the memory policy the kernel then has for a thread.
#include "src/memory/topology.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::memory::topology_test {
namespace {

Topology Described(const std::string& description) {
  absl::StatusOr<Topology> made = Topology::OfDescription(description);
  if (!made.ok()) ADD_FAILURE() << description << ": " << made.status();
  return *std::move(made);
}

// What `lstopo` writes of a computer with so many nodes, each with a package, a GPU and a network card: of node n on
// bus 0x10 + 0x20 n and the next one. The GPU on bus 0xe0 hangs on the whole computer.
std::string ComputerXml(int nodes) {
  const auto mask = [](unsigned bits) { return absl::StrCat("0x", absl::Hex(bits, absl::kZeroPad8)); };
  const auto sets = [&](unsigned bits) {
    std::string text;
    for (const char* name : {"cpuset", "complete_cpuset", "nodeset", "complete_nodeset"}) {
      absl::StrAppend(&text, " ", name, "=\"", mask(bits), "\"");
    }
    return text;
  };
  const auto bridge = [](int bus, const std::string& devices) {
    return absl::StrCat("<object type=\"Bridge\" gp_index=\"", 300 + bus, "\" bridge_type=\"0-1\" depth=\"0\" ",
                        "bridge_pci=\"0000:[", absl::Hex(bus), "-", absl::Hex(bus + 15), "]\">", devices, "</object>");
  };
  const auto device = [](int bus, const char* what) {
    return absl::StrCat("<object type=\"PCIDev\" gp_index=\"", 100 + bus, "\" pci_busid=\"0000:", absl::Hex(bus),
                        ":00.0\" pci_type=\"", what, "\" pci_link_speed=\"0.000000\"/>");
  };
  std::string packages;
  for (int n = 0; n < nodes; ++n) {
    const std::string at = absl::StrCat(" os_index=\"", n, "\"", sets(1u << n));
    absl::StrAppend(&packages, "<object type=\"Package\" gp_index=\"", 10 + n, "\"", at, ">",
                    "<object type=\"NUMANode\" gp_index=\"", 20 + n, "\"", at, " local_memory=\"1073741824\"/>",
                    "<object type=\"PU\" gp_index=\"", 30 + n, "\"", at, "/>",
                    bridge(0x10 + 0x20 * n, device(0x10 + 0x20 * n, "0302 [10de:2335] [10de:18be] a1") +
                                                device(0x11 + 0x20 * n, "0200 [15b3:1021] [15b3:0041] 00")),
                    "</object>");
  }
  return absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
      "version=\"2.0\">"
      "<object type=\"Machine\" os_index=\"0\" gp_index=\"1\"",
      sets((1u << nodes) - 1), " allowed_cpuset=\"", mask((1u << nodes) - 1), "\" allowed_nodeset=\"",
      mask((1u << nodes) - 1), "\">", packages, bridge(0xe0, device(0xe0, "0302 [10de:2335] [10de:18be] a1")),
      "</object></topology>");
}

std::string Bus(int bus) { return absl::StrCat("0000:", absl::Hex(bus), ":00.0"); }

TEST(Topology, CountsTheNodesOfADescription) {
  EXPECT_EQ(Described("core:4 pu:1").nodes(), 1);
  EXPECT_EQ(Described("numa:2 core:4 pu:1").nodes(), 2);
  EXPECT_EQ(Described("package:2 numa:2 core:2 pu:1").nodes(), 4);
}

TEST(Topology, DevicesAreNearTheNodeTheyHangOn) {
  for (const int nodes : {1, 2, 4}) {
    SCOPED_TRACE(nodes);
    const absl::StatusOr<Topology> computer = Topology::OfXml(ComputerXml(nodes));
    ASSERT_TRUE(computer.ok()) << computer.status();
    EXPECT_EQ(computer->nodes(), nodes);
    for (int n = 0; n < nodes; ++n) {
      EXPECT_EQ(computer->NodeNear(Bus(0x10 + 0x20 * n)), n);
      EXPECT_EQ(computer->NodeNear(Bus(0x11 + 0x20 * n)), n);
    }
    EXPECT_EQ(computer->NodeNear(Bus(0xe0)), nodes == 1 ? 0 : -1) << "hangs on all of them";
    EXPECT_EQ(computer->NodeNear(Bus(0xf0)), -1) << "no such device";
  }
}

TEST(Topology, BusIdsMayHaveLargeLettersAndMayBeNonsense) {
  const absl::StatusOr<Topology> computer = Topology::OfXml(ComputerXml(4));
  ASSERT_TRUE(computer.ok()) << computer.status();
  EXPECT_EQ(computer->NodeNear("0000:5E:00.0"), -1);
  EXPECT_EQ(computer->NodeNear("00000000:50:00.0"), 2);
  for (const char* const id : {"", "x", "0000:", "50"}) EXPECT_EQ(computer->NodeNear(id), -1) << id;
}

TEST(Topology, WhatHwlocDoesNotTakeIsAStatus) {
  EXPECT_EQ(Topology::OfDescription("no such thing").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Topology::OfXml("<topology").ok());
}

// The processors that a thread of its own may run on after RunOnNode(node), having chosen `chosen` before.
std::set<int> ProcessorsOnNode(const Topology& topology, int node, const std::set<int>& chosen = {}) {
  const auto now = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    std::set<int> processors;
    for (int p = 0; p < CPU_SETSIZE; ++p) {
      if (CPU_ISSET(p, &set)) processors.insert(p);
    }
    return processors;
  };
  std::set<int> after;
  std::thread([&] {
    if (!chosen.empty()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (const int p : chosen) CPU_SET(p, &set);
      EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    }
    EXPECT_EQ(topology.RunOnNode(node), absl::OkStatus());
    after = now();
  }).join();
  return after;
}

TEST(Topology, AThreadRunsOnItsNodeUnlessThereIsOneOrSomebodyHasChosen) {
  if (std::thread::hardware_concurrency() != 2) GTEST_SKIP() << "described for two processors";
  const std::set<int> both{0, 1};
  EXPECT_EQ(ProcessorsOnNode(Described("numa:2 pu:1"), 1), std::set<int>{1});
  EXPECT_EQ(ProcessorsOnNode(Described("numa:2 pu:1"), 0), std::set<int>{0});
  EXPECT_EQ(ProcessorsOnNode(Described("numa:2 pu:1"), 1, {0}), std::set<int>{0}) << "chosen before";
  EXPECT_EQ(ProcessorsOnNode(Described("pu:2"), 0), both) << "one node";
  EXPECT_EQ(ProcessorsOnNode(Described("numa:2 pu:1"), -1), both) << "none";
}

TEST(Topology, TellsTheProcessorsOfANode) {
  EXPECT_EQ(Described("numa:2 pu:3").processors(0), 3);
  EXPECT_EQ(Described("numa:2 pu:3").processors(1), 3);
  EXPECT_EQ(Described("pu:5").processors(0), 5);
}

TEST(Topology, ThisComputerHasANode) {
  const absl::StatusOr<Topology> here = Topology::OfThisComputer();
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_GE(here->nodes(), 1);
}

// The kernel's word on the calling thread: how, and from which nodes (of the first 64).
struct Policy {
  int mode = -1;
  unsigned long nodes = 0;
  friend bool operator==(const Policy&, const Policy&) = default;
};

std::optional<Policy> PolicyOfThisThread() {
  Policy policy;
  std::array<unsigned long, 16> mask{};
  if (syscall(SYS_get_mempolicy, &policy.mode, mask.data(), mask.size() * 64, nullptr, 0) != 0) return std::nullopt;
  policy.nodes = mask[0];
  return policy;
}

bool SetPolicy(int mode, unsigned long nodes) {
  return syscall(SYS_set_mempolicy, mode, nodes == 0 ? nullptr : &nodes, nodes == 0 ? 0 : 64) == 0;
}

class MemoryPolicy : public testing::Test {
 protected:
  void SetUp() override {
    if (!PolicyOfThisThread() || !SetPolicy(MPOL_DEFAULT, 0)) GTEST_SKIP() << "no memory policies here";
  }
  void TearDown() override { SetPolicy(MPOL_DEFAULT, 0); }
};

// Node 0 is on every computer, so one that is described with two can have it asked for on a computer with one.
TEST_F(MemoryPolicy, IsTheNodesInsideAndTheOldOneAfterwards) {
  const Topology two = Described("numa:2 core:1 pu:1");
  for (const int before : {MPOL_DEFAULT, MPOL_LOCAL}) {
    ASSERT_TRUE(SetPolicy(before, 0));
    std::optional<Policy> inside;
    const absl::Status status = two.OnNode(0, [&] { inside = PolicyOfThisThread(); });
    EXPECT_TRUE(status.ok()) << status;
    ASSERT_TRUE(inside.has_value());
    EXPECT_TRUE(inside->mode == MPOL_PREFERRED || inside->mode == MPOL_PREFERRED_MANY) << inside->mode;
    EXPECT_EQ(inside->nodes, 1u);
    EXPECT_EQ(PolicyOfThisThread(), (Policy{before, 0}));
  }
}

TEST_F(MemoryPolicy, StaysAsItIsWithOneNodeOrNone) {
  const Topology one = Described("core:1 pu:1"), two = Described("numa:2 core:1 pu:1");
  for (const auto& [topology, node] : {std::pair(&one, 0), std::pair(&two, -1), std::pair(&two, 2)}) {
    std::optional<Policy> inside;
    EXPECT_TRUE(topology->OnNode(node, [&] { inside = PolicyOfThisThread(); }).ok());
    EXPECT_EQ(inside, (Policy{MPOL_DEFAULT, 0}));
  }
}

TEST_F(MemoryPolicy, StaysAsSomebodyHasChosenIt) {
  const Topology two = Described("numa:2 core:1 pu:1");
  for (const Policy chosen : {Policy{MPOL_BIND, 1}, Policy{MPOL_INTERLEAVE, 1}, Policy{MPOL_PREFERRED, 1}}) {
    ASSERT_TRUE(SetPolicy(chosen.mode, chosen.nodes));
    std::optional<Policy> inside;
    EXPECT_TRUE(two.OnNode(0, [&] { inside = PolicyOfThisThread(); }).ok());
    EXPECT_EQ(inside, chosen);
    EXPECT_EQ(PolicyOfThisThread(), chosen);
  }
}

// No computer has all of these nodes; the call goes on without them and says so.
TEST_F(MemoryPolicy, ThatTheSystemRefusesIsAStatusAndTheCallIsMade) {
  const Topology many = Described("numa:64 core:1 pu:1");
  bool called = false;
  const absl::Status status = many.OnNode(63, [&] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(PolicyOfThisThread(), (Policy{MPOL_DEFAULT, 0}));
}

}  // namespace
}  // namespace penstock::memory::topology_test
