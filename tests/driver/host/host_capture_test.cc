// Captures and children of the host driver, where it differs from CUDA's: what breaks a capture, in which words things
// are refused. What both have in common is in tests/conformance/driver/.
#include "src/driver/host/host_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/driver/host/host_driver_fixture.h"

namespace penstock::driver::host::host_capture_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kBroken = absl::StatusCode::kFailedPrecondition;
using After = std::vector<int32_t>;

class HostCaptureTest : public HostDriverTest {
 protected:
  Graph Capture(Stream stream, const std::function<absl::Status()>& submit) {
    EXPECT_EQ(driver_->BeginCapture(stream), absl::OkStatus());
    EXPECT_EQ(submit(), absl::OkStatus());
    return driver_->EndCapture(stream).value();
  }
  Graph CaptureFill(void* to, size_t bytes, int value) {
    return Capture(stream_, [&] { return driver_->Fill(stream_, FillOf(to, bytes, value)); });
  }
  template <class Op>
  void Add(Graph graph, const Op& op, const After& after = {}) {
    ASSERT_EQ(driver_->AddNode(graph, after, &op, {}).status(), absl::OkStatus());
  }
};

TEST_F(HostCaptureTest, WhatNoCaptureTakesBreaksItAndItsEndSaysWhatWasFirst) {
  std::byte *const device = Device(16), *const other = Device(16, 1);
  const Event event = *driver_->CreateEvent(0, false);
  const GraphExec exec = *driver_->Instantiate(*driver_->CreateGraph(0));
  const CopyOp peer{
      .kind = CopyKind::kPeer, .dst = device, .src = other, .width = 16, .dst_device = 0, .src_device = 1};
  const std::pair<std::string, std::function<absl::Status()>> calls[] = {
      {"by Record", [&] { return driver_->Record(event, stream_); }},
      {"by Wait", [&] { return driver_->Wait(stream_, event); }},
      {"by Upload", [&] { return driver_->Upload(exec, stream_); }},
      {"by LaunchGraph", [&] { return driver_->LaunchGraph(exec, stream_); }},
      {"by a copy between devices", [&] { return driver_->Copy(stream_, peer); }},
  };
  for (size_t i = 0; i < std::size(calls); ++i) {
    const auto& [words, call] = calls[i];
    SCOPED_TRACE(words);
    ASSERT_EQ(driver_->BeginCapture(stream_), absl::OkStatus());
    ASSERT_EQ(driver_->Fill(stream_, FillOf(device, 16, 1)), absl::OkStatus());
    const absl::Status refused = call();
    EXPECT_EQ(refused.code(), kBroken);
    EXPECT_THAT(Text(refused), HasSubstr(words));
    EXPECT_EQ(calls[(i + 1) % std::size(calls)].second().code(), kBroken);
    EXPECT_EQ(driver_->EndCapture(stream_).status(), refused);
    EXPECT_EQ(call(), absl::OkStatus()) << "the stream works as before";
  }
  EXPECT_TRUE(Finish(stream_));
}

TEST_F(HostCaptureTest, OtherStreamsWorkOn) {
  std::byte* const device = Device(16);
  const Stream other = *driver_->CreateStream(0, 0);
  ASSERT_EQ(driver_->BeginCapture(stream_), absl::OkStatus());
  ASSERT_EQ(driver_->Fill(stream_, FillOf(device, 16, 1)), absl::OkStatus());
  ASSERT_EQ(driver_->Fill(other, FillOf(device, 16, 2)), absl::OkStatus());
  EXPECT_TRUE(Finish(other));
  const Graph graph = *driver_->EndCapture(stream_);
  EXPECT_EQ(driver_->CountNodes(graph).value(), 1);
  EXPECT_THAT(Download(device, 16), Each(std::byte{2}));
}

