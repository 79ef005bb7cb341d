// Graphs: what comes before what, by kernels that the test holds, and by data that many nodes share.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::graph_order_conformance_test {
namespace {

TEST_P(DriverConformance, NodesThatNoEdgeOrdersRunBesideEachOtherAndWhatFollowsWaitsForBoth) {
  int32_t* const seen = Pinned<int32_t>(3);
  const Stream beside = NewStream();
  const Event end = NewEvent();
  struct Held {
    bool first, second;
  };
  for (const Held held : {Held{true, true}, Held{true, false}, Held{false, true}}) {
    SCOPED_TRACE(testing::Message() << "held: " << held.first << held.second);
    KernelLatch &first = NewLatch(), &second = NewLatch();
    KernelLatch &early = held.second ? first : second, &late = held.second ? second : first;
    if (!held.first || !held.second) Open(early);  // its kernel comes to its end at once
    std::fill(seen, seen + 3, 0);
    const LatchArg of_first(first), of_second(second);
    const NoteArgs inside(late, seen), behind(late, seen + 1);
    const KernelOp one = OpOf(probes().hold, of_first), other = OpOf(probes().hold, of_second);
    const KernelOp note = OpOf(probes().note, inside);
    const Graph graph = NewGraph();
    ASSERT_OK(driver_->AddNode(graph, {}, &one, {}).status());
    ASSERT_OK(driver_->AddNode(graph, {}, &other, {}).status());
    ASSERT_OK(driver_->AddNode(graph, After{0, 1}, &note, {}).status());
    ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
    ASSERT_OK(Launch(stream_, probes().note, behind));
    ASSERT_OK(driver_->Record(end, stream_));
    ASSERT_TRUE(AwaitStarted(first));
    ASSERT_TRUE(AwaitStarted(second)) << "while the first runs";
    Open(early);  // of two threads the others need one
    EXPECT_TRUE(LetOthersRun(beside, late, seen + 2));
    EXPECT_FALSE(*driver_->Query(end));
    Open(late);
    ASSERT_TRUE(Finish(end));
    EXPECT_EQ(seen[0], kSawOpen);
    EXPECT_EQ(seen[1], kSawOpen);
    EXPECT_EQ(first.timed_out + second.timed_out, 0u);
  }
}

TEST_P(DriverConformance, WhatFollowsANodeThatIsOffStillWaitsForWhatIsBeforeIt) {
  KernelLatch& latch = NewLatch();
  int32_t *const seen = Pinned<int32_t>(2), *const data = Device<int32_t>(1);
  *seen = 0;
  const Stream beside = NewStream();
  const LatchArg holds(latch);
  const NoteArgs notes(latch, seen);
  const KernelOp hold = OpOf(probes().hold, holds), note = OpOf(probes().note, notes);
  const FillOp fill{.dst = data, .count = 4};
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &hold, {}).status());
  ASSERT_OK(driver_->AddNode(graph, After{0}, &fill, {}).status());
  ASSERT_OK(driver_->AddNode(graph, After{1}, &note, {}).status());
  const GraphExec exec = NewExec(graph);
  ASSERT_OK(driver_->EnableNode(exec, 1, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(AwaitStarted(latch));
  EXPECT_TRUE(LetOthersRun(beside, latch, seen + 1));
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*seen, kSawOpen);
  EXPECT_EQ(latch.timed_out, 0u);
}

TEST_P(DriverConformance, AGraphKeepsItsPlaceInItsStream) {
  KernelLatch& latch = NewLatch();
  int32_t* const seen = Pinned<int32_t>(2);
  *seen = 0;
  const NoteArgs notes(latch, seen);
  const KernelOp note = OpOf(probes().note, notes);
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &note, {}).status());
  const GraphExec exec = NewExec(graph);
  const Stream other = NewStream(), beside = NewStream();
  const Event before = NewEvent(), after = NewEvent();
  ASSERT_TRUE(Hold(other, latch));
  ASSERT_OK(driver_->Record(before, other));
  ASSERT_OK(driver_->Wait(stream_, before));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->Record(after, stream_));
  EXPECT_TRUE(LetOthersRun(beside, latch, seen + 1));
  EXPECT_FALSE(*driver_->Query(after));
  Open(latch);
  ASSERT_TRUE(Finish(after));
  EXPECT_EQ(*seen, kSawOpen);
  EXPECT_EQ(latch.timed_out, 0u);
}

