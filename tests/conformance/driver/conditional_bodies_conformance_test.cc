// Bodies of conditional nodes: what they may hold, how an exec's are changed, what is refused, and runs that fail.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::conditional_bodies_conformance_test {
namespace {

using enum ConditionalKind;

// --- what bodies hold ---

// Each iteration takes the next number over from pinned memory, works on it in every way, and adds it to a list.
TEST_P(DriverConformance, ABodyCopiesFillsAndHoldsChildren) {
  constexpr int32_t kTimes = 3;
  int32_t *const left = Pinned<int32_t>(1), *const in = Pinned<int32_t>(1), *const out = Pinned<int32_t>(4);
  int32_t *const a = Device<int32_t>(1), *const b = Device<int32_t>(4);
  CopyPiece* const table = Pinned<CopyPiece>(2);
  table[0] = {.dst = out, .src = b, .width = 4};
  table[1] = {.dst = out + 1, .src = b + 1, .width = 4};
  const CopyOp up{.kind = CopyKind::kHostToDevice, .dst = a, .src = in, .width = 4};
  const CopyOp inside{.kind = CopyKind::kDeviceToDevice, .dst = b, .src = a, .width = 4};
  const FillOp fill{.dst = b + 1, .pattern{std::byte{1}, std::byte{2}}, .pattern_size = 4, .count = 1};
  const BatchOp down{.kind = CopyKind::kDeviceToHost, .pieces = table, .count = 2, .size = {.bytes = 8, .largest = 4}};
  const CopyOp back{.kind = CopyKind::kDeviceToHost, .dst = in, .src = b, .width = 4};
  const Step3 one(a, 1, 1), two(b, 1, 10);
  const KernelOp first = OpOf(probes().step, one), second = OpOf(probes().step, two);
  const Graph nested = NewCapture(stream_, [&] { return driver_->Launch(stream_, first); }), child = NewGraph();
  ASSERT_OK(driver_->AddChild(child, {}, nested).status());
  ASSERT_OK(driver_->AddNode(child, After{0}, &inside, {}).status());

  const Graph graph = NewGraph();
  const ConditionalHandle handle = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(handle, left, 1));
  const Graph body = AddConditional(graph, {0}, handle, kWhile).bodies[0];
  ASSERT_EQ(driver_->AddNode(body, {}, &up, {}).value_or(-1), 0);
  ASSERT_EQ(driver_->AddChild(body, After{0}, child).value_or(-1), 1);
  ASSERT_EQ(driver_->AddNode(body, After{1}, &second, {}).value_or(-1), 2);
  ASSERT_EQ(driver_->AddNode(body, {}, &fill, {}).value_or(-1), 3);
  ASSERT_EQ(driver_->AddNode(body, After{2, 3}, &down, {}).value_or(-1), 4);
  ASSERT_EQ(driver_->AddNode(body, After{2}, &back, {}).value_or(-1), 5);
  AddProbe(body, {4, 5}, probes().decide, DecideOn(handle, left, 1));
  EXPECT_EQ(driver_->CountNodes(body).value_or(-1), 7);
  const GraphExec exec = NewExec(graph);
  for (const int32_t value : {3, -8}) {
    *left = kTimes;
    *in = value;
    std::fill(out, out + 4, 0);
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    int32_t expected = value;
    for (int i = 0; i < kTimes; ++i) expected = StepOf(StepOf(expected, 1), 10);
    EXPECT_EQ(out[0], expected);
    EXPECT_EQ(out[1], 0x0201);
    EXPECT_EQ(*in, expected);
  }
}

