// Captures: streams that keep what they are given as a graph, against plain arithmetic; and captures that are broken.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::capture_conformance_test {
namespace {

constexpr int64_t kCount = 1000;
constexpr size_t kBytes = kCount * 4;

constexpr auto kBroken = absl::StatusCode::kFailedPrecondition;

TEST_P(DriverConformance, WhatIsCapturedDoesNothingUntilItIsLaunchedAndThenItsWorkAtEachLaunch) {
  int32_t *const from = Pinned<int32_t>(kCount), *const to = Pinned<int32_t>(2 * kCount);
  int32_t *const a = Device<int32_t>(kCount), *const b = Device<int32_t>(2 * kCount);
  CopyPiece* const table = Pinned<CopyPiece>(2);
  table[0] = {.dst = to, .src = b, .width = kBytes};
  table[1] = {.dst = to + kCount, .src = b + kCount, .width = kBytes};
  auto args = std::make_unique<Step3>(a, kCount, 5);
  const KernelOp step = OpOf(probes().step, *args, kCount);
  std::memset(to, 0x5a, 2 * kBytes);
  const Graph graph = NewCapture(stream_, [&]() -> absl::Status {
    EXPECT_OK(driver_->Copy(stream_, {.kind = CopyKind::kHostToDevice, .dst = a, .src = from, .width = kBytes}));
    EXPECT_OK(driver_->Launch(stream_, step));
    EXPECT_OK(driver_->Copy(stream_, {.kind = CopyKind::kDeviceToDevice, .dst = b, .src = a, .width = kBytes}));
    EXPECT_OK(driver_->Fill(
        stream_, {.dst = b + kCount, .pattern{std::byte{1}, std::byte{2}}, .pattern_size = 4, .count = kCount}));
    return driver_->CopyBatch(stream_, {.kind = CopyKind::kDeviceToHost, .pieces = table, .count = 2});
  });
  args.reset();  // they were read
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 5);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(to[0], 0x5a5a5a5a) << "it was run";
  const GraphExec exec = NewExec(graph);
  for (const int32_t first : {0, 1000, -77}) {
    for (int32_t i = 0; i < kCount; ++i) from[i] = first + i * 7;
    std::memset(to, 0x5a, 2 * kBytes);
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    for (int32_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(to[i], StepOf(first + i * 7, 5)) << i;
      ASSERT_EQ(to[kCount + i], 0x0201) << i;
    }
  }
}

TEST_P(DriverConformance, WhatStandsBeforeACaptureInItsStreamStaysAndWhatComesAfterRuns) {
  KernelLatch& latch = NewLatch();
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  const Step3 args(data, 1, 7);
  const KernelOp step = OpOf(probes().step, args);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  ASSERT_TRUE(Hold(stream_, latch));
  ASSERT_OK(driver_->Launch(stream_, step));
  const Graph graph = NewCapture(stream_, [&] { return driver_->Launch(stream_, step); });
  ASSERT_OK(driver_->Launch(stream_, step));
  ASSERT_OK(Download(stream_, out, data, 4));
  Open(latch);
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, StepOf(StepOf(0, 7), 7));
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, StepOf(StepOf(StepOf(0, 7), 7), 7));
}

TEST_P(DriverConformance, ACaptureOfManyKernelsRunsInTheirOrder) {
  constexpr int32_t kSteps = 200;
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  std::vector<std::unique_ptr<Step3>> args;
  std::vector<KernelOp> steps;
  int32_t expected = 0;
  for (int32_t k = 0; k < kSteps; ++k) {
    args.push_back(std::make_unique<Step3>(data, 1, k));
    steps.push_back(OpOf(probes().step, *args.back()));
    expected = StepOf(expected, k);
  }
  const Graph graph = NewCapture(stream_, [&] {
    absl::Status status;
    for (const KernelOp& step : steps) status.Update(driver_->Launch(stream_, step));
    return status;
  });
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), kSteps);
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, expected);
}

