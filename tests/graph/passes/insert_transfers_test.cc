// InsertTransfers: which copies are inserted, where, and which are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "graph/plan/plan_names.h"
#include "tests/graph/oracle/draft_after.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/oracle.h"

namespace penstock::graph::insert_transfers_test {
namespace {

std::string InstanceText(const Draft& draft, InstanceId instance) {
  Plan plan;
  plan.instances = draft.ordered.instances;
  return InstanceName(plan, draft.records.model, instance);
}

// The steps in sequence, with those that nobody needs or without them: "stage in x.bound>x.pinned; upload
// x.pinned>x.device0; k".
std::string StepsOf(const ModelBuilder& g, const PlanOptions& options = Devices(1),
                    std::vector<std::string>* remarks = {}, bool needless = true) {
  const Draft draft = DraftAfter("InsertTransfers", g.model, options, needless ? "EliminateCopies" : "");
  EXPECT_TRUE(draft.findings.mistakes.empty()) << draft.findings.mistakes[0].text;
  std::string text;
  for (const Step& step : draft.ordered.steps) {
    if (!text.empty()) text += "; ";
    if (step.decl >= 0) text += std::string(g.model.nodes[step.decl].name.view());
    if (step.src < 0) continue;
    text += std::string(step.decl >= 0 ? " = " : "") + KindName(step.kind) + " " + InstanceText(draft, step.src) + ">" +
            InstanceText(draft, step.dst);
    if (step.part < 0) continue;
    text += " " + SliceText(g.model.buffers[draft.ordered.instances[step.src].buffer], draft.ordered.parts[step.part]);
  }
  if (remarks != nullptr) *remarks = draft.findings.remarks;
  return text;
}

TEST(Transfers, HostMemoryGoesThroughPinnedBothWays) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4), y = g.Output("y", 4);
  g.For("k", In{x}, Out{y});
  EXPECT_EQ(StepsOf(g),
            "stage in x.bound>x.pinned; upload x.pinned>x.device0; k; download y.device0>y.pinned; "
            "stage out y.pinned>y.bound");
}

TEST(Transfers, PinnedMemoryGoesDirectly) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), y = g.Output("y", 4, kPinned);
  g.For("k", In{x}, Out{y});
  EXPECT_EQ(StepsOf(g), "upload x.bound>x.device0; k; download y.device0>y.bound");
}

TEST(Transfers, SlotMemoryIsFilledAndReadInPlace) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kSlot), y = g.Output("y", 4, kSlot), z = g.InOut("z", 4, kSlot);
  g.For("k", In{x}, Out{y}, Change{z});
  g.Host("h", Change{z});
  EXPECT_EQ(StepsOf(g),
            "upload x.pinned>x.device0; upload z.pinned>z.device0; k; download z.device0>z.pinned; h; "
            "download y.device0>y.pinned");
}

TEST(Transfers, InOutIsBroughtInAndBack) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned);
  g.For("k", Change{x});
  EXPECT_EQ(StepsOf(g), "upload x.bound>x.device0; k; download x.device0>x.bound");
}

TEST(Transfers, WhatIsWrittenWholeIsNotBroughtIn) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned);
  g.For("k", Out{x});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks), "k; download x.device0>x.bound");
  EXPECT_EQ(remarks, (std::vector<std::string>{"x: its contents are not used; 'k' writes all of it first"}));
}

TEST(Transfers, WhatIsNotWrittenIsNotBroughtBack) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned);
  g.For("k", In{x});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks), "upload x.bound>x.device0; k");
  EXPECT_EQ(remarks, (std::vector<std::string>{"x: not copied back; no node writes it"}));
}

TEST(Transfers, AnInputIsUploadedOnceForAllReaders) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned);
  g.For("k0", In{x});
  g.For("k1", In{x});
  g.For("k2", In{x});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks), "upload x.bound>x.device0; k0; k1; k2");
  EXPECT_EQ(remarks, (std::vector<std::string>{"x: copied to host:0 once for 3 readers"}));
}

TEST(Transfers, EachDeviceGetsItsCopyFromTheHost) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned);
  g.For("k0", In{x});
  g.node(g.For("k1", In{x})).device = 1;
  EXPECT_EQ(StepsOf(g, Devices(2)), "upload x.bound>x.device0; k0; upload x.bound>x.device1; k1");
}

