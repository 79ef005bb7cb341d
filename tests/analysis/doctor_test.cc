// The doctor: each rule fires on a profile that has its fault and not on one that has not, and promises what an
// independent count of the same times gives.
#include "src/analysis/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "src/analysis/facts.h"
#include "tests/analysis/made_job.h"

namespace penstock::analysis::doctor_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kRuns = 40;

std::vector<std::string> RulesOf(const Diagnosis& diagnosis) {
  std::vector<std::string> rules;
  for (const Finding& finding : diagnosis.findings) rules.push_back(finding.rule);
  return rules;
}
std::vector<std::string> RulesOf(MadeJob& made, const Machine* machine = nullptr) {
  return RulesOf(Diagnose(made.profile(), machine));
}
const Finding& The(const Diagnosis& diagnosis, const std::string& rule) {
  static const Finding kNone;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.rule == rule) return finding;
  }
  ADD_FAILURE() << "no finding of " << rule << " but " << testing::PrintToString(RulesOf(diagnosis));
  return kNone;
}

const JobNode kUp{.name = "upload x", .kind = "upload", .device = 0, .read_bytes = 1 << 20, .written_bytes = 1 << 20};
const JobNode kWork{
    .name = "work", .kind = "parallel for", .where = "a.cc:7", .device = 0, .after = {0}, .read_bytes = 1 << 20};
const JobNode kDown{.name = "download y", .kind = "download", .device = 0, .after = {1}, .read_bytes = 1 << 20};

Machine MachineWith(double upload, double download, double memory) {
  Machine machine;
  Machine::Device& device = machine.devices.emplace_back();
  device.name = "host:0";  // as made_job.h has it
  device.description = "made";
  device.upload = upload;
  device.download = download;
  device.memory = memory;
  return machine;
}

// Runs of upload, kernel and download, of 100 us each, that begin `every` us; a launch takes 2 us.
MadeJob Copies(int slots, double every, int runs = kRuns) {
  MadeJob made;
  const int g = made.Graph("copies", slots, {kUp, kWork, kDown});
  for (int r = 0; r < runs; ++r) {
    const double at = 1000 + r * every;
    made.Run(g, r % slots, at, at + 2, at + 304).Node(g, 0, at + 2, at + 102).Node(g, 1, at + 102, at + 202);
    made.Node(g, 2, at + 202, at + 302);
  }
  return made;
}

TEST(Doctor, FindsNothingInAJobThatOverlaps) {
  MadeJob made = Copies(4, 101);
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_THAT(RulesOf(diagnosis), IsEmpty());
  EXPECT_THAT(diagnosis.notes, IsEmpty());
  // 36 warm runs of the 40: those that begin at 4 * 101; the last one ends 304 after its launch.
  EXPECT_DOUBLE_EQ(diagnosis.wall_us, 35 * 101 + 304);
  EXPECT_NEAR(diagnosis.efficiency, 100 * diagnosis.floor_us / diagnosis.wall_us, 1e-9);
  EXPECT_GT(diagnosis.efficiency, 90);
}

TEST(Doctor, SaysThatOneSlotLetsNothingOverlap) {
  MadeJob made = Copies(1, 305);
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("one-slot"));
  const Finding& finding = diagnosis.findings[0];
  EXPECT_THAT(finding.fix, HasSubstr("slots = 4"));
  EXPECT_EQ(finding.graph_name, "copies");
  EXPECT_EQ(finding.where, "made.cc:1");
  // A run has 305 us, and each engine 100 of them: 39 warm runs, of which the last one has no time behind it.
  const double wall = 39 * 305 - 1;
  EXPECT_DOUBLE_EQ(diagnosis.wall_us, wall);
  EXPECT_DOUBLE_EQ(diagnosis.floor_us, 39 * 100);
  EXPECT_NEAR(*finding.gain, (wall - 39 * 100) / wall, 1e-9);
  EXPECT_DOUBLE_EQ(*finding.gain, finding.share);
}

// What another graph does meanwhile is no time of this one: ten times the time, in turn with its runs.
TEST(Doctor, LooksAtTheTimeOfEachGraphOnly) {
  MadeJob made;
  const int g = made.Graph("copies", 1, {kUp, kWork, kDown}), other = made.Graph("other", 2, {kWork});
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * 1305;
    made.Run(g, 0, at, at + 2, at + 304).Node(g, 0, at + 2, at + 102).Node(g, 1, at + 102, at + 202);
    made.Node(g, 2, at + 202, at + 302)
        .Run(other, r % 2, at + 305, at + 306, at + 1305)
        .Node(other, 0, at + 306, at + 1304);
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_THAT(The(diagnosis, "one-slot").evidence[0], HasSubstr("A run takes 30"));
  EXPECT_NEAR(*The(diagnosis, "one-slot").gain, 203.0 / 1305, 0.01);
}

TEST(Doctor, SaysThatRunsAreWaitedForThoughThereAreSlots) {
  MadeJob made = Copies(3, 305);
  EXPECT_THAT(RulesOf(made), ElementsAre("waits-for-each-run"));
}

