// Memory: offsets, what may share bytes, and budgets.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/plan/plan_names.h"
#include "tests/graph/oracle/model_builder.h"
#include "tests/graph/oracle/oracle.h"

namespace penstock::graph::assign_offsets_test {
namespace {

const Instance& At(const Plan& plan, const ModelBuilder& g, const std::string& name) {
  static const Instance none;
  for (size_t i = 0; i < plan.instances.size(); ++i) {
    if (InstanceName(plan, g.model, static_cast<int32_t>(i)) == name) return plan.instances[i];
  }
  ADD_FAILURE() << "no instance " << name;
  return none;
}

// t0 -> t1 -> t2 -> t3, each read by the next node only.
ModelBuilder Chain(int64_t elements) {
  ModelBuilder g;
  int32_t last = g.Scratch("t0", elements);
  g.For("k0", Out{last});
  for (const char* i : {"1", "2", "3"}) {
    const int32_t next = g.Scratch(std::string("t") + i, elements);
    g.For(std::string("k") + i, In{last}, Out{next});
    last = next;
  }
  return g;
}

TEST(Memory, BuffersOfAChainTakeTurns) {
  const ModelBuilder g = Chain(100);
  const Plan plan = PlanOf(g);
  EXPECT_EQ(At(plan, g, "t0.device0").offset, 0);
  EXPECT_EQ(At(plan, g, "t1.device0").offset, 512);
  EXPECT_EQ(At(plan, g, "t2.device0").offset, 0);
  EXPECT_EQ(At(plan, g, "t3.device0").offset, 512);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 1024}}));
  EXPECT_EQ(plan.remarks.back(), "host:0: 2 of 4 instances reuse memory of earlier ones");
}

TEST(Memory, ScratchSharesBytesOutsideItsNodes) {
  ModelBuilder g;
  const int32_t w = g.Scratch("w", 100), t = g.Scratch("t", 100), u = g.Scratch("u", 100);
  g.For("first", Temporary{w}, Out{t});
  g.For("between", In{t}, Out{u});
  g.For("last", Temporary{w}, In{u});
  EXPECT_EQ(PlanOf(g).arenas, (std::vector<Arena>{{0, 2 * 512}}));
  for (const DeclId n : {0, 2}) g.node(n).accesses[0].mode = AccessMode::kWrite;
  EXPECT_EQ(PlanOf(g).arenas, (std::vector<Arena>{{0, 3 * 512}}));
}

TEST(Memory, ANodesOwnBuffersNeverShare) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64);
  g.For("k0", Out{t});
  g.For("k1", In{t}, Out{u});
  const Plan plan = PlanOf(g);
  EXPECT_NE(At(plan, g, "t.device0").offset, At(plan, g, "u.device0").offset);
}

ModelBuilder InPlacePair(int64_t read = 64, int64_t written = 64, uint32_t element_bytes = 4) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", read), u = g.Buffer("u", written, BufferRole::kInternal, kDevice, element_bytes);
  g.For("k0", Out{t});
  g.InPlace(g.For("k1", In{t}, Out{u}), t, u);
  return g;
}

bool InOnePlace(const ModelBuilder& g, const Plan& plan, const std::string& a, const std::string& b) {
  EXPECT_EQ(CheckOrder(g.model, plan), "");
  return At(plan, g, a).offset == At(plan, g, b).offset;
}
std::string RemarkOn(const Plan& plan, const std::string& node) {
  for (const std::string& remark : plan.remarks) {
    if (remark.starts_with("node '" + node + "'")) return remark;
  }
  return "";
}

TEST(InPlace, AnOutputTakesTheBytesOfAnInputThatNobodyNeedsAnyMore) {
  const ModelBuilder g = InPlacePair();
  const Plan plan = PlanOf(g);
  EXPECT_TRUE(InOnePlace(g, plan, "t.device0", "u.device0"));
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 256}}));
  EXPECT_EQ(RemarkOn(plan, "k1"), "node 'k1' writes 'u' in place of 't'");
}

