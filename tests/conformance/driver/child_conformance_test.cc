// Graphs as nodes of others: what comes before what, by kernels that the test holds and by data that many nodes share;
// and what a child may be given instead.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "src/driver/current_device.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::child_conformance_test {
namespace {

// --- order ---

TEST_P(DriverConformance, ACapturedChildComesAfterWhatItFollowsAndBeforeWhatFollowsIt) {
  KernelLatch &first = NewLatch(), &second = NewLatch();
  int32_t* const seen = Pinned<int32_t>(3);
  std::fill(seen, seen + 3, 0);
  const Stream beside = NewStream();
  const LatchArg of_first(first), of_second(second);
  const NoteArgs inside(first, seen), behind(second, seen + 1);
  const KernelOp hold_first = OpOf(probes().hold, of_first), hold_second = OpOf(probes().hold, of_second);
  const KernelOp note_inside = OpOf(probes().note, inside), note_behind = OpOf(probes().note, behind);
  const Graph child = NewCapture(beside, [&] {
    EXPECT_OK(driver_->Launch(beside, note_inside));
    return driver_->Launch(beside, hold_second);
  });
  const Graph graph = NewGraph();
  ASSERT_EQ(driver_->AddNode(graph, {}, &hold_first, {}).value_or(-1), 0);
  ASSERT_EQ(driver_->AddChild(graph, After{0}, child).value_or(-1), 1);
  ASSERT_EQ(driver_->AddNode(graph, After{1}, &note_behind, {}).value_or(-1), 2);
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 3) << "a child is one";
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_TRUE(AwaitStarted(first));
  EXPECT_TRUE(LetOthersRun(beside, first, seen + 2));
  EXPECT_EQ(seen[0], 0) << "the child has begun before what it follows had ended";
  Open(first);
  ASSERT_TRUE(AwaitStarted(second));
  EXPECT_TRUE(LetOthersRun(beside, second, seen + 2));
  EXPECT_EQ(seen[1], 0) << "what follows the child has begun before it had ended";
  Open(second);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(seen[0], kSawOpen);
  EXPECT_EQ(seen[1], kSawOpen);
  EXPECT_EQ(first.timed_out + second.timed_out, 0u);
}

TEST_P(DriverConformance, AllNodesOfAChildWaitForWhatItFollowsAndAreWaitedForByWhatFollowsIt) {
  const Stream beside = NewStream();
  for (const bool first_is_late : {false, true}) {
    SCOPED_TRACE(first_is_late);
    KernelLatch &before = NewLatch(), &first = NewLatch(), &second = NewLatch();
    KernelLatch &early = first_is_late ? second : first, &late = first_is_late ? first : second;
    int32_t* const seen = Pinned<int32_t>(5);
    std::fill(seen, seen + 5, 0);
    const LatchArg of_before(before), of_first(first), of_second(second);
    const NoteArgs saw_a(before, seen), saw_b(before, seen + 1), behind(late, seen + 2);
    const KernelOp hold_before = OpOf(probes().hold, of_before), hold_first = OpOf(probes().hold, of_first);
    const KernelOp hold_second = OpOf(probes().hold, of_second), note_a = OpOf(probes().note, saw_a);
    const KernelOp note_b = OpOf(probes().note, saw_b), note_behind = OpOf(probes().note, behind);
    const Graph child = NewGraph();  // two chains that nothing orders
    ASSERT_OK(driver_->AddNode(child, {}, &note_a, {}).status());
    ASSERT_OK(driver_->AddNode(child, {}, &note_b, {}).status());
    ASSERT_OK(driver_->AddNode(child, After{0}, &hold_first, {}).status());
    ASSERT_OK(driver_->AddNode(child, After{1}, &hold_second, {}).status());
    const Graph graph = NewGraph();
    ASSERT_OK(driver_->AddNode(graph, {}, &hold_before, {}).status());
    ASSERT_OK(driver_->AddChild(graph, After{0}, child).status());
    ASSERT_OK(driver_->AddNode(graph, After{1}, &note_behind, {}).status());
    ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
    ASSERT_TRUE(AwaitStarted(before));
    EXPECT_TRUE(LetOthersRun(beside, before, seen + 3));
    EXPECT_EQ(seen[0] + seen[1], 0) << "a node of the child has not waited";
    Open(before);
    ASSERT_TRUE(AwaitStarted(first));
    ASSERT_TRUE(AwaitStarted(second)) << "while the first runs";
    Open(early);
    EXPECT_TRUE(LetOthersRun(beside, late, seen + 3));
    EXPECT_EQ(seen[2], 0) << "a node of the child was not waited for";
    Open(late);
    ASSERT_TRUE(Finish(stream_));
    EXPECT_EQ(std::vector<int32_t>(seen, seen + 3), std::vector<int32_t>(3, kSawOpen));
    EXPECT_EQ(before.timed_out + first.timed_out + second.timed_out, 0u);
  }
}