TEST_P(DriverConformance, AnExecNeedsItsGraphWithBodiesNoLonger) {
  int32_t *const value = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const auto graph = driver_->CreateGraph(0);
  ASSERT_OK(graph.status());
  const ConditionalHandle handle = NewHandle(*graph);
  AddProbe(*graph, {}, probes().decide, DecideOn(handle, value));
  const Graph body = AddConditional(*graph, {0}, handle, kIf).bodies[0];
  AddStep(body, {}, data, 10);
  const GraphExec exec = NewExec(*graph);
  AddStep(body, {0}, data, 20);  // which is not in it
  driver_->DestroyGraph(*graph);
  *value = 1;
  *data = 3;
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*data, StepOf(3, 10));
}

// --- changes ---

// A step, a child of a step and a switched one in both bodies of an if, of which a nested one is the second.
TEST_P(DriverConformance, NodesOfBodiesAreSetAndSwitchedLikeOthers) {
  int32_t *const value = Pinned<int32_t>(1), *const data = Pinned<int32_t>(1);
  const auto child_of = [&](int32_t k) {
    const Graph child = NewGraph();
    AddStep(child, {}, data, k);
    return child;
  };
  const Graph graph = NewGraph();
  const ConditionalHandle outer = NewHandle(graph);
  AddProbe(graph, {}, probes().decide, DecideOn(outer, value));
  const Graph around = AddConditional(graph, {0}, outer, kIf).bodies[0];
  const ConditionalHandle inner = NewHandle(around);
  AddProbe(around, {}, probes().decide, DecideOn(inner, value));
  const ConditionalNode choice = AddConditional(around, {0}, inner, kSwitch, 3);
  for (int32_t b = 0; b < 3; ++b) {
    const Graph body = choice.bodies[static_cast<size_t>(b)];
    AddStep(body, {}, data, b);
    ASSERT_EQ(driver_->AddChild(body, After{0}, child_of(10 + b)).value_or(-1), 1);
    AddStep(body, {1}, data, 20 + b);
  }
  AddStep(around, {1}, data, 500);
  const GraphExec exec = NewExec(graph);
  const auto run = [&](int32_t which) {
    *value = which;
    *data = 1;
    EXPECT_OK(driver_->LaunchGraph(exec, stream_));
    EXPECT_TRUE(Finish(stream_));
    return *data;
  };
  const auto steps = [](std::vector<int32_t> ks) {
    int32_t result = 1;
    for (const int32_t k : ks) result = StepOf(result, k);
    return result;
  };
  EXPECT_EQ(run(1), steps({1, 11, 21, 500}));
  EXPECT_EQ(run(2), steps({2, 12, 22, 500}));

  const auto first = driver_->BodyOf(exec, choice.bodies[1]), second = driver_->BodyOf(exec, around);
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  const Step3 other(data, 1, 900);
  const KernelOp step = OpOf(probes().step, other);
  ASSERT_OK(driver_->SetNode(*first, 0, &step));
  EXPECT_EQ(run(1), steps({900, 11, 21, 500}));
  ASSERT_OK(driver_->EnableNode(*first, 2, false));
  EXPECT_EQ(run(1), steps({900, 11, 500}));
  ASSERT_OK(driver_->SetChild(*first, 1, child_of(77)));
  EXPECT_EQ(run(1), steps({900, 77, 500}));
  ASSERT_OK(driver_->EnableNode(*second, 2, false));
  EXPECT_EQ(run(1), steps({900, 77}));
  EXPECT_EQ(run(2), steps({2, 12, 22})) << "the other body is as it was";
  ASSERT_OK(driver_->EnableNode(*first, 2, true));
  ASSERT_OK(driver_->EnableNode(*second, 2, true));
  EXPECT_EQ(run(1), steps({900, 77, 21, 500}));
  driver_->DestroyExec(*first);
  driver_->DestroyExec(*second);
  EXPECT_EQ(run(1), steps({900, 77, 21, 500})) << "what was set stays";
}

// --- what is refused ---

void ExpectCode(absl::StatusCode code, const absl::Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(Text(status).find(part), std::string::npos) << status;
}
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;