TEST(Transfers, WhatOnlyADeviceHoldsGoesToItsPeer) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k0", Out{t});
  g.node(g.For("k1", In{t})).device = 1;
  g.For("k2", In{t});
  EXPECT_EQ(StepsOf(g, Devices(2)), "k0; peer copy t.device0>t.device1; k1; k2");
}

TEST(Transfers, AWriteMakesOtherCopiesStale) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.For("k0", Out{t});
  g.node(g.For("k1", Change{t})).device = 1;
  g.For("k2", In{t});
  EXPECT_EQ(StepsOf(g, Devices(2)), "k0; peer copy t.device0>t.device1; k1; peer copy t.device1>t.device0; k2");
}

TEST(Transfers, HostNodesUseBoundMemoryAsItIs) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4), y = g.Output("y", 4);
  g.Host("h", In{x}, Out{y});
  EXPECT_EQ(StepsOf(g), "h");
}

TEST(Transfers, AHostNodeReadsAnOutputThatADeviceWrote) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 4);
  g.For("k", Out{y});
  g.Host("h", In{y});
  EXPECT_EQ(StepsOf(g), "k; download y.device0>y.pinned; stage out y.pinned>y.bound; h");
}

TEST(Transfers, AHostNodeChangesWhatADeviceUsesNext) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4);
  g.For("k0", Change{x});
  g.Host("h", Change{x});
  g.For("k1", Change{x});
  EXPECT_EQ(StepsOf(g),
            "stage in x.bound>x.pinned; upload x.pinned>x.device0; k0; download x.device0>x.pinned; "
            "stage out x.pinned>x.bound; h; stage in x.bound>x.pinned; upload x.pinned>x.device0; k1; "
            "download x.device0>x.pinned; stage out x.pinned>x.bound");
}

TEST(Transfers, HostNodesUseBuffersInPinnedMemory) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.Host("h", Out{t});
  g.For("k", Change{t});
  g.Host("h1", In{t});
  EXPECT_EQ(StepsOf(g), "h; upload t.pinned>t.device0; k; download t.device0>t.pinned; h1");
}

TEST(Transfers, ADeclaredCopyIsTheUpload) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4), p = g.Input("p", 4, kPinned), t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  g.Copy("in", x, t);
  g.Copy("direct", p, u);
  EXPECT_EQ(StepsOf(g), "stage in x.bound>x.pinned; in = upload x.pinned>t.device0; direct = upload p.bound>u.device0");
}

TEST(Transfers, ADeclaredCopyIsTheDownload) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4), y = g.Output("y", 4), z = g.Output("z", 4, kPinned),
                s = g.Scratch("s", 4, kPinned);
  g.Fill("f", t);
  g.Copy("out", t, y);
  g.Copy("direct", t, z);
  g.Copy("keep", t, s);
  EXPECT_EQ(StepsOf(g),
            "f; out = download t.device0>y.pinned; keep = download t.device0>s.pinned; direct = download "
            "t.device0>z.bound; stage out y.pinned>y.bound");
}

TEST(Transfers, ADeclaredCopyStaysOnItsDeviceWhereItCan) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), t = g.Scratch("t", 4);
  g.For("k", In{x});
  g.Copy("c", x, t);
  EXPECT_EQ(StepsOf(g), "upload x.bound>x.device0; k; c = device copy x.device0>t.device0");
}

TEST(Transfers, ADeclaredCopyGoesToTheDeviceItIsPinnedTo) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  g.Fill("f", t);
  g.node(g.Copy("c", t, u)).device = 1;
  g.For("k", In{u});
  EXPECT_EQ(StepsOf(g, Devices(2)), "f; c = peer copy t.device0>u.device1; peer copy u.device1>u.device0; k");
}

TEST(Transfers, ADeclaredDownloadComesFromItsOwnDeviceWhereItCan) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4), y = g.Output("y", 4, kPinned);
  g.Fill("f", t);
  g.node(g.For("k", In{t})).device = 1;
  g.node(g.Copy("c", t, y)).device = 1;
  g.After(2, 1);
  EXPECT_EQ(StepsOf(g, Devices(2)), "f; peer copy t.device0>t.device1; k; c = download t.device1>y.bound");
}