TEST_P(DriverConformance, AnEmptyChildPassesOnTheOrder) {
  KernelLatch& latch = NewLatch();
  int32_t* const seen = Pinned<int32_t>(2);
  std::fill(seen, seen + 2, 0);
  const Stream beside = NewStream();
  const LatchArg holds(latch);
  const NoteArgs notes(latch, seen);
  const KernelOp hold = OpOf(probes().hold, holds), note = OpOf(probes().note, notes);
  const Graph nothing = NewCapture(beside, [] { return absl::OkStatus(); }), graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &hold, {}).status());
  ASSERT_OK(driver_->AddChild(graph, After{0}, nothing).status());
  ASSERT_OK(driver_->AddNode(graph, After{1}, &note, {}).status());
  const GraphExec exec = NewExec(graph);
  ASSERT_OK(driver_->SetChild(exec, 1, NewGraph()));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(AwaitStarted(latch));
  EXPECT_TRUE(LetOthersRun(beside, latch, seen + 1));
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*seen, kSawOpen);
  EXPECT_EQ(latch.timed_out, 0u);
}

// Steps of one number: any other order makes another.
TEST_P(DriverConformance, ChildrenOfChildrenKeepTheirPlace) {
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  const Step3 a(data, 1, 1), b(data, 1, 10), c(data, 1, 100), d(data, 1, 1000);
  const KernelOp one = OpOf(probes().step, a), two = OpOf(probes().step, b);
  const KernelOp three = OpOf(probes().step, c), four = OpOf(probes().step, d);
  const Graph innermost = NewCapture(stream_, [&] { return driver_->Launch(stream_, three); });
  const Graph inner = NewGraph(), graph = NewGraph();
  ASSERT_OK(driver_->AddNode(inner, {}, &two, {}).status());
  ASSERT_OK(driver_->AddChild(inner, After{0}, innermost).status());
  ASSERT_OK(driver_->AddNode(inner, After{1}, &four, {}).status());
  ASSERT_OK(driver_->AddNode(graph, {}, &one, {}).status());
  ASSERT_OK(driver_->AddChild(graph, After{0}, inner).status());
  ASSERT_OK(driver_->AddNode(graph, After{1}, &two, {}).status());
  ASSERT_OK(driver_->AddChild(graph, After{2}, innermost).status());
  const GraphExec exec = NewExec(graph);
  int32_t expected = 0;
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    for (const int32_t k : {1, 10, 100, 1000, 10, 100}) expected = StepOf(expected, k);
  }
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, expected);
}

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
bool Conflict(const std::vector<Deed>& a, const std::vector<Deed>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Deed& one) {
    return std::any_of(b.begin(), b.end(), [&](const Deed& other) { return one.Conflicts(other); });
  });
}