// Nothing could overlap: all is kernels.
TEST(Doctor, DoesNotAdviseSlotsWhereOneEngineDoesAll) {
  MadeJob made;
  const int g = made.Graph("kernels", 1, {kWork});
  for (int r = 0; r < kRuns; ++r)
    made.Run(g, 0, r * 100, r * 100 + 1, r * 100 + 99.5).Node(g, 0, r * 100 + 1, r * 100 + 97);
  EXPECT_THAT(RulesOf(made), ElementsAre("compute-bound"));
}

TEST(Doctor, LeavesOutTheFirstRunOfEachSlot) {
  MadeJob made = Copies(4, 101);
  const size_t warm = static_cast<size_t>(4) * 5;  // a launch, a run, and three nodes
  for (size_t s = 0; s < made.profile().spans.size(); ++s) {
    if (s < warm) made.profile().spans[s].begin_us -= 1e6;
    if (s < warm && made.profile().spans[s].kind != SpanKind::kRun) made.profile().spans[s].end_us -= 1e6;
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_THAT(RulesOf(diagnosis), IsEmpty());
  EXPECT_DOUBLE_EQ(diagnosis.wall_us, 35 * 101 + 304);
}

TEST(Doctor, SaysWhatItLeavesOut) {
  MadeJob made = Copies(1, 305, 1);
  made.profile().lost_spans = 17;
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_EQ(diagnosis.wall_us, 0);
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_THAT(diagnosis.notes, ElementsAre(HasSubstr("graph 'copies' is left out"), HasSubstr("17 spans")));
}

// The memory in `staged` microseconds by host threads, in place of a direct copy; another input is pinned, with
// `direct` us for the same bytes.
MadeJob Staged(double staged, double direct) {
  MadeJob made;
  const int g = made.Graph("staged", 2,
                           {{.name = "stage in", .kind = "stage in", .read_bytes = 1 << 20, .written_bytes = 1 << 20},
                            {.name = "upload table", .kind = "upload", .device = 0, .read_bytes = 1 << 20},
                            {.name = "work", .kind = "kernel", .device = 0, .after = {0, 1}}});
  const double run = staged + direct + 102;
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * run;
    made.Run(g, r % 2, at - run, at - run + 1, at + run).Node(g, 0, at, at + staged);
    made.Node(g, 1, at + staged, at + staged + direct).Node(g, 2, at + staged + direct, at + run);
  }
  return made;
}

TEST(Doctor, SaysWhichMemoryShouldBePinned) {
  MadeJob made = Staged(400, 100);
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  const Finding& finding = The(diagnosis, "memory-not-pinned");
  EXPECT_EQ(diagnosis.findings[0].rule, "memory-not-pinned");
  EXPECT_EQ(finding.node_name, "stage in");
  EXPECT_THAT(finding.fix, HasSubstr("Bind pinned memory to 'in'"));
  EXPECT_EQ(made.profile().spans[static_cast<size_t>(finding.span)].name, "stage in");
  // A run of 602 us has 400 in which devices wait, and a direct copy takes 100 of these.
  EXPECT_NEAR(*finding.gain, 300.0 / 602, 0.02);
  EXPECT_NEAR(finding.share, 400.0 / 602, 0.02);
  MadeJob as_fast = Staged(100, 100);
  EXPECT_THAT(RulesOf(as_fast), Not(Contains("memory-not-pinned")));
}

// Host threads copy for several runs at once, so the device waits for half of the time, but the link needs 92 us for
// each of a run's two copies of a MiB, once they have begun.
TEST(Doctor, PromisesNoMoreOfPinningThanTheLinkAllows) {
  MadeJob made = Staged(400, 100);
  made.profile().spans.clear();
  made.profile().graphs[0].launches = 0;
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * 250;
    // Two copies of 92 us, and what each takes before it begins.
    made.Run(0, r % 2, at - 400, at - 399, at + 200).Node(0, 0, at - 390, at + 90).Node(0, 1, at + 100, at + 200);
  }
  EXPECT_NEAR(*The(Diagnose(made.profile(), nullptr), "memory-not-pinned").gain, 1 - 200.0 / 250, 0.01);
}

TEST(Doctor, DoesNotKnowTheGainOfPinningWithoutADirectCopy) {
  MadeJob made = Staged(400, 100);
  made.profile().graphs[0].nodes[1].kind = "fill";
  for (Span& span : made.profile().spans) {
    if (span.node == 1) span.kind = SpanKind::kKernel;
  }
  EXPECT_FALSE(The(Diagnose(made.profile(), nullptr), "memory-not-pinned").gain.has_value());
  const Machine machine = MachineWith((1 << 20) / 50.0 / 1000, 0, 0);  // 50 us for the buffer
  EXPECT_NEAR(*The(Diagnose(made.profile(), &machine), "memory-not-pinned").gain, 350.0 / 602, 0.02);
}