TEST(InPlace, AChainNeedsOneBuffer) {
  ModelBuilder g;
  int32_t last = g.Scratch("t0", 100);
  g.For("k0", Out{last});
  for (const char* i : {"1", "2", "3"}) {
    const int32_t next = g.Scratch(std::string("t") + i, 100);
    g.InPlace(g.For(std::string("k") + i, In{last}, Out{next}), last, next);
    last = next;
  }
  const Plan plan = PlanOf(g);
  EXPECT_EQ(CheckOrder(g.model, plan), "");
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 512}}));
}

TEST(InPlace, BoundBuffersShareOnTheDevice) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 64), y = g.Output("y", 64);
  g.InPlace(g.For("k", In{x}, Out{y}), x, y);
  EXPECT_TRUE(InOnePlace(g, PlanOf(g), "x.device0", "y.device0"));
}

TEST(InPlace, HostNodesShareThePinnedMemory) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64, kPinned), u = g.Scratch("u", 64, kPinned);
  g.Host("h0", Out{t});
  g.InPlace(g.Host("h1", In{t}, Out{u}), t, u);
  EXPECT_TRUE(InOnePlace(g, PlanOf(g), "t.pinned", "u.pinned"));
}

TEST(InPlace, AnInputThatIsReadLaterKeepsItsBytes) {
  ModelBuilder g = InPlacePair();
  g.For("k2", In{0});
  const Plan plan = PlanOf(g);
  EXPECT_FALSE(InOnePlace(g, plan, "t.device0", "u.device0"));
  EXPECT_NE(RemarkOn(plan, "k1"), "");
}

// The reader is submitted before, on another lane, and may run beside the node.
TEST(InPlace, AnInputThatMayBeReadBesideTheNodeKeepsItsBytes) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64), v = g.Scratch("v", 64);
  g.For("k0", Out{t});
  g.For("reader", In{t}, Out{v});
  g.InPlace(g.For("k1", In{t}, Out{u}), t, u);
  PlanOptions options = Devices(1);
  options.costs = {1, 9, 1};
  const Plan plan = PlanOf(g, options);
  EXPECT_FALSE(InOnePlace(g, plan, "t.device0", "u.device0"));
  EXPECT_EQ(RemarkOn(plan, "k1"),
            "node 'k1' does not write 'u' in place of 't': other users of the input may run concurrently");
  options.max_lanes = 1;  // now the reader is done before
  EXPECT_TRUE(InOnePlace(g, PlanOf(g, options), "t.device0", "u.device0"));
}

TEST(InPlace, WhatDoesNotFitIsNotDone) {
  const std::string begin = "node 'k1' does not write 'u' in place of 't': ";
  EXPECT_EQ(RemarkOn(PlanOf(InPlacePair(64, 65)), "k1"), begin + "the output is larger");
  EXPECT_EQ(RemarkOn(PlanOf(InPlacePair(64, 32, 8)), "k1"), begin + "their elements have different sizes");
  EXPECT_EQ(RemarkOn(PlanOf(InPlacePair(64, 0)), "k1"), begin + "they take no bytes");
  EXPECT_EQ(PlanOf(InPlacePair(128, 64)).arenas, (std::vector<Arena>{{0, 512}}));
}

TEST(InPlace, RowsThatLieDifferentlyFarApartAreNotDone) {
  const auto note = [](int64_t read, int64_t written) {
    ModelBuilder g;
    const int32_t t = g.Pitched(g.Scratch("t", {4, 8}), read), u = g.Pitched(g.Scratch("u", {4, 8}), written);
    g.For("k0", Out{t});
    g.InPlace(g.For("k1", In{t}, Out{u}), t, u);
    return RemarkOn(PlanOf(g), "k1");
  };
  EXPECT_EQ(note(12, 12), "node 'k1' writes 'u' in place of 't'");
  EXPECT_EQ(note(12, 10), "node 'k1' does not write 'u' in place of 't': their pitches differ");
}

