// Graphs with nodes on two devices: what runs where, in which order, and side by side.
#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "src/driver/current_device.h"
#include "tests/conformance/driver/driver_conformance.h"
#include "tests/conformance/driver/probe_args.h"

namespace penstock::driver::conformance::graph_devices_conformance_test {
namespace {

constexpr NodePlace kThere{.device = 1};

// A chain that changes device at each step: upload, step, copy over, step, copy back, step, download.
TEST_P(DriverConformance, AChainOfAGraphCrossesDevicesAndBack) {
  SKIP_UNLESS_TWO_DEVICES();
  constexpr int64_t kCount = 1000;
  constexpr size_t kBytes = kCount * sizeof(int32_t);
  int32_t *const in = Pinned<int32_t>(kCount), *const out = Pinned<int32_t>(kCount);
  int32_t *const here = Device<int32_t>(kCount), *const there = Device<int32_t>(kCount, 1);
  for (int32_t i = 0; i < kCount; ++i) in[i] = i;
  std::deque<PackedArgs> steps;
  const auto step = [&](int32_t* data, int32_t k, int device) {
    return OpOf(probes().step, steps.emplace_back().Add(data).Add(kCount).Add(k), kCount, device);
  };
  const CopyOp up{.kind = CopyKind::kHostToDevice, .dst = here, .src = in, .width = kBytes};
  const CopyOp over{
      .kind = CopyKind::kPeer, .dst = there, .src = here, .width = kBytes, .dst_device = 1, .src_device = 0};
  const CopyOp back{
      .kind = CopyKind::kPeer, .dst = here, .src = there, .width = kBytes, .dst_device = 0, .src_device = 1};
  const CopyOp down{.kind = CopyKind::kDeviceToHost, .dst = out, .src = here, .width = kBytes};
  const KernelOp first = step(here, 1, 0), second = step(there, 2, 1), third = step(here, 3, 0),
                 other = step(there, 9, 1);
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &up, {}).status());
  ASSERT_OK(driver_->AddNode(graph, After{0}, &first, {}).status());
  ASSERT_OK(driver_->AddNode(graph, After{1}, &over, kThere).status());
  ASSERT_OK(driver_->AddNode(graph, After{2}, &second, {.priority = -1, .device = 1}).status());
  ASSERT_OK(driver_->AddNode(graph, After{3}, &back, {}).status());
  ASSERT_OK(driver_->AddNode(graph, After{4}, &third, {}).status());
  ASSERT_OK(driver_->AddNode(graph, After{5}, &down, {}).status());
  const GraphExec exec = NewExec(graph);
  const auto expect = [&](int32_t k) {
    std::fill(out, out + kCount, -1);
    ASSERT_OK(driver_->LaunchGraph(exec, stream_));
    ASSERT_TRUE(Finish(stream_));
    for (int32_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i], ((i * 3 + 1) * 3 + k) * 3 + 3) << i;
  };
  expect(2);
  ASSERT_OK(driver_->SetNode(exec, 3, &other));
  expect(9);
  const CopyOp half{
      .kind = CopyKind::kPeer, .dst = here, .src = there, .width = kBytes / 2, .dst_device = 0, .src_device = 1};
  ASSERT_OK(driver_->SetNode(exec, 4, &half));
  ASSERT_OK(driver_->EnableNode(exec, 6, false));
  ASSERT_OK(driver_->LaunchGraph(exec, stream_));
  ASSERT_OK(driver_->EnableNode(exec, 6, true));
  ASSERT_TRUE(Finish(stream_));
  EXPECT_EQ(out[0], ((0 * 3 + 1) * 3 + 9) * 3 + 3) << "the download was off";
  EXPECT_EQ(driver_->SetNode(exec, 4, &over).code(), absl::StatusCode::kInvalidArgument) << "a copy keeps its devices";
}