// A kernel, a host node and a kernel; the next run's launch comes in time. The device stops 10 us before the host node
// and starts again 10 us after it.
MadeJob HostInTheMiddle(double host, int64_t written) {
  MadeJob made;
  const int g = made.Graph(
      "middle", 2,
      {{.name = "a", .kind = "kernel", .device = 0},
       {.name = "look", .kind = "host", .where = "b.cc:3", .after = {0}, .read_bytes = 8, .written_bytes = written},
       {.name = "b", .kind = "kernel", .device = 0, .after = {1}}});
  const double run = 220 + host;
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * run;
    made.Run(g, r % 2, at - run, at - run + 1, at + run).Node(g, 0, at, at + 100);
    made.Node(g, 1, at + 110, at + 110 + host).Node(g, 2, at + 120 + host, at + run);
  }
  return made;
}

TEST(Doctor, SaysWhichHostNodeStopsTheDevice) {
  MadeJob made = HostInTheMiddle(180, 0);
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  ASSERT_FALSE(diagnosis.findings.empty());
  const Finding& finding = diagnosis.findings[0];
  EXPECT_EQ(finding.rule, "synchronizing-host-node");
  EXPECT_EQ(finding.node_name, "look");
  EXPECT_EQ(finding.where, "b.cc:3");
  EXPECT_NEAR(*finding.gain, 200.0 / 400, 0.01);
  EXPECT_THAT(finding.fix, HasSubstr("Graph::Copy"));
  // Without buffers only After can make the device wait, and a copy would not help.
  made.profile().graphs[0].nodes[1].read_bytes = 0;
  EXPECT_THAT(Diagnose(made.profile(), nullptr).findings[0].fix,
              AllOf(HasSubstr("only After"), Not(HasSubstr("Graph::Copy"))));
  MadeJob slow = HostInTheMiddle(600, 0);  // of 820 us it still takes 600
  EXPECT_NEAR(*Diagnose(slow.profile(), nullptr).findings[0].gain, 220.0 / 820, 0.01);
  MadeJob writes = HostInTheMiddle(180, 8);
  EXPECT_THAT(Diagnose(writes.profile(), nullptr).findings[0].fix, HasSubstr("on the device"));
  // At the beginning or the end of a run it stops nothing that the next run would not go on with.
  for (const size_t cut : {size_t{1}, size_t{2}}) {
    MadeJob apart = HostInTheMiddle(180, 0);
    apart.profile().graphs[0].nodes[cut].after.clear();
    EXPECT_THAT(RulesOf(apart), Not(Contains("synchronizing-host-node"))) << cut;
  }
  MadeJob short_one = HostInTheMiddle(5, 8);
  const Finding asked = The(Diagnose(short_one.profile(), nullptr), "synchronizing-host-node");
  EXPECT_THAT(asked.fix, HasSubstr("NodeRef::Inline"));
  EXPECT_NEAR(*asked.gain, 20.0 / 225, 0.01);
}

// What is downloaded for the host node alone goes on beside the kernels as well, once the node reads a copy.
TEST(Doctor, CountsTheDownloadForAHostNode) {
  MadeJob made;
  const int g = made.Graph("middle", 2,
                           {{.name = "a", .kind = "kernel", .device = 0},
                            {.name = "download a", .kind = "download", .device = 0, .after = {0}, .read_bytes = 8},
                            {.name = "look", .kind = "host", .after = {1}, .read_bytes = 8},
                            {.name = "b", .kind = "kernel", .device = 0, .after = {2}},
                            {.name = "download out", .kind = "download", .device = 0, .after = {3}, .read_bytes = 8}});
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * 500;
    made.Run(g, r % 2, at - 500, at - 499, at + 500).Node(g, 0, at, at + 100).Node(g, 1, at + 100, at + 150);
    made.Node(g, 2, at + 160, at + 350).Node(g, 3, at + 360, at + 470).Node(g, 4, at + 470, at + 500);
  }
  EXPECT_NEAR(*Diagnose(made.profile(), nullptr).findings[0].gain, (210 + 50) / 500.0, 0.01);
  made.profile().graphs[0].nodes[3].after = {2, 1};  // which uses it too
  EXPECT_NEAR(*Diagnose(made.profile(), nullptr).findings[0].gain, 210 / 500.0, 0.01);
}

// Uploads of other runs hide the host node.
TEST(Doctor, DoesNotMindHostNodesThatOtherRunsHide) {
  MadeJob made = HostInTheMiddle(180, 0);
  const int g = made.Graph("other", 2, {kUp});
  for (int r = 0; r < kRuns; ++r)
    made.Run(g, r % 2, r * 400, r * 400 + 1, r * 400 + 400).Node(g, 0, r * 400, r * 400 + 400);
  EXPECT_THAT(RulesOf(made), Not(Contains("synchronizing-host-node")));
}

TEST(Doctor, SaysThatAHostNodeIsCalledOnceAtATime) {
  MadeJob made;
  const int g = made.Graph(
      "encode", 3, {kUp, {.name = "encode", .kind = "host", .after = {0}, .read_bytes = 8, .written_bytes = 8}});
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * 100;
    made.Run(g, r % 3, at - 200, at - 199, at + 100).Node(g, 0, at - 190, at - 170).Node(g, 1, at, at + 99);
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].rule, "host-bound");
  EXPECT_EQ(diagnosis.findings[0].node_name, "encode");
  EXPECT_THAT(diagnosis.findings[0].fix, HasSubstr("Concurrency(4)"));
  EXPECT_NEAR(*diagnosis.findings[0].gain, 0.75, 0.03);  // of 99 us a quarter is left; uploads take 20
}