TEST(InPlace, PartsAndSecondAccessesAreNotDone) {
  const Box half = Slice({32}, {32});
  ModelBuilder part;
  const int32_t t = part.Scratch("t", 64), u = part.Scratch("u", 32);
  part.For("k0", Out{t});
  part.InPlace(part.For("k1", In{t, half}, Out{u}), t, u);
  EXPECT_FALSE(InOnePlace(part, PlanOf(part), "t.device0", "u.device0"));
  ModelBuilder twice;
  const int32_t v = twice.Scratch("v", 64), w = twice.Scratch("w", 64);
  twice.For("k0", Out{v});
  twice.InPlace(twice.For("k1", In{v}, In{v, half}, Out{w}), v, w);
  EXPECT_FALSE(InOnePlace(twice, PlanOf(twice), "v.device0", "w.device0"));
}

TEST(InPlace, BytesGoToOneOnly) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64), v = g.Scratch("v", 64);
  g.For("k0", Out{t}, Out{v});
  const int32_t k = g.For("k1", In{t}, In{v}, Out{u});
  g.InPlace(k, t, u);
  EXPECT_EQ(MistakeOf(g), "OK");
  g.InPlace(k, v, u);
  EXPECT_EQ(MistakeOf(g),
            "INVALID_ARGUMENT: graph 'g' node 'k1' (a.cc:5): InPlace names 'u' (a.cc:2) twice; bytes can be taken over "
            "only once; "
            "name each buffer in one pair");
}

TEST(InPlace, RefusesWhatTheNodeDoesNotDo) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64), v = g.Scratch("v", 64);
  g.For("k0", Out{t}, Out{v});
  const int32_t k = g.For("k1", In{t}, Change{v}, Out{u});
  const auto mistake = [&](InPlaceDecl pair) {
    ModelBuilder changed = g;
    changed.node(k).in_place = {pair};
    return MistakeOf(changed);
  };
  const std::string begin = "INVALID_ARGUMENT: graph 'g' node 'k1' (a.cc:5): InPlace";
  constexpr uint32_t kOwn = ModelBuilder::kSerial;
  EXPECT_EQ(mistake({v, u, kOwn, kOwn}), begin +
                                             ": it writes its input 'v' (a.cc:3); a node that changes its input needs "
                                             "no other bytes; name a buffer that it only reads");
  EXPECT_EQ(mistake({u, t, kOwn, kOwn}), "INVALID_ARGUMENT: graph 'g': 2 mistakes:\n  " + begin.substr(18) +
                                             ": it writes its input 'u' (a.cc:2); a node that changes its input needs "
                                             "no other bytes; name a buffer that it only reads\n  " +
                                             begin.substr(18) +
                                             ": it does not write its output 't' (a.cc:1); an output takes over the "
                                             "bytes of an input; name a buffer that it writes");
  EXPECT_EQ(mistake({t, u, kOwn, kOwn + 1}), begin +
                                                 " names a buffer of another graph; a handle is good in the graph that "
                                                 "made it; name buffers that the node accesses");
  EXPECT_EQ(mistake({t, -1, kOwn, kOwn}),
            begin + " names no buffer; its handle was never set; name buffers that the node accesses");
  g.Scratch("w", 64);
  EXPECT_EQ(mistake({t, 3, kOwn, kOwn}), begin +
                                             " names 'w' (a.cc:6), which it does not access; name an input that it "
                                             "reads and an output that it writes");
}

TEST(InPlace, RefusesACopy) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64);
  g.For("k0", Out{t});
  g.InPlace(g.Copy("c", t, u), t, u);
  EXPECT_EQ(
      MistakeOf(g),
      "INVALID_ARGUMENT: graph 'g' node 'c' (a.cc:4): InPlace: a Copy does not work in place; leave the copy out, "
      "or leave InPlace out");
}

TEST(Memory, LanesThatAreNotOrderedDoNotShare) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64);
  g.For("k0", Out{t});
  g.For("k1", Out{u});
  PlanOptions options = Devices(1);
  EXPECT_EQ(PlanOf(g, options).arenas, (std::vector<Arena>{{0, 512}}));
  options.max_lanes = 1;  // now the lane orders them
  EXPECT_EQ(PlanOf(g, options).arenas, (std::vector<Arena>{{0, 256}}));
}