TEST_F(HostCaptureTest, WhatAStreamRefusesACaptureDoesAndItIsNotBroken) {
  std::byte* const device = Device(16);
  std::vector<std::byte> pageable(16);
  const CopyOp copy{.dst = device, .src = pageable.data(), .width = 16};
  const absl::Status refused = driver_->Copy(stream_, copy);
  const Graph graph = Capture(stream_, [&] {
    EXPECT_EQ(driver_->Copy(stream_, copy), refused);
    EXPECT_EQ(driver_->Fill(stream_, FillOf(device, 17, 1)).code(), kRefused);
    EXPECT_EQ(driver_->Launch(stream_, KernelOp()).code(), absl::StatusCode::kUnimplemented);
    return driver_->Fill(stream_, FillOf(device, 16, 1));
  });
  EXPECT_EQ(driver_->CountNodes(graph).value(), 1);
}

TEST_F(HostCaptureTest, HandlesThatAreNotAliveAreRefused) {
  const Graph graph = *driver_->CreateGraph(0), gone = *driver_->CreateGraph(0);
  const Stream stream = *driver_->CreateStream(0, 0);
  ASSERT_EQ(driver_->AddChild(graph, {}, gone).status(), absl::OkStatus());
  const GraphExec exec = *driver_->Instantiate(graph), no_exec = *driver_->Instantiate(graph);
  driver_->DestroyGraph(gone);
  driver_->DestroyExec(no_exec);
  driver_->DestroyStream(stream);
  for (const absl::Status& status : {driver_->CountNodes(gone).status(), driver_->AddChild(gone, {}, graph).status(),
                                     driver_->AddChild(graph, {}, gone).status(), driver_->SetChild(exec, 0, gone),
                                     driver_->SetChild(no_exec, 0, graph), driver_->BeginCapture(stream)}) {
    EXPECT_EQ(status.code(), kRefused);
    EXPECT_THAT(Text(status), HasSubstr("is not alive"));
  }
  EXPECT_EQ(driver_->EndCapture(stream).status().code(), kBroken);
}

TEST_F(HostCaptureTest, AStreamThatGoesLeavesNoCapture) {
  Twin fallback;
  const Stream gone = *driver_->CreateStream(0, 0);
  ASSERT_EQ(driver_->BeginCapture(gone), absl::OkStatus());
  ASSERT_EQ(driver_->Launch(gone, CallOf(fallback)), absl::OkStatus());
  driver_->DestroyStream(gone);
  EXPECT_EQ(driver_->EndCapture(gone).status().code(), kBroken);
  EXPECT_EQ(driver_->Launch(gone, CallOf(fallback)).code(), kRefused);
  EXPECT_EQ(driver_->Launch(stream_, CallOf(fallback)), absl::OkStatus());
  EXPECT_TRUE(Finish(stream_));
  EXPECT_EQ(fallback.calls, 1);
}

TEST_F(HostCaptureTest, ALaunchNamesTheNodeWhoseMemoryIsGone) {
  std::byte *const device = Device(16), *const gone = Device(16);
  const auto refused = [&](Graph graph) {
    const absl::Status status = driver_->LaunchGraph(*driver_->Instantiate(graph), stream_);
    EXPECT_EQ(status.code(), kRefused);
    return Text(status);
  };
  const Graph captured = Capture(stream_, [&] {
    EXPECT_EQ(driver_->Fill(stream_, FillOf(device, 16, 1)), absl::OkStatus());
    return driver_->Fill(stream_, FillOf(gone, 16, 1));
  });
  const Graph outer = *driver_->CreateGraph(0), behind = *driver_->CreateGraph(0);
  Add(outer, FillOf(device, 16, 1));
  ASSERT_EQ(driver_->AddChild(outer, After{0}, captured).value(), 1);
  ASSERT_EQ(driver_->AddChild(behind, {}, CaptureFill(device, 16, 1)).value(), 0);
  Add(behind, FillOf(gone, 16, 1), {0});
  driver_->FreeDevice(0, gone);
  EXPECT_THAT(refused(captured), HasSubstr("node 1 of a captured graph: "));
  EXPECT_THAT(refused(outer), HasSubstr("node 1 of the child that is node 1 of a graph: "));
  EXPECT_THAT(refused(behind), HasSubstr("node 1 of a graph: "));
}