TEST(Transfers, AFillOfAPartNeedsNothingAndComesBackAlone) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned), y = g.InOut("y", 4, kPinned), z = g.Output("z", 4, kPinned);
  const int32_t t = g.Scratch("t", 4);
  const auto fill = [&](const char* name, int32_t buffer, const Box& box) {
    g.node(g.Fill(name, buffer)).accesses[0].box = box;
  };
  fill("part", x, Slice(1, 3));
  fill("whole", y, Slice(0, 4));
  fill("low", z, Slice(0, 2));
  fill("high", z, Slice(2, 2));
  fill("none", t, Slice(0, 1));  // there are no contents yet
  EXPECT_EQ(StepsOf(g),
            "low; high; none; part; whole; download x.device0>x.bound Slice({1}, {3}); download "
            "y.device0>y.bound; download z.device0>z.bound");
}

TEST(Transfers, CopiesHaveThePriorityOfTheNodeTheyAreFor) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned);
  g.node(g.For("k0", Change{x})).priority = 1;
  g.node(g.For("k1", Change{x})).priority = 2;
  const Plan plan = PlanOf(g);
  EXPECT_EQ(plan.nodes[Find(plan, "upload x")].priority, 1);
  EXPECT_EQ(plan.nodes[Find(plan, "download x")].priority, 2) << "of the last that wrote it";
}

TEST(Transfers, ADeclaredCopyBetweenHostMemoryIsOneCopy) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4), y = g.Output("y", 4), s = g.Scratch("s", 4, kPinned),
                z = g.Output("z", 4, kPinned);
  g.Copy("c", x, y);
  g.Copy("d", x, s);
  g.Copy("e", s, z);
  EXPECT_EQ(StepsOf(g),
            "c = host copy x.bound>y.bound; d = host copy x.bound>s.pinned; e = host copy s.pinned>z.bound");
}

TEST(Transfers, TheSourceOfACopyMayStandSecond) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), t = g.Scratch("t", 4);
  NodeDecl& node = g.node(g.Copy("c", x, t));
  std::swap(node.accesses[0], node.accesses[1]);
  EXPECT_EQ(StepsOf(g), "c = upload x.bound>t.device0");
}

TEST(Transfers, SaysWhatIsNotUsed) {
  ModelBuilder g;
  g.Input("x", 4);
  std::vector<std::string> remarks;
  StepsOf(g, Devices(1), &remarks);
  EXPECT_EQ(remarks, (std::vector<std::string>{"x: no node uses it"}));
}

TEST(Transfers, FollowsAfterBeforeTheDeclaration) {
  ModelBuilder g;
  const int32_t a = g.For("a");
  g.After(a, g.For("b"));
  EXPECT_EQ(StepsOf(g), "b; a");
}

TEST(Transfers, APartialWriteNeedsNothingAndComesBackAlone) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned);
  g.For("k", Out{x, Slice(0, 2)});
  EXPECT_EQ(StepsOf(g), "k; download x.device0>x.bound Slice({0}, {2})");
}

TEST(Transfers, APartialReadBringsNoMoreThanItsBox) {
  ModelBuilder g;
  const int32_t x = g.Input("x", {4, 4}, kPinned);
  g.For("k", In{x, Slice({1, 0}, {2, 3})});
  EXPECT_EQ(StepsOf(g), "upload x.bound>x.device0 Slice({1, 0}, {2, 3}); k");
}

TEST(Transfers, PartsOfStagedMemoryAreStagedAlone) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.For("k", Change{x, Slice(2, 4)});
  EXPECT_EQ(StepsOf(g),
            "stage in x.bound>x.pinned Slice({2}, {4}); upload x.pinned>x.device0 Slice({2}, {4}); k; "
            "download x.device0>x.pinned Slice({2}, {4}); stage out x.pinned>x.bound Slice({2}, {4})");
}

TEST(Transfers, PartsGoThroughTheRingInBothForms) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8);
  g.For("k", Change{x, Slice(2, 4)});
  PlanOptions options = Devices(1);
  options.ring_from_bytes = 0;
  EXPECT_EQ(StepsOf(g, options),
            "stage in x.bound>x.device0 Slice({2}, {4}); upload x.bound>x.device0 Slice({2}, {4}); k; "
            "download x.device0>x.bound Slice({2}, {4}); stage out x.device0>x.bound Slice({2}, {4})");
}