TEST(Memory, SideBySideRegionsServeALargerBuffer) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 64), t = g.Scratch("t", 64), u = g.Scratch("u", 128);
  g.For("k0", Out{s}, Out{t});
  g.For("k1", Change{s}, Change{t});
  g.For("k2", Out{u});
  PlanOptions options = Devices(1);
  options.max_lanes = 1;
  options.costs = {3, 2, 1};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(At(plan, g, "u.device0").offset, 0);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 512}}));
}

TEST(Memory, TheRestOfARegionStaysFree) {
  ModelBuilder g;
  const int32_t s = g.Scratch("s", 128), t = g.Scratch("t", 64), u = g.Scratch("u", 64);
  g.For("k0", Out{s});
  g.For("k1", Out{t}, Out{u});
  PlanOptions options = Devices(1);
  options.max_lanes = 1;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(At(plan, g, "t.device0").offset, 0);
  EXPECT_EQ(At(plan, g, "u.device0").offset, 256);
}

TEST(Memory, ABlockOfItsSizeIsTakenBeforeALargerOne) {
  ModelBuilder g;
  const int32_t large = g.Scratch("large", 256), small = g.Scratch("small", 64);
  const int32_t v = g.Scratch("v", 64), w = g.Scratch("w", 256);
  g.For("k0", Out{large}, Out{small});
  g.For("k1", Out{v});
  g.For("k2", Out{w});
  PlanOptions options = Devices(1);
  options.max_lanes = 1;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(At(plan, g, "v.device0").offset, At(plan, g, "small.device0").offset);
  EXPECT_EQ(At(plan, g, "w.device0").offset, At(plan, g, "large.device0").offset);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 1280}}));
}

// v comes after a, in its lane, but not after t, whose bytes u has taken only in part. `large` is what makes the holes
// too small to place all anew.
TEST(Memory, TheRestOfARegionKeepsItsTenant) {
  ModelBuilder g;
  const int32_t a = g.Scratch("a", 64), t = g.Scratch("t", 192), u = g.Scratch("u", 64), v = g.Scratch("v", 128);
  const int32_t large = g.Scratch("large", 8192);
  g.For("ka", Out{a}, Out{large});
  g.node(g.For("kt", Out{t})).priority = 1;
  g.node(g.For("ku", Out{u})).priority = 1;
  g.For("kv", Out{v}, Change{large});
  PlanOptions options = Devices(1);
  options.max_lanes = 2;
  options.costs = {4, 3, 2, 1};
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(At(plan, g, "u.device0").offset, At(plan, g, "t.device0").offset);
  EXPECT_EQ(At(plan, g, "v.device0").offset, 1024 + 4 * 8192);
  EXPECT_EQ(CheckOrder(g.model, plan), "");
}

TEST(Memory, WhatLeavesHolesIsPlacedAnewBySize) {
  ModelBuilder g;
  const int32_t a = g.Scratch("a", 64), b = g.Scratch("b", 128);
  g.For("k0", Out{a});
  g.For("k1", Out{b});
  PlanOptions options = Devices(1);
  options.max_lanes = 1;
  const Plan plan = PlanOf(g, options);
  EXPECT_EQ(At(plan, g, "a.device0").offset, 0);
  EXPECT_EQ(At(plan, g, "b.device0").offset, 0);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 512}}));
  EXPECT_EQ(plan.remarks.back(), "host:0: 512 bytes, placed by size; 768 in the order of use");
}

// More than the clocks have columns for: those without one are never known to be done.
TEST(Memory, IndependentHostNodesDoNotShare) {
  ModelBuilder g;
  for (int i = 0; i < 40; ++i) g.Host("h" + std::to_string(i), Out{g.Scratch("t" + std::to_string(i), 64)});
  EXPECT_EQ(PlanOf(g).arenas, (std::vector<Arena>{{-1, 40 * 256}}));
}