TEST_F(HostCaptureTest, TheTableOfACapturedBatchIsReadAtTheLaunch) {
  std::byte *const device = Device(16), *const pinned = Pinned(16);
  std::memset(pinned, 7, 16);
  auto* const table = Pinned<CopyPiece>(1);
  table[0] = {.dst = device, .src = pinned, .width = 4};
  const Graph graph = Capture(stream_, [&] { return driver_->CopyBatch(stream_, {.pieces = table, .count = 1}); });
  ASSERT_EQ(driver_->Fill(stream_, FillOf(device, 16, 1)), absl::OkStatus());
  ASSERT_TRUE(Finish(stream_));
  table[0].dst = device + 4;
  table[0].width = 12;
  ASSERT_EQ(driver_->LaunchGraph(*driver_->Instantiate(graph), stream_), absl::OkStatus());
  const std::vector<std::byte> now = Download(device, 16);
  EXPECT_THAT(std::vector<std::byte>(now.begin(), now.begin() + 4), Each(std::byte{1}));
  EXPECT_THAT(std::vector<std::byte>(now.begin() + 4, now.end()), Each(std::byte{7}));
}

TEST_F(HostCaptureTest, AfterAFailedNodeOfAChildTheRunsOtherNodesAreSkipped) {
  Twin failing, skipped, last;
  failing.result = absl::DataLossError("broken");
  RunFault fault;
  const Graph child = Capture(stream_, [&] {
    EXPECT_EQ(driver_->Launch(stream_, CallOf(failing, {&fault, 3})), absl::OkStatus());
    return driver_->Launch(stream_, CallOf(skipped, {&fault, 4}));
  });
  const Graph graph = *driver_->CreateGraph(0);
  ASSERT_EQ(driver_->AddChild(graph, {}, child).value(), 0);
  Add(graph, CallOf(last), {0});
  ASSERT_EQ(driver_->LaunchGraph(*driver_->Instantiate(graph), stream_), absl::OkStatus());
  ASSERT_TRUE(Finish(stream_));
  ASSERT_TRUE(fault.failed());
  EXPECT_EQ(fault.node(), 3);
  EXPECT_EQ(skipped.calls, 0);
  EXPECT_EQ(last.calls, 1);
}

TEST_F(HostCaptureTest, WhatIsCapturedHasThePriorityOfItsStream) {
  Make({.threads_per_device = 1, .memory_bytes = 1 << 20});
  std::vector<int> seen;
  std::vector<Runner> runners = {{&seen, 0}, {&seen, 1}, {&seen, 2}};
  const auto op_of = [&](size_t i) { return KernelOp{.call = &Runner::Call, .callable = &runners[i]}; };
  const Stream urgent = *driver_->CreateStream(0, -3), late = *driver_->CreateStream(0, 3);
  const Graph graph = *driver_->CreateGraph(0);
  ASSERT_TRUE(driver_->AddChild(graph, {}, Capture(late, [&] { return driver_->Launch(late, op_of(0)); })).ok());
  Add(graph, op_of(1));
  ASSERT_TRUE(driver_->AddChild(graph, {}, Capture(urgent, [&] { return driver_->Launch(urgent, op_of(2)); })).ok());
  const GraphExec exec = *driver_->Instantiate(graph);
  Latch& held = NewLatch();
  ASSERT_TRUE(driver_->Launch(urgent, {.call = &Arrive, .callable = &held}).ok());
  ASSERT_TRUE(held.AwaitArrived());
  ASSERT_EQ(driver_->LaunchGraph(exec, stream_), absl::OkStatus());
  held.Open();
  ASSERT_TRUE(Finish(stream_));
  EXPECT_THAT(seen, ElementsAre(2, 1, 0));
}