TEST_P(DriverConformance, RandomGraphsOfChildrenDoWhatTheirNodesDoOneByOne) {
  int32_t *const cells = Device<int32_t>(kCells), *const out = Pinned<int32_t>(kCells);
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<Step3>> args;
    // A node of one deed, or what one is made of: a copy or a kernel, to be given away at once.
    const auto with_op = [&](const Deed& deed, const std::function<absl::Status(const NodeOp&)>& use) {
      args.push_back(std::make_unique<Step3>(cells + deed.to, 1, deed.k));
      const KernelOp step = OpOf(probes().step, *args.back());
      const CopyOp copy{
          .kind = CopyKind::kDeviceToDevice, .dst = cells + deed.to, .src = cells + deed.from, .width = 4};
      ASSERT_OK(use(deed.to == deed.from ? NodeOp(&step) : NodeOp(&copy)));
    };
    // The deeds so far in groups, and the graph's number of each.
    std::vector<std::vector<Deed>> groups;
    const Graph graph = NewGraph();
    for (int n = 0; n < 25; ++n) {
      std::vector<Deed> group(1 + random() % 4);
      for (Deed& deed : group) {
        deed = {static_cast<int>(random() % kCells), static_cast<int>(random() % kCells),
                static_cast<int32_t>(random() % 1000)};
        if (random() % 2 == 0) deed.from = deed.to;
      }
      After after;
      for (size_t m = 0; m < groups.size(); ++m) {
        if (Conflict(group, groups[m])) after.push_back(static_cast<int32_t>(m));
      }
      if (group.size() == 1 && random() % 2 == 0) {
        with_op(group[0], [&](const NodeOp& op) { return driver_->AddNode(graph, after, op, {}).status(); });
      } else {
        const Graph child = NewGraph();
        for (size_t i = 0; i < group.size(); ++i) {
          After inside;
          for (size_t j = 0; j < i; ++j) {
            if (group[i].Conflicts(group[j])) inside.push_back(static_cast<int32_t>(j));
          }
          with_op(group[i], [&](const NodeOp& op) { return driver_->AddNode(child, inside, op, {}).status(); });
        }
        ASSERT_EQ(driver_->AddChild(graph, after, child).value_or(-1), n);
      }
      groups.push_back(std::move(group));
    }
    const GraphExec exec = NewExec(graph);
    ASSERT_OK(driver_->Fill(stream_, {.dst = cells, .pattern{std::byte{1}}, .count = kCells * 4}));
    std::vector<int32_t> expected(kCells, 0x01010101);
    for (int launch = 0; launch < 3; ++launch) {
      ASSERT_OK(driver_->LaunchGraph(exec, stream_));
      for (const std::vector<Deed>& group : groups) {
        for (const Deed& deed : group) deed.Do(expected);
      }
    }
    ASSERT_OK(Download(stream_, out, cells, kCells * 4));
    ASSERT_TRUE(Finish(stream_));
    ASSERT_EQ(std::vector<int32_t>(out, out + kCells), expected);
  }
}

// --- lives ---

TEST_P(DriverConformance, AChildIsTheGraphAsItWasAndNeedsItNoLonger) {
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  const Step3 a(data, 1, 1), b(data, 1, 10);
  const KernelOp one = OpOf(probes().step, a), two = OpOf(probes().step, b);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  const auto child = driver_->CreateGraph(0), graph = driver_->CreateGraph(0);
  ASSERT_OK(child.status());
  ASSERT_OK(graph.status());
  ASSERT_OK(driver_->BeginCapture(stream_));
  ASSERT_OK(driver_->Launch(stream_, two));
  const auto captured = driver_->EndCapture(stream_);
  ASSERT_OK(captured.status());
  ASSERT_OK(driver_->AddNode(*child, {}, &one, {}).status());
  ASSERT_OK(driver_->AddChild(*graph, {}, *child).status());
  ASSERT_OK(driver_->AddNode(*child, After{0}, &two, {}).status());  // which is not in it
  driver_->DestroyGraph(*child);
  ASSERT_OK(driver_->AddChild(*graph, After{0}, *captured).status());
  driver_->DestroyGraph(*captured);
  const GraphExec exec = NewExec(*graph);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  driver_->DestroyGraph(*graph);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  int32_t expected = 0;
  for (const int32_t k : {1, 10, 1, 10}) expected = StepOf(expected, k);
  EXPECT_EQ(*out, expected);
}

// --- another graph for a child ---