TEST_P(DriverConformance, AConditionalNodeHasTheHandleOfItsGraphAndTheBodiesOfItsKind) {
  const Graph graph = NewGraph(), other = NewGraph();
  const ConditionalHandle handle = NewHandle(graph), of_other = NewHandle(other);
  for (const auto& [kind, bodies] : std::vector<std::pair<ConditionalKind, int32_t>>{
           {kIf, 0}, {kIf, 3}, {kWhile, 0}, {kWhile, 2}, {kSwitch, 0}, {kSwitch, kMostBodies + 1}, {kSwitch, -1}}) {
    ExpectCode(kInvalid, driver_->AddConditional(graph, {}, handle, kind, bodies).status(), std::to_string(bodies));
  }
  if (of_other != handle) {  // CUDA's may be equal
    ExpectCode(kInvalid, driver_->AddConditional(graph, {}, of_other, kIf, 1).status(), "handle");
  }
  ExpectCode(kInvalid, driver_->AddConditional(graph, {}, ConditionalHandle{}, kIf, 1).status(), "handle");
  const ConditionalNode node = AddConditional(graph, {}, handle, kIf);
  EXPECT_EQ(node.number, 0) << "what is refused is no node";
  ExpectCode(kInvalid, driver_->AddConditional(graph, {}, handle, kIf, 1).status(), "handle");
  ExpectCode(kInvalid, driver_->AddConditional(node.bodies[0], {}, of_other, kIf, 1).status(), "handle");
  AddConditional(node.bodies[0], {}, NewHandle(node.bodies[0]), kIf);
}

TEST_P(DriverConformance, ACaptureGetsNoConditionalNodes) {
  const Graph capture = NewCapture(stream_, [] { return absl::OkStatus(); });
  ExpectCode(kInvalid, driver_->CreateConditional(capture).status(), "captured");
}

TEST_P(DriverConformance, AConditionalNodeIsNoOperationAndNoChild) {
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .count = 8};
  const Graph graph = NewGraph(), child = NewGraph();
  AddConditional(graph, {}, NewHandle(graph), kIf);
  const GraphExec exec = NewExec(graph);
  ExpectCode(kInvalid, driver_->SetNode(exec, 0, &fill), "conditional");
  ExpectCode(kInvalid, driver_->EnableNode(exec, 0, false), "conditional");
  ExpectCode(kInvalid, driver_->SetChild(exec, 0, child), "no child");
}

TEST_P(DriverConformance, AGraphWithAConditionalNodeIsInstantiatedOnceAndIsNoChild) {
  const Graph graph = NewGraph(), parent = NewGraph();
  const ConditionalNode node = AddConditional(graph, {}, NewHandle(graph), kIf);
  ExpectCode(kFailed, driver_->AddChild(parent, {}, graph).status(), "conditional");
  ExpectCode(kFailed, driver_->AddChild(parent, {}, node.bodies[0]).status(), "body");
  ASSERT_EQ(driver_->AddChild(parent, {}, NewGraph()).value_or(-1), 0) << "what is refused is no node";
  const GraphExec exec = NewExec(parent);
  ExpectCode(kFailed, driver_->SetChild(exec, 0, graph), "conditional");
  ExpectCode(kFailed, driver_->SetChild(exec, 0, node.bodies[0]), "body");
  NewExec(graph);
  ExpectCode(kFailed, driver_->Instantiate(graph).status(), "once");
}