TEST_P(DriverConformance, ACaptureOfNothingHasNoNodes) {
  std::byte *const device = Device<std::byte>(8), *const pinned = Pinned<std::byte>(8);
  const Graph nothing = NewCapture(stream_, [] { return absl::OkStatus(); });
  EXPECT_EQ(driver_->CountNodes(nothing).value_or(-1), 0);
  const Graph no_bytes = NewCapture(stream_, [&]() -> absl::Status {
    EXPECT_OK(driver_->Fill(stream_, {.dst = device, .count = 0}));
    return driver_->Copy(stream_, {.kind = CopyKind::kHostToDevice, .dst = device, .src = pinned, .width = 0});
  });
  EXPECT_EQ(driver_->CountNodes(no_bytes).value_or(-1), 0);
  ASSERT_OK(driver_->LaunchGraph(NewExec(nothing), stream_));
  EXPECT_TRUE(Finish(stream_));
}

TEST_P(DriverConformance, AGraphThatIsBuiltCountsItsNodesAsTheyAreAdded) {
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .count = 8};
  const Graph graph = NewGraph();
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 0);
  ASSERT_OK(driver_->AddNode(graph, {}, &fill, {}).status());
  ASSERT_OK(driver_->AddNode(graph, {}, &fill, {}).status());
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 2);
}

TEST_P(DriverConformance, ACapturedGraphTakesNoNodesAndItsNodesHaveNoNumbers) {
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .pattern{std::byte{3}}, .count = 8};
  const FillOp other{.dst = device, .pattern{std::byte{4}}, .count = 8};
  const Graph graph = NewCapture(stream_, [&] { return driver_->Fill(stream_, fill); });
  const Graph empty = NewGraph();
  const GraphExec exec = NewExec(graph);
  for (const absl::Status& status :
       {driver_->AddNode(graph, {}, &other, {}).status(), driver_->AddChild(graph, {}, empty).status(),
        driver_->SetNode(exec, 0, &other), driver_->EnableNode(exec, 0, false), driver_->SetChild(exec, 0, empty)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 1);
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(device, 8), std::vector<std::byte>(8, std::byte{3}));
}

TEST_P(DriverConformance, TwoStreamsMayCaptureAtOnce) {
  int32_t *const data = Device<int32_t>(2), *const out = Pinned<int32_t>(2);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 8}));
  const Step3 first(data, 1, 3), second(data + 1, 1, 4);
  const KernelOp one = OpOf(probes().step, first), another = OpOf(probes().step, second);
  const Stream other = NewStream();
  Graph inner;
  const Graph outer = NewCapture(stream_, [&] {
    EXPECT_OK(driver_->Launch(stream_, one));
    inner = NewCapture(other, [&] { return driver_->Launch(other, another); });
    return driver_->Launch(stream_, one);
  });
  EXPECT_EQ(driver_->CountNodes(outer).value_or(-1), 2);
  EXPECT_EQ(driver_->CountNodes(inner).value_or(-1), 1);
  for (const Graph graph : {outer, inner}) ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(Download(stream_, out, data, 8));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(out[0], StepOf(StepOf(0, 3), 3));
  EXPECT_EQ(out[1], StepOf(0, 4));
}

// --- what is refused and what breaks ---

TEST_P(DriverConformance, ABrokenCaptureSaysWhatBrokeItAndItsStreamWorksOn) {
  if (GetParam().break_capture == nullptr) ExpectViolations();
  int32_t *const data = Device<int32_t>(1), *const out = Pinned<int32_t>(1);
  ASSERT_OK(driver_->Fill(stream_, {.dst = data, .count = 4}));
  const Step3 args(data, 1, 5);
  const KernelOp step = OpOf(probes().step, args);
  const Event event = NewEvent();
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(driver_->BeginCapture(stream_));
    ASSERT_OK(driver_->Launch(stream_, step));
    if (GetParam().break_capture != nullptr) {
      GetParam().break_capture(driver_->NativeStream(stream_));
    } else {
      EXPECT_EQ(driver_->Record(event, stream_).code(), kBroken);
    }
    driver_->Launch(stream_, step).IgnoreError();
    const absl::Status broken = driver_->EndCapture(stream_).status();
    EXPECT_EQ(broken.code(), kBroken);
    EXPECT_GT(broken.message().size(), 20u) << broken;
  }
  ASSERT_OK(driver_->Record(event, stream_));
  ASSERT_TRUE(Finish(event));
  ASSERT_OK(driver_->Launch(stream_, step));
  const Graph graph = NewCapture(stream_, [&] { return driver_->Launch(stream_, step); });
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 1) << "none of a capture that was broken";
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_OK(Download(stream_, out, data, 4));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(*out, StepOf(StepOf(0, 5), 5)) << "nothing of a capture that was broken has run";
}