// 50 nodes that seem to take `us` each, as fast as they are submitted: one in `every` us.
MadeJob Tiny(Mode mode, double every, double us = 1, bool is_cuda = false) {
  MadeJob made(is_cuda);
  std::vector<JobNode> nodes;
  for (int n = 0; n < 50; ++n) nodes.push_back({.name = "n" + std::to_string(n), .kind = "parallel for", .device = 0});
  const int g = made.Graph("tiny", 2, nodes);
  made.profile().graphs[0].report.mode = mode;
  made.profile().graphs[0].report.notes = {"a remark"};
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * every * 50;
    made.Run(g, r % 2, at, at + every * 50, at + every * 50 + 1);
    for (int n = 0; n < 50; ++n) made.Node(g, n, at + n * every, at + n * every + us);
  }
  return made;
}

TEST(Doctor, SaysThatLaunchesTakeLongerThanTheWork) {
  MadeJob made = Tiny(Mode::kStream, 5);
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  const Finding& finding = diagnosis.findings[0];
  EXPECT_EQ(finding.rule, "launch-bound");
  EXPECT_THAT(finding.fix, HasSubstr("Mode::kGraph"));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("a remark")));
  EXPECT_NEAR(*finding.gain, 0.8 * 47 / 50, 0.01);
  // On a GPU, a kernel seems to take 4 of the 5 us, since it waits for its own submission.
  MadeJob waits = Tiny(Mode::kStream, 5, 4, true);
  const Finding waiting = The(Diagnose(waits.profile(), nullptr), "launch-bound");
  EXPECT_NEAR(*waiting.gain, (1 * 47 / 50.0 + 3) / 5, 0.01);
  EXPECT_NEAR(waiting.floor_cut, 3.0 / 5, 0.01);
  // Where graphs are not possible, the advice is not to use them but what stands against them.
  made.profile().graphs[0].report.notes.push_back("no graphs any more: a node was \x1b refused");
  const Diagnosis refused = Diagnose(made.profile(), nullptr);
  EXPECT_THAT(The(refused, "launch-bound").fix,
              AllOf(HasSubstr("a node was \\x1b refused"), Not(HasSubstr("Mode::kGraph"))));
  EXPECT_FALSE(The(refused, "launch-bound").gain.has_value());
  MadeJob graphs = Tiny(Mode::kGraph, 5);
  EXPECT_THAT(The(Diagnose(graphs.profile(), nullptr), "launch-bound").fix, Not(HasSubstr("Mode::kGraph")));
}

TEST(Doctor, SaysThatNodesAreTiny) {
  MadeJob made = Tiny(Mode::kGraph, 1.01);
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("many-tiny-nodes"));
  EXPECT_THAT(diagnosis.findings[0].node_name, StartsWith("n"));
  made.profile().graphs[0].report.regions = 1;
  EXPECT_THAT(RulesOf(made), IsEmpty());
}

TEST(Doctor, SaysThatCopiesAreSmallAndMany) {
  MadeJob made;
  std::vector<JobNode> nodes(10, {.name = "upload part", .kind = "upload", .device = 0, .read_bytes = 100});
  nodes.push_back({.name = "work", .kind = "kernel", .device = 0});
  const int g = made.Graph("parts", 2, nodes);
  for (int r = 0; r < kRuns; ++r) {
    made.Run(g, r % 2, r * 200 - 200, r * 200 - 199, r * 200 + 200);
    for (int n = 0; n < 10; ++n) made.Node(g, n, r * 200 + n * 10, r * 200 + n * 10 + 10);
    made.Node(g, 10, r * 200 + 100, r * 200 + 200);
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_NEAR(*The(diagnosis, "many-small-copies").gain, 0.5 * 0.9, 0.02);
  EXPECT_EQ(The(diagnosis, "many-small-copies").node_name, "upload part");
  EXPECT_EQ(The(diagnosis, "many-small-copies").floor_cut, 0);  // kernels still need half of the time
  for (Profile::Node& node : made.profile().graphs[0].nodes) node.read_bytes = 1 << 20;
  EXPECT_THAT(RulesOf(made), Not(Contains("many-small-copies")));
}

TEST(Doctor, SaysThatTheProgramLaunchesLate) {
  MadeJob made;
  const int g = made.Graph("late", 3, {kUp, kWork});
  for (int r = 0; r < kRuns; ++r) {
    made.Own("read <file>\n", r * 300 + 100, r * 300 + 300);
    made.Run(g, r % 3, r * 300, r * 300 + 1, r * 300 + 100).Node(g, 0, r * 300 + 1, r * 300 + 50);
    made.Node(g, 1, r * 300 + 50, r * 300 + 99);
  }
  Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("starved-source"));
  // Each engine works for 49 us, and four threads need 75 us a run for what one needs at most 300 for.
  EXPECT_NEAR(*diagnosis.findings[0].gain, 225.0 / 300, 0.02);
  EXPECT_THAT(diagnosis.findings[0].fix, HasSubstr("with 4 workers"));
  EXPECT_EQ(diagnosis.findings[0].graph, g);
  EXPECT_THAT(diagnosis.findings[0].evidence, Contains(HasSubstr("'read <file>\\x0a' was open")));
  made.profile().graphs[0].slots = 1;
  diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_NEAR(*The(diagnosis, "starved-source").gain, 200.0 / 300, 0.02);  // the runs themselves do not overlap
}