TEST(Transfers, WhatIsAlreadyThereIsNotBroughtAgain) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8);
  g.Host("h", Out{t, Slice(0, 4)});
  g.Host("i", Out{t, Slice(4, 4)});
  g.For("a", In{t, Slice(2, 4)});
  g.After(g.For("b", In{t, Slice(0, 8)}), 2);
  g.After(g.For("c", In{t, Slice(1, 6)}), 3);
  EXPECT_EQ(StepsOf(g),
            "h; i; upload t.pinned>t.device0 Slice({2}, {4}); a; upload t.pinned>t.device0 Slice({0}, {2}); "
            "upload t.pinned>t.device0 Slice({6}, {2}); b; c");
}

// All of it is there once the one writer has ended. What a node writes later is brought later.
TEST(Transfers, WhatOneNodeWroteIsBroughtOnceForAllReadersOfAPlace) {
  ModelBuilder up;
  const int32_t t = up.Scratch("t", 8);
  up.Host("h", Out{t});
  up.For("a", In{t, Slice(0, 2)});
  up.For("b", In{t, Slice(2, 2)});
  up.Host("i", Out{t, Slice(0, 1)});
  up.After(up.For("c", In{t, Slice(6, 2)}), 3);
  EXPECT_EQ(StepsOf(up),
            "h; upload t.pinned>t.device0 Slice({0}, {4}); a; b; i; upload t.pinned>t.device0 Slice({6}, {2}); c");
  ModelBuilder down;
  const int32_t x = down.Scratch("x", 8);
  down.For("k", Out{x});
  down.Host("h", In{x, Slice(0, 2)});
  down.Host("i", In{x, Slice(2, 2)});
  EXPECT_EQ(StepsOf(down), "k; download x.device0>x.pinned Slice({0}, {4}); h; i");
}

TEST(Transfers, HaloRowsAloneGoBetweenDevices) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", {8, 4}), y = g.Scratch("y", {8, 4});
  const auto on = [&](int32_t device, int32_t node) { g.node(node).device = device; };
  on(0, g.For("top", Out{x, Slice({0, 0}, {4, 4})}));
  on(1, g.For("bottom", Out{x, Slice({4, 0}, {4, 4})}));
  on(0, g.For("upper", In{x, Slice({0, 0}, {5, 4})}, Out{y, Slice({0, 0}, {4, 4})}));
  on(1, g.For("lower", In{x, Slice({3, 0}, {5, 4})}, Out{y, Slice({4, 0}, {4, 4})}));
  EXPECT_EQ(StepsOf(g, Devices(2)),
            "top; bottom; peer copy x.device0>x.device1 Slice({3, 0}, {1, 4}); lower; "
            "peer copy x.device1>x.device0 Slice({4, 0}, {1, 4}); upper");
}

TEST(Transfers, AReaderOfWhatTwoDevicesWroteGetsEachPartFromItsWriter) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", 8);
  g.node(g.For("low", Out{x, Slice(0, 5)})).device = 0;
  g.node(g.For("high", Out{x, Slice(5, 3)})).device = 1;
  g.Host("h", In{x});
  EXPECT_EQ(StepsOf(g, Devices(2)),
            "low; high; download x.device0>x.pinned Slice({0}, {5}); download x.device1>x.pinned Slice({5}, {3}); h");
}

TEST(Transfers, AWriteMakesOtherCopiesOfItsBoxStaleAndNoMore) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8, kPinned);
  g.For("a", In{x});
  g.node(g.For("b", Out{x, Slice(2, 2)})).device = 1;
  g.For("c", In{x});
  EXPECT_EQ(StepsOf(g, Devices(2)),
            "upload x.bound>x.device0; a; b; peer copy x.device1>x.device0 Slice({2}, {2}); c; "
            "download x.device0>x.bound Slice({2}, {2})");
}