// `also` takes the column of `make`, the others take the rest, so `look` has none. The upload has one; `u` comes after
// the upload only.
TEST(Memory, OneUserWithoutAColumnIsEnoughToKeepTheBytes) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 64), u = g.Scratch("u", 64, kPinned), v = g.Scratch("v", 64);
  const int32_t make = g.Host("make", Out{t});
  g.After(g.Host("also"), make);
  for (int i = 0; i < 40; ++i) g.Host("h" + std::to_string(i));
  g.Host("look", In{t});
  g.For("k", In{t}, Out{v});
  g.Host("last", In{v}, Out{u});
  const Plan plan = PlanOf(g);
  EXPECT_NE(At(plan, g, "u.pinned").offset, At(plan, g, "t.pinned").offset);
  EXPECT_EQ(CheckOrder(g.model, plan), "");
}

TEST(Memory, IsPlannedForTheDeclaredMaximum) {
  ModelBuilder g;
  const int32_t n = g.Param("n", 1000);
  const int32_t t = g.Scratch("t", Extent(Dim(2), g.ParamDim(n)));
  g.For("k", Out{t});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(At(plan, g, "t.device0").bytes, 8000);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 8192}}));
}

TEST(Memory, PinnedMemoryIsAnArenaOfItsOwn) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 64), y = g.InOut("y", 64, kPinned);
  g.For("k", In{x}, Change{y});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{-1, 256}, {0, 512}}));
  EXPECT_EQ(At(plan, g, "y.bound").offset, -1);
  EXPECT_TRUE(At(plan, g, "x.pinned").stages);
}

TEST(Memory, NothingTakesNothing) {
  ModelBuilder g;
  const int32_t t = g.Scratch("t", 0);
  g.For("k", Out{t});
  const Plan plan = PlanOf(g);
  EXPECT_EQ(At(plan, g, "t.device0").offset, 0);
  EXPECT_EQ(plan.arenas, (std::vector<Arena>{{0, 0}}));
}

ModelBuilder FourBuffers() {
  ModelBuilder g;
  const int32_t a = g.Scratch("a", 64), b = g.Scratch("b", 192), c = g.Scratch("c", 128), d = g.Scratch("d", 256);
  g.For("k", Out{a}, Out{b}, Out{c}, Out{d});
  return g;
}

TEST(Memory, OverBudgetNamesTheBuffersAndTheSlotsThatFit) {
  PlanOptions options = Devices(1);
  options.slots = 3;
  options.devices[0].memory_bytes = 3 * 2560;
  EXPECT_EQ(MistakeOf(FourBuffers(), options), "OK");
  options.devices[0].memory_bytes = 3 * 2560 - 1;
  EXPECT_EQ(MistakeOf(FourBuffers(), options),
            "RESOURCE_EXHAUSTED: graph 'g' on host:0: 3 slots of 2560 bytes do not fit in the device's memory of 7679 "
            "bytes; the buffers in it are 'd' (a.cc:4) of 1024, 'b' (a.cc:2) of 768, 'c' (a.cc:3) of 512, 'a' (a.cc:1) "
            "of 256; use at most 2 slots, or make buffers smaller");
}

TEST(Memory, OverBudgetNamesTheFiveLargestOfMany) {
  ModelBuilder g;
  std::vector<int32_t> parts;
  for (int i = 0; i < 7; ++i) parts.push_back(g.Scratch("t" + std::to_string(i), 64 * (1 + i % 4)));
  g.For("k", Out{parts[0]}, Out{parts[1]}, Out{parts[2]}, Out{parts[3]}, Out{parts[4]}, Out{parts[5]}, Out{parts[6]});
  PlanOptions options = Devices(1);
  options.slots = 2;
  options.devices[0].memory_bytes = 5000;
  EXPECT_EQ(MistakeOf(g, options),
            "RESOURCE_EXHAUSTED: graph 'g' on host:0: 2 slots of 4096 bytes do not fit in the device's memory of 5000 "
            "bytes; the largest buffers in it are 't3' (a.cc:4) of 1024, 't2' (a.cc:3) of 768, 't6' (a.cc:7) of 768, "
            "'t1' (a.cc:2) of 512, 't5' (a.cc:6) of 512 and 2 more; use at most 1 slot, or make buffers smaller");
}