// Launches take 160 of 300 us, whoever makes them.
TEST(Doctor, LeavesLaunchesTheirTimeIfTheProgramIsLate) {
  MadeJob made;
  const int g = made.Graph("late", 3, {kUp, kWork});
  for (int r = 0; r < kRuns; ++r) {
    made.Run(g, r % 3, r * 300, r * 300 + 160, r * 300 + 180).Node(g, 0, r * 300 + 80, r * 300 + 130);
    made.Node(g, 1, r * 300 + 130, r * 300 + 180);
  }
  EXPECT_NEAR(*The(Diagnose(made.profile(), nullptr), "starved-source").gain, 140.0 / 300, 0.01);
}

// Two runs overlap, then the next two are late by 50 of 300 us: nothing else goes away if they are not.
TEST(Doctor, PromisesOnlyTheGapsWhereRunsOverlapAlready) {
  MadeJob made;
  const int g = made.Graph("late", 3, {kUp, kWork});
  for (int r = 0; r < kRuns; r += 2) {
    const double at = r * 150;
    made.Run(g, r % 3, at, at + 1, at + 150).Node(g, 0, at + 1, at + 50).Node(g, 1, at + 50, at + 150);
    made.Run(g, (r + 1) % 3, at + 1, at + 2, at + 250).Node(g, 0, at + 50, at + 100).Node(g, 1, at + 150, at + 250);
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_NEAR(The(diagnosis, "starved-source").share, 50.0 / 300, 0.01);
  EXPECT_NEAR(*The(diagnosis, "starved-source").gain, 50.0 / 300, 0.01);
}

// A pipeline, whose host stages take `get` and `put` us for an item; the run between them takes 100.
MadeJob Stages(double get, int workers, double put) {
  const double every = std::max({get, put, 100.0});
  MadeJob made;
  const int g = made.Graph("staged", 3, {kUp, kWork});
  made.Pipeline({{"get", workers}, {"work", 3}, {"put\x1b", 1}});
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * every;
    made.Stage("get", 0, at - get, at).Run(g, r % 3, at, at + 1, at + 100).Node(g, 0, at + 1, at + 50);
    made.Node(g, 1, at + 50, at + 99).Stage("put\x1b", 0, at + 100, at + 100 + put);
  }
  return made;
}

TEST(Doctor, NamesTheHostStageThatIsLate) {
  const Diagnosis diagnosis = Diagnose(Stages(400, 1, 10).profile(), nullptr);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("starved-source"));
  const Finding& finding = diagnosis.findings[0];
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("host stage 'get' (1 worker) had no worker free")));
  // Each engine works for 49 of 400 us. No call follows the last run.
  EXPECT_THAT(finding.fix, HasSubstr("Give host stage 'get' (1 worker) 8 workers"));
  EXPECT_NEAR(*finding.gain, 1 - 49.0 / 400, 0.01);
  Machine machine;
  machine.cores = 2;
  const Diagnosis two = Diagnose(Stages(400, 1, 10).profile(), &machine);
  EXPECT_THAT(two.findings[0].fix, HasSubstr(" 2 workers"));
  EXPECT_NEAR(*two.findings[0].gain, 0.5, 0.01);
  machine.cores = 1;
  const Diagnosis one = Diagnose(Stages(400, 1, 10).profile(), &machine);
  EXPECT_THAT(one.findings[0].fix, HasSubstr("do less"));
  EXPECT_FALSE(one.findings[0].gain.has_value());
}

// While one of two workers is free, no item waits for the stage: what gives the pipeline its items is late.
TEST(Doctor, DoesNotAdviseWorkersForAStageThatHasSomeFree) {
  const Diagnosis diagnosis = Diagnose(Stages(400, 2, 10).profile(), nullptr);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("starved-source"));
  EXPECT_THAT(diagnosis.findings[0].fix, AllOf(HasSubstr("the source and the sink"), Not(HasSubstr("'get'"))));
  EXPECT_THAT(diagnosis.findings[0].evidence, Contains(HasSubstr("host stage 'get' (2 workers) was at work, but")));
}

TEST(Doctor, SaysThatAStageBehindTheGraphHoldsUpAll) {
  const Diagnosis diagnosis = Diagnose(Stages(120, 1, 400).profile(), nullptr);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("slow-sink"));
  const Finding& finding = diagnosis.findings[0];
  EXPECT_THAT(finding.fix, HasSubstr("Give host stage 'put\\x1b' (1 worker) 4 workers"));
  EXPECT_NEAR(*finding.gain, 1 - 120.0 / 400, 0.01);  // then the stage before the graph is the slowest
  EXPECT_THAT(finding.gain_how, HasSubstr("host stage 'get'"));
  EXPECT_NEAR(finding.share, 1, 0.01);
  // Each engine works for nearly all of 110 us then, and no stage for more than 60.
  MadeJob fast = Stages(60, 1, 60);
  EXPECT_THAT(RulesOf(fast), Not(Contains("slow-sink")));
}