// Fewer copies, and no more bytes: what both read makes one box together, and what `far` reads does not.
TEST(Transfers, InitialContentsThatNodesOfADeviceReadInPartsComeByOneCopy) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 16, kPinned);
  g.For("low", In{x, Slice(0, 5)});
  g.For("middle", In{x, Slice(4, 4)});
  g.For("far", In{x, Slice(12, 2)});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks),
            "upload x.bound>x.device0 Slice({12}, {2}); far; upload x.bound>x.device0 Slice({0}, {8}); low; middle");
  EXPECT_EQ(remarks, (std::vector<std::string>{"x: copied to host:0 2 times for 3 readers"}));
}

TEST(Transfers, InitialContentsThatAreWrittenFirstAreNotFetchedForLaterReaders) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8, kPinned);
  const int32_t a = g.For("a", In{x, Slice(0, 4)});
  g.After(g.Host("write", Out{x, Slice(4, 2)}), a);
  g.For("b", In{x, Slice(4, 4)});
  EXPECT_EQ(StepsOf(g),
            "upload x.bound>x.device0 Slice({0}, {4}); a; write; upload x.bound>x.device0 Slice({4}, {4}); b");
}

TEST(Transfers, ACopyOfWhatSeveralPlacesHaveGathersItFirst) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8, kPinned), t = g.Scratch("t", 8);
  g.For("k", Out{x, Slice(0, 4)});
  g.Copy("c", x, t);
  EXPECT_EQ(StepsOf(g),
            "k; upload x.bound>x.device0 Slice({4}, {4}); c = device copy x.device0>t.device0; "
            "download x.device0>x.bound Slice({0}, {4})");
}

TEST(Transfers, AnEmptyBoxNeedsNothing) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 8, kPinned);
  g.For("k", In{x, Slice(2, 0)});
  g.For("w", Out{x, Slice(2, 0)});
  EXPECT_EQ(StepsOf(g), "k; w");
}

TEST(Transfers, ASliceThatIsAllOfTheBufferIsAWholeWrite) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", {2, 4}, kPinned);
  g.For("k", Out{x, Slice({0, 0}, {2, 4})});
  EXPECT_EQ(StepsOf(g), "k; download x.device0>x.bound");
}

TEST(Transfers, AParameterSizeIsNoWholeWrite) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 4), x = g.InOut("x", 4, kPinned);
  g.For("k", Out{x, Slice(0, g.ParamDim(n))});
  EXPECT_EQ(StepsOf(g), "upload x.bound>x.device0; k; download x.device0>x.bound");
}

TEST(Transfers, AnAliasOfAParameterSizeIsNoWholeWrite) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 4), x = g.InOut("x", 4, kPinned), a = g.Alias("a", x, Slice(0, g.ParamDim(n)));
  g.For("k", Out{a});
  EXPECT_EQ(StepsOf(g), "upload x.bound>x.device0; k; download x.device0>x.bound");
}

TEST(Transfers, AReadOfAnOutputDoesNotMakeItWhole) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 4), y = g.Output("y", 4, kPinned);
  g.For("k", Out{y, Slice(0, g.ParamDim(n))});
  g.For("look", In{y, Slice(0, 4)}, In{y, Slice(0, 2)});
  EXPECT_EQ(StepsOf(g), "upload y.bound>y.device0; k; look; download y.device0>y.bound");
}

TEST(Transfers, TilesOfAnOutputNeedNoUpload) {
  ModelBuilder g;
  const int32_t y = g.Output("y", {4, 4}, kPinned);
  g.For("left", Out{y, Slice({0, 0}, {4, 2})});
  g.For("right", Out{y, Slice({0, 2}, {4, 2})});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks), "left; right; download y.device0>y.bound");
  EXPECT_EQ(remarks, std::vector<std::string>());
}

TEST(Transfers, TilesOfSeveralDevicesComeBackFromEach) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 4, kPinned);
  g.For("left", Out{y, Slice(0, 2)});
  g.node(g.For("right", Out{y, Slice(2, 2)})).device = 1;
  EXPECT_EQ(StepsOf(g, Devices(2)),
            "left; right; download y.device0>y.bound Slice({0}, {2}); download y.device1>y.bound Slice({2}, {2})");
}