TEST_P(DriverConformance, AnOperationThatIsRefusedIsNotCapturedAndTheCaptureGoesOn) {
  std::byte *const device = Device<std::byte>(64), *const pinned = PinnedNoise(64, 5);
  const CopyOp crossed{.kind = CopyKind::kHostToDevice,
                       .dst = device,
                       .src = pinned,
                       .width = 8,
                       .height = 2,
                       .dst_pitch = 7,
                       .src_pitch = 8};
  const Graph graph = NewCapture(stream_, [&] {
    EXPECT_EQ(driver_->Copy(stream_, crossed).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(driver_->Fill(stream_, {.dst = device, .pattern_size = 17, .count = 1}).code(),
              absl::StatusCode::kInvalidArgument);
    return Upload(stream_, device, pinned, 64);
  });
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 1);
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(BytesOf(device, 64), std::vector<std::byte>(pinned, pinned + 64));
}

// CUDA refuses some calls and leaves the capture valid: what they were to do is missing, and the graph must not be
// used.
TEST_P(DriverConformance, TheEndOfACaptureTellsOfACallThatWasRefusedInIt) {
  ExpectViolations();
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .count = 8};
  EXPECT_EQ(driver_->EndCapture(stream_).status().code(), kBroken) << "nothing was begun";
  ASSERT_OK(driver_->BeginCapture(stream_));
  EXPECT_OK(driver_->Fill(stream_, fill));
  EXPECT_EQ(driver_->BeginCapture(stream_).code(), kBroken);
  EXPECT_OK(driver_->Fill(stream_, fill)) << "the capture that was begun goes on";
  const absl::Status told = driver_->EndCapture(stream_).status();
  EXPECT_EQ(told.code(), kBroken);
  EXPECT_THAT(std::string(told.message()), testing::HasSubstr("BeginCapture"));
  EXPECT_EQ(driver_->EndCapture(stream_).status().code(), kBroken) << "it has ended";
  ASSERT_OK(driver_->Fill(stream_, fill));
  EXPECT_TRUE(Finish(stream_));
  const Graph graph = NewCapture(stream_, [&] { return driver_->Fill(stream_, fill); });
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 1) << "the next capture knows nothing of it";
}

TEST_P(DriverConformance, ACaptureEndsWithItsStream) {
  ExpectViolations();
  std::byte* const device = Device<std::byte>(8);
  const FillOp fill{.dst = device, .count = 8};
  const auto stream = driver_->CreateStream(0, 0);
  ASSERT_OK(stream.status());
  ASSERT_OK(driver_->BeginCapture(*stream));
  ASSERT_OK(driver_->Fill(*stream, fill));
  driver_->DestroyStream(*stream);
  // What a thread may not do while a stream captures for it:
  const Event event = NewEvent();
  ASSERT_OK(driver_->Fill(stream_, fill));
  ASSERT_OK(driver_->Record(event, stream_));
  EXPECT_TRUE(Finish(event));
  const Graph graph = NewCapture(stream_, [&] { return driver_->Fill(stream_, fill); });
  EXPECT_EQ(driver_->CountNodes(graph).value_or(-1), 1);
}

}  // namespace
}  // namespace penstock::driver::conformance::capture_conformance_test
