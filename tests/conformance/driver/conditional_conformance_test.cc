// Conditional nodes: which bodies run, how often and in which order, by numbers that every node of a graph changes.
// Expected numbers are those of plain loops.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "src/driver/loop_kernels.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::conditional_conformance_test {
namespace {

using detail::Decision;
using detail::DecisionKind;
using detail::LoopMark;
using detail::LoopRecord;
using detail::LoopState;
using enum ConditionalKind;

int32_t Steps(int32_t value, int64_t times, int32_t k) {
  for (int64_t i = 0; i < times; ++i) value = StepOf(value, k);
  return value;
}

// The operation of a library kernel with its argument. It stays where it is.
template <class Args>
struct LibraryNode {
  template <size_t kPointers>
  LibraryNode(const LibraryCode& code, const Args& args_in, const uint32_t (&pointers)[kPointers])
      : args(args_in), op(LibraryOp(code, &argv, sizeof(args))) {
    op.pointer_offsets = pointers;
    op.pointer_count = kPointers;
  }
  LibraryNode(const LibraryNode&) = delete;
  LibraryNode& operator=(const LibraryNode&) = delete;

  Args args;
  void* argv = &args;
  KernelOp op;
};

// --- which body ---

// Before it, in it and after it there is a step of one number: any other order makes another.
TEST_P(DriverConformance, AnIfRunsItsBodyWhereItsValueIsNotZero) {
  int32_t *const value = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, value));
  AddStep(graph, {0}, data, 1);
  const ConditionalNode branch = AddConditional(graph, {1}, handle, kIf);
  EXPECT_EQ(branch.number, 2);
  AddStep(branch.bodies[0], {}, data, 10);
  AddStep(branch.bodies[0], {0}, data, 20);
  AddStep(graph, {2}, data, 100);
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 4) << "a conditional node is one";
  const GraphExec exec = NewExec(graph);
  for (const int32_t set : {1, 0, 7, 0, -1}) {
    *value = set;
    *data = 5;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    const int32_t before = StepOf(5, 1), behind = set == 0 ? before : StepOf(StepOf(before, 10), 20);
    EXPECT_EQ(*data, StepOf(behind, 100)) << set;
  }
}

TEST_P(DriverConformance, AnIfWithASecondBodyRunsOneOfThem) {
  int32_t *const value = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, value));
  const ConditionalNode branch = AddConditional(graph, {0}, handle, kIf, 2);
  AddStep(branch.bodies[0], {}, data, 10);
  AddStep(branch.bodies[1], {}, data, 20);
  const GraphExec exec = NewExec(graph);
  for (const int32_t set : {0, 3, 0}) {
    *value = set;
    *data = 1;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_EQ(*data, StepOf(1, set == 0 ? 20 : 10)) << set;
  }
}

TEST_P(DriverConformance, ASwitchRunsTheBodyOfThatNumberIfThereIsOne) {
  int32_t *const value = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  for (const int32_t bodies : {1, 4, kMostBodies}) {
    const Graph graph = NewGraph();
    const ConditionalHandle handle = NewHandle(graph);
    AddProbe(graph, {}, probes().decide, DecideOn(handle, value));
    const ConditionalNode branch = AddConditional(graph, {0}, handle, kSwitch, bodies);
    for (int32_t b = 0; b < bodies; ++b) AddStep(branch.bodies[static_cast<size_t>(b)], {}, data, 10 + b);
    AddStep(graph, {1}, data, 100);
    const GraphExec exec = NewExec(graph);
    for (const int32_t set : {0, 1, bodies - 1, bodies, bodies + 1, -1}) {
      *value = set;
      *data = 2;
      ASSERT_OK(driver_->LaunchGraph(exec, stream_));
      ASSERT_TRUE(Finish(stream_));
      const bool is_there = set >= 0 && set < bodies;
      EXPECT_EQ(*data, StepOf(is_there ? StepOf(2, 10 + set) : 2, 100)) << set << " of " << bodies;
    }
  }
}

