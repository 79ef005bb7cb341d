// Estimates before a run: what a run needs of each resource, by an independent count of what its nodes declare, and how
// simulated runs stand to that.
#include "src/analysis/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/analysis/assumed_machine.h"
#include "tests/analysis/made_job.h"

namespace penstock::analysis::estimate_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kMillion = 1'000'000;

// Upload, kernel, download. 10 MB up, 4 MB down, 12 MB within, 3 GFLOP.
MadeJob Pass(bool is_cuda) {
  MadeJob made(is_cuda);
  made.profile().devices[0].memory_bytes = 1000 * kMillion;
  made.Graph(
      "pass", 3,
      {{.name = "upload x", .kind = "upload", .device = 0, .read_bytes = 10 * kMillion, .written_bytes = 10 * kMillion},
       {.name = "work",
        .kind = "parallel for",
        .device = 0,
        .after = {0},
        .read_bytes = 8 * kMillion,
        .written_bytes = 4 * kMillion,
        .flops = 3e9},
       {.name = "download y",
        .kind = "download",
        .device = 0,
        .after = {1},
        .read_bytes = 4 * kMillion,
        .written_bytes = 4 * kMillion}});
  Profile::Graph& graph = made.profile().graphs[0];
  graph.lanes = {{0, "upload"}, {0, "compute"}, {0, "download"}};
  for (int n = 0; n < 3; ++n) graph.nodes[static_cast<size_t>(n)].lane = n;
  graph.slot_device_bytes = 150 * kMillion;
  graph.slot_pinned_bytes = 14 * kMillion;
  return made;
}

// 20 GB/s up, 10 down, 400 within; 30 TFLOP/s; the host 40 GB/s and 1 TFLOP/s.
Machine KnownMachine(const Profile& profile) {
  Machine machine;
  machine.host_copy = 40;
  machine.host_fp32 = 1000;
  Machine::Device& device = machine.devices.emplace_back();
  device.name = profile.devices[0].name;
  device.description = profile.devices[0].description;
  device.is_cuda = profile.devices[0].is_cuda;
  device.upload = 20;
  device.download = 10;
  device.memory = 400;
  device.fp32 = 30'000;
  device.copy_us = 3;
  device.stream_node_us = 4;
  device.graph_node_us = 1;
  device.launch_us = 6;
  device.host_node_us = 25;
  return machine;
}

Estimate EstimateFor(const Profile& profile) {
  const auto estimate = EstimateOf(profile, 0, KnownMachine(profile));
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.ok() ? *estimate : Estimate();
}

std::vector<std::string> ResourcesOf(const Estimate& estimate) {
  std::vector<std::string> resources;
  for (const Estimate::Floor& floor : estimate.floors) resources.push_back(floor.resource);
  return resources;
}

TEST(Estimate, AddsUpWhatARunNeedsOfEachResource) {
  const Estimate estimate = EstimateFor(Pass(true).profile());
  EXPECT_EQ(estimate.up_bytes, 10e6);
  EXPECT_EQ(estimate.down_bytes, 4e6);
  EXPECT_EQ(estimate.within_bytes, 12e6);
  EXPECT_EQ(estimate.flops, 3e9);
  ASSERT_THAT(ResourcesOf(estimate), ElementsAre("cuda:0 uploads", "cuda:0 downloads", "cuda:0 memory",
                                                 "cuda:0 arithmetic", "cuda:0 launches"));
  EXPECT_NEAR(estimate.floors[0].us, 3 + 500, 1e-9);
  EXPECT_NEAR(estimate.floors[1].us, 3 + 400, 1e-9);
  EXPECT_NEAR(estimate.floors[2].us, 30, 1e-9);
  EXPECT_NEAR(estimate.floors[3].us, 100, 1e-9);
  EXPECT_NEAR(estimate.floors[4].us, 6, 1e-9);
  EXPECT_EQ(estimate.bound, 0u);
  EXPECT_THAT(estimate.notes, IsEmpty());
}