// The one that sets the pace, though the other one had no worker free for as much of the gaps.
TEST(Doctor, NamesOneStageWhereTwoAreSlow) {
  EXPECT_THAT(RulesOf(Diagnose(Stages(400, 1, 380).profile(), nullptr)), ElementsAre("starved-source"));
  EXPECT_THAT(RulesOf(Diagnose(Stages(380, 1, 400).profile(), nullptr)), ElementsAre("slow-sink"));
}

// A stage that no item has reached runs no graph, as far as anyone knows.
TEST(Doctor, TakesNoIdleStageForAGraph) {
  MadeJob made = Stages(120, 1, 400);
  made.profile().pipelines[0].stats.stages.push_back({.name = "seldom", .capacity = 1});
  EXPECT_THAT(RulesOf(Diagnose(made.profile(), nullptr)), ElementsAre("slow-sink"));
}

// One kernel after the other, `long_us` and `short_us`, of which a run has two, and so many us in which nothing
// happens.
MadeJob Kernels(double long_us, double short_us, double pause_us) {
  MadeJob made;
  const int g = made.Graph("kernels", 2,
                           {{.name = "short", .kind = "kernel", .where = "a.cc:8", .device = 0},
                            {.name = "long", .kind = "kernel", .where = "a.cc:9", .device = 0, .after = {0}}});
  const double every = long_us + short_us + pause_us;
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * every;
    made.Run(g, r % 2, at - every, at - every + 1, at + every).Node(g, 0, at, at + short_us);
    made.Node(g, 1, at + short_us, at + short_us + long_us);
  }
  return made;
}

TEST(Doctor, SaysWhichNodeFillsTheDevice) {
  const Diagnosis diagnosis = Diagnose(Kernels(600, 350, 50).profile(), nullptr);
  const Finding& finding = The(diagnosis, "compute-bound");
  EXPECT_EQ(finding.node_name, "long");
  EXPECT_EQ(finding.where, "a.cc:9");
  EXPECT_NEAR(finding.share, 0.95, 0.02);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("takes most, 6")));
  EXPECT_THAT(finding.gain_how, HasSubstr("half as long, 3"));
  EXPECT_FALSE(finding.gain.has_value());  // it is no promise
  MadeJob pauses = Kernels(600, 250, 150), small = Kernels(12, 4, 0);
  EXPECT_THAT(RulesOf(pauses), Not(Contains("compute-bound")));
  EXPECT_THAT(RulesOf(small), Not(Contains("compute-bound")));  // much of such nodes is starting them
  MadeJob copies = Copies(4, 101);  // which take as long
  EXPECT_THAT(RulesOf(copies), Not(Contains("compute-bound")));
}