TEST_P(DriverConformance, AnEmptyBodyPassesOnTheOrder) {
  int32_t *const value = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, value));
  AddStep(graph, {0}, data, 1);
  AddConditional(graph, {1}, handle, kIf, 2);
  AddStep(graph, {2}, data, 10);
  const GraphExec exec = NewExec(graph);
  for (const int32_t set : {0, 1}) {
    *value = set;
    *data = 3;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_EQ(*data, StepOf(StepOf(3, 1), 10)) << set;
  }
}

TEST_P(DriverConformance, WhatFollowsABodyWaitsForAllOfIt) {
  KernelLatch &first = NewLatch(), &second = NewLatch();
  int32_t *const value = Pinned<int32_t>(1), *const seen = Pinned<int32_t>(2);
  *value = 1;
  std::fill(seen, seen + 2, 0);
  const Stream beside = NewStream();
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, value));
  const ConditionalNode branch = AddConditional(graph, {0}, handle, kIf);
  AddProbe(branch.bodies[0], {}, probes().hold, LatchArg(first));
  AddProbe(branch.bodies[0], {}, probes().hold, LatchArg(second));
  AddProbe(graph, {1}, probes().note, NoteArgs(second, seen));
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_TRUE(AwaitStarted(first));
  Open(first);
  ASSERT_TRUE(AwaitStarted(second)) << "two nodes that nothing orders";
  EXPECT_TRUE(LetOthersRun(beside, second, seen + 1));
  EXPECT_EQ(seen[0], 0) << "what follows the node has begun before its body had ended";
  Open(second);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(seen[0], kSawOpen);
  EXPECT_EQ(first.timed_out + second.timed_out, 0u);
}

// --- loops ---

// The condition decides before the loop and at the end of each iteration.
TEST_P(DriverConformance, AWhileRunsItsBodyUntilItsValueIsZero) {
  int32_t *const left = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, left, 1));
  const ConditionalNode loop = AddConditional(graph, {0}, handle, kWhile);
  AddStep(loop.bodies[0], {}, data, 1);
  AddStep(loop.bodies[0], {0}, data, 2);
  AddProbe(loop.bodies[0], {1}, probes().decide, DecideOn(handle, left, 1));
  AddStep(graph, {1}, data, 100);
  const GraphExec exec = NewExec(graph);
  for (const int32_t times : {0, 1, 1000, 2, 0}) {
    *left = times;
    *data = 4;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    int32_t expected = 4;
    for (int32_t i = 0; i < times; ++i) expected = StepOf(StepOf(expected, 1), 2);
    EXPECT_EQ(*data, StepOf(expected, 100)) << times;
    EXPECT_EQ(*left, -1) << "decisions are one more than iterations";
  }
}

TEST_P(DriverConformance, LaunchesOfALoopFollowOneAnother) {
  int32_t *const times = Pinned<int32_t>(1), *const left = Device<int32_t>(1), *const data = Pinned<int32_t>(1);
  const CopyOp reset{.kind = CopyKind::kHostToDevice, .dst = left, .src = times, .width = 4};
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  ASSERT_OK(driver_->AddNode(graph, {}, &reset, {}).status());
  AddProbe(graph, {0}, probes().decide, DecideOn(handle, left, 1));
  const ConditionalNode loop = AddConditional(graph, {1}, handle, kWhile);
  AddStep(loop.bodies[0], {}, data, 7);
  AddProbe(loop.bodies[0], {0}, probes().decide, DecideOn(handle, left, 1));
  const GraphExec exec = NewExec(graph);
  *times = 5;
  *data = 0;
  for (int launch = 0; launch < 100; ++launch) ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*data, Steps(0, 500, 7));
}