// With one slot a run takes one after the other; with enough of them, as long as what bounds it.
TEST(Estimate, RunsComeNearTheFloorWithMoreSlots) {
  const Estimate estimate = EstimateFor(Pass(true).profile());
  const double in_turn = 503 + (100 + 1) + 403;
  EXPECT_NEAR(estimate.runs[0].graph_us, in_turn + 6, 1);
  EXPECT_NEAR(estimate.latency_us, in_turn + 6, 1);
  EXPECT_NEAR(estimate.runs[3].graph_us, 503, 5);
  for (int s = 1; s <= Estimate::kMostSlots; ++s) {
    const Estimate::RunTime& run = estimate.runs[static_cast<size_t>(s) - 1];
    EXPECT_EQ(run.slots, s);
    for (const double us : {run.stream_us, run.graph_us}) EXPECT_LE(us, in_turn + 6 + 3 * 4 + 1);
  }
}

// With the largest floor by uploads, by the many kernels that have to be started, and by a launch.
TEST(Estimate, NoRunTakesLessThanItsFloor) {
  for (const int kernels : {0, 1, 40}) {
    MadeJob made = Pass(true);
    Profile::Graph& graph = made.profile().graphs[0];
    if (kernels > 0) {
      for (Profile::Node& node : graph.nodes) node.read_bytes = node.written_bytes = 100, node.flops = 0;
    }
    for (int k = 1; k < kernels; ++k) graph.nodes.push_back({"more", "kernel", "a.cc:2", 0, 1, {1}, 8, 8});
    const Estimate estimate = EstimateFor(made.profile());
    const double floor = estimate.floors[estimate.bound].us;
    for (const Estimate::Floor& other : estimate.floors) EXPECT_LE(other.us, floor);
    for (const Estimate::RunTime& run : estimate.runs) {
      EXPECT_GE(run.stream_us, floor) << kernels;
      EXPECT_GE(run.graph_us, floor) << kernels;
    }
    EXPECT_LE(estimate.runs[3].graph_us, floor + 1) << kernels;  // and with enough slots not much more
  }
}

TEST(Estimate, IsTheFloorWhereSimulatingTakesLong) {
  MadeJob made = Pass(true);
  const auto estimate = EstimateOf(made.profile(), 0, KnownMachine(made.profile()), 10);
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  EXPECT_NEAR(estimate->latency_us, 503, 1e-9);
  for (const Estimate::RunTime& run : estimate->runs) EXPECT_NEAR(run.graph_us, 503, 1e-9);
  EXPECT_THAT(estimate->notes, Contains(HasSubstr("floor alone")));
}

TEST(Estimate, SaysHowManySlotsFit) {
  const Estimate estimate = EstimateFor(Pass(true).profile());
  EXPECT_EQ(estimate.slot_device_bytes, 150 * kMillion);
  EXPECT_EQ(estimate.slot_pinned_bytes, 14 * kMillion);
  EXPECT_EQ(estimate.device_memory_bytes, 1000 * kMillion);
  EXPECT_EQ(estimate.most_slots(), 6);
}

// 906 us of copies and 7 of a launch: the host needs 300 us for the bytes, or 3000 for the operations.
TEST(Estimate, ComparesAGpuWithTheHost) {
  MadeJob made = Pass(true);
  const Estimate computes = EstimateFor(made.profile());
  EXPECT_NEAR(computes.overhead_us, 503 + 403 + 7, 1e-9);
  EXPECT_NEAR(computes.host_us, 3000, 1e-9);
  EXPECT_FALSE(computes.is_too_small());
  made.profile().graphs[0].nodes[1].flops = 1e6;
  const Estimate moves = EstimateFor(made.profile());
  EXPECT_NEAR(moves.host_us, 300, 1e-9);
  EXPECT_TRUE(moves.is_too_small());
  // How often a loop goes round is not known, and a host device has nothing to compare with.
  made.profile().graphs[0].nodes[1].kind = "conditional";
  EXPECT_FALSE(EstimateFor(made.profile()).is_too_small());
  EXPECT_THAT(EstimateFor(made.profile()).notes, Contains(HasSubstr("iterate is not known before a run: 1.")));
  EXPECT_FALSE(EstimateFor(Pass(false).profile()).is_too_small());
}