// Of 300 us, 200 are spent on recording a run: without a profile it takes 100.
TEST(Doctor, LeavesOutWhatRecordingTakes) {
  MadeJob made;
  const int g = made.Graph("recorded", 3, {kUp, kWork});
  for (int r = 0; r < kRuns; ++r) {
    made.Run(g, r % 3, r * 300, r * 300 + 1, r * 300 + 100).Node(g, 0, r * 300 + 1, r * 300 + 50);
    made.Node(g, 1, r * 300 + 50, r * 300 + 99).Recording(g, r * 300 + 100, r * 300 + 300);
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_THAT(RulesOf(diagnosis), Not(Contains("starved-source")));
  EXPECT_NEAR(diagnosis.wall_us, 100 * (kRuns - 3), 1e-6);
  EXPECT_NEAR(diagnosis.efficiency, 49, 0.1);
}

TEST(Doctor, SaysThatGraphsAreMadeAgain) {
  MadeJob made = Tiny(Mode::kGraph, 5);
  SubmissionReport& report = made.profile().graphs[0].report;
  report.graph_launches = kRuns;
  report.graphs = 2 + 20;
  report.instantiating_us = 22 * 100;
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  EXPECT_THAT(RulesOf(diagnosis), Not(Contains("launch-bound")));
  // 2000 us of surplus, of the launches that are looked at.
  EXPECT_NEAR(*The(diagnosis, "made-again").gain, 2000 * 38.0 / 40 / diagnosis.wall_us, 1e-6);
  report.graphs = 2;
  EXPECT_THAT(RulesOf(made), Not(Contains("made-again")));
}

TEST(Doctor, SaysWhatLiesBehindGaps) {
  MadeJob made;
  const int g = made.Graph("state", 2, {kWork});
  for (int r = 0; r < kRuns; ++r) {
    const double at = r * 100;
    made.Run(g, r % 2, at - 100, at - 99, at + 100).Node(g, 0, at + 40, at + 99);
    made.WaitForState(g, at, at + 40);
  }
  const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
  const Finding& gaps = The(diagnosis, "idle-gaps");
  EXPECT_THAT(gaps.evidence[0], HasSubstr("use of a State"));
  EXPECT_NEAR(gaps.share, 0.4, 0.02);
  EXPECT_NEAR(The(diagnosis, "runs-in-order").share, 0.4, 0.02);
}

TEST(Doctor, SeesThatRunsOverlapThoughSlowly) {
  MadeJob made = Copies(4, 150);
  EXPECT_THAT(RulesOf(made), Not(Contains("runs-in-order")));
}

TEST(Doctor, SaysThatTheLinkSetsThePace) {
  MadeJob made = Copies(4, 101);
  for (Span& span : made.profile().spans) {
    if (span.kind == SpanKind::kKernel) span.end_us = span.begin_us + 20;
  }
  EXPECT_THAT(RulesOf(made), ElementsAre("copies-bound"));
}

TEST(Doctor, ComparesWithTheMachine) {
  MadeJob made = Copies(4, 101);  // 10.5 GB/s
  const Machine fast = MachineWith(50, 20, 20);
  const Diagnosis diagnosis = Diagnose(made.profile(), &fast);
  ASSERT_THAT(RulesOf(diagnosis), ElementsAre("far-below-roofline"));
  EXPECT_EQ(diagnosis.findings[0].node_name, "upload x");
  Machine other = fast;  // of a machine with another device
  other.devices[0].description = "another";
  EXPECT_THAT(RulesOf(Diagnose(made.profile(), &other)), Not(Contains("far-below-roofline")));
}

// Kernels of 100 us over 1 MiB, with `flops` each; the machine moves 1 TB/s and computes 10 TFLOP/s.
MadeJob Computing(double flops, const std::string& kind = "kernel") {
  MadeJob made;
  const int g = made.Graph(
      "compute", 2,
      {{.name = "work", .kind = kind, .where = "a.cc:7", .device = 0, .read_bytes = 1 << 20, .flops = flops}});
  for (int r = 0; r < kRuns; ++r) {
    made.Run(g, r % 2, r * 101 - 100, r * 101 - 99, r * 101 + 101).Node(g, 0, r * 101, r * 101 + 100);
  }
  return made;
}
Machine ComputingMachine() {
  Machine machine = MachineWith(50, 50, 1000);
  machine.devices[0].fp32 = 10'000;
  return machine;
}

// 2e8 operations in 100 us are 2 TFLOP/s, a fifth of what the machine does; that takes 20 us, the bytes 1 us.
TEST(Doctor, ComparesOperationsWithThePeak) {
  MadeJob made = Computing(2e8);
  const Machine machine = ComputingMachine();
  const Diagnosis diagnosis = Diagnose(made.profile(), &machine);
  const Finding& finding = The(diagnosis, "far-below-roofline");
  EXPECT_EQ(finding.node, 0);
  EXPECT_THAT(finding.evidence,
              ElementsAre(HasSubstr("2.00 TFLOP/s: 20 % of the 10.0 TFLOP/s that this device's plain FP32 reaches")));
  EXPECT_FALSE(finding.gain.has_value());
  // From a quarter on it is near enough.
  EXPECT_THAT(RulesOf(Diagnose(Computing(2.6e8).profile(), &machine)), Not(Contains("far-below-roofline")));
  // The bytes take longer than so few operations, so memory is what it is far from.
  const Diagnosis few = Diagnose(Computing(1e6).profile(), &machine);
  EXPECT_THAT(The(few, "far-below-roofline").evidence,
              ElementsAre(HasSubstr("moved only 10.5 GB/s of what it declares; this machine reaches 1000 GB/s")));
  // A kernel that does not say how much it computes may do anything with its bytes.
  EXPECT_THAT(RulesOf(Diagnose(Computing(0).profile(), &machine)), Not(Contains("far-below-roofline")));
  EXPECT_THAT(RulesOf(Diagnose(Computing(2e8).profile(), nullptr)), Not(Contains("far-below-roofline")));
}

TEST(Doctor, SaysHowMuchOfThePeakIsUsed) {
  const Machine machine = ComputingMachine();
  const Diagnosis diagnosis = Diagnose(Computing(6e8).profile(), &machine);
  // Kernels go on for 100 of 101 us.
  EXPECT_THAT(diagnosis.notes, ElementsAre(AllOf(HasSubstr("host:0 computed at 5.9"), HasSubstr("59 % of the 10.0"))));
  EXPECT_THAT(Diagnose(Computing(6e8).profile(), nullptr).notes, IsEmpty());
}

// Tensor cores do more than plain FP32, and a wrong declaration may say anything: that is no fault of the node.
TEST(Doctor, OnlySaysThatOperationsAreBeyondThePeak) {
  const Machine machine = ComputingMachine();
  const Diagnosis diagnosis = Diagnose(Computing(3e9).profile(), &machine);
  EXPECT_THAT(RulesOf(diagnosis), Not(Contains("far-below-roofline")));
  EXPECT_THAT(diagnosis.notes,
              Contains(AllOf(HasSubstr("'work' (a.cc:7) computed at 30.0 TFLOP/s, more than the 10.0"))));
}

TEST(Doctor, SaysThatAJobIsTooSmallForAGpu) {
  for (const bool is_cuda : {true, false}) {
    MadeJob made(is_cuda);
    const int g = made.Graph("small", 2, {{.name = "work", .kind = "kernel", .device = 0, .read_bytes = 100}});
    for (int r = 0; r < kRuns; ++r)
      made.Run(g, r % 2, r * 50, r * 50 + 30, r * 50 + 50).Node(g, 0, r * 50 + 35, r * 50 + 38);
    EXPECT_EQ(std::ranges::count(RulesOf(made), "job-too-small"), is_cuda ? 1 : 0);
  }
}

// A run of 100 us on a GPU. On a host device its launch takes the most, 15 us (assumed_machine.cc), since its 8 KiB
// take a microsecond.
TEST(Doctor, ComparesSmallJobsWithAHostDevice) {
  const auto diagnose = [](const std::string& kind, const Machine* machine, double run_us = 100) {
    MadeJob made(/*is_cuda=*/true);
    const int g = made.Graph("small", 2, {{.name = "work", .kind = kind, .device = 0, .read_bytes = 8192}});
    for (int r = 0; r < kRuns; ++r) {
      const double at = r * run_us;
      made.Run(g, r % 2, at - run_us, at - run_us + 3, at + run_us).Node(g, 0, at + 4, at + 6);
    }
    return Diagnose(made.profile(), machine);
  };
  Machine machine;
  machine.host_copy = 10;
  machine.host_fp32 = 10;
  const Diagnosis diagnosis = diagnose("parallel for", &machine);
  EXPECT_NEAR(*The(diagnosis, "job-too-small").gain, 0.85, 0.05);
  EXPECT_THAT(The(diagnosis, "job-too-small").gain_how, HasSubstr("a run would take"));
  const Diagnosis slow = diagnose("parallel for", &machine, 15);
  EXPECT_FALSE(The(slow, "job-too-small").gain.has_value());
  for (const auto& unknown : {diagnose("parallel for", nullptr), diagnose("kernel", &machine)}) {
    EXPECT_FALSE(The(unknown, "job-too-small").gain.has_value());
    EXPECT_THAT(The(unknown, "job-too-small").gain_how, HasSubstr("PENSTOCK_DEVICES=host penstock doctor --exec"));
  }
}

// Whatever the profile: each gain is from 0 to 1, they are ordered, and together they leave the floor.
TEST(Doctor, PromisesNoMoreThanThereIsInRandomProfiles) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const auto upto = [&](int most) { return static_cast<double>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 300; ++i) {
    MadeJob made(random() % 2 == 0);
    std::vector<JobNode> nodes = {kUp,
                                  kWork,
                                  kDown,
                                  {.name = "stage in", .kind = "stage in", .read_bytes = 1 << 20},
                                  {.name = "host", .kind = "host", .after = {0, 1}}};
    nodes[2].after = {4};
    double at = 0;
    const int g = made.Graph("random", 1 + static_cast<int>(random() % 3), nodes);
    for (int r = 0; r < 30; ++r) {
      const double begin = at;
      made.Run(g, 0, begin, begin + upto(20), begin + 300);
      for (int n = 0; n < 5; ++n) {
        const double from = begin + upto(250);
        made.Node(g, n, from, from + upto(200));
      }
      at += upto(400);
    }
    // And nonsense, which must not matter.
    Span& nonsense = made.profile().spans.emplace_back();
    nonsense = {"", "", SpanKind::kKernel, std::numeric_limits<double>::quiet_NaN(), 1e300, 0, 99, 10, 99, 99};
    const Diagnosis diagnosis = Diagnose(made.profile(), nullptr);
    double sum = 0;
    for (size_t f = 0; f < diagnosis.findings.size(); ++f) {
      const Finding& finding = diagnosis.findings[f];
      EXPECT_GE(finding.share, 0);
      EXPECT_LE(finding.share, 1 + 1e-9);
      EXPECT_GE(finding.gain.value_or(0), 0);
      sum += finding.gain.value_or(0) - finding.floor_cut;
      if (f > 0) {
        EXPECT_GE(diagnosis.findings[f - 1].gain.value_or(0), finding.gain.value_or(0));
      }
    }
    EXPECT_LE(sum, 1 - diagnosis.floor_us / diagnosis.wall_us + 1e-9);
  }
}

// Each moment in which no engine works is in one part, and no other.
TEST(Facts, HaveAllIdleTimeOnce) {
  MadeJob made = HostInTheMiddle(180, 0);
  const Facts facts(made.profile(), nullptr);
  double idle = 0;
  std::vector<Interval> all, busy;
  for (const IdlePart& part : facts.idle()) {
    idle += part.at.length();
    all.push_back(part.at);
  }
  for (const Engine& engine : facts.engines())
    busy.insert(busy.end(), engine.busy.intervals().begin(), engine.busy.intervals().end());
  EXPECT_DOUBLE_EQ(TimeSet(all).length(), idle);
  EXPECT_NEAR(idle + TimeSet(busy).length(), facts.wall_us(), 1e-6);
  EXPECT_TRUE(TimeSet(all).And(TimeSet(busy)).empty());
}

}  // namespace
}  // namespace penstock::analysis::doctor_test