// Several loops at once would end CUDA's context.
TEST_P(DriverConformance, LoopsOnSeveralStreamsTakeTurns) {
  constexpr int kStreams = 8, kLaunches = 20, kTimes = 20;
  int32_t *const times = Pinned<int32_t>(1), *const data = Pinned<int32_t>(kStreams);
  *times = kTimes;
  std::vector<Stream> streams;
  std::vector<GraphExec> execs;
  for (int s = 0; s < kStreams; ++s) {
    int32_t* const left = Device<int32_t>(1);
    data[s] = 0;
    const CopyOp reset{.kind = CopyKind::kHostToDevice, .dst = left, .src = times, .width = 4};
    const Graph graph = NewGraph();
    const ConditionalHandle handle = NewHandle(graph);
    ASSERT_OK(driver_->AddNode(graph, {}, &reset, {}).status());
    AddProbe(graph, {0}, probes().decide, DecideOn(handle, left, 1));
    const ConditionalNode loop = AddConditional(graph, {1}, handle, kWhile);
    AddStep(loop.bodies[0], {}, data + s, s);
    AddProbe(loop.bodies[0], {0}, probes().decide, DecideOn(handle, left, 1));
    execs.push_back(NewExec(graph));
    streams.push_back(NewStream());
  }
  for (int launch = 0; launch < kLaunches; ++launch) {
    for (size_t s = 0; s < kStreams; ++s) ASSERT_OK(driver_->LaunchGraph(execs[s], streams[s]));
  }
  for (const Stream stream : streams) ASSERT_TRUE(Finish(stream));
  for (int s = 0; s < kStreams; ++s) EXPECT_EQ(data[s], Steps(0, kLaunches * kTimes, s)) << s;
}

TEST_P(DriverConformance, ALoopOfAKnownNumberNeedsNoCondition) {
  const absl::StatusOr<LoopKernels> kernels = driver_->LoadLoopKernels(0);
  ASSERT_OK(kernels.status());
  int32_t* const data = Pinned<int32_t>(1);
  LoopState* const state = Device<LoopState>(1);
  for (const int64_t most : {0, 1, 7}) {
    const Graph graph = NewGraph();
    const ConditionalHandle handle = NewHandle(graph);
    const LibraryNode<DecideArgs> enter(kernels->decide, {{handle.bits, state, most, DecisionKind::kEnter}},
                                        kDecidePointers);
    const LibraryNode<DecideArgs> again(kernels->decide, {{handle.bits, state, 0, DecisionKind::kAgain}},
                                        kDecidePointers);
    ASSERT_OK(driver_->AddNode(graph, {}, &enter.op, {}).status());
    const ConditionalNode loop = AddConditional(graph, {0}, handle, kWhile);
    AddStep(loop.bodies[0], {}, data, 3);
    ASSERT_OK(driver_->AddNode(loop.bodies[0], After{0}, &again.op, {}).status());
    const GraphExec exec = NewExec(graph);
    for (const int32_t first : {0, 9}) {
      *data = first;
      ASSERT_OK(driver_->LaunchGraph(exec, stream_));
      ASSERT_TRUE(Finish(stream_));
      EXPECT_EQ(*data, Steps(first, most, 3)) << most;
    }
  }
}

TEST_P(DriverConformance, AConditionEndsALoopBeforeItsMost) {
  int32_t *const left = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  LoopState* const state = Device<LoopState>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, left, 1, DecisionKind::kEnter, state, 5));
  const ConditionalNode loop = AddConditional(graph, {0}, handle, kWhile);
  AddStep(loop.bodies[0], {}, data, 3);
  AddProbe(loop.bodies[0], {0}, probes().decide, DecideOn(handle, left, 1, DecisionKind::kAgain, state));
  const GraphExec exec = NewExec(graph);
  for (const int32_t times : {0, 4, 5, 6, 100}) {
    *left = times;
    *data = 0;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    EXPECT_EQ(*data, Steps(0, std::min(times, 5), 3)) << times;
  }
}