TEST_P(DriverConformance, AnotherGraphForAChildCountsForLaterLaunchesOnly) {
  constexpr int64_t kCount = 100;
  constexpr size_t kBytes = kCount * 4;
  constexpr int kRows = 3;
  int32_t *const from = Pinned<int32_t>(kRows * kCount), *const to = Pinned<int32_t>(kRows * kCount);
  int32_t* const data = Device<int32_t>(kCount);
  for (int32_t i = 0; i < kRows * kCount; ++i) from[i] = i * 3 - 100;
  const auto child_of = [&](int32_t row) {
    const Step3 args(data, kCount, 10 * row + 1);
    const KernelOp step = OpOf(probes().step, args, kCount);
    return NewCapture(stream_, [&]() -> absl::Status {
      EXPECT_OK(Upload(stream_, data, from + row * kCount, kBytes));
      EXPECT_OK(driver_->Launch(stream_, step));
      // A line of bytes; of another value each time.
      return driver_->Fill(stream_, {.dst = data, .pattern{static_cast<std::byte>(row + 1)}, .count = 4});
    });
  };
  CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = to, .src = data, .width = kBytes};
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddChild(graph, {}, child_of(0)).status());
  ASSERT_OK(driver_->AddNode(graph, After{0}, &down, {}).status());
  const GraphExec exec = NewExec(graph), as_it_was = NewExec(graph);
  KernelLatch& latch = NewLatch();
  std::vector<Graph> children = {Graph{}, child_of(1), child_of(2)};
  ASSERT_TRUE(Hold(stream_, latch));
  for (int32_t row = 0; row < kRows; ++row) {
    down.dst = to + row * kCount;
    if (row > 0) {
      ASSERT_OK(driver_->SetChild(exec, 0, children[static_cast<size_t>(row)]));
    }
    ASSERT_OK(driver_->SetNode(exec, 1, &down));
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  }
  std::memset(to, 0, kRows * kBytes);  // the launches are held
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  const auto expect_row = [&](int32_t row) {
    EXPECT_EQ(to[row * kCount], 0x01010101 * (row + 1));
    for (int32_t i = 1; i < kCount; ++i) {
      ASSERT_EQ(to[row * kCount + i], StepOf(from[row * kCount + i], 10 * row + 1)) << row << ", " << i;
    }
  };
  for (int32_t row = 0; row < kRows; ++row) expect_row(row);
  std::memset(to, 0, kBytes);
  ASSERT_OK(driver_->LaunchGraph(as_it_was, stream_));
  ASSERT_TRUE(Finish(stream_));
  expect_row(0);
}

TEST_P(DriverConformance, AnotherGraphReachesTheChildrenOfAChild) {
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  const auto child_of = [&](int32_t k) {
    const Step3 a(data, 1, k), b(data, 1, k + 1);
    const KernelOp one = OpOf(probes().step, a), two = OpOf(probes().step, b);
    const Graph inner = NewCapture(stream_, [&] { return driver_->Launch(stream_, two); }), outer = NewGraph();
    EXPECT_OK(driver_->AddNode(outer, {}, &one, {}).status());
    EXPECT_OK(driver_->AddChild(outer, After{0}, inner).status());
    return outer;
  };
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddChild(graph, {}, child_of(5)).status());
  const GraphExec exec = NewExec(graph);
  ASSERT_OK(driver_->SetChild(exec, 0, child_of(50)));
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, StepOf(StepOf(0, 50), 51));
}

// Each differs from the child in its last nodes, so that what stands before would have been set.
TEST_P(DriverConformance, AGraphOfAnotherStructureIsRefusedAndTheChildIsAsItWas) {
  int32_t *const data = Device<int32_t>(4), *const out = Pinned<int32_t>(4), *const in = Pinned<int32_t>(4);
  std::fill(in, in + 4, 77);
  const auto graph_of = [&](int32_t k, const std::vector<std::pair<After, NodeOp>>& more) {
    const Step3 a(data, 1, k), b(data, 1, k + 1);
    const KernelOp one = OpOf(probes().step, a), two = OpOf(probes().step, b);
    const Graph graph = NewGraph();
    EXPECT_OK(driver_->AddNode(graph, {}, &one, {}).status());
    EXPECT_OK(driver_->AddNode(graph, After{0}, &two, {}).status());
    for (const auto& [after, op] : more) EXPECT_OK(driver_->AddNode(graph, after, op, {}).status());
    return graph;
  };
  const CopyOp up{.kind = CopyKind::kHostToDevice, .dst = data + 1, .src = in, .width = 4};
  const CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = in + 1, .src = data + 1, .width = 4};
  const Step3 args(data + 2, 1, 9);
  const KernelOp step = OpOf(probes().step, args);
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddChild(graph, {}, graph_of(1, {{After{1}, &up}})).status());
  const GraphExec exec = NewExec(graph);
  const auto expect_as_it_was = [&] {
    EXPECT_OK(driver_->Fill(stream_, {.dst = data, .count = 16}));
    EXPECT_OK(driver_->LaunchGraph(exec, stream_));
    EXPECT_OK(Download(stream_, out, data, 16));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_EQ(std::vector<int32_t>(out, out + 4), (std::vector<int32_t>{StepOf(StepOf(0, 1), 2), 77, 0, 0}))
        << "what was refused is done";
    EXPECT_EQ(in[1], 77) << "what was refused is done";
  };
  expect_as_it_was();
  const Graph wrong[] = {
      NewGraph(),                                             // nothing
      graph_of(100, {}),                                      // a node too few
      graph_of(100, {{After{1}, &up}, {After{2}, &step}}),    // a node too many
      graph_of(100, {{After{1}, &step}}),                     // of another kind
      graph_of(100, {{After{1}, &down}}),                     // the other way
      graph_of(100, {{After{0}, &up}}),                       // behind another
      graph_of(100, {{After{}, &up}}),                        // behind none
      graph_of(100, {{After{0, 1}, &up}}),                    // behind both
  };
  for (size_t i = 0; i < std::size(wrong); ++i) {
    SCOPED_TRACE(i);
    const absl::Status refused = driver_->SetChild(exec, 0, wrong[i]);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_GT(refused.message().size(), 20u) << refused;
    expect_as_it_was();
  }
  ASSERT_OK(driver_->SetChild(exec, 0, graph_of(100, {{After{1}, &up}})));
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 16}));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, StepOf(StepOf(0, 100), 101));
}