TEST(Transfers, AnOutputWrittenInPartComesBackInPart) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 4, kPinned);
  g.For("k", Out{y, Slice(0, 3)});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks), "k; download y.device0>y.bound Slice({0}, {3})");
  EXPECT_EQ(remarks,
            (std::vector<std::string>{"y: an Output that may not be written whole; what is not keeps its contents"}));
}

TEST(Transfers, ReadsAndWritesThroughAnAliasAreOfItsBase) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned), a = g.Alias("a", x, Slice(0, 2)), b = g.Alias("b", x, 2, Extent(8));
  g.For("k0", In{a});
  g.For("k1", Out{b});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks),
            "upload x.bound>x.device0 Slice({0}, {2}); k0; k1; download x.device0>x.bound");
  EXPECT_EQ(remarks, std::vector<std::string>());
}

TEST(Transfers, SomeOfABufferNeedsNoContents) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8);
  g.Host("before", Out{t});
  g.For("some", Some{t});
  g.For("read", In{t});
  EXPECT_EQ(StepsOf(g), "before; some; read");
}

TEST(Transfers, SomeOfAPartOfABufferNeedsNoContents) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8);
  g.Host("before", Out{t});
  g.For("some", Some{t, Slice(0, 4)});
  EXPECT_EQ(StepsOf(g), "before; some");
}

TEST(Transfers, SomeOfAnOutputKeepsWhatIsBound) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 8, kPinned);
  g.For("some", Some{y});
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Devices(1), &remarks), "upload y.bound>y.device0; some; download y.device0>y.bound");
  EXPECT_EQ(remarks,
            (std::vector<std::string>{"y: an Output that may not be written whole; what is not keeps its contents"}));
}

TEST(Transfers, SomeOfAnOutputThatIsWrittenAlreadyBringsNothing) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 8, kPinned);
  g.For("left", Out{y, Slice(0, 4)});
  g.For("right", Out{y, Slice(4, 4)});
  g.For("some", Some{y, Slice(2, 4)});
  EXPECT_EQ(StepsOf(g), "left; right; some; download y.device0>y.bound");
}

// Who reads between would see what nobody wrote.
TEST(Transfers, AWriteAfterSomeOfAnOutputDoesNotMakeItWhole) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 8, kPinned);
  g.For("some", Some{y});
  g.For("read", In{y});
  g.For("all", Out{y});
  EXPECT_EQ(StepsOf(g), "upload y.bound>y.device0; some; read; all; download y.device0>y.bound");
}

TEST(Transfers, SomeOfAnOutputOfParameterSizeKeepsWhatIsBound) {
  ModelBuilder g;
  const int32_t y = g.Output("y", 8, kPinned);
  const Dim count = g.ParamDim(g.Param("count", 8));
  g.For("first", Out{y, Slice(0, count)});
  g.For("some", Some{y});
  g.For("read", In{y});
  g.For("all", Out{y});
  EXPECT_EQ(StepsOf(g), "upload y.bound>y.device0; first; some; read; all; download y.device0>y.bound");
}

TEST(Transfers, SomeOfAStateElsewhereKeepsTheRest) {
  ModelBuilder g;
  const int32_t s = g.State("s", 8, 1);
  g.For("some", Some{s});
  EXPECT_EQ(StepsOf(g, Devices(2)), "peer copy s.state1>s.device0; some; peer copy s.device0>s.state1");
}

TEST(Transfers, ScratchIsCopiedNowhere) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8);
  g.For("write", Out{t});
  g.node(g.For("elsewhere", Temporary{t, Slice(0, 4)})).device = 1;
  g.Host("host", Temporary{t, Slice(0, 4)});
  g.For("read", In{t, Slice(4, 4)});
  EXPECT_EQ(StepsOf(g, Devices(2)), "write; read; elsewhere; host");
}

TEST(Transfers, AnEmptyReadOfWhatNobodyWroteBringsNothing) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 4);
  g.node(g.For("k", In{t, Slice(2, 0)})).device = 1;
  EXPECT_EQ(StepsOf(g, Devices(2)), "k");
}

// --- copies that nobody needs ---

std::string NeededSteps(const ModelBuilder& g, std::vector<std::string>* remarks = {}) {
  return StepsOf(g, Devices(1), remarks, false);
}