// Three iterations a body, of a step and a fill each; in a loop around it, which begins it again and again.
TEST_P(DriverConformance, AnUnrolledLoopLeavesOutWhatIsBehindItsLastIteration) {
  const absl::StatusOr<LoopKernels> kernels = driver_->LoadLoopKernels(0);
  ASSERT_OK(kernels.status());
  constexpr int32_t kOuter = 4;
  constexpr uint32_t kUnroll = 3, kNodes = 2;
  int32_t *const left = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  int32_t* const filled = Device<int32_t>(1);
  uint64_t* const switches = Pinned<uint64_t>((kUnroll - 1) * kNodes);
  LoopState* const state = Device<LoopState>(1);
  const FillOp fill{.dst = filled, .count = 4};
  for (const int64_t most : {0, 1, 2, 3, 4, 7, 9}) {
    const Graph graph = NewGraph();
    const ConditionalHandle outer = NewHandle(graph);
    AddProbe(graph, {}, probes().decide, DecideOn(outer, left, 1));
    const Graph around = AddConditional(graph, {0}, outer, kWhile).bodies[0];
    const ConditionalHandle handle = NewHandle(around);
    const auto decision = [&](DecisionKind kind) {
      return Decision{handle.bits, state, most, kind, kUnroll, switches, kNodes};
    };
    const LibraryNode<DecideArgs> enter(kernels->decide, {decision(DecisionKind::kEnterCounted)}, kDecidePointers);
    const LibraryNode<DecideArgs> again(kernels->decide, {decision(DecisionKind::kAgainCounted)}, kDecidePointers);
    ASSERT_OK(driver_->AddNode(around, {}, &enter.op, {}).status());
    const Graph body = AddConditional(around, {0}, handle, kWhile).bodies[0];
    int32_t last = -1;
    for (uint32_t i = 0; i < kUnroll; ++i) {
      const int32_t step = AddStep(body, last < 0 ? After{} : After{last}, data, 3);
      last = driver_->AddNode(body, After{step}, &fill, {}).value_or(-1);
      for (uint32_t n = 0; i > 0 && n < kNodes; ++n) {
        const auto added = driver_->AddSwitch(body, step + static_cast<int32_t>(n), {});
        ASSERT_OK(added.status());
        switches[(i - 1) * kNodes + n] = added->bits;
      }
    }
    ASSERT_OK(driver_->AddNode(body, After{last}, &again.op, {}).status());
    AddProbe(around, {1}, probes().decide, DecideOn(outer, left, 1));
    const GraphExec exec = NewExec(graph);
    for (const int32_t first : {0, 9, 5}) {
      *left = kOuter;
      *data = first;
      ASSERT_OK(driver_->LaunchGraph(exec, stream_));
      ASSERT_TRUE(Finish(stream_));
      EXPECT_EQ(*data, Steps(first, most * kOuter, 3)) << most;
    }
  }
}