TEST_P(DriverConformance, BoxesAreCopiedBetweenDevicesInAGraph) {
  SKIP_UNLESS_TWO_DEVICES();
  constexpr size_t kPitch = 64, kWidth = 24, kHeight = 5, kBytes = kPitch * kHeight;
  std::byte* const noise = PinnedNoise(kBytes, 7);
  std::byte *const here = Device<std::byte>(kBytes), *const there = Device<std::byte>(kBytes, 1);
  const CopyOp up{.kind = CopyKind::kHostToDevice, .dst = here, .src = noise, .width = kBytes};
  const FillOp clear{.dst = there, .count = kBytes};
  const CopyOp rows{.kind = CopyKind::kPeer,
                    .dst = there + 8,
                    .src = here + 16,
                    .width = kWidth,
                    .height = kHeight,
                    .dst_pitch = kPitch,
                    .src_pitch = kPitch,
                    .dst_device = 1,
                    .src_device = 0};
  const Graph graph = NewGraph();
  ASSERT_OK(driver_->AddNode(graph, {}, &up, {}).status());
  ASSERT_OK(driver_->AddNode(graph, {}, &clear, kThere).status());
  ASSERT_OK(driver_->AddNode(graph, After{0, 1}, &rows, kThere).status());
  ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
  ASSERT_TRUE(Finish(stream_));
  std::vector<std::byte> expected(kBytes);
  for (size_t y = 0; y < kHeight; ++y) std::memcpy(&expected[y * kPitch + 8], noise + y * kPitch + 16, kWidth);
  EXPECT_EQ(BytesOf(there, kBytes, 1), expected);
}

TEST_P(DriverConformance, NodesOfTwoDevicesRunBesideEachOtherAndAGraphEndsWithAll) {
  SKIP_UNLESS_TWO_DEVICES();
  for (const int held : {0, 1}) {
    KernelLatch &latch = NewLatch(), &other = NewLatch();
    int32_t* const seen = Pinned<int32_t>(2);
    std::fill(seen, seen + 2, 0);
    const LatchArg holds(latch), opens(other);
    const NoteArgs inside(latch, seen), behind(latch, seen + 1);
    const KernelOp hold = OpOf(probes().hold, holds, 1, held), beside = OpOf(probes().hold, opens, 1, 1 - held);
    const KernelOp note = OpOf(probes().note, inside, 1, 1 - held);
    const Event end = NewEvent();
    const Graph graph = NewGraph();
    ASSERT_OK(driver_->AddNode(graph, {}, &hold, {.device = held}).status());
    ASSERT_OK(driver_->AddNode(graph, {}, &beside, {.device = 1 - held}).status());
    ASSERT_OK(driver_->AddNode(graph, After{0, 1}, &note, {.device = 1 - held}).status());
    ASSERT_OK(driver_->LaunchGraph(NewExec(graph), stream_));
    ASSERT_OK(Launch(stream_, probes().note, behind));
    ASSERT_OK(driver_->Record(end, stream_));
    ASSERT_TRUE(AwaitStarted(latch));
    ASSERT_TRUE(AwaitStarted(other)) << "while the other device's kernel runs";
    Open(other);
    EXPECT_FALSE(*driver_->Query(end)) << "the graph has not ended on device " << held;
    Open(latch);
    ASSERT_TRUE(Finish(end));
    EXPECT_EQ(seen[0], kSawOpen) << "what follows waits for both devices";
    EXPECT_EQ(seen[1], kSawOpen) << "what is behind the graph waits for device " << held;
    EXPECT_EQ(latch.timed_out + other.timed_out, 0u);
  }
}

TEST_P(DriverConformance, ABodyStaysOnItsDevice) {
  SKIP_UNLESS_TWO_DEVICES();
  std::byte *const here = Device<std::byte>(16), *const there = Device<std::byte>(16, 1);
  const Graph graph = NewGraph(), elsewhere = NewGraph(1);
  const Graph body = AddConditional(graph, {}, NewHandle(graph), ConditionalKind::kIf).bodies[0];
  const FillOp fill{.dst = there, .count = 16};
  const CopyOp copy{.kind = CopyKind::kPeer, .dst = here, .src = there, .width = 16, .dst_device = 0, .src_device = 1};
  {
    const CurrentDevice current(*driver_, 1);
    ASSERT_OK(driver_->AddNode(elsewhere, {}, &fill, {}).status());
  }
  EXPECT_EQ(driver_->AddNode(body, {}, &fill, kThere).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(driver_->AddNode(body, {}, &copy, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(driver_->AddChild(body, {}, elsewhere).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::driver::conformance::graph_devices_conformance_test