TEST_P(DriverConformance, OnlyKernelsHaveSwitchesAndTheirGraphOneExec) {
  int32_t *const data = Pinned<int32_t>(1), *const device = Device<int32_t>(1);
  const CopyOp copy{.kind = CopyKind::kHostToDevice, .dst = device, .src = data, .width = 4};
  const FillOp fill{.dst = device, .count = 4};
  const Graph graph = NewGraph(), parent = NewGraph(), other = NewGraph();
  ASSERT_EQ(AddStep(graph, {}, data, 1), 0);
  ASSERT_EQ(driver_->AddNode(graph, {}, &copy, {}).value_or(-1), 1);
  ASSERT_EQ(driver_->AddChild(graph, {}, other).value_or(-1), 2);
  ASSERT_EQ(AddConditional(graph, {}, NewHandle(graph), kIf).number, 3);
  ASSERT_EQ(driver_->AddNode(graph, {}, &fill, {}).value_or(-1), 4);
  for (const int32_t node : {1, 2, 3}) ExpectCode(kFailed, driver_->AddSwitch(graph, node, {}).status(), "kernels");
  ExpectCode(kInvalid, driver_->AddSwitch(graph, 5, {}).status(), "5");
  ASSERT_OK(driver_->AddSwitch(graph, 0, {}).status());
  ASSERT_OK(driver_->AddSwitch(graph, 4, {}).status());
  ExpectCode(kInvalid, driver_->AddSwitch(graph, 0, {}).status(), "already");
  const Graph single = NewGraph();
  AddStep(single, {}, data, 1);
  ASSERT_OK(driver_->AddSwitch(single, 0, {}).status());
  ExpectCode(kFailed, driver_->AddChild(parent, {}, single).status(), "switch");
  const GraphExec exec = NewExec(single);
  ExpectCode(kFailed, driver_->Instantiate(single).status(), "once");
  *data = 4;
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*data, StepOf(4, 1)) << "it is on";
  ASSERT_OK(driver_->EnableNode(exec, 0, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*data, StepOf(4, 1)) << "the host has switched it off";
}

TEST_P(DriverConformance, ABodyRunsInItsGraphOnly) {
  ExpectViolations();
  const Graph graph = NewGraph(), other = NewGraph();
  const Graph body = AddConditional(graph, {}, NewHandle(graph), kIf).bodies[0];
  const Graph foreign = AddConditional(other, {}, NewHandle(other), kIf).bodies[0];
  const GraphExec exec = NewExec(graph);
  ExpectCode(kInvalid, driver_->Instantiate(body).status(), "BodyOf");
  ExpectCode(kInvalid, driver_->BodyOf(exec, foreign).status(), "body");
  ExpectCode(kInvalid, driver_->BodyOf(exec, other).status(), "body");
  const auto of = driver_->BodyOf(exec, body);
  ASSERT_OK(of.status());
  ExpectCode(kInvalid, driver_->LaunchGraph(*of, stream_), "body");
  ExpectCode(kInvalid, driver_->Upload(*of, stream_), "body");
  driver_->DestroyExec(*of);
  driver_->DestroyGraph(body);  // which goes with its graph
  EXPECT_EQ(driver_->CountNodes(body).value_or(-1), 0);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, ABodyCallsTheHostByKernelsOnly) {
  const HostCall call{.call = [](void*) {}};
  const Graph graph = NewGraph(), child = NewGraph(), deeper = NewGraph(), plain = NewGraph();
  ASSERT_OK(driver_->AddHost(child, {}, call).status());
  ASSERT_OK(driver_->AddChild(deeper, {}, child).status());
  const Graph body = AddConditional(graph, {}, NewHandle(graph), kIf).bodies[0];
  ExpectCode(kFailed, driver_->AddHost(body, {}, call).status(), "host");
  ExpectCode(kFailed, driver_->AddChild(body, {}, child).status(), "a call of the host");
  ExpectCode(kFailed, driver_->AddChild(body, {}, deeper).status(), "a call of the host");
  ASSERT_EQ(driver_->AddChild(body, {}, plain).value_or(-1), 0) << "what is refused is no node";
  ASSERT_OK(driver_->AddHost(graph, {}, call).status()) << "beside the node it may be called";
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  EXPECT_TRUE(Finish(stream_));
}

}  // namespace
}  // namespace penstock::driver::conformance::conditional_bodies_conformance_test