TEST(EliminateCopies, ACopyThatNobodyReadsIsNotMade) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), a = g.Scratch("a", 4), b = g.Scratch("b", 4);
  const int32_t y = g.Output("y", 4, kPinned);
  g.Copy("in", x, a);
  g.Copy("on", a, b);
  g.Copy("out", x, y);
  std::vector<std::string> remarks;
  EXPECT_EQ(NeededSteps(g, &remarks), "out = host copy x.bound>y.bound");
  EXPECT_THAT(remarks, testing::Contains("b: 'on' is not made; no node reads what it copies"));
  EXPECT_THAT(remarks, testing::Contains("a: 'in' is not made; no node reads what it copies"));
}

TEST(EliminateCopies, WhatIsWrittenWholeBeforeItIsReadWasCopiedForNobody) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), z = g.Scratch("z", 4), part = g.Scratch("part", 4);
  const int32_t filled = g.Scratch("filled", 4);
  g.Copy("first", x, z);
  g.Copy("kept", x, part);
  g.Copy("too", x, filled);
  g.Fill("fill", z);
  g.For("half", Out{part, Slice(0, 2)});
  g.node(g.Fill("last", filled)).accesses[0].box = Slice(3, 1);
  g.For("k", In{z}, In{part}, In{filled});
  EXPECT_EQ(NeededSteps(g),
            "too = upload x.bound>filled.device0; kept = upload x.bound>part.device0; fill; half; last; k");
}

TEST(EliminateCopies, CopiesToWhatOutlivesTheRunAreMade) {
  ModelBuilder g;
  const int32_t x = g.InOut("x", 4, kPinned), y = g.Output("y", 4, kPinned), s = g.State("s", 4);
  g.Copy("a", x, s);
  g.Copy("b", x, y);
  EXPECT_EQ(NeededSteps(g), "a = upload x.bound>s.state0; b = host copy x.bound>y.bound");
}

// What was dropped still stands between those before and behind it.
TEST(EliminateCopies, ADroppedCopyPassesOnItsOrder) {
  ModelBuilder g;
  const int32_t x = g.Scratch("x", 4), z = g.Scratch("z", 4), w = g.Scratch("w", 4);
  const int32_t first = g.For("first", Out{x}), dead = g.Copy("dead", x, z), deader = g.Copy("deader", z, w);
  const int32_t last = g.For("last", Out{g.Output("y", 4, kPinned)});
  g.After(last, deader);
  g.For("reads x", In{x});
  const Plan plan = PlanOf(g);
  ASSERT_EQ(plan.nodes.size(), 4u) << PrintText(plan, g.model);
  EXPECT_EQ(CheckOrder(g.model, plan), "");
  const auto at = [&](int32_t decl) {
    return std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const PlanNode& n) { return n.decl == decl; });
  };
  EXPECT_EQ(at(dead), plan.nodes.end());
  EXPECT_THAT(at(last)->preds, testing::ElementsAre(at(first) - plan.nodes.begin()));
}

TEST(EliminateCopies, HostToDeviceToHostIsACopyOnTheHost) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 4, kPinned), t = g.Scratch("t", 4), u = g.Scratch("u", 4);
  const int32_t y = g.Output("y", 4, kPinned), z = g.Scratch("z", 4, kPinned);
  g.Copy("up", x, t);
  g.Copy("on", t, u);
  g.Copy("down", u, y);
  g.Copy("read by a kernel too", x, z);
  g.For("k", In{t}, In{z});
  std::vector<std::string> remarks;
  EXPECT_EQ(NeededSteps(g, &remarks),
            "up = upload x.bound>t.device0; read by a kernel too = host copy x.bound>z.pinned; "
            "upload z.pinned>z.device0; k; down = host copy x.bound>y.bound");
  EXPECT_THAT(remarks, testing::Contains("x: 'down' copies it on the host; no node writes it on the way through 'u'"));
  EXPECT_THAT(remarks, testing::Contains("u: 'on' is not made; no node reads what it copies"));
  EXPECT_EQ(CheckOrder(g.model, PlanOf(g)), "");
}