// The test stops it when it has seen iterations go by.
TEST_P(DriverConformance, TheHostStopsALoopByItsWord) {
  const absl::StatusOr<LoopKernels> kernels = driver_->LoadLoopKernels(0);
  ASSERT_OK(kernels.status());
  uint32_t* const stop = Pinned<uint32_t>(1);
  int32_t* const data = Pinned<int32_t>(1);
  LoopState* const state = Device<LoopState>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  const LibraryNode<DecideArgs> enter(
      kernels->decide, {{handle.bits, state, int64_t{1'000'000'000}, DecisionKind::kEnter}}, kDecidePointers);
  const LibraryNode<DecideArgs> again(kernels->decide, {{handle.bits, state, 0, DecisionKind::kAgain}},
                                      kDecidePointers);
  const LibraryNode<LookArgs> look(kernels->look, {state, stop}, kLookPointers);
  ASSERT_OK(driver_->AddNode(graph, {}, &enter.op, {}).status());
  const ConditionalNode loop = AddConditional(graph, {0}, handle, kWhile);
  ASSERT_OK(driver_->AddNode(loop.bodies[0], {}, &look.op, {}).status());
  AddStep(loop.bodies[0], {0}, data, 3);
  ASSERT_OK(driver_->AddNode(loop.bodies[0], After{1}, &again.op, {}).status());
  const GraphExec exec = NewExec(graph);
  for (int launch = 0; launch < 3; ++launch) {
    *stop = 0;
    *data = 0;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    const auto goes_on = [&] {
      const int32_t value = std::atomic_ref(*data).load(std::memory_order_relaxed);
      return value != 0 && value != StepOf(0, 3);
    };
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    bool seen = goes_on();
    for (; !seen && std::chrono::steady_clock::now() < until; seen = goes_on()) std::this_thread::yield();
    EXPECT_TRUE(seen);
    std::atomic_ref(*stop).store(1, std::memory_order_relaxed);
    ASSERT_TRUE(Finish(stream_));
  }
}

// With and without a condition, and unrolled so that it ends in the middle of a body.
TEST_P(DriverConformance, ALoopTellsWhatItHasDoneAndWhen) {
  constexpr uint32_t kMarks = 4;
  const absl::StatusOr<LoopKernels> kernels = driver_->LoadLoopKernels(0);
  ASSERT_OK(kernels.status());
  auto* const zero = Pinned<LoopState>(1);
  auto* const told = Pinned<std::byte>(sizeof(LoopRecord) + kMarks * sizeof(LoopMark));
  auto* const record = reinterpret_cast<LoopRecord*>(told);
  const auto* const marks = reinterpret_cast<const LoopMark*>(record + 1);
  auto* const switches = Pinned<uint64_t>(3);
  LoopState* const state = Device<LoopState>(1);
  *zero = {};
  const CopyOp reset{.kind = CopyKind::kHostToDevice, .dst = state, .src = zero, .width = sizeof(LoopState)};
  for (const auto& [enters, agains, in_a_body] : {std::tuple{DecisionKind::kEnter, DecisionKind::kAgain, 1},
                                                  {DecisionKind::kEnter, DecisionKind::kAgain, 4},
                                                  {DecisionKind::kEnterCounted, DecisionKind::kAgainCounted, 1},
                                                  {DecisionKind::kEnterCounted, DecisionKind::kAgainCounted, 4}}) {
    ASSERT_OK(driver_->Copy(stream_, reset));
    *record = {};
    int64_t iterations = 0, runs = 0, written = 0;
    for (const int64_t most : {3, 0, 5, 4}) {
      const Graph graph = NewGraph();
      const ConditionalHandle handle = NewHandle(graph);
      Decision decision{handle.bits, state, most, enters};
      decision.unroll = static_cast<uint32_t>(in_a_body);
      decision.record = record;
      decision.marks = kMarks;
      if (in_a_body > 1 && agains == DecisionKind::kAgain) {
        decision.switches = switches;
        decision.nodes = 1;
      }
      const LibraryNode<DecideArgs> enter(kernels->decide, {decision}, kDecidePointers);
      decision.kind = agains;
      const LibraryNode<DecideArgs> again(kernels->decide, {decision}, kDecidePointers);
      ASSERT_OK(driver_->AddNode(graph, {}, &enter.op, {}).status());
      const Graph body = AddConditional(graph, {0}, handle, kWhile).bodies[0];
      const int times = agains == DecisionKind::kAgain ? in_a_body : 1;
      for (int i = 0; i < times; ++i) {
        ASSERT_OK(driver_->AddNode(body, i == 0 ? After{} : After{i - 1}, &again.op, {}).status());
        if (i == 0) continue;
        const auto added = driver_->AddSwitch(body, i, {});
        ASSERT_OK(added.status());
        switches[i - 1] = added->bits;
      }
      const GraphExec exec = NewExec(graph);
      for (int launch = 0; launch < 2; ++launch) {
        const LoopRecord before = *record;
        ASSERT_OK(driver_->LaunchGraph(exec, stream_));
        ASSERT_TRUE(Finish(stream_));
        iterations += most;
        runs += most > 0 ? 1 : 0;
        const int64_t each = times == 1 ? in_a_body : 1;  // iterations from a mark to the next
        written += 1 + (most + each - 1) / each;
        const std::string where = std::to_string(most) + ", " + std::to_string(in_a_body) + " in a body";
        EXPECT_EQ(record->iterations, iterations) << where;
        EXPECT_EQ(record->runs, runs) << where;
        EXPECT_EQ(record->marks, written) << where;
        const LoopMark& last = marks[(written - 1) % kMarks];
        EXPECT_EQ(last.done, most) << where;
        if (most == 0) continue;
        const LoopMark& second_last = marks[(written - 2) % kMarks];
        EXPECT_EQ(second_last.done, (most - 1) / each * each) << where;
        EXPECT_GE(last.nanos, second_last.nanos) << where;
        EXPECT_GE(record->nanos - before.nanos, static_cast<int64_t>(last.nanos - second_last.nanos)) << where;
      }
    }
  }
}

// --- one in another ---

TEST_P(DriverConformance, AnInnerLoopBeginsAnewInEachIterationOfTheOuter) {
  int32_t *const outer_left = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  LoopState* const state = Device<LoopState>(1);
  int32_t* const one = Pinned<int32_t>(1);
  *one = 1;
  const Graph graph = NewGraph();
  const ConditionalHandle outer = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(outer, outer_left, 1));
  const ConditionalNode around = AddConditional(graph, {0}, outer, kWhile);
  const Graph body = around.bodies[0];
  const ConditionalHandle inner = NewHandle(body);
  AddProbe(body, {}, probes().decide, DecideOn(inner, one, 0, DecisionKind::kEnter, state, 3));
  const ConditionalNode inside = AddConditional(body, {0}, inner, kWhile);
  AddStep(inside.bodies[0], {}, data, 1);
  AddProbe(inside.bodies[0], {0}, probes().decide, DecideOn(inner, one, 0, DecisionKind::kAgain, state));
  AddStep(body, {1}, data, 50);
  AddProbe(body, {2}, probes().decide, DecideOn(outer, outer_left, 1));
  const GraphExec exec = NewExec(graph);
  for (const int32_t times : {4, 0, 1}) {
    *outer_left = times;
    *data = 2;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    int32_t expected = 2;
    for (int32_t i = 0; i < times; ++i) expected = StepOf(Steps(expected, 3, 1), 50);
    EXPECT_EQ(*data, expected) << times;
  }
}

// Two iterations choose no body, three one each.
TEST_P(DriverConformance, ASwitchInALoopDecidesInEachIteration) {
  int32_t *const left = Pinned<int32_t>(1), *const which = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const Graph graph = NewGraph();
  const ConditionalHandle outer = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(outer, left, 1));
  const ConditionalNode loop = AddConditional(graph, {0}, outer, kWhile);
  const Graph body = loop.bodies[0];
  const ConditionalHandle inner = NewHandle(body);
  AddProbe(body, {}, probes().decide, DecideOn(inner, which, 1));
  const ConditionalNode branch = AddConditional(body, {0}, inner, kSwitch, 3);
  for (int32_t b = 0; b < 3; ++b) AddStep(branch.bodies[static_cast<size_t>(b)], {}, data, 10 * b + 1);
  AddProbe(body, {1}, probes().decide, DecideOn(outer, left, 1));
  const GraphExec exec = NewExec(graph);
  for (const int32_t times : {6, 2}) {
    *left = times;
    *which = 4;  // two iterations without a body
    *data = 1;
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    int32_t expected = 1;
    for (int32_t i = 0; i < times; ++i) {
      if (4 - i >= 0 && 4 - i < 3) expected = StepOf(expected, 10 * (4 - i) + 1);
    }
    EXPECT_EQ(*data, expected) << times;
  }
}

}  // namespace
}  // namespace penstock::driver::conformance::conditional_conformance_test