// Staged copies are no part of a run with pinned memory, and stand beside it.
TEST(Estimate, TakesBoundMemoryForPinned) {
  MadeJob made = Pass(true);
  const Estimate without = EstimateFor(made.profile());
  Profile::Graph& graph = made.profile().graphs[0];
  graph.nodes.push_back({"stage x", "stage in", "", -1, -1, {}, 10 * kMillion, 10 * kMillion});
  const Estimate with = EstimateFor(made.profile());
  EXPECT_NEAR(with.unpinned_us, 500, 1e-9);
  EXPECT_EQ(without.unpinned_us, 0);
  EXPECT_NEAR(with.runs[0].graph_us, without.runs[0].graph_us, 1e-3);
}

TEST(Estimate, SaysWhatIsNotKnownBeforeARun) {
  MadeJob made = Pass(true);
  Profile::Graph& graph = made.profile().graphs[0];
  graph.nodes.push_back({"look", "host", "a.cc:1", -1, -1, {2}, 8, 0});
  graph.nodes.push_back({"more", "kernel", "a.cc:2", 0, 1, {3}, 8, 8});
  const Estimate estimate = EstimateFor(made.profile());
  EXPECT_THAT(estimate.notes, ElementsAre(HasSubstr("what their callables take is not known before a run: 1."),
                                          HasSubstr("of which only bytes count: 1.")));
  // A host node costs what it takes to hand over to it.
  EXPECT_GE(estimate.latency_us, EstimateFor(Pass(true).profile()).latency_us + 25);
}

TEST(Estimate, RefusesWhatCannotBeSimulated) {
  MadeJob made = Pass(true);
  made.profile().graphs[0].nodes[1].flops = 9e17;
  Machine machine = KnownMachine(made.profile());
  machine.devices[0].fp32 = 1e-9;
  EXPECT_EQ(EstimateOf(made.profile(), 0, machine).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AssumedMachine, HasAllFiguresAndNamesThoseThatItAssumes) {
  const MadeJob cuda(true), host(false);
  for (const MadeJob* made : {&cuda, &host}) {
    Profile profile = MadeJob(*made).profile();
    const AssumedMachine nothing_known = AssumeMissing(profile, nullptr);
    EXPECT_THAT(nothing_known.assumed, Contains(HasSubstr(profile.devices[0].name + " uploads ")));
    EXPECT_THAT(nothing_known.assumed, Contains(HasSubstr("host memory ")));
    const Machine known = KnownMachine(profile);
    const AssumedMachine all_known = AssumeMissing(profile, &known);
    EXPECT_THAT(all_known.assumed, IsEmpty());
    EXPECT_EQ(all_known.machine.devices, known.devices);
    Machine older = known;  // which had no such figures
    older.devices[0].fp32 = older.host_fp32 = 0;
    const AssumedMachine completed = AssumeMissing(profile, &older);
    EXPECT_THAT(completed.assumed, AllOf(Each(HasSubstr(" FP32 ")), Contains(HasSubstr("host FP32 "))));
    EXPECT_GT(completed.machine.devices[0].fp32, 0);
    EXPECT_EQ(completed.machine.devices[0].upload, 20);
    // The figures of another device are not this one's.
    Machine other = known;
    other.devices[0].description = "another";
    EXPECT_NE(AssumeMissing(profile, &other).machine.devices[0].upload, 20);
    EXPECT_THAT(AssumeMissing(profile, &other).assumed, Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace penstock::analysis::estimate_test