TEST(Memory, OverBudgetSaysWhenNoSlotFits) {
  PlanOptions options = Devices(1);
  options.devices[0].memory_bytes = 1000;
  EXPECT_EQ(MistakeOf(FourBuffers(), options),
            "RESOURCE_EXHAUSTED: graph 'g' on host:0: 1 slot of 2560 bytes does not fit in the device's memory of 1000 "
            "bytes; the buffers in it are 'd' (a.cc:4) of 1024, 'b' (a.cc:2) of 768, 'c' (a.cc:3) of 512, 'a' (a.cc:1) "
            "of 256; not even one slot fits: make buffers smaller");
}

TEST(Memory, ALimitOfTheExecutablesOwnCountsWhereItIsLower) {
  PlanOptions options = Devices(1);
  options.slots = 3;
  options.device_bytes = 3 * 2560;
  EXPECT_EQ(MistakeOf(FourBuffers(), options), "OK");
  options.device_bytes = 3 * 2560 - 1;
  const std::string mistake =
      "RESOURCE_EXHAUSTED: graph 'g' on host:0: 3 slots of 2560 bytes do not fit in device_bytes of 7679 bytes; the "
      "buffers in it are 'd' (a.cc:4) of 1024, 'b' (a.cc:2) of 768, 'c' (a.cc:3) of 512, 'a' (a.cc:1) of 256; use at "
      "most 2 slots, or make buffers smaller";
  EXPECT_EQ(MistakeOf(FourBuffers(), options), mistake);
  options.devices[0].memory_bytes = 3 * 2560;
  EXPECT_EQ(MistakeOf(FourBuffers(), options), mistake);
  options.devices[0].memory_bytes = 2560;
  EXPECT_EQ(MistakeOf(FourBuffers(), options).find("device_bytes"), std::string::npos);
}

TEST(Memory, PinnedMemoryHasALimitOfItsOwn) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 64), y = g.Output("y", 128);
  g.For("k", In{x}, Out{y});
  PlanOptions options = Devices(1);
  options.slots = 4;
  options.pinned_bytes = 4 * 512;
  EXPECT_EQ(MistakeOf(g, options), "OK");
  options.pinned_bytes = 4 * 512 - 1;
  EXPECT_EQ(MistakeOf(g, options),
            "RESOURCE_EXHAUSTED: graph 'g' on pinned memory: 4 slots of 512 bytes do not fit in the limit of 2047 "
            "bytes; the buffers in it are 'y' (a.cc:2) of 512, 'x' (a.cc:1) of 256; use at most 3 slots, or make "
            "buffers smaller");
}

TEST(Memory, SumsOfSizesDoNotOverflow) {
  ModelBuilder g;
  const Extent huge(int64_t{1} << 59);
  const int32_t a = g.Scratch("a", huge), b = g.Scratch("b", huge), c = g.Scratch("c", huge);
  g.For("k", Out{a}, Out{b}, Out{c});
  EXPECT_EQ(
      MistakeOf(g),
      "RESOURCE_EXHAUSTED: graph 'g' on host:0: a slot would need more than 2^62 bytes; the buffers in it are 'a' "
      "(a.cc:1) of 2305843009213693952, 'b' (a.cc:2) of 2305843009213693952, 'c' (a.cc:3) of 2305843009213693952; make "
      "buffers smaller");
}

// The user fills it before the first step and reads it after the last.
TEST(Memory, LeasedMemoryIsSharedWithNobody) {
  ModelBuilder g;
  const int32_t x = g.Input("x", 64, kSlot), y = g.Output("y", 64, kSlot);
  int32_t from = x;
  for (int i = 0; i < 3; ++i) {
    const int32_t to = g.Scratch("t" + std::to_string(i), 64, kPinned);
    g.Host("h" + std::to_string(i), In{from}, Out{to});
    from = to;
  }
  g.Host("last", In{from}, Out{y});
  const Plan plan = PlanOf(g);
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_EQ(plan.arenas[0].bytes, 4 * 256) << "two for the three in between, and x and y";
  EXPECT_EQ(CheckOrder(g.model, plan), "");
  PlanOptions options = Devices(1);
  options.pinned_bytes = 1023;
  EXPECT_NE(MistakeOf(g, options).find("1 slot of 1024 bytes does not fit"), std::string::npos);
}

}  // namespace
}  // namespace penstock::graph::assign_offsets_test