TEST_P(DriverConformance, AnExecDoesNotOverlapItselfOnTwoStreams) {
  KernelLatch& latch = NewLatch();
  int32_t* const seen = Pinned<int32_t>(2);
  *seen = 0;
  const LatchArg holds(latch);
  const NoteArgs notes(latch, seen);
  const KernelOp hold = OpOf(probes().hold, holds), note = OpOf(probes().note, notes);
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &hold, {}).status());
  const GraphExec exec = NewExec(graph);
  const Stream other = NewStream(), beside = NewStream();
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(AwaitStarted(latch));
  ASSERT_OK(driver_->SetNode(exec, 0, &note));
  ASSERT_OK(driver_->LaunchGraph(exec, other));
  EXPECT_TRUE(LetOthersRun(beside, latch, seen + 1));
  Open(latch);
  ASSERT_TRUE(Finish(other));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*seen, kSawOpen) << "the first launch had not ended";
  EXPECT_EQ(latch.timed_out, 0u);
}

// --- many nodes ---

constexpr int kCells = 6;

// Steps and copies between a few cells: what a node does decides which others it must come before or after.
struct Deed {
  int to = 0, from = 0;  // a step where they are the same
  int32_t k = 0;
  bool Conflicts(const Deed& other) const { return to == other.to || to == other.from || from == other.to; }
  void Do(std::vector<int32_t>& cells) const {
    const auto value = static_cast<uint32_t>(cells[static_cast<size_t>(from)]);
    cells[static_cast<size_t>(to)] = static_cast<int32_t>(to == from ? value * 3 + static_cast<uint32_t>(k) : value);
  }
};

TEST_P(DriverConformance, RandomGraphsDoWhatTheirNodesDoOneByOne) {
  int32_t *const cells = Device<int32_t>(kCells), *const out = Pinned<int32_t>(kCells);
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<Deed> deeds(20 + random() % 60);
    const Graph graph = NewGraph();
    for (size_t n = 0; n < deeds.size(); ++n) {
      Deed& deed = deeds[n] = {static_cast<int>(random() % kCells), static_cast<int>(random() % kCells),
                               static_cast<int32_t>(random() % 1000)};
      if (random() % 2 == 0) deed.from = deed.to;
      After after;
      for (size_t m = 0; m < n; ++m) {
        if (deed.Conflicts(deeds[m])) after.push_back(static_cast<int32_t>(m));
      }
      PackedArgs args;
      args.Add(cells + deed.to).Add(int64_t{1}).Add(deed.k);
      const KernelOp step = OpOf(probes().step, args);
      const CopyOp copy{
          .kind = CopyKind::kDeviceToDevice, .dst = cells + deed.to, .src = cells + deed.from, .width = 4};
      const NodeOp op = deed.to == deed.from ? NodeOp(&step) : NodeOp(&copy);
      ASSERT_EQ(driver_->AddNode(graph, after, op, {}).value_or(-1), static_cast<int32_t>(n));
    }
    const GraphExec exec = NewExec(graph);
    ASSERT_OK(driver_->Fill(stream_, {.dst = cells, .pattern{std::byte{1}}, .count = kCells * 4}));
    std::vector<int32_t> expected(kCells, 0x01010101);
    for (int launch = 0; launch < 3; ++launch) {
      ASSERT_OK(driver_->LaunchGraph(exec, stream_));
      for (const Deed& deed : deeds) deed.Do(expected);
    }
    ASSERT_OK(Download(stream_, out, cells, kCells * 4));
    ASSERT_TRUE(Finish(stream_));
    ASSERT_EQ(std::vector<int32_t>(out, out + kCells), expected);
  }
}

}  // namespace
}  // namespace penstock::driver::conformance::graph_order_conformance_test