TEST_F(HostCaptureTest, AnotherStructureIsRefusedInWords) {
  std::byte *const device = Device(64), *const pinned = Pinned(64);
  const FillOp fill = FillOf(device, 16, 1);
  const CopyOp plane{.dst = device, .src = pinned, .width = 4, .height = 2, .dst_pitch = 8, .src_pitch = 8};
  const CopyOp line{.dst = device, .src = pinned, .width = 4};
  const Graph empty = *driver_->CreateGraph(0);
  const auto graph_of = [&](const std::vector<std::pair<After, NodeOp>>& nodes) {
    const Graph graph = *driver_->CreateGraph(0);
    for (const auto& [after, op] : nodes) EXPECT_EQ(driver_->AddNode(graph, after, op, {}).status(), absl::OkStatus());
    return graph;
  };
  const auto refused = [&](Graph child, Graph other) {
    const Graph graph = *driver_->CreateGraph(0);
    EXPECT_EQ(driver_->AddChild(graph, {}, child).value(), 0);
    const absl::Status status = driver_->SetChild(*driver_->Instantiate(graph), 0, other);
    EXPECT_EQ(status.code(), kBroken);
    EXPECT_THAT(Text(status), HasSubstr("; instantiate the graph again"));
    return Text(status);
  };
  const Graph two = graph_of({{{}, &fill}, {{0}, &line}});
  EXPECT_THAT(refused(two, empty), HasSubstr("has 0 operations where it has 2"));
  EXPECT_THAT(refused(two, graph_of({{{}, &fill}, {{}, &line}})), HasSubstr("node 1 of this one comes after others"));
  EXPECT_THAT(refused(two, graph_of({{{}, &line}, {{0}, &line}})),
              AllOf(HasSubstr("node 0 of this one cannot take"), HasSubstr("is a fill and cannot become a copy")));
  EXPECT_THAT(refused(two, graph_of({{{}, &fill}, {{0}, &plane}})), HasSubstr("copies of lines only"));
  const Stream urgent = *driver_->CreateStream(0, -1);
  EXPECT_THAT(refused(graph_of({{{}, &fill}}), Capture(urgent, [&] { return driver_->Fill(urgent, fill); })),
              HasSubstr("node 0 of this one has another priority"));
  // As many nodes, two of which are the ends of a child.
  const Graph nests = *driver_->CreateGraph(0);
  ASSERT_EQ(driver_->AddChild(nests, {}, empty).status(), absl::OkStatus());
  EXPECT_THAT(refused(two, nests), HasSubstr("node 0 of this one is a child, or was one"));
}

TEST_F(HostCaptureTest, NodesOfCapturesAndChildrenAreRefusedInWords) {
  std::byte* const device = Device(16);
  const FillOp fill = FillOf(device, 16, 1);
  const Graph captured = CaptureFill(device, 16, 1), graph = *driver_->CreateGraph(0);
  ASSERT_EQ(driver_->AddChild(graph, {}, captured).value(), 0);
  Add(graph, fill, {0});
  const GraphExec exec = *driver_->Instantiate(graph);
  EXPECT_THAT(Text(driver_->AddNode(captured, {}, &fill, {}).status()), HasSubstr("a captured graph stays as it"));
  EXPECT_THAT(Text(driver_->AddChild(graph, {}, graph).status()), HasSubstr("a child of itself"));
  EXPECT_THAT(Text(driver_->AddChild(graph, After{2}, captured).status()), HasSubstr("node 2 of a graph cannot"));
  EXPECT_THAT(Text(driver_->AddChild(graph, After{1, 1}, captured).status()), HasSubstr("after node 1 twice"));
  EXPECT_THAT(Text(driver_->SetNode(exec, 0, &fill)), HasSubstr("node 0 is a child"));
  EXPECT_THAT(Text(driver_->EnableNode(exec, 0, true)), HasSubstr("node 0 is a child"));
  EXPECT_THAT(Text(driver_->SetChild(exec, 1, captured)), HasSubstr("node 1 is no child"));
  EXPECT_THAT(Text(driver_->SetChild(exec, 2, captured)), HasSubstr("no node 2; this graph has 2"));
  EXPECT_EQ(driver_->CountNodes(graph).value(), 2);
}

}  // namespace
}  // namespace penstock::driver::host::host_capture_test