TEST(EliminateCopies, AWriterOnTheWayIsHeeded) {
  for (const bool at_home : {false, true}) {
    ModelBuilder g;
    const int32_t x = g.InOut("x", 4, kPinned), t = g.Scratch("t", 4), y = g.Output("y", 4, kPinned);
    g.Copy("up", x, t);
    const int32_t change = g.For("change", Change{at_home ? x : t});
    g.After(g.Copy("down", t, y), change);
    EXPECT_NE(NeededSteps(g).find("down = download t.device0>y.bound"), std::string::npos) << NeededSteps(g);
  }
}

// The node reads what it does not name: who writes that later comes behind it.
TEST(EliminateCopies, WhoeverWritesTheSourceLaterWaits) {
  for (const bool on_host : {false, true}) {
    ModelBuilder g;
    const int32_t x = g.InOut("x", 4, kPinned), t = g.Scratch("t", 4), y = g.Output("y", 4, kPinned);
    g.Copy("up", x, t);
    g.Copy("down", t, y);
    const int32_t reads = g.For("reads", In{t});
    g.After(on_host ? g.Host("change", Change{x}) : g.For("change", Change{x}), reads);
    const Plan plan = PlanOf(g);
    EXPECT_NE(NeededSteps(g).find("down = host copy x.bound>y.bound"), std::string::npos) << NeededSteps(g);
    EXPECT_EQ(CheckOrder(g.model, plan), "") << PrintText(plan, g.model);
  }
}

// Two devices, of which each reaches the other or only the first one does.
PlanOptions Linked(bool both) {
  PlanOptions options = Devices(2);
  options.devices[0].reaches = {false, true};
  if (both) options.devices[1].reaches = {true, false};
  return options;
}

TEST(Transfers, WhatIsReadWithoutACopyStaysWhereItIs) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 8), t = g.Scratch("t", 8);
  AccessDecl there{t, ModelBuilder::kSerial, AccessMode::kRead, false, Slice(4, 4), true};
  AccessDecl initial{x, ModelBuilder::kSerial, AccessMode::kRead, false, {}, true};
  g.node(g.For("top", In{x}, Out{t, Slice(0, 4)})).device = 0;
  g.node(g.For("bottom", initial, Out{t, Slice(4, 4)})).device = 1;
  g.node(g.For("over", In{t, Slice(0, 4)}, there)).device = 0;
  there.box = Slice(0, 4);
  g.node(g.For("back", there)).device = 1;
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Linked(true), &remarks),
            "stage in x.bound>x.pinned; upload x.pinned>x.device0; top; bottom; back; over");
  EXPECT_THAT(remarks, testing::Contains("t: read on host:0 without a copy by 1 node of other devices"));
  EXPECT_THAT(remarks, testing::Contains("t: read on host:1 without a copy by 1 node of other devices"));
  EXPECT_THAT(remarks, testing::Contains("x: read on host:0 without a copy by 1 node of other devices"));
  EXPECT_EQ(StepsOf(g, Linked(false)),
            "stage in x.bound>x.pinned; upload x.pinned>x.device0; top; upload x.pinned>x.device1; bottom; "
            "peer copy t.device0>t.device1 Slice({0}, {4}); back; over");
}

// Of what the node writes itself, and of memory that the library did not allocate.
TEST(Transfers, WhatMayNotBeReadElsewhereIsCopied) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 8), s = g.State("s", 8, 1), mine = g.State("mine", 8, 1);
  StateRecord adopted = *g.model.buffers[mine].state;
  adopted.adopted = true;
  g.model.buffers[mine].state = std::make_shared<const StateRecord>(adopted);
  const auto uncopied = [](int32_t buffer) {
    return AccessDecl{buffer, ModelBuilder::kSerial, AccessMode::kRead, false, {}, true};
  };
  g.node(g.For("make", Out{t})).device = 1;
  g.node(g.For("both", Out{t, Slice(0, 4)}, uncopied(t))).device = 0;
  g.node(g.For("state", uncopied(s))).device = 0;
  g.node(g.For("theirs", uncopied(mine))).device = 0;
  std::vector<std::string> remarks;
  EXPECT_EQ(StepsOf(g, Linked(true), &remarks),
            "make; state; peer copy mine.state1>mine.device0; theirs; peer copy t.device1>t.device0; both");
  EXPECT_THAT(remarks, testing::Contains(testing::StartsWith("mine: copied for 1 reads that ask for no copy")));
}

}  // namespace
}  // namespace penstock::graph::insert_transfers_test