TEST_P(DriverConformance, AChildIsNoOperationAndAnOperationIsNoChild) {
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .pattern{std::byte{3}}, .count = 8};
  const FillOp other{.dst = device, .pattern{std::byte{4}}, .count = 8};
  const Graph child = NewCapture(stream_, [&] { return driver_->Fill(stream_, fill); }), graph = NewGraph();
  ASSERT_OK(driver_->AddChild(graph, {}, child).status());
  ASSERT_OK(driver_->AddNode(graph, After{0}, &fill, {}).status());
  const GraphExec exec = NewExec(graph);
  for (const absl::Status& status :
       {driver_->SetNode(exec, 0, &other), driver_->EnableNode(exec, 0, false), driver_->SetChild(exec, 1, child)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  ASSERT_OK(driver_->EnableNode(exec, 1, false)) << "it has its own number";
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(device, 8), std::vector<std::byte>(8, std::byte{3}));
}

TEST_P(DriverConformance, WhatCannotBeAChildIsRefusedAndTheGraphGoesOn) {
  ExpectViolations();
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .pattern{std::byte{3}}, .count = 8};
  const Graph child = NewCapture(stream_, [&] { return driver_->Fill(stream_, fill); }), graph = NewGraph();
  EXPECT_FALSE(driver_->AddChild(graph, {}, graph).ok()) << "of itself";
  for (const int32_t n : {0, -1, 5}) EXPECT_FALSE(driver_->AddChild(graph, After{n}, child).ok()) << n;
  EXPECT_EQ(driver_->AddChild(graph, {}, child).value_or(-1), 0) << "what is refused is no node";
  const GraphExec exec = NewExec(graph);
  for (const int32_t n : {-1, 1}) EXPECT_FALSE(driver_->SetChild(exec, n, child).ok()) << n;
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(device, 8), std::vector<std::byte>(8, std::byte{3}));
}

TEST_P(DriverConformance, AChildKeepsItsDevice) {
  SKIP_UNLESS_TWO_DEVICES();
  std::byte *const here = Device<std::byte>(16), *const there = Device<std::byte>(16, 1);
  const FillOp first{.dst = there, .pattern = {std::byte{1}}, .count = 16};
  const FillOp next{.dst = there, .pattern = {std::byte{2}}, .count = 16}, own{.dst = here, .count = 16};
  const Graph graph = NewGraph(), child = NewGraph(1), other = NewGraph(1);
  {
    const CurrentDevice current(*driver_, 1);
    ASSERT_OK(driver_->AddNode(child, {}, &first, {}).status());
    ASSERT_OK(driver_->AddNode(other, {}, &next, {}).status());
  }
  ASSERT_OK(driver_->AddNode(graph, {}, &own, {}).status());
  ASSERT_OK(driver_->AddChild(graph, After{0}, child).status());
  const GraphExec exec = NewExec(graph);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(there, 16, 1), std::vector<std::byte>(16, std::byte{1}));
  ASSERT_OK(driver_->SetChild(exec, 1, other));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(there, 16, 1), std::vector<std::byte>(16, std::byte{2}));
}

}  // namespace
}  // namespace penstock::driver::conformance::child_conformance_test
